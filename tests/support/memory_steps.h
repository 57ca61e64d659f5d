/* Random steps of malloc, free, mmap, munmap, MAP_FIXED, mremap, madvise, shmdt and brk in several threads, each with
 * messages by a device that pins: what it registers it maps to the pages that are there at that moment, and what is
 * sent later is read from these pages, as an adapter would. Before each message the sender writes a number that was
 * never used before into the first and the last page of the buffer; the device must find it in its own pages. It does
 * not when the registration is stale.
 *
 * The device pins by the kernel's own means, with a pipe: vmsplice keeps a reference to a page, whatever becomes of the
 * mapping. To read a pinned page tee() copies the reference to another pipe, and read() copies its bytes.
 *
 * The same is done once more while the hooks are disabled on purpose: then it must find stale pages, else it would
 * prove nothing. */
#ifndef TEST_SUPPORT_MEMORY_STEPS_H
#define TEST_SUPPORT_MEMORY_STEPS_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/uio.h>
#include <unistd.h>

#include "support/random.h"
#include "support/world.h"

#include <strata/sdk/rcache.h>

enum { PAGE = 4096, BUFFERS = 12, PAGES = 6 };

/* ---- the device ------------------------------------------------------------------------------------------------- */

struct pinned {
    int pipe[2]; /* holds the first page, then the last one */
};

struct device {
    struct st_rcache_client client;
    int out[2]; /* to read what is pinned */
    uint64_t registered;
};

static int pin_pages(struct st_rcache_client *client, void *base, size_t len, uint32_t *access, void **handle)
{
    struct device *d = (struct device *)client;
    struct pinned *p = malloc(sizeof(*p));
    (void)access;
    if (!p || pipe2(p->pipe, O_NONBLOCK | O_CLOEXEC) != 0) {
        free(p);
        return STRATA_ERR_NOMEM;
    }
    struct iovec page[2] = {{base, PAGE}, {(char *)base + len - PAGE, PAGE}};
    for (int i = 0; i < 2; i++)
        CHECK(vmsplice(p->pipe[1], &page[i], 1, SPLICE_F_NONBLOCK) == PAGE);
    d->registered++;
    *handle = p;
    return STRATA_OK;
}

static void unpin_pages(struct st_rcache_client *client, void *handle)
{
    struct pinned *p = handle;
    (void)client;
    close(p->pipe[0]);
    close(p->pipe[1]);
    free(p);
}

/* What the device finds at the beginning of the two pages. */
static void device_reads(struct device *d, const struct pinned *p, uint64_t word[2])
{
    static _Thread_local char page[2 * PAGE];
    CHECK(tee(p->pipe[0], d->out[1], 2 * PAGE, 0) == 2 * PAGE);
    size_t have = 0;
    while (have < sizeof(page)) {
        ssize_t n = read(d->out[0], page + have, sizeof(page) - have);
        CHECK(n > 0);
        have += (size_t)n;
    }
    memcpy(&word[0], page, 8);
    memcpy(&word[1], page + PAGE, 8);
}

/* ---- memory that comes and goes ---------------------------------------------------------------------------------- */

enum kind { NOTHING, MALLOCED, MAPPED, SEGMENT, HEAP };

struct buffer {
    enum kind kind;
    char *at; /* on a page boundary */
    size_t pages;
    void *block; /* malloc's */
};

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

static char *map_at(void *at, size_t pages, int flags)
{
    char *p = mmap(at, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    CHECK(p != MAP_FAILED);
    return p;
}

static void make_buffer(struct walker *w, struct buffer *b)
{
    *b = (struct buffer){.kind = MAPPED, .pages = 1 + rnd_below(&w->rnd, PAGES)};
    uint32_t which = rnd_below(&w->rnd, 8);
    if (which < 3) {
        b->kind = MALLOCED;
        /* Some are mapped by malloc, some are in its arenas. */
        b->block = malloc(b->pages * PAGE + PAGE + (rnd_below(&w->rnd, 2) ? 200000 : 0));
        CHECK(b->block);
        b->at = (char *)(((uintptr_t)b->block + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
    } else if (which == 3) {
        int id = shmget(IPC_PRIVATE, b->pages * PAGE, IPC_CREAT | 0600);
        b->kind = SEGMENT;
        if (id < 0 || (b->at = shmat(id, NULL, 0)) == (char *)-1) {
            b->kind = MAPPED;
            b->at = map_at(NULL, b->pages, 0);
        }
        if (id >= 0)
            CHECK(shmctl(id, IPC_RMID, NULL) == 0);
    } else {
        b->at = map_at(NULL, b->pages, 0);
    }
}

static void drop_buffer(struct buffer *b)
{
    if (b->kind == MALLOCED)
        free(b->block);
    else if (b->kind == SEGMENT)
        CHECK(shmdt(b->at) == 0);
    else if (b->kind == MAPPED)
        CHECK(munmap(b->at, b->pages * PAGE) == 0);
    b->kind = NOTHING;
}

/* The pages change, the addresses stay. */
static void shake_buffer(struct walker *w, struct buffer *b)
{
    static const int advice[] = {MADV_DONTNEED, MADV_FREE};
    size_t from = rnd_below(&w->rnd, (uint32_t)b->pages), n = 1 + rnd_below(&w->rnd, (uint32_t)(b->pages - from));
    char *at = b->at + from * PAGE;
    switch (rnd_below(&w->rnd, 5)) {
    case 0:
        CHECK(madvise(at, n * PAGE, b->kind == SEGMENT ? MADV_DONTNEED : advice[rnd_below(&w->rnd, 2)]) == 0);
        break;
    case 1:
        if (b->kind == MAPPED)
            CHECK(map_at(at, n, MAP_FIXED) == at);
        break;
    case 2: /* away, and others come */
        if (b->kind == MAPPED) {
            CHECK(munmap(b->at, b->pages * PAGE) == 0);
            b->at = map_at(b->at, b->pages, 0);
        }
        break;
    case 3: /* other pages move in */
        if (b->kind == MAPPED) {
            char *other = map_at(NULL, n, 0);
            CHECK(mremap(other, n * PAGE, n * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at);
        }
        break;
    default:
        if (b->kind == MAPPED && b->pages > 1) { /* cut off, and grown again */
            CHECK(mremap(b->at, b->pages * PAGE, (b->pages - 1) * PAGE, 0) == b->at);
            char *p = mremap(b->at, (b->pages - 1) * PAGE, b->pages * PAGE, MREMAP_MAYMOVE);
            if (p == MAP_FAILED) /* it is of pieces by now, that do not grow together */
                b->pages--;
            else
                b->at = p;
        }
        break;
    }
}

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
        make_buffer(w, b);
    if (what == 4 || what == 5)
        shake_buffer(w, b);
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
