/* For LD_PRELOAD with virtual_clock.c: in strata-miba's tests `load` and `both_ways` each thread that posts has a time
 * of its own, which begins with the batch and which only its own costs move, and the one whose time is the earliest
 * posts next, whatever the scheduler does. Without the serialised engine of softhca no thread's time depends on the
 * others; with it, an adapter that takes messages in the order in which they come is what is seen.
 *
 * The lines of both sides over their link say when a batch begins, how many threads post in it, and when it ends. */
#define _GNU_SOURCE 1
#include "virtual_clock.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST 17u

/* Of both sides, which fork. */
struct turns {
    atomic_uint_least64_t now; /* of threads without a time of their own */
    pthread_mutex_t lock;      /* for what follows */
    pid_t leads;
    unsigned posters;        /* in a batch of this case; 0: without turns */
    unsigned batch;          /* its number */
    unsigned joined, others; /* who has come; those of the following side */
    bool over;               /* the leading side is done: the others need not wait for it */
    uint64_t time[MOST];     /* of each when it posted last; the leading side's thread is the first */
};
static struct turns *turns;

static _Thread_local unsigned own_batch, place; /* 0: none */

static __attribute__((constructor)) void begin(void)
{
    pthread_mutexattr_t shared;

    turns = mmap(NULL, sizeof *turns, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (turns == MAP_FAILED)
        abort();
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&turns->lock, &shared);
    turns->leads = getpid();
}

static void not_before(uint64_t ns)
{
    uint64_t before = atomic_load(&turns->now);

    while (before < ns && !atomic_compare_exchange_weak(&turns->now, &before, ns))
        ;
}

/* ---- the link ---- */

/* From the first line of a case on, when a side has opened its device, it has the clock of both. */
static void share(void)
{
    if (virtual_now == &turns->now)
        return;
    not_before(atomic_load(virtual_now));
    virtual_now = &turns->now;
}

static void begin_batch(void)
{
    turns->batch++; /* from 1 */
    turns->joined = turns->others = 0;
    turns->over = false;
}

/* "case NAME OP TRANSPORT VARIANT VALUE SIZE" */
static void begin_case(const char *line, size_t n)
{
    char text[128] = "", name[32] = "";
    unsigned value = 0;

    memcpy(text, line, n < sizeof text ? n : sizeof text - 1);
    sscanf(text, "case %31s %*s %*s %*d %u", name, &value);
    turns->posters = strcmp(name, "load") == 0 ? 1 + value : strcmp(name, "both_ways") == 0 ? 2 : 0;
    if (turns->posters > MOST)
        abort();
    /* One in which the other side has no part is not told to it. */
    begin_batch();
}

static void leave(void)
{
    if (own_batch == 0)
        return;
    turns->over |= own_batch == turns->batch && place == 0;
    not_before(virtual_own);
    own_batch = 0;
    virtual_own = 0;
}

static bool begins(const void *text, ssize_t n, const char *with)
{
    return n >= (ssize_t)strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

ssize_t send(int fd, const void *text, size_t n, int flags)
{
    static ssize_t (*real)(int, const void *, size_t, int);

    if (!real)
        *(void **)(&real) = dlsym(RTLD_NEXT, "send");
    pthread_mutex_lock(&turns->lock);
    /* Of a batch, or of a case whose batches the other side does not know. */
    if (begins(text, (ssize_t)n, "stop\n") || begins(text, (ssize_t)n, "done ") || begins(text, (ssize_t)n, "end\n"))
        leave();
    if (turns->leads == getpid() && begins(text, (ssize_t)n, "case ")) {
        share();
        begin_case(text, n);
    } else if (turns->leads == getpid() && begins(text, (ssize_t)n, "batch ")) {
        begin_batch();
    } else if (begins(text, (ssize_t)n, "info ")) {
        share();
    }
    pthread_mutex_unlock(&turns->lock);
    return real(fd, text, n, flags);
}

/* ---- posting ---- */

/* All begin at the same time, when the last one has come. */
static void join(void)
{
    place = turns->leads == getpid() ? 0 : ++turns->others;
    own_batch = turns->batch;
    if (++turns->joined > turns->posters)
        abort();
    for (unsigned i = 0; i < turns->posters; i++)
        turns->time[i] = atomic_load(&turns->now);
}

static bool may_post(void)
{
    bool first = turns->joined == turns->posters;

    /* Until they hear of it, threads of the other side go on after the end, and beside the batch that follows. */
    if (turns->over || own_batch != turns->batch)
        return true;
    for (unsigned i = 0; first && i < turns->posters; i++)
        first = turns->time[i] > turns->time[place] || (turns->time[i] == turns->time[place] && i >= place);
    return first;
}

static int (*real_post)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    pthread_mutex_lock(&turns->lock);
    if (turns->posters && own_batch == 0)
        join();
    const bool turn = own_batch != 0;
    while (turn && !may_post()) {
        pthread_mutex_unlock(&turns->lock);
        sched_yield();
        pthread_mutex_lock(&turns->lock);
    }
    if (turn && virtual_own == 0)
        virtual_own = turns->time[place];
    pthread_mutex_unlock(&turns->lock);
    const int error = real_post(qp, wr, bad);
    pthread_mutex_lock(&turns->lock);
    if (turn && own_batch == turns->batch)
        turns->time[place] = virtual_own;
    if (turn)
        not_before(virtual_own);
    pthread_mutex_unlock(&turns->lock);
    return error;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    static struct ibv_qp *(*real)(struct ibv_pd *, struct ibv_qp_init_attr *);

    if (!real)
        *(void **)(&real) = dlsym(RTLD_NEXT, "ibv_create_qp");
    struct ibv_qp *qp = real(pd, attr);
    if (qp && qp->context->ops.post_send != post_send) {
        real_post = qp->context->ops.post_send;
        qp->context->ops.post_send = post_send;
    }
    return qp;
}
