#define _GNU_SOURCE
#include "sys.h"

#include "lazaret_filter.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <link.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How often a call that a signal interrupted is repeated before giving up. */
#define EINTR_ATTEMPTS_MAX 16

/* How many descriptor numbers lz_close_other_descriptors() looks at. */
#define PROVED_DESCRIPTORS 1024

/*
 * Safe: formats into a bounded buffer on the stack and uses only write(2) and
 * exit_group(2), which the filter lets pass, so it works before and after it.
 */
void lz_fail(enum lz_exit code, const char *detail, int error_number)
{
    char line[256];
    int size;

    if (error_number != 0)
        size = snprintf(line, sizeof line, "lazaret-launcher: %s: %s (errno %d)\n", detail,
                        strerror(error_number), error_number);
    else
        size = snprintf(line, sizeof line, "lazaret-launcher: %s\n", detail);
    if (size > 0) {
        size_t bounded = (size_t)size < sizeof line ? (size_t)size : sizeof line - 1;
        /* Nobody is left to tell that stderr is gone; the exit code still counts. */
        ssize_t ignored = write(2, line, bounded);
        (void)ignored;
    }
    _exit(code);
}

/*
 * Safe: only asks. Were one of the three closed, the next file that is opened
 * would take its number, and the input could become standard input.
 */
void lz_require_standard_descriptors(void)
{
    for (int descriptor = 0; descriptor <= 2; descriptor++)
        if (fcntl(descriptor, F_GETFD) < 0)
            lz_fail(LZ_EXIT_DESCRIPTORS, "descriptor 0, 1 or 2 is closed", errno);
}

/*
 * Safe: close_range(2) takes the whole range in one call and cannot be asked
 * about it afterwards, so each number is: F_GETFD fails with EBADF for one that
 * is not open. poll(2) would not do; it calls an O_PATH descriptor not open.
 * Numbers beyond are proved from outside at the barrier.
 */
void lz_close_other_descriptors(void)
{
    if (syscall(SYS_close_range, 3U, ~0U, 0U) != 0)
        lz_fail(LZ_EXIT_DESCRIPTORS, "close_range of everything above 2", errno);
    for (int descriptor = 3; descriptor < PROVED_DESCRIPTORS; descriptor++)
        if (fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF)
            lz_fail(LZ_EXIT_DESCRIPTORS, "a descriptor above 2 is still open", 0);
}

/* Safe: bounded by `size`, and an end of file is a failure, always. */
void lz_read_exactly(void *bytes, size_t size, enum lz_exit code)
{
    uint8_t *at = bytes;
    int interrupted = 0;

    while (size > 0) {
        ssize_t count = read(0, at, size);
        if (count < 0 && errno == EINTR && ++interrupted < EINTR_ATTEMPTS_MAX)
            continue;
        if (count < 0)
            lz_fail(code, "reading standard input", errno);
        if (count == 0)
            lz_fail(code, "standard input ended", 0);
        at += count;
        size -= (size_t)count;
    }
}

/* Safe: bounded by `size`; a closed reader is a failure, SIGPIPE being ignored. */
void lz_write_exactly(const void *bytes, size_t size, enum lz_exit code)
{
    const uint8_t *at = bytes;
    int interrupted = 0;

    while (size > 0) {
        ssize_t count = write(1, at, size);
        if (count < 0 && errno == EINTR && ++interrupted < EINTR_ATTEMPTS_MAX)
            continue;
        if (count <= 0)
            lz_fail(code, "writing standard output", count < 0 ? errno : 0);
        at += count;
        size -= (size_t)count;
    }
}

/*
 * Safe: only asks. The warden sends the release after it has seen the ready
 * record; a byte that waits before that is not an answer to it.
 */
void lz_require_silence(void)
{
    struct pollfd standard_input = { .fd = 0, .events = POLLIN };
    int answered = poll(&standard_input, 1, 0);

    if (answered < 0)
        lz_fail(LZ_EXIT_NOT_RELEASED, "asking for waiting input", errno);
    if (answered > 0)
        lz_fail(LZ_EXIT_NOT_RELEASED, "input was waiting before the barrier", 0);
}

/*
 * Safe: as process 1 of its namespace SIGPIPE and SIGXFSZ would be dropped
 * anyway; ignoring them makes a full pipe or a full file an ordinary error
 * under every parent. An inherited mask would stay through exec.
 */
void lz_settle_signals(void)
{
    sigset_t none;

    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
        lz_fail(LZ_EXIT_LIMITS, "ignoring SIGPIPE and SIGXFSZ", errno);
    if (sigemptyset(&none) != 0 || sigprocmask(SIG_SETMASK, &none, NULL) != 0)
        lz_fail(LZ_EXIT_LIMITS, "emptying the signal mask", errno);
}

static void set_hard_limit(int resource, rlim_t value, const char *failure)
{
    struct rlimit wanted = { .rlim_cur = value, .rlim_max = value };
    struct rlimit found;

    if (setrlimit(resource, &wanted) != 0 || getrlimit(resource, &found) != 0)
        lz_fail(LZ_EXIT_LIMITS, failure, errno);
    if (found.rlim_cur != value || found.rlim_max != value)
        lz_fail(LZ_EXIT_LIMITS, failure, 0);
}

/*
 * Safe: with soft equal to hard, and neither capabilities nor setrlimit(2)
 * afterwards, nothing in this process can raise one of them again. The kernel
 * compares CPU time itself and kills with SIGKILL where soft equals hard.
 */
void lz_set_hard_limits(void)
{
    set_hard_limit(RLIMIT_CPU, LZ_LIMIT_CPU_S, "setting the CPU limit");
    set_hard_limit(RLIMIT_AS, LZ_LIMIT_ADDRESS_SPACE_BYTES, "setting the address space limit");
    set_hard_limit(RLIMIT_FSIZE, LZ_LIMIT_FILE_BYTES, "setting the file size limit");
    set_hard_limit(RLIMIT_NOFILE, LZ_LIMIT_DESCRIPTORS, "setting the descriptor limit");
    set_hard_limit(RLIMIT_CORE, LZ_LIMIT_CORE_BYTES, "setting the core size limit");
    set_hard_limit(RLIMIT_STACK, LZ_LIMIT_STACK_BYTES, "setting the stack limit");
}

/*
 * Safe: a bare system call, not libc's wrapper, so nothing falls back to a
 * device, the clock or a sleep. Short reads are failures (ADR-013).
 */
uint32_t lz_hash_seed(void)
{
    uint32_t seed = 0;

    for (int attempt = 0; attempt < EINTR_ATTEMPTS_MAX; attempt++) {
        long count = syscall(SYS_getrandom, &seed, sizeof seed, GRND_NONBLOCK);
        if (count == (long)sizeof seed)
            return seed;
        if (count >= 0)
            lz_fail(LZ_EXIT_ENTROPY, "getrandom gave fewer than four bytes", 0);
        if (errno != EINTR)
            lz_fail(LZ_EXIT_ENTROPY, "getrandom", errno);
    }
    lz_fail(LZ_EXIT_ENTROPY, "getrandom was interrupted too often", 0);
}

/*
 * Safe: no link is followed, the kind is taken from the open descriptor, and
 * one byte more than expected is asked for, so that a longer file shows.
 */
void lz_read_file(const char *path, uint8_t *bytes, size_t size)
{
    struct stat facts;
    size_t have = 0;
    uint8_t beyond;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (descriptor < 0 || fstat(descriptor, &facts) != 0)
        lz_fail(LZ_EXIT_PACKAGE, "opening the package", errno);
    if (!S_ISREG(facts.st_mode))
        lz_fail(LZ_EXIT_PACKAGE, "the package is not a regular file", 0);
    while (have < size) {
        ssize_t count = read(descriptor, bytes + have, size - have);
        if (count < 0)
            lz_fail(LZ_EXIT_PACKAGE, "reading the package", errno);
        if (count == 0)
            lz_fail(LZ_EXIT_PACKAGE, "the package is shorter than the plan says", 0);
        have += (size_t)count;
    }
    if (read(descriptor, &beyond, 1) != 0)
        lz_fail(LZ_EXIT_PACKAGE, "the package is longer than the plan says", 0);
    if (close(descriptor) != 0)
        lz_fail(LZ_EXIT_PACKAGE, "closing the package", errno);
}

/*
 * Safe: the program is a constant of this binary, checked by the kernel when it
 * is installed. There is one thread, so no thread can be missed. From here on
 * neither seccomp(2) nor prctl(2) is let through, so it can only stay.
 */
void lz_install_filter(void)
{
    _Static_assert(sizeof lz_filter / sizeof lz_filter[0] == LZ_FILTER_INSTRUCTIONS,
                   "the kernel and the warden are told the filter's true length");
    struct sock_fprog program = {
        .len = LZ_FILTER_INSTRUCTIONS,
        .filter = (struct sock_filter *)(uintptr_t)lz_filter,
    };

    if (prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL) != 0)
        lz_fail(LZ_EXIT_FILTER, "setting no_new_privs", errno);
    if (prctl(PR_GET_NO_NEW_PRIVS, 0UL, 0UL, 0UL, 0UL) != 1)
        lz_fail(LZ_EXIT_FILTER, "no_new_privs did not hold", 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0UL, &program) != 0)
        lz_fail(LZ_EXIT_FILTER, "installing the filter", errno);
}

/* Where the linker put the ELF header of this program. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

/*
 * Safe: the addresses come from this program's own header. The toolchain's
 * start-up code for a static PIE relocates and leaves the RELRO part writable,
 * so the header alone would promise what does not hold.
 */
void lz_protect_relocations(void)
{
    uintptr_t base = (uintptr_t)&__ehdr_start;
    const ElfW(Phdr) *header = (const ElfW(Phdr) *)(base + __ehdr_start.e_phoff);
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    for (unsigned at = 0; at < __ehdr_start.e_phnum; at++) {
        uintptr_t start = (base + header[at].p_vaddr) & ~(page - 1);
        uintptr_t end = (base + header[at].p_vaddr + header[at].p_memsz) & ~(page - 1);

        if (header[at].p_type != PT_GNU_RELRO)
            continue;
        if (mprotect((void *)start, end - start, PROT_READ) != 0)
            lz_fail(LZ_EXIT_RELOCATIONS, "making relocated data read-only", errno);
        return;
    }
    lz_fail(LZ_EXIT_RELOCATIONS, "the program has no RELRO part", 0);
}

/*
 * Replaces libc's mmap in this static binary. The toolchain's malloc gives each
 * mapping an address as a hint; the filter accepts none, because scattered
 * hints turn 128 MiB of address space into hundreds of MiB of page tables.
 * Safe: dropping a hint is always allowed (mmap(2)); an address that is no hint
 * is passed on, to be refused by the filter once that is in place.
 */
void *mmap(void *address, size_t size, int protection, int flags, int descriptor, off_t offset)
{
    int fixed = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);

    return (void *)syscall(SYS_mmap, fixed != 0 ? address : NULL, size, (long)protection,
                           (long)flags, (long)descriptor, (long)offset);
}
