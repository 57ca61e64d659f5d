/* Heartbeats of the following side, independent of its measuring loop: a side whose loop has no processor, or waits in
 * the driver, still says that it lives. A stopped process sends none. */
#include "config.h"
#include "link.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>

#define BEAT_NS 250000000

static void *beat(void *arg)
{
    struct link *l = arg;
    struct timespec next;

    clock_gettime(CLOCK_MONOTONIC, &next);
    pthread_mutex_lock(&l->sending);
    while (!l->stop) {
        /* A full socket says as much: the peer has not read for hours. */
        (void)!send(l->fd, "\n", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        next.tv_nsec += BEAT_NS;
        if (next.tv_nsec >= 1000000000) {
            next.tv_nsec -= 1000000000;
            next.tv_sec++;
        }
        while (!l->stop && pthread_cond_timedwait(&l->stopped, &l->sending, &next) != ETIMEDOUT)
            ;
    }
    pthread_mutex_unlock(&l->sending);
    return NULL;
}

bool link_beats_start(struct link *l)
{
    pthread_condattr_t monotonic;
    sigset_t all, before;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&l->stopped, &monotonic);
    pthread_condattr_destroy(&monotonic);
    l->stop = false;
    /* The ticks of session.c are for the measuring loop. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    l->beats = pthread_create(&l->thread, NULL, beat, l) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return l->beats;
}

void link_beats_stop(struct link *l)
{
    if (!l->beats)
        return;
    pthread_mutex_lock(&l->sending);
    l->stop = true;
    pthread_cond_signal(&l->stopped);
    pthread_mutex_unlock(&l->sending);
    pthread_join(l->thread, NULL);
    pthread_cond_destroy(&l->stopped);
    l->beats = false;
}
