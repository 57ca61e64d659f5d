/* Random steps of malloc, free, mmap, munmap, MAP_FIXED, mremap, madvise, shmdt and brk in several threads, each with
 * messages by a device that pins: what it registers it maps to the pages that are there at that moment, and what is
 * sent later is read from these pages, as an adapter would. Before each message the sender writes a number that was
 * never used before into the first and the last page of the buffer; the device must find it in its own pages. It does
 * not when the registration is stale.
 *
 * The same is done once more while the hooks are disabled on purpose: then it must find stale pages, else it would
 * prove nothing. */
#ifndef TEST_SUPPORT_MEMORY_STEPS_H
#define TEST_SUPPORT_MEMORY_STEPS_H

#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/pinning_device.h"
#include "support/shaken_memory.h"

enum { BUFFERS = 12 };

struct walker {
    pthread_t thread;
    struct st_rcache *cache;
    struct device device;
    struct buffer buffer[BUFFERS];
    struct rnd rnd;
    pthread_mutex_t *lock; /* of the cache: its context's */
    bool heap;             /* it may move the heap's end: the only one */
    uint64_t steps, sent, stale, number;
};

/* The heap's end goes up and down again; what is sent lies between. */
static void send_from(struct walker *w, char *at, size_t pages);

static void use_heap(struct walker *w)
{
    char *old = sbrk(8 * PAGE);
    if (old == (char *)-1)
        return;
    send_from(w, (char *)(((uintptr_t)old + PAGE - 1) & ~(uintptr_t)(PAGE - 1)), 6);
    if (sbrk(0) == old + 8 * PAGE) /* else malloc has taken what lies behind it */
        CHECK(sbrk(-8 * PAGE) != (void *)-1);
}

static void send_from(struct walker *w, char *at, size_t pages)
{
    struct st_rcache_entry *e;
    uint64_t found[2] = {0, 0}, number = ++w->number;
    char *last = at + (pages - 1) * PAGE;
    memcpy(at, &number, 8);
    memcpy(last, &number, 8);
    pthread_mutex_lock(w->lock);
    CHECK_OK(w->cache->ops->get(w->cache, &w->device.client, at, pages * PAGE, 0, &e));
    /* A larger registration may serve: its first and last page are not this buffer's. */
    bool whole = e->from == (uintptr_t)at && e->to == (uintptr_t)at + pages * PAGE;
    if (whole)
        device_reads(&w->device, e->handle, found);
    w->cache->ops->put(w->cache, e);
    pthread_mutex_unlock(w->lock);
    w->sent += whole;
    w->stale += whole && (found[0] != number || found[1] != number);
}

/* Addresses go from one thread to another by the kernel. The thread sanitizer does not see that where shmat or mremap
 * give them, and takes what their last owner wrote for a race: to it, a lock says who came first. */
static void addresses_change(bool begin)
{
#ifdef __SANITIZE_THREAD__
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (begin)
        pthread_mutex_lock(&lock);
    else
        pthread_mutex_unlock(&lock);
#else
    (void)begin;
#endif
}

static void change(struct walker *w, struct buffer *b, uint32_t what)
{
    addresses_change(true);
    if (b->kind == NOTHING)
        make_buffer(&w->rnd, b);
    if (what == 4 || what == 5)
        shake_buffer(&w->rnd, b);
    else if (what == 6)
        drop_buffer(b);
    addresses_change(false);
}

static void *walk(void *arg)
{
    struct walker *w = arg;
    for (uint64_t i = 0; i < w->steps; i++) {
        struct buffer *b = &w->buffer[rnd_below(&w->rnd, BUFFERS)];
        uint32_t what = rnd_below(&w->rnd, 8);
        change(w, b, what);
        if (what < 4)
            send_from(w, b->at, b->pages);
        else if (what == 7 && w->heap && rnd_below(&w->rnd, 4) == 0)
            use_heap(w);
    }
    addresses_change(true);
    for (int i = 0; i < BUFFERS; i++)
        drop_buffer(&w->buffer[i]);
    addresses_change(false);
    return NULL;
}

struct result {
    uint64_t sent, stale, hits, invalidations;
};

static uint64_t first_seed = 1; /* of the first walker */

/* One context; its lock is what an upper layer's would be. */
static struct result run_walkers(const char *settings, uint64_t steps, int threads)
{
    struct tw_options o = {.n = 1, .settings = settings, .quiet = true};
    struct tw_world *world = tw_create(&o);
    strata_t *s;
    char err[1024] = "";
    CHECK_MSG(tw_init(world, 0, &s, err, sizeof(err)) == STRATA_OK, "%s", err);
    struct st_rcache *cache = st_rcache(s);
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct walker w[8] = {{0}};
    struct result r = {0};
    for (int i = 0; i < threads; i++) {
        w[i] = (struct walker){
            .cache = cache, .lock = &lock, .steps = steps / (uint64_t)threads, .rnd = {(uint64_t)i + first_seed}};
        w[i].number = (uint64_t)i << 48;
        w[i].device.client = (struct st_rcache_client){.name = "pins", .make = pin_pages, .unmake = unpin_pages};
        CHECK(pipe2(w[i].device.out, O_CLOEXEC) == 0);
        CHECK_OK(cache->ops->attach(cache, &w[i].device.client));
    }
    w[0].heap = threads == 1; /* malloc's main arena may be in use by the others */
    for (int i = 0; i < threads; i++)
        CHECK(pthread_create(&w[i].thread, NULL, walk, &w[i]) == 0);
    for (int i = 0; i < threads; i++)
        pthread_join(w[i].thread, NULL);
    for (int i = 0; i < threads; i++) {
        r.sent += w[i].sent;
        r.stale += w[i].stale;
        cache->ops->detach(cache, &w[i].device.client);
        close(w[i].device.out[0]);
        close(w[i].device.out[1]);
    }
    struct st_rcache_counters n;
    cache->ops->counters(cache, &n);
    r.hits = n.hits;
    r.invalidations = n.invalidations;
    CHECK_OK(strata_finalize(s));
    tw_destroy(world);
    printf("%s, %d threads: %llu sent, %llu stale, %llu hits, %llu invalidations\n", settings, threads,
           (unsigned long long)r.sent, (unsigned long long)r.stale, (unsigned long long)r.hits,
           (unsigned long long)r.invalidations);
    return r;
}

#endif
