/* Forwarding of signals to the ranks, and their death back to us. */
#include "signals.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include "report.h"

static const int caught[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

int signals_create(struct signals *out)
{
    sigset_t set;
    struct sigaction hangup;
    memset(out, 0, sizeof(*out));
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
        sigaddset(&set, caught[i]);
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler == SIG_IGN)
        sigdelset(&set, SIGHUP); /* nohup: neither we nor the ranks are to hear it */
    /* A shell starts background jobs with these ignored. Ranks get them from us and only when somebody means it. */
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    signal(SIGCHLD, SIG_DFL); /* ignored, it would neither come nor leave a rank's status */
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* the call that meets the limit of file sizes fails, and we say which */
    signal(SIGTTOU, SIG_IGN);
    out->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (out->fd < 0) {
        report_error("signalfd: %s", strerror(errno));
        return -1;
    }
    return 0;
}

/* System calls only. Those of the threads' library cannot be set, and need not be. */
void signals_reset_in_child(void)
{
    struct sigaction hangup;
    bool nohup = sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler == SIG_IGN;
    sigset_t none;
    sigemptyset(&none);
    for (int sig = 1; sig <= SIGRTMAX; sig++)
        if (sig != SIGHUP || !nohup)
            (void)signal(sig, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

void signals_destroy(struct signals *signals)
{
    close(signals->fd);
}

static void reap(struct job *job, const struct guard *guard)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        int rank = job_rank_of(job, pid);
        if (rank < 0)
            continue;
        /* An empty process group's number may be given to a stranger. */
        if (kill(-pid, 0) != 0 && errno == ESRCH) {
            job->ranks[rank].group_gone = true;
            guard_drop(guard, pid);
        }
        job_rank_ended(job, rank, status);
    }
}

/* Asked to end: the ranks decide what to do; asked again, they are ended. */
static void end_politely(struct signals *signals, struct job *job, int sig)
{
    job->forwarded = sig;
    signals->late |= job->n_ended == job->n_started;
    if (signals->endings++ == 0) {
        job_signal(job, sig);
        return;
    }
    job_fail(job, RUN_SIGNAL_BASE + sig);
    job_end(job);
}

static void handle(struct signals *signals, struct job *job, const struct guard *guard, int sig)
{
    switch (sig) {
    case SIGCHLD:
        reap(job, guard);
        break;
    case SIGINT:
    case SIGTERM:
    case SIGHUP:
    case SIGQUIT:
        end_politely(signals, job, sig);
        break;
    case SIGTSTP:
        job_signal(job, SIGTSTP);
        (void)kill(getpid(), SIGSTOP);
        break;
    case SIGUSR1:
        if (signals->reports)
            signals->asked = true;
        else
            job_signal(job, sig);
        break;
    default:
        job_signal(job, sig);
    }
}

void signals_poll(struct signals *signals, struct job *job, const struct guard *guard)
{
    struct signalfd_siginfo info;
    while (read(signals->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        handle(signals, job, guard, (int)info.ssi_signo);
}
