/*
 * A launcher for the warden's tests. It speaks the ABI and brings itself to the
 * barrier as the production launcher does, but has no Python: its package is a list
 * of commands, one a line, so that a test can make a process end in every way. Each
 * HOSTILE_... makes it break one rule, which the barrier has to notice.
 *
 * Never part of a closure that serves.
 */
#define _GNU_SOURCE
#include "lazaret_abi.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define KILL_IF(number)                                                                           \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),                                            \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

/* The rules that the tests of endings need: no second process, no large exit code. */
static struct sock_filter filter[] = {
    LOAD(arch),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    LOAD(nr),
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    KILL_IF(SYS_socket),
    KILL_IF(SYS_ptrace),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 4),
    LOAD(args[0]),
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 128, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};
#define FILTER_INSTRUCTIONS (sizeof filter / sizeof filter[0])

static void fail(int code, const char *what)
{
    dprintf(2, "scripted: %s: %s\n", what, strerror(errno));
    _exit(code);
}

static void read_exactly(void *bytes, size_t size, int code)
{
    char *at = bytes;

    while (size > 0) {
        ssize_t count = read(0, at, size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            fail(code, "standard input");
        at += count;
        size -= (size_t)count;
    }
}

static void limit(int resource, rlim_t value)
{
    struct rlimit both = { value, value };

    if (setrlimit(resource, &both) != 0)
        fail(LZ_EXIT_LIMITS, "setrlimit");
}

static void install_filter(void)
{
    struct sock_fprog program = { .len = FILTER_INSTRUCTIONS, .filter = filter };

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
        fail(LZ_EXIT_FILTER, "seccomp");
}

static void *forever(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static void caught(int signal)
{
    (void)signal;
}

static void write_many(int descriptor, long count)
{
    char block[512];

    memset(block, 'x', sizeof block);
    while (count > 0) {
        size_t size = count < (long)sizeof block ? (size_t)count : sizeof block;
        ssize_t written = write(descriptor, block, size);
        if (written < 0)
            _exit(errno & 127);
        count -= written;
    }
}

static void doze(long milliseconds)
{
    struct timespec left = { milliseconds / 1000, (milliseconds % 1000) * 1000000 };

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

static void allocate(long mebibytes)
{
    for (long i = 0; i < mebibytes; i++) {
        char *block = malloc(1 << 20);
        if (block == NULL)
            _exit(12);
        memset(block, 1, 1 << 20);
    }
}

static void output(long count)
{
    int descriptor = open(LZ_PATH_OUTPUT, O_WRONLY | O_TRUNC);

    if (descriptor < 0)
        _exit(errno & 127);
    write_many(descriptor, count);
}

static void obey(const char *command, long number)
{
    if (strcmp(command, "exit") == 0)
        _exit((int)number);
    else if (strcmp(command, "raw-exit") == 0)
        syscall(SYS_exit_group, number);
    else if (strcmp(command, "stdout") == 0)
        write_many(1, number);
    else if (strcmp(command, "stderr") == 0)
        write_many(2, number);
    else if (strcmp(command, "output") == 0)
        output(number);
    else if (strcmp(command, "sleep") == 0)
        doze(number);
    else if (strcmp(command, "allocate") == 0)
        allocate(number);
    else if (strcmp(command, "spin") == 0)
        for (;;)
            ;
    else if (strcmp(command, "fault") == 0)
        *(volatile int *)8 = 1;
    else if (strcmp(command, "illegal") == 0)
        __builtin_trap();
    else if (strcmp(command, "breakpoint") == 0)
        __asm__ volatile("int3");
    else if (strcmp(command, "raise") == 0)
        raise((int)number);
    else if (strcmp(command, "syscall") == 0)
        syscall(number, 0, 0, 0, 0, 0, 0);
    else if (strcmp(command, "int80") == 0)
        __asm__ volatile("int $0x80" : : "a"(number), "b"(0), "c"(0), "d"(0) : "memory");
    else if (strcmp(command, "fork") == 0 && fork() == 0)
        doze(60000);
    else if (strcmp(command, "exec") == 0)
        execl(LZ_PATH_LAUNCHER, LZ_PATH_LAUNCHER, (char *)NULL);
    else if (strcmp(command, "close-streams") == 0)
        (void)(close(1), close(2));
}

static void run_package(void)
{
    static char text[LZ_PACKAGE_BYTES_MAX + 1];
    int descriptor = open(LZ_PATH_PACKAGE, O_RDONLY);
    ssize_t size = read(descriptor, text, sizeof text - 1);

    if (size < 0)
        _exit(errno & 127);
    close(descriptor);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char command[32] = "";
        long number = 0;
        (void)sscanf(line, "%31s %ld", command, &number);
        obey(command, number);
    }
}

/* The rules that only some versions of this program break. */
static void break_rules_before_ready(struct lz_ready *ready)
{
    (void)ready;
#ifdef HOSTILE_OPEN_DESCRIPTOR
    (void)open(LZ_PATH_PACKAGE, O_RDONLY);
#endif
#ifdef HOSTILE_SECOND_THREAD
    pthread_t thread;
    (void)pthread_create(&thread, NULL, forever, NULL);
#endif
#ifdef HOSTILE_NONCE
    ready->nonce[31] ^= 1;
#endif
#ifdef HOSTILE_PACKAGE_DIGEST
    ready->package_sha256[0] ^= 1;
#endif
#ifdef HOSTILE_VERSION
    ready->python_version_hex ^= 0x100;
#endif
#ifdef HOSTILE_FILTER_SIZE
    ready->filter_instructions += 1;
#endif
#ifdef HOSTILE_WORKING_DIRECTORY
    (void)chdir("/out");
#endif
#ifdef HOSTILE_UMASK
    (void)umask(0);
#endif
#ifdef HOSTILE_BLOCKED_SIGNALS
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
#endif
#ifdef HOSTILE_CAUGHT_SIGNAL
    signal(SIGUSR1, caught);
#endif
#ifdef HOSTILE_OTHER_PERSONALITY
    (void)personality(ADDR_NO_RANDOMIZE);
#endif
#ifdef HOSTILE_HUGE_PAGES
    (void)prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
#endif
#ifdef HOSTILE_CLOSED_STDERR
    close(2);
#endif
#ifdef HOSTILE_SWAPPED_STREAMS
    dup2(1, 2);
#endif
#ifdef HOSTILE_FORK
    if (fork() == 0)
        forever(NULL);
#endif
#ifdef HOSTILE_EXEC
    if (getenv("AGAIN") == NULL)
        execle(LZ_PATH_LAUNCHER, LZ_PATH_LAUNCHER, (char *)NULL, (char *[]){ "AGAIN=1", NULL });
#endif
#ifdef HOSTILE_EARLY_STDERR
    dprintf(2, "hello\n");
#endif
#ifdef HOSTILE_DEATH
    _exit(3);
#endif
#ifdef HOSTILE_FAULT
    *(volatile int *)8 = 1;
#endif
#ifdef HOSTILE_STAGE
    fail(LZ_EXIT_PYTHON, "as told");
#endif
#ifdef HOSTILE_SILENCE
    forever(NULL);
#endif
}

static void break_rules_after_ready(void)
{
#ifdef HOSTILE_LATE_STDOUT
    (void)!write(1, "x", 1);
#endif
#ifdef HOSTILE_LATE_STDERR
    doze(200);
    (void)!write(2, "x", 1);
#endif
#ifdef HOSTILE_LATE_DEATH
    doze(200);
    _exit(3);
#endif
}

int main(void)
{
    struct lz_plan plan;
    struct lz_ready ready = { .magic = LZ_READY_MAGIC, .abi_version = LZ_ABI_VERSION };
    uint8_t byte = 0;

    if (syscall(SYS_close_range, 3U, ~0U, 0U) != 0)
        fail(LZ_EXIT_DESCRIPTORS, "close_range");
    read_exactly(&plan, sizeof plan, LZ_EXIT_PLAN);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
#ifndef HOSTILE_CPU_LIMIT
    limit(RLIMIT_CPU, LZ_LIMIT_CPU_S);
#endif
#ifdef HOSTILE_SECOND_THREAD
    limit(RLIMIT_AS, 4 * LZ_LIMIT_ADDRESS_SPACE_BYTES);
#else
    limit(RLIMIT_AS, LZ_LIMIT_ADDRESS_SPACE_BYTES);
#endif
    limit(RLIMIT_FSIZE, LZ_LIMIT_FILE_BYTES);
    limit(RLIMIT_NOFILE, LZ_LIMIT_DESCRIPTORS);
    limit(RLIMIT_CORE, LZ_LIMIT_CORE_BYTES);
    limit(RLIMIT_STACK, LZ_LIMIT_STACK_BYTES);
    ready.record_bytes = sizeof ready;
    memcpy(ready.nonce, plan.nonce, sizeof ready.nonce);
    memcpy(ready.package_sha256, plan.package_sha256, sizeof ready.package_sha256);
    ready.package_bytes = plan.package_bytes;
    ready.python_version_hex = 0x030c08f0;
    ready.filter_instructions = FILTER_INSTRUCTIONS;
#ifndef HOSTILE_NO_FILTER
    install_filter();
#endif
#ifdef HOSTILE_SECOND_FILTER
    install_filter();
#endif
    break_rules_before_ready(&ready);
    if (write(1, &ready, sizeof ready) != sizeof ready)
        fail(LZ_EXIT_READY, "ready");
    break_rules_after_ready();
    read_exactly(&byte, 1, LZ_EXIT_NOT_RELEASED);
    if (byte != LZ_RELEASE_BYTE)
        fail(LZ_EXIT_NOT_RELEASED, "release");
    run_package();
    _exit(0);
}
