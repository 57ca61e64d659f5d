/* Threads that wait in one context at STRATA_THREAD_MULTIPLE. While one is awake it polls for all. When all want to
 * sleep, one of them, the leader, sleeps in the transports, and the others, the followers, on words of their own. Who
 * makes progress wakes those whose wait it has ended; who leaves last sees that there is a leader.
 *
 * Whoever falls asleep first puts itself on the list and then counts itself out of those awake; who finds that it was
 * the last awake leads. So either one thread is awake, or one leads. */
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "framework/worker/worker.h"

void worker_crowd_create(struct worker *w)
{
    pthread_mutex_init(&w->crowd.mutex, NULL);
    st_list_init(&w->crowd.asleep);
}

void worker_crowd_destroy(struct worker *w)
{
    pthread_mutex_destroy(&w->crowd.mutex);
}

void worker_crowd_enter(struct worker *w)
{
    atomic_fetch_add(&w->crowd.n_awake, 1);
}

static void crowd_wake(struct worker *w, struct worker_sleeper *sleeper)
{
    atomic_store(&sleeper->woken, 1);
    if (sleeper == w->crowd.leader)
        worker_sleep_wake(w);
    else
        syscall(SYS_futex, &sleeper->woken, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void worker_crowd_leave(struct worker *w)
{
    struct worker_crowd *c = &w->crowd;
    if (atomic_fetch_sub(&c->n_awake, 1) > 1 || atomic_load(&c->n_asleep) == 0)
        return;
    pthread_mutex_lock(&c->mutex);
    struct st_node *first = st_list_first(&c->asleep);
    if (first && !c->leader && atomic_load(&c->n_awake) == 0)
        crowd_wake(w, ST_CONTAINER(first, struct worker_sleeper, node));
    pthread_mutex_unlock(&c->mutex);
}

void worker_crowd_tell(struct worker *w)
{
    struct worker_crowd *c = &w->crowd;
    bool woke = false;
    pthread_mutex_lock(&c->mutex);
    for (struct st_node *n = c->asleep.next; n != &c->asleep; n = n->next) {
        struct worker_sleeper *sleeper = ST_CONTAINER(n, struct worker_sleeper, node);
        if (!atomic_load_explicit(&sleeper->woken, memory_order_relaxed) &&
            (sleeper->acts || sleeper->done(sleeper->arg))) {
            crowd_wake(w, sleeper);
            woke = true;
        }
    }
    pthread_mutex_unlock(&c->mutex);
    /* The kernel may have put it on this thread's processor, where this thread is about to spin. */
    if (woke)
        sched_yield();
}

/* Puts the thread on the list; true when it leads. */
static bool crowd_lie_down(struct worker *w, struct worker_sleeper *self)
{
    struct worker_crowd *c = &w->crowd;
    pthread_mutex_lock(&c->mutex);
    st_list_append(&c->asleep, &self->node);
    /* Under the lock: a round is over before, and what it has done is seen in crowd_is_over, or it sees that we sleep.
     */
    if (atomic_fetch_add(&c->n_asleep, 1) == 0) {
        st_worker_lock(&w->head);
        atomic_fetch_or_explicit(&w->head.attention, WORKER_ASLEEP, memory_order_relaxed);
        st_worker_unlock(&w->head);
    }
    bool last = atomic_fetch_sub(&c->n_awake, 1) == 1;
    if (last && !c->leader)
        c->leader = self;
    bool leads = c->leader == self;
    pthread_mutex_unlock(&c->mutex);
    return leads;
}

static void crowd_get_up(struct worker *w, struct worker_sleeper *self)
{
    struct worker_crowd *c = &w->crowd;
    pthread_mutex_lock(&c->mutex);
    atomic_fetch_add(&c->n_awake, 1);
    st_list_remove(&self->node);
    if (atomic_fetch_sub(&c->n_asleep, 1) == 1)
        st_worker_calm(&w->head, WORKER_ASLEEP);
    if (c->leader == self)
        c->leader = NULL;
    pthread_mutex_unlock(&c->mutex);
}

/* Whether it is over already. Once the thread is on the list others ask, too, in turn. */
static bool crowd_is_over(struct worker *w, struct worker_sleeper *self)
{
    pthread_mutex_lock(&w->crowd.mutex);
    bool over = self->done(self->arg);
    pthread_mutex_unlock(&w->crowd.mutex);
    return over;
}

static void crowd_lead(struct worker *w, struct worker_sleeper *self, uint32_t us)
{
    /* What makes progress itself is asked before: what it finds when all is armed nobody would look after. */
    if (self->acts && self->done(self->arg))
        return;
    st_worker_lock(&w->head);
    bool armed = worker_sleep_arm(w);
    st_worker_unlock(&w->head);
    if (!armed) {
        sched_yield();
        return;
    }
    if (!atomic_load(&self->woken) && (self->acts || !crowd_is_over(w, self)))
        worker_sleep(w, us);
    st_worker_lock(&w->head);
    worker_sleep_disarm(w);
    st_worker_unlock(&w->head);
}

static void crowd_follow(struct worker *w, struct worker_sleeper *self, uint32_t us)
{
    struct timespec limit = {.tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000};
    if (!(self->acts ? self->done(self->arg) : crowd_is_over(w, self)))
        syscall(SYS_futex, &self->woken, FUTEX_WAIT_PRIVATE, 0, &limit, NULL, 0);
}

void worker_crowd_sleep(struct worker *w, struct worker_sleeper *self, uint32_t us)
{
    if (!w->head.threaded) {
        crowd_lead(w, self, us);
        return;
    }
    atomic_store(&self->woken, 0);
    if (crowd_lie_down(w, self))
        crowd_lead(w, self, us);
    else
        crowd_follow(w, self, us);
    crowd_get_up(w, self);
}
