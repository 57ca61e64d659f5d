/* The guard learns of process groups through a pipe; the end of the pipe is the end of strata-run. */
#define _GNU_SOURCE
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "report.h"
#include "strays.h"

struct groups {
    pid_t *list;
    size_t n, room;
};

enum verb { VERB_ADD, VERB_DROP, VERB_DISMISS };

struct note { /* smaller than PIPE_BUF: read whole */
    enum verb verb;
    pid_t group;
};

static void take_note(struct groups *g, const struct note *note)
{
    if (note->verb == VERB_DROP) {
        for (size_t i = 0; i < g->n; i++)
            if (g->list[i] == note->group) {
                g->list[i] = g->list[--g->n];
                return;
            }
        return;
    }
    if (g->n == g->room) {
        size_t room = g->room ? g->room * 2 : 64;
        pid_t *more = realloc(g->list, room * sizeof(*more));
        if (!more)
            return;
        g->list = more;
        g->room = room;
    }
    g->list[g->n++] = note->group;
}

static void signal_all(const struct groups *g, int sig)
{
    for (size_t i = 0; i < g->n; i++)
        (void)kill(-g->list[i], sig);
}

/* Nothing of the user's may be held or heard here: not the terminal, not its pipes, not its signals. */
static void detach(int in, int lock)
{
    (void)setsid();
    (void)prctl(PR_SET_NAME, "strata-guard");
    sigset_t all;
    sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3 && null >= 0; fd++)
        (void)dup2(null, fd);
    unsigned low = (unsigned)(in < lock ? in : lock), high = (unsigned)(in < lock ? lock : in);
    if (low > 3)
        (void)close_range(3, low - 1, 0);
    if (high > low + 1)
        (void)close_range(low + 1, high - 1, 0);
    (void)close_range(high + 1, ~0u, 0);
    if (chdir("/") != 0)
        return;
}

static void guard_main(int in, struct tmpdir *dir, pid_t launcher)
{
    struct groups g = {NULL, 0, 0};
    struct note note;
    pid_t session = getsid(0);
    detach(in, dir->lock);
    for (;;) {
        ssize_t got = read(in, &note, sizeof(note));
        if (got == (ssize_t)sizeof(note) && note.verb == VERB_DISMISS)
            _exit(0);
        else if (got == (ssize_t)sizeof(note))
            take_note(&g, &note);
        else if (got == 0 || errno != EINTR)
            break;
    }
    signal_all(&g, SIGTERM);
    signal_all(&g, SIGCONT);
    usleep(200 * 1000);
    signal_all(&g, SIGKILL);
    strays_kill(launcher, session);
    tmpdir_remove(dir);
    _exit(0);
}

int guard_create(const struct tmpdir *dir, struct guard *out)
{
    int fds[2];
    pid_t launcher = getpid();
    if (pipe2(fds, O_CLOEXEC) != 0) {
        report_error("cannot make a pipe: %s", strerror(errno));
        return -1;
    }
    out->pid = fork();
    if (out->pid == 0) {
        struct tmpdir mine = *dir;
        close(fds[1]);
        guard_main(fds[0], &mine, launcher);
    }
    close(fds[0]);
    if (out->pid < 0) {
        report_error("cannot start the guard process: %s", strerror(errno));
        close(fds[1]);
        return -1;
    }
    out->pipe = fds[1];
    return 0;
}

static void send_note(const struct guard *guard, enum verb verb, pid_t group)
{
    struct note note = {verb, group};
    if (write(guard->pipe, &note, sizeof(note)) != (ssize_t)sizeof(note))
        return; /* the guard was killed: then nobody guards, and the job goes on */
}

void guard_add(const struct guard *guard, pid_t group)
{
    send_note(guard, VERB_ADD, group);
}

void guard_drop(const struct guard *guard, pid_t group)
{
    send_note(guard, VERB_DROP, group);
}

void guard_dismiss(struct guard *guard)
{
    send_note(guard, VERB_DISMISS, 0);
    close(guard->pipe);
    (void)waitpid(guard->pid, NULL, 0);
}
