/*
 * Sets one part of what a process inherits to something hostile, then becomes its
 * arguments: hostile_parent WHAT PROGRAM ...
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/ioprio.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void require(int result, const char *what)
{
    if (result < 0) {
        perror(what);
        exit(77);
    }
}

static void limit(int resource, rlim_t soft, rlim_t hard)
{
    struct rlimit both = { soft, hard };

    require(setrlimit(resource, &both), "setrlimit");
}

/* Each soft limit as low as the test's own program bears; the hard ones stay. */
static void lower_soft_limits(void)
{
    struct rlimit now;

    for (int resource = 0; resource < RLIMIT_NLIMITS; resource++) {
        require(getrlimit(resource, &now), "getrlimit");
        if (resource == RLIMIT_CORE || resource == RLIMIT_MEMLOCK || resource == RLIMIT_LOCKS ||
            resource == RLIMIT_SIGPENDING || resource == RLIMIT_MSGQUEUE ||
            resource == RLIMIT_NICE || resource == RLIMIT_RTPRIO || resource == RLIMIT_RTTIME)
            limit(resource, 0, now.rlim_max);
    }
    require(getrlimit(RLIMIT_CPU, &now), "getrlimit");
    limit(RLIMIT_CPU, 60, now.rlim_max);
    require(getrlimit(RLIMIT_NOFILE, &now), "getrlimit");
    limit(RLIMIT_NOFILE, 64, now.rlim_max);
}

/* Nothing is close-on-exec; as many as the hard limit lets be. */
static void open_descriptors(int wanted)
{
    struct rlimit now;
    int opened = 0;

    require(getrlimit(RLIMIT_NOFILE, &now), "getrlimit");
    now.rlim_cur = now.rlim_max = (rlim_t)wanted + 100;
    if (setrlimit(RLIMIT_NOFILE, &now) != 0) {
        require(getrlimit(RLIMIT_NOFILE, &now), "getrlimit");
        limit(RLIMIT_NOFILE, now.rlim_max, now.rlim_max);
        wanted = (int)now.rlim_max - 100;
    }
    while (opened < wanted && open("/etc/passwd", O_RDONLY) >= 0)
        opened++;
    fprintf(stderr, "%d descriptors are open\n", opened);
}

static void ignore_all_signals(void)
{
    struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        unsigned long mask;
    } ignore = { SIG_IGN, 0, NULL, 0 };

    for (int number = 1; number <= 64; number++)
        if (number != SIGKILL && number != SIGSTOP)
            require((int)syscall(SYS_rt_sigaction, number, &ignore, NULL, 8), "rt_sigaction");
}

static void block_all_signals(void)
{
    sigset_t all;

    sigfillset(&all);
    require(sigprocmask(SIG_BLOCK, &all, NULL), "sigprocmask");
}

static void set_variables(void)
{
    setenv("LD_PRELOAD", "/nonexistent.so", 1);
    setenv("PYTHONPATH", "/tmp", 1);
    setenv("PYTHONSTARTUP", "/tmp/x.py", 1);
    setenv("GCONV_PATH", "/tmp", 1);
    setenv("MALLOC_CHECK_", "3", 1);
    setenv("SECRET", "hunter2", 1);
}

static void set_policy(int policy, int priority)
{
    struct sched_param parameter = { .sched_priority = priority };

    require(sched_setscheduler(0, policy, &parameter), "sched_setscheduler");
}

static void apply(const char *what)
{
    if (strcmp(what, "soft-limits") == 0)
        lower_soft_limits();
    else if (strcmp(what, "no-core") == 0)
        limit(RLIMIT_CORE, 0, 0);
    else if (strcmp(what, "personality") == 0)
        require(personality(ADDR_NO_RANDOMIZE | READ_IMPLIES_EXEC | ADDR_LIMIT_3GB), "personality");
    else if (strcmp(what, "nice") == 0)
        require(setpriority(PRIO_PROCESS, 0, 10), "setpriority");
    else if (strcmp(what, "idle") == 0)
        set_policy(SCHED_IDLE, 0);
    else if (strcmp(what, "batch") == 0)
        set_policy(SCHED_BATCH, 0);
    else if (strcmp(what, "real-time") == 0)
        set_policy(SCHED_RR, 1);
    else if (strcmp(what, "io-idle") == 0)
        require((int)syscall(SYS_ioprio_set, 1, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0)), "ioprio");
    else if (strcmp(what, "umask") == 0)
        (void)umask(0);
    else if (strcmp(what, "ignored-signals") == 0)
        ignore_all_signals();
    else if (strcmp(what, "blocked-signals") == 0)
        block_all_signals();
    else if (strcmp(what, "variables") == 0)
        set_variables();
    else if (strcmp(what, "descriptors") == 0)
        open_descriptors(60000);
    else if (strcmp(what, "timer-slack") == 0)
        require(prctl(PR_SET_TIMERSLACK, 500000000UL, 0, 0, 0), "timerslack");
    else {
        fprintf(stderr, "unknown: %s\n", what);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 1;
    apply(argv[1]);
    execv(argv[2], argv + 2);
    perror(argv[2]);
    return 1;
}
