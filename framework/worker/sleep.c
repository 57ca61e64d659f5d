/* Sleeping until a transport has something or somebody inside the process wakes the sleeper.
 *
 * One transport with a futex is waited for by that word. As soon as there is something else to wait for, all are waited
 * for by descriptors, an eventfd of ours among them. */
#define _GNU_SOURCE 1
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "framework/worker/worker.h"

/* A sleep that a module cannot end: long enough to leave the processor to others. */
#define DEAF_US 50u
/* Pending work may wait for what no transport announces, such as a device's limit of registrations. */
#define PENDING_US 1000u

int worker_sleep_create(struct worker *w)
{
    struct worker_sleep *s = &w->sleep;
    pthread_mutex_init(&s->mutex, NULL);
    s->fds = calloc(w->head.bml->n_btls + 1, sizeof(*s->fds));
    return s->fds ? STRATA_OK : STRATA_ERR_NOMEM;
}

void worker_sleep_destroy(struct worker *w)
{
    if (w->sleep.event_fd >= 0)
        close(w->sleep.event_fd);
    free(w->sleep.fds);
    pthread_mutex_destroy(&w->sleep.mutex);
}

static void sleep_disarm_modules(struct worker *w)
{
    struct worker_sleep *s = &w->sleep;
    while (s->n_armed > 0) {
        struct st_btl *btl = w->poll[--s->n_armed].btl;
        if (btl->ops->disarm)
            btl->ops->disarm(btl);
    }
}

/* Arms every polled module; false, and none is, when something is pending. */
static bool sleep_arm_modules(struct worker *w)
{
    struct worker_sleep *s = &w->sleep;
    s->word = NULL;
    s->n_fds = s->n_words = 0;
    s->deaf = false;
    for (s->n_armed = 0; s->n_armed < w->n_poll; s->n_armed++) {
        struct st_btl *btl = w->poll[s->n_armed].btl;
        struct st_btl_wait wait = {.fd = -1, .by_fd = s->by_fd};
        if (!btl->ops->arm) {
            s->deaf = true;
            continue;
        }
        if (btl->ops->arm(btl, &wait) != STRATA_OK) {
            sleep_disarm_modules(w);
            return false;
        }
        s->deaf |= wait.deaf;
        if (wait.word) {
            s->n_words++;
            s->word = wait.word;
            s->expect = wait.expect;
        } else if (wait.fd >= 0) {
            s->fds[s->n_fds++] = (struct pollfd){.fd = wait.fd, .events = POLLIN};
        }
    }
    return true;
}

/* What the modules have given is what the sleep waits for; how it is woken from inside is settled here. */
static void sleep_settle(struct worker_sleep *s)
{
    if (s->by_fd && s->n_words > 0) { /* a module that has no descriptor: a word or a descriptor, not both */
        s->deaf = true;
        s->word = s->n_fds > 0 ? NULL : s->word;
    }
    if (!s->word && s->n_fds == 0) {
        s->word = &s->own_word;
        s->expect = atomic_load_explicit(&s->own_word, memory_order_relaxed);
    }
    if (!s->word && s->event_fd < 0)
        s->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!s->word && s->event_fd < 0)
        s->deaf = true;
}

bool worker_sleep_arm(struct worker *w)
{
    struct worker_sleep *s = &w->sleep;
    if (!sleep_arm_modules(w))
        return false;
    if (!s->by_fd && s->n_words > 0 && s->n_words + s->n_fds > 1) {
        sleep_disarm_modules(w);
        s->by_fd = true;
        if (!sleep_arm_modules(w))
            return false;
    }
    sleep_settle(s);
    /* Pairs with st_worker_wake: what it tells of is seen here, or it sees that we sleep. */
    pthread_mutex_lock(&s->mutex);
    atomic_store_explicit(&s->armed, true, memory_order_relaxed);
    pthread_mutex_unlock(&s->mutex);
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&w->head.attention, memory_order_relaxed) & (WORKER_NO_SLEEP | WORKER_ASKED) ||
        atomic_load_explicit(&w->head.attention, memory_order_relaxed) >= ST_ATTEND_FAILURE ||
        st_worker_has_news(&w->head)) {
        worker_sleep_disarm(w);
        return false;
    }
    return true;
}

void worker_sleep(struct worker *w, uint32_t us)
{
    struct worker_sleep *s = &w->sleep;
    if (s->deaf && us > DEAF_US)
        us = DEAF_US;
    if (us > PENDING_US && atomic_load_explicit(&w->head.attention, memory_order_relaxed) & WORKER_PENDING)
        us = PENDING_US;
    struct timespec limit = {.tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000};
    if (s->word) {
        /* Shared futex: the waker may be another process. Woken, changed, interrupted, late: the next poll tells. */
        syscall(SYS_futex, s->word, FUTEX_WAIT, s->expect, &limit, NULL, 0);
        return;
    }
    if (s->event_fd >= 0)
        s->fds[s->n_fds] = (struct pollfd){.fd = s->event_fd, .events = POLLIN};
    ppoll(s->fds, s->n_fds + (s->event_fd >= 0), &limit, NULL);
    eventfd_t count;
    if (s->event_fd >= 0 && s->fds[s->n_fds].revents)
        eventfd_read(s->event_fd, &count);
}

void worker_sleep_disarm(struct worker *w)
{
    struct worker_sleep *s = &w->sleep;
    pthread_mutex_lock(&s->mutex);
    atomic_store_explicit(&s->armed, false, memory_order_relaxed);
    pthread_mutex_unlock(&s->mutex);
    sleep_disarm_modules(w);
}

void worker_sleep_wake(struct worker *w)
{
    struct worker_sleep *s = &w->sleep;
    atomic_thread_fence(memory_order_seq_cst); /* see worker_sleep_arm */
    if (!atomic_load_explicit(&s->armed, memory_order_relaxed))
        return;
    pthread_mutex_lock(&s->mutex);
    if (atomic_load_explicit(&s->armed, memory_order_relaxed)) {
        if (s->word) {
            atomic_fetch_add_explicit(s->word, 1, memory_order_release);
            syscall(SYS_futex, s->word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        } else if (s->event_fd >= 0) {
            eventfd_write(s->event_fd, 1); /* fails where it is full of wakes already */
        }
    }
    pthread_mutex_unlock(&s->mutex);
}

void st_worker_wake(struct st_worker *head)
{
    struct worker *w = worker_of(head);
    /* It may be a follower that waits for it: who is awake asks all, or the leader, which this wakes. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&w->crowd.n_asleep, memory_order_relaxed) > 0)
        st_worker_news(head);
    worker_sleep_wake(w);
}
