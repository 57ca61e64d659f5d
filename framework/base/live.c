#define _GNU_SOURCE 1
#include "framework/base/live.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <strata/sdk/clock.h>
#include "framework/base/context.h"
#include "framework/base/job_report.h"
#include "framework/worker/worker.h"

enum { LIVE_STACK = 64 << 10, LIVE_LOOK_MS = 200, LIVE_SEND_S = 2, LIVE_BACKLOG = 8 };

struct st_live {
    strata_t *context;
    int fd;
    pthread_t listener;
    pthread_mutex_t mutex; /* of all below */
    pthread_cond_t told;
    bool stop, asked;
    char *text; /* the answer to the question, until it is sent */
};

unsigned st_live_address(struct sockaddr_un *at, int pid, int k)
{
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(at->sun_path + 1, sizeof at->sun_path - 1, "strata-live-%d-%d", pid, k);
    return (unsigned)offsetof(struct sockaddr_un, sun_path) + 1 + (unsigned)n;
}

static bool live_may_ask(int fd)
{
    struct ucred who;
    socklen_t length = sizeof who;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 && (who.uid == geteuid() || who.uid == 0);
}

static bool live_has_gone(int fd)
{
    char one;
    ssize_t got = recv(fd, &one, 1, MSG_PEEK | MSG_DONTWAIT);

    return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

/* With the mutex held. */
static void live_sleep(struct st_live *l)
{
    struct timespec limit;

    clock_gettime(CLOCK_MONOTONIC, &limit);
    limit.tv_nsec += LIVE_LOOK_MS * 1000000L;
    limit.tv_sec += limit.tv_nsec / 1000000000L;
    limit.tv_nsec %= 1000000000L;
    pthread_cond_timedwait(&l->told, &l->mutex, &limit);
}

/* The text; NULL: the context ends, or the connection `fd` was closed before a thread had made the answer. */
static char *live_text(struct st_live *l, int fd)
{
    pthread_mutex_lock(&l->mutex);
    l->asked = true;
    pthread_mutex_unlock(&l->mutex);
    st_worker_ask(l->context->worker);
    pthread_mutex_lock(&l->mutex);
    while (!l->text && !l->stop && !live_has_gone(fd))
        live_sleep(l);
    char *text = l->text;
    l->text = NULL;
    l->asked = false;
    pthread_mutex_unlock(&l->mutex);
    return text;
}

/* An answer that is not read within LIVE_SEND_S is given up. */
static void live_send(int fd, const char *text)
{
    const struct timeval limit = {.tv_sec = LIVE_SEND_S};
    const uint64_t until = st_now_ns() + LIVE_SEND_S * 1000000000u;

    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    for (size_t n = strlen(text); n > 0;) {
        ssize_t put = send(fd, text, n, MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0 || st_now_ns() > until)
            return;
        text += put;
        n -= (size_t)put;
    }
}

static bool live_stopped(struct st_live *l)
{
    pthread_mutex_lock(&l->mutex);
    bool stop = l->stop;
    pthread_mutex_unlock(&l->mutex);
    return stop;
}

static void *live_listen(void *arg)
{
    struct st_live *l = arg;

    while (!live_stopped(l)) {
        int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) { /* shut down: the context ends; else no descriptor is left */
            if (errno == EINVAL)
                break;
            nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
            continue;
        }
        char *text = live_may_ask(fd) ? live_text(l, fd) : NULL;
        if (text)
            live_send(fd, text);
        free(text);
        close(fd);
    }
    return NULL;
}

static int live_bind(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    for (int k = 0; fd >= 0 && k < ST_LIVE_MOST; k++) {
        struct sockaddr_un at;
        unsigned length = st_live_address(&at, (int)getpid(), k);
        if (bind(fd, (struct sockaddr *)&at, length) == 0 && listen(fd, LIVE_BACKLOG) == 0)
            return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

/* It takes no signal of the program's and little memory. */
static bool live_spawn(struct st_live *l)
{
    pthread_attr_t attr;
    pthread_condattr_t clock;
    sigset_t all, before;

    pthread_mutex_init(&l->mutex, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&l->told, &clock);
    pthread_condattr_destroy(&clock);
    if (pthread_attr_init(&attr) != 0)
        return false;
    (void)pthread_attr_setstacksize(&attr, LIVE_STACK); /* else the default size, which does too */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool begun = pthread_create(&l->listener, &attr, live_listen, l) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return begun;
}

/* Never the first thread of a process beside its own, since malloc and stdio without threads are faster, and a program
 * may rely on being alone. In a job the launcher's client has one. */
void st_live_start(strata_t *s)
{
    if (!s->base->live || s->rte->size < 2 || __libc_single_threaded)
        return;
    struct st_live *l = calloc(1, sizeof *l);
    if (!l)
        return;
    l->context = s;
    l->fd = live_bind();
    s->live = l; /* before the thread may have it answered */
    if (l->fd >= 0 && live_spawn(l))
        return;
    st_log(s, ST_LOG_INFO, NULL, "strata-info --live will not reach this rank: %s", strerror(errno));
    s->live = NULL;
    if (l->fd >= 0)
        close(l->fd);
    free(l);
}

void st_live_answer(strata_t *s)
{
    struct st_live *l = s->live;

    if (!l)
        return;
    pthread_mutex_lock(&l->mutex);
    bool asked = l->asked && !l->text;
    pthread_mutex_unlock(&l->mutex);
    if (!asked)
        return;
    char *text = st_job_report_text(s); /* takes the context's lock */
    pthread_mutex_lock(&l->mutex);
    if (l->asked && !l->text) {
        l->text = text;
        text = NULL;
        pthread_cond_signal(&l->told);
    }
    pthread_mutex_unlock(&l->mutex);
    free(text);
}

void st_live_stop(strata_t *s)
{
    struct st_live *l = s->live;

    if (!l)
        return;
    pthread_mutex_lock(&l->mutex);
    l->stop = true;
    pthread_cond_signal(&l->told);
    pthread_mutex_unlock(&l->mutex);
    (void)shutdown(l->fd, SHUT_RDWR); /* ends accept */
    pthread_join(l->listener, NULL);
    s->live = NULL;
    close(l->fd);
    pthread_cond_destroy(&l->told);
    pthread_mutex_destroy(&l->mutex);
    free(l->text);
    free(l);
}
