/* Memory goes away in every way that a program has, at random, while it is sent by RDMA: `memory_steps STEPS SECONDS
 * THREADS [SEED]`, two ranks.
 *
 * Each thread of rank 0 has a partner in rank 1. Both take the same steps on memory of their own, which is a number of
 * slots: a step unmaps, replaces, moves, discards or frees a slot, or sends a part of one to a slot of the partner, who
 * checks each byte. Ends after STEPS steps of all threads, or SECONDS. A registration that outlived its memory shows as
 * wrong bytes on a device that pins pages, and as an error on softhca. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <time.h>
#include <unistd.h>
#include "support/counters.h"
#include "support/pattern.h"
#include "support/random.h"
#include "support/watchdog.h"
#include "support/world.h"

enum { SLOTS = 8, PAGE = 4096, PAGES = 24, ROUND = 256, MOST_THREADS = 16 };
#define SLOT_BYTES ((size_t)PAGES * PAGE)

enum kind { MAPPED, ATTACHED, ALLOCATED };

struct slot {
    char *at;
    enum kind kind;
};

static strata_t *s;
static strata_comm_t *world;
static int rank, n_threads;
static long steps_each;
static struct timespec deadline;
static _Atomic(long) steps, messages, wrong;

struct worker {
    pthread_t thread;
    int number;
    uint64_t seed;
    struct slot slot[SLOTS];
};

static char *map(void *at, size_t len, int flags)
{
    void *p = mmap(at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

    CHECK(p != MAP_FAILED && (!at || p == at));
    return p;
}

static void let_go(struct slot *slot)
{
    if (slot->kind == ALLOCATED)
        free(slot->at);
    else if (slot->kind == ATTACHED)
        CHECK_EQ(shmdt(slot->at), 0);
    else
        CHECK_EQ(munmap(slot->at, SLOT_BYTES), 0);
}

static void attach(struct slot *slot)
{
    int id = shmget(IPC_PRIVATE, SLOT_BYTES, IPC_CREAT | 0600);

    CHECK(id >= 0);
    slot->at = shmat(id, NULL, 0);
    CHECK(slot->at != (void *)-1);
    CHECK_EQ(shmctl(id, IPC_RMID, NULL), 0);
    slot->kind = ATTACHED;
}

static void allocate(struct slot *slot)
{
    slot->at = malloc(SLOT_BYTES);
    CHECK(slot->at != NULL);
    slot->kind = ALLOCATED;
}

static void mapped(struct slot *slot)
{
    slot->at = map(NULL, SLOT_BYTES, 0);
    slot->kind = MAPPED;
}

/* A part of a mapping, in whole pages. */
static size_t some_pages(struct rnd *r, size_t *from)
{
    size_t first = rnd_below(r, PAGES), n = 1 + rnd_below(r, PAGES - (uint32_t)first);

    *from = first * PAGE;
    return n * PAGE;
}

/* Nothing is mapped in a part of the slot. Another thread may have been given those addresses: then the slot moves. */
static void refill(struct slot *slot, size_t from, size_t len)
{
    size_t behind = from + len;
    void *p =
        mmap(slot->at + from, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

    if (p == slot->at + from)
        return;
    CHECK(p == MAP_FAILED);
    if (from)
        CHECK_EQ(munmap(slot->at, from), 0);
    if (behind < SLOT_BYTES)
        CHECK_EQ(munmap(slot->at + behind, SLOT_BYTES - behind), 0);
    mapped(slot);
}

/* Page by page: the kernel may keep several mappings there, and moves parts of one only. */
static void move_away_and_back(struct slot *slot, size_t from, size_t len)
{
    char *elsewhere = map(NULL, len, 0), *p;

    for (size_t at = 0; at < len; at += PAGE) {
        p = mremap(slot->at + from + at, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere + at);
        CHECK_MSG(p == elsewhere + at, "mremap: %s", strerror(errno));
    }
    refill(slot, from, len);
    CHECK_EQ(munmap(elsewhere, len), 0);
}

/* Something happens to the slot's memory; it stays a slot. The random numbers taken are the same in both ranks. */
static void disturb(struct slot *slot, struct rnd *r)
{
    size_t from, len = some_pages(r, &from);
    uint32_t way = rnd_below(r, 8);

    if (way < 3) { /* another one, of any kind */
        let_go(slot);
        (way == 0 ? mapped : way == 1 ? allocate : attach)(slot);
        return;
    }
    if (slot->kind != MAPPED) { /* malloc's pages are malloc's: discarding them is all that one may do */
        if (slot->kind == ALLOCATED) {
            uintptr_t first = ((uintptr_t)slot->at + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
            CHECK_EQ(madvise((void *)first, SLOT_BYTES - 2 * PAGE, MADV_DONTNEED), 0);
        }
        return;
    }
    switch (way) {
    case 3:
        CHECK_EQ(munmap(slot->at + from, len), 0);
        refill(slot, from, len);
        break;
    case 4:
        map(slot->at + from, len, MAP_FIXED);
        break;
    case 5:
        move_away_and_back(slot, from, len);
        break;
    case 6:
        CHECK_EQ(madvise(slot->at + from, len, MADV_DONTNEED), 0);
        break;
    default:
        CHECK_EQ(madvise(slot->at + from, len, MADV_FREE), 0);
        CHECK_EQ(madvise(slot->at + from, len, MADV_DONTNEED), 0);
    }
}

static long wrong_bytes(const char *p, size_t len, uint64_t seed)
{
    if (pattern_check(p, len, seed) < 0)
        return 0;
    char *right = malloc(len);
    long n = 0;
    CHECK(right != NULL);
    pattern_fill(right, len, seed);
    for (size_t i = 0; i < len; i++)
        n += p[i] != right[i];
    free(right);
    return n;
}

/* Without waiting a transport may take short ones, too, from where they are. */
static void send_part(const char *at, size_t len, int tag)
{
    strata_request_t *q;

    CHECK_OK(strata_isend(world, at, len, 1 - rank, tag, &q));
    CHECK_OK(strata_wait(&q, NULL));
}

/* From a part of one slot to a part of a slot of the partner, in either direction. */
static void message(struct worker *w, struct rnd *r, long step)
{
    const struct slot *mine = &w->slot[rnd_below(r, SLOTS)];
    size_t from = rnd_below(r, SLOT_BYTES / 2), len = SLOT_BYTES - from - rnd_below(r, SLOT_BYTES / 4);
    size_t least = rnd_below(r, 4) ? len : 1 + rnd_below(r, 32 << 10);
    bool sender = (rnd_next(r) & 1) == (uint64_t)rank;
    uint64_t seed = w->seed ^ (uint64_t)step << 8;

    if (len > least)
        len = least;
    if (sender) {
        pattern_fill(mine->at + from, len, seed);
        send_part(mine->at + from, len, w->number);
    } else {
        CHECK_OK(strata_recv(world, mine->at + from, len, 1 - rank, w->number, NULL));
        atomic_fetch_add(&wrong, wrong_bytes(mine->at + from, len, seed));
        atomic_fetch_add(&messages, 1);
    }
}

/* Rank 0 says whether there is time for another round. */
static bool go_on(const struct worker *w)
{
    char more = 1;
    struct timespec now;

    if (rank == 0) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        more = now.tv_sec < deadline.tv_sec;
        CHECK_OK(strata_send(world, &more, 1, 1, w->number + n_threads));
    } else {
        CHECK_OK(strata_recv(world, &more, 1, 0, w->number + n_threads, NULL));
    }
    return more;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct rnd r = {w->seed};

    for (int i = 0; i < SLOTS; i++)
        mapped(&w->slot[i]);
    for (long step = 0; step < steps_each && (step % ROUND || go_on(w)); step++) {
        /* The other rank disturbs another slot: what is stale at one end only must show, too. */
        uint32_t which = rnd_below(&r, SLOTS), whose = rnd_below(&r, 3);
        struct rnd own = {rnd_next(&r)};
        if (rnd_below(&r, 3) == 0)
            message(w, &r, step);
        else if (whose == 2 || whose == (uint32_t)rank)
            disturb(&w->slot[which], &own);
        atomic_fetch_add(&steps, 1);
    }
    for (int i = 0; i < SLOTS; i++)
        let_go(&w->slot[i]);
    return NULL;
}

static void start(void)
{
    char err[2048] = "";
    strata_config_t config = STRATA_CONFIG_INIT;

    config.thread_level = STRATA_THREAD_MULTIPLE;
    config.error_text = err;
    config.error_text_size = sizeof err;
    int rc = strata_init(&config, &s);
    if (rc != STRATA_OK) {
        fprintf(stderr, "strata_init: %s: %s\n", strata_strerror(rc), err);
        exit(2);
    }
    world = strata_world(s);
    rank = strata_rank(s);
    CHECK_EQ(strata_size(s), 2);
}

int main(int argc, char **argv)
{
    static struct worker w[MOST_THREADS];

    if (argc < 4 || atoi(argv[3]) < 1 || atoi(argv[3]) > MOST_THREADS)
        return 2;
    int seconds = atoi(argv[2]);
    struct watchdog *dog = watchdog_start(test_timeout(1000) + seconds, 1);
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += seconds;
    n_threads = atoi(argv[3]);
    steps_each = atol(argv[1]) / n_threads;
    start();
    for (int i = 0; i < n_threads; i++) {
        w[i].number = i;
        w[i].seed = (argc > 4 ? strtoull(argv[4], NULL, 0) : 1ull) * 1000ull + (unsigned)i;
        CHECK_EQ(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
    }
    for (int i = 0; i < n_threads; i++)
        CHECK_EQ(pthread_join(w[i].thread, NULL), 0);
    unsigned long long made = counted(s, "rcache", NULL, "misses"), found = counted(s, "rcache", NULL, "hits"),
                       gone = counted(s, "rcache", NULL, "invalidations");
    printf("rank %d: %ld steps, %ld messages received, %ld wrong bytes, %llu registrations, %llu found, %llu gone\n",
           rank, (long)steps, (long)messages, (long)wrong, made, found, gone);
    fflush(stdout);
    CHECK_OK(strata_finalize(s));
    watchdog_stop(dog);
    return wrong ? 3 : 0;
}
