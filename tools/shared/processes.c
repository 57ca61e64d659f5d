/* Launchers start their ranks by other processes, in groups and sessions of their own. When a launcher dies its ranks
 * may stay. PR_SET_CHILD_SUBREAPER makes them children of this process, and /proc says who is whose child. */
#define _GNU_SOURCE 1
#include "tools/shared/processes.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <strata/sdk/clock.h>

static const double patience_s = 5; /* from SIGTERM to SIGKILL */
/* For orphans of a job that has ended by itself, before they are asked to. */
static const double linger_s = 1;
static const double give_up_s = 60; /* after the first SIGKILL */

static double seconds(void)
{
    return (double)st_now_ns() / 1e9;
}

/* None that the caller has had ignored, as nohup does SIGHUP, and a shell without job control SIGINT of what it starts
 * in the background: one that is blocked would come all the same. */
static sigset_t ending_signals(void)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM};
    sigset_t set;
    struct sigaction action;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (sigaction(signals[i], NULL, &action) != 0 || action.sa_handler != SIG_IGN)
            sigaddset(&set, signals[i]);
    return set;
}

/* ---- parents and children -------------------------------------------------------------------------------------- */

struct process {
    pid_t pid, parent;
    bool descends; /* from this process */
};

/* The parent of a process that has not ended, or 0. */
static pid_t parent_of(const char *pid)
{
    char path[64], text[512], state;
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = 0;
    const char *end = strrchr(text, ')'); /* of the program's name, which may hold anything */
    if (!end || sscanf(end, ") %c %d", &state, &parent) != 2 || state == 'Z' || state == 'X')
        return 0;
    return parent;
}

/* All processes of this machine; NULL: there is no /proc, or no memory. */
static struct process *all_processes(size_t *n)
{
    DIR *d = opendir("/proc");
    struct process *list = NULL;
    size_t room = 0;
    *n = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        pid_t parent = e->d_name[0] >= '1' && e->d_name[0] <= '9' ? parent_of(e->d_name) : 0;
        if (parent == 0)
            continue;
        if (*n == room) {
            room = room ? 2 * room : 256;
            struct process *more = realloc(list, room * sizeof *more);
            if (!more)
                break;
            list = more;
        }
        list[(*n)++] = (struct process){(pid_t)strtol(e->d_name, NULL, 10), parent, false};
    }
    if (d)
        closedir(d);
    return list;
}

static bool is_old(const struct processes *p, pid_t pid)
{
    for (size_t i = 0; i < p->n_old; i++)
        if (p->old[i] == pid)
            return true;
    return false;
}

/* Marks children, then their children, and so on. */
static void mark_descendants(const struct processes *p, struct process *list, size_t n)
{
    bool more = true;
    while (more) {
        more = false;
        for (size_t i = 0; i < n; i++) {
            bool below = list[i].parent == getpid();
            for (size_t k = 0; k < n && !below; k++)
                below = list[k].descends && list[k].pid == list[i].parent;
            if (list[i].descends || !below || is_old(p, list[i].pid))
                continue;
            list[i].descends = more = true;
        }
    }
}

/* Sends a signal (0: none) to all that jobs have left; returns how many they are. */
static size_t signal_orphans(const struct processes *p, int sig)
{
    size_t n, found = 0;
    struct process *list = all_processes(&n);
    mark_descendants(p, list, n);
    for (size_t i = 0; i < n; i++) {
        if (!list[i].descends)
            continue;
        found++;
        if (sig)
            (void)kill(list[i].pid, sig);
    }
    free(list);
    return found;
}

/* Whether jobs have left any, once those that have ended are reaped. */
static bool orphans(const struct processes *p)
{
    pid_t ended;
    do
        ended = waitpid(-1, NULL, WNOHANG);
    while (ended > 0);
    return ended == 0 && signal_orphans(p, 0) > 0;
}

/* ---- a job's life --------------------------------------------------------------------------------------------- */

void processes_begin(struct processes *p)
{
    sigset_t set = ending_signals();
    size_t n;
    *p = (struct processes){.n_old = 0};
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGCHLD, SIG_DFL); /* ignored, it would leave no job's status */
    struct process *list = all_processes(&n);
    for (size_t i = 0; i < n; i++)
        if (list[i].parent == getpid() && p->n_old < PROCESSES_OLD)
            p->old[p->n_old++] = list[i].pid;
    free(list);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

int processes_asked(struct processes *p)
{
    const struct timespec now = {0, 0};
    const sigset_t held = ending_signals();
    int signo = sigtimedwait(&held, NULL, &now);
    if (signo > 0)
        p->signo = signo;
    return p->signo;
}

pid_t processes_fork(void)
{
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    sigset_t held = ending_signals();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) /* it has ended before */
        _exit(126);
    sigprocmask(SIG_UNBLOCK, &held, NULL);
    return 0;
}

/* Orphans that need a moment for themselves: strata-run's guard, for one, removes the files of a job that was killed.
 */
static void end_orphans(const struct processes *p, bool ended)
{
    const struct timespec nap = {0, 5000000};
    double ask = seconds() + (ended ? 0 : linger_s), end = ask + patience_s;
    bool asked = false;
    while (orphans(p) && seconds() < end + give_up_s) {
        if (seconds() >= end) {
            signal_orphans(p, SIGKILL);
        } else if (!asked && seconds() >= ask) {
            asked = true;
            signal_orphans(p, SIGTERM);
            signal_orphans(p, SIGCONT);
        }
        nanosleep(&nap, NULL);
    }
}

int processes_wait(struct processes *p, pid_t pid, double limit_s, bool *late)
{
    const struct timespec nap = {0, 5000000};
    const sigset_t held = ending_signals();
    double limit = limit_s > 0 ? seconds() + limit_s : HUGE_VAL;
    bool ended = false;
    int status = 0;
    *late = false;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (seconds() > limit) {
            kill(pid, ended ? SIGKILL : SIGTERM);
            *late |= p->signo == 0;
            ended = true;
            limit = seconds() + patience_s;
        }
        int signo = sigtimedwait(&held, NULL, &nap);
        if (signo > 0) {
            p->signo = signo;
            limit = 0;
        }
    }
    end_orphans(p, ended);
    return status;
}
