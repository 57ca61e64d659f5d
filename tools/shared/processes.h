/* The processes of a job, which is started by one of them and ended with all that it has begun. */
#ifndef TOOLS_PROCESSES_H
#define TOOLS_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { PROCESSES_OLD = 32 };

struct processes {
    pid_t old[PROCESSES_OLD]; /* children from before the first job, which are left alone */
    size_t n_old;
    int signo; /* the signal that has asked for the end of all jobs, or 0 */
};

/* To be called before the first job. SIGHUP, SIGINT and SIGTERM, but those that are ignored, then wait for
 * processes_asked and processes_wait. Orphans of a job become children of this process. */
void processes_begin(struct processes *p);
/* Takes such a signal if one has come, and returns p->signo. */
int processes_asked(struct processes *p);
/* As fork(2). The child takes these signals, and gets SIGTERM when this process ends. */
pid_t processes_fork(void);
/* Waits until the process has ended, and then all that it has begun. They get SIGTERM after `limit_s` seconds (0: there
 * is no limit), with *late set, or when a signal has come; SIGKILL five seconds later. Returns the wait status. */
int processes_wait(struct processes *p, pid_t pid, double limit_s, bool *late);

#endif
