/* Runs seeds: each in a pair of new processes, the victim and the hostile one. Usage:
 *   shared_fuzz SECONDS [CORPUS [FIRST]]    the corpus first, then seeds from FIRST (1) on, as long as there is time
 *   shared_fuzz --seed SEED FORM STEPS
 * A line of the corpus is a seed, a form and a number of steps. Run it with libsofthca preloaded. */
#include "fuzz.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STEPS   1500u
#define LIMIT_S 600 /* a safety net: on a busy machine a seed of a second takes a minute */

const char *const form_name[FORMS] = {"own", "peer", "both", "fake", "clean"};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static pid_t start(int mine, int other, bool hostile, uint64_t seed, enum form form, unsigned steps)
{
    pid_t parent = getpid(), pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    close(other);
    if (!hostile)
        exit(victim_main(mine, form, seed, steps));
    /* What it says as it perishes is of no interest. */
    if (!getenv("FUZZ_VERBOSE") && !freopen("/dev/null", "w", stderr))
        _exit(3);
    if (form == FORM_FAKE)
        fake_main(mine, seed);
    hostile_main(mine, form, seed);
}

/* Where a process is: its stacks where there is a debugger, else what its threads do. */
static void tell_where(pid_t pid)
{
    char command[200];

    snprintf(
        command, sizeof command,
        "exec >&2; unset LD_PRELOAD; gdb -p %d -batch -ex 'thread apply all bt 12' 2>&1 || cat /proc/%d/task/*/stat",
        pid, pid);
    if (system(command) != 0)
        fprintf(stderr, "no word about process %d\n", pid);
}

static bool run(uint64_t seed, enum form form, unsigned steps)
{
    int pair[2], status = -1;
    double end = now() + LIMIT_S;
    pid_t victim, hostile, ended = 0;
    bool passed;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0)
        return false;
    hostile = start(pair[1], pair[0], true, seed, form, steps);
    victim = start(pair[0], pair[1], false, seed, form, steps);
    close(pair[0]);
    close(pair[1]);
    while ((ended = waitpid(victim, &status, WNOHANG)) == 0 && now() < end)
        usleep(2000);
    if (ended != victim) {
        fprintf(stderr, "the victim hangs\n");
        tell_where(victim);
        if (getenv("FUZZ_VERBOSE"))
            pause();
        kill(victim, SIGKILL);
        (void)waitpid(victim, NULL, 0);
    }
    kill(hostile, SIGKILL);
    (void)waitpid(hostile, NULL, 0);
    passed = ended == victim && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!passed)
        fprintf(stderr, "FAILED: seed %llu, form %s, steps %u: victim %s %d; again: shared_fuzz --seed %llu %s %u\n",
                (unsigned long long)seed, form_name[form], steps, WIFSIGNALED(status) ? "ended by signal" : "status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), (unsigned long long)seed, form_name[form],
                steps);
    return passed;
}

static enum form form_named(const char *name)
{
    for (int i = 0; i < FORMS; i++)
        if (strcmp(form_name[i], name) == 0)
            return (enum form)i;
    fprintf(stderr, "no such form: %s\n", name);
    exit(2);
}

#define MOST 200

/* Seeds are shared out among processes, since most of a run is waiting for what never comes. */
#define JOBS 4u

/* Every JOBS-th row from `job` on; how many failed. */
static unsigned run_corpus(const char *path, unsigned job)
{
    struct {
        unsigned long long seed;
        char form[16];
        unsigned steps;
    } row[MOST];
    FILE *f = fopen(path, "re");
    char line[200];
    unsigned n = 0, done = 0, failed = 0;

    if (!f) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(2);
    }
    while (n < MOST && fgets(line, sizeof line, f))
        n += line[0] != '#' && sscanf(line, "%llu %15s %u", &row[n].seed, row[n].form, &row[n].steps) == 3;
    fclose(f); /* before there are children, which would move its offset as they exit */
    for (unsigned i = job; i < n; i += JOBS, done++)
        failed += !run(row[i].seed, form_named(row[i].form), row[i].steps);
    printf("corpus: %u of %u\n", done, n);
    return failed;
}

/* Every JOBS-th seed from `first` on, until then; how many failed. */
static unsigned run_seeds(uint64_t first, double end)
{
    unsigned of[FORMS] = {0}, failed = 0;

    for (uint64_t seed = first; now() < end; seed += JOBS) {
        enum form form = (enum form)(seed % FORMS);
        failed += !run(seed, form, STEPS);
        of[form]++;
    }
    printf("own %u, peer %u, both %u, fake %u, clean %u: %u failed\n", of[FORM_OWN], of[FORM_PEER], of[FORM_BOTH],
           of[FORM_FAKE], of[FORM_CLEAN], failed);
    return failed;
}

int main(int argc, char **argv)
{
    uint64_t first = argc == 4 ? strtoull(argv[3], NULL, 0) : 1;
    unsigned failed = 0;

    if (argc == 5 && strcmp(argv[1], "--seed") == 0)
        return run(strtoull(argv[2], NULL, 0), form_named(argv[3]), (unsigned)strtoul(argv[4], NULL, 0)) ? 0 : 1;
    if (argc < 2) {
        fprintf(stderr, "usage: shared_fuzz SECONDS [CORPUS [FIRST]] | --seed SEED FORM STEPS\n");
        return 2;
    }
    for (unsigned job = 0; job < JOBS; job++) {
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (argc > 2)
                failed += run_corpus(argv[2], job);
            fflush(stdout);
            failed += run_seeds(first + job, now() + strtod(argv[1], NULL));
            exit(failed ? 1 : 0);
        }
    }
    for (int status; wait(&status) > 0;)
        failed += status != 0;
    return failed ? 1 : 0;
}
