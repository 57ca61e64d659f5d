/* Counts the instructions of a program's main thread between its first two breakpoints (int3), one step at a time by
 * ptrace: those in the verbs libraries, with what they call, and all others, its own. For programs that valgrind cannot
 * run: it knows no pidfd, by which processes on softhca watch each other. A system call counts as one instruction. It
 * is given the program and its arguments, and says "steps OWN VERBS CALLS" on stderr, the last being calls of the verbs
 * libraries. Under a launcher rank 0 is counted, and the others run as they are. x86-64. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_RANGES = 64 };

struct range {
    uint64_t from, to;
};
struct count {
    struct range verbs[MAX_RANGES];
    size_t n;
    uint64_t own, inside, calls;
    uint64_t last;  /* program counter of the last step: a string instruction traps for each element */
    uint64_t outer; /* stack pointer when the verbs were entered; 0: not in there */
};

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "steps: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void find_verbs(struct count *c, pid_t pid)
{
    char name[64], line[4096], access[8];
    unsigned long from, to;
    FILE *f;

    (void)snprintf(name, sizeof name, "/proc/%d/maps", (int)pid);
    f = fopen(name, "r");
    while (f && c->n < MAX_RANGES && fgets(line, sizeof line, f))
        if (sscanf(line, "%lx-%lx %7s", &from, &to, access) == 3 && access[2] == 'x' &&
            (strstr(line, "/libsofthca") || strstr(line, "/libibverbs")))
            c->verbs[c->n++] = (struct range){from, to};
    if (f)
        fclose(f);
}

static bool in_verbs(const struct count *c, uint64_t at)
{
    for (size_t i = 0; i < c->n; i++)
        if (at >= c->verbs[i].from && at < c->verbs[i].to)
            return true;
    return false;
}

static void step(struct count *c, const struct user_regs_struct *r)
{
    if (r->rip == c->last)
        return;
    c->last = r->rip;
    if (c->outer && r->rsp > c->outer)
        c->outer = 0; /* returned */
    if (!c->outer && in_verbs(c, r->rip)) {
        c->outer = r->rsp;
        c->calls++;
    }
    if (c->outer)
        c->inside++;
    else
        c->own++;
}

/* The signal that it has stopped with; those that are not about tracing are handed on. Ends with the program. */
static int await(pid_t pid)
{
    int status;

    if (waitpid(pid, &status, 0) != pid)
        fail("waitpid");
    if (WIFEXITED(status))
        exit(WEXITSTATUS(status));
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "steps: ended by signal %d\n", WTERMSIG(status));
        exit(1);
    }
    return WSTOPSIG(status);
}

static void run_to_breakpoint(pid_t pid)
{
    for (int given = 0;;) {
        if (ptrace(PTRACE_CONT, pid, NULL, (long)given) != 0)
            fail("PTRACE_CONT");
        given = await(pid);
        if (given == SIGTRAP)
            return;
    }
}

/* From one breakpoint, behind which it stands, to the next. */
static void count_steps(struct count *c, pid_t pid)
{
    struct user_regs_struct r;

    for (long given = 0;;) {
        if (ptrace(PTRACE_SINGLESTEP, pid, NULL, given) != 0)
            fail("PTRACE_SINGLESTEP");
        given = await(pid);
        if (given != SIGTRAP)
            continue;
        given = 0;
        siginfo_t why;
        if (ptrace(PTRACE_GETSIGINFO, pid, NULL, &why) != 0 || ptrace(PTRACE_GETREGS, pid, NULL, &r) != 0)
            fail("ptrace");
        if (why.si_code == SI_KERNEL) /* int3 */
            return;
        step(c, &r);
    }
}

int main(int argc, char **argv)
{
    const char *rank = getenv("PMIX_RANK") ? getenv("PMIX_RANK") : getenv("PMI_RANK");
    struct count c = {.n = 0};
    cpu_set_t here;
    pid_t pid;

    if (argc < 2) {
        fprintf(stderr, "usage: %s PROGRAM ARGS...\n", argv[0]);
        return 2;
    }
    if (rank && strcmp(rank, "0") != 0) {
        execvp(argv[1], argv + 1);
        fail(argv[1]);
    }
    /* Both on one processor: each waits for the other at every step. */
    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    if (sched_setaffinity(0, sizeof here, &here) != 0)
        fail("sched_setaffinity");
    pid = fork();
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0)
            execvp(argv[1], argv + 1);
        fail(argv[1]);
    }
    if (pid < 0)
        fail("fork");
    (void)await(pid); /* it has begun */
    run_to_breakpoint(pid);
    find_verbs(&c, pid);
    count_steps(&c, pid);
    fprintf(stderr, "steps %llu %llu %llu\n", (unsigned long long)c.own, (unsigned long long)c.inside,
            (unsigned long long)c.calls);
    if (ptrace(PTRACE_DETACH, pid, NULL, NULL) != 0)
        fail("PTRACE_DETACH");
    for (;;)
        (void)await(pid);
}
