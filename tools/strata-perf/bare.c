#include "bare.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"
#include "report.h"
#include "strata/sdk/clock.h"

enum { SLOTS = 8, BATCHES = 15, FLAG = 64 };
#define BATCH_NS 1000000.0 /* how long a batch lasts at least */

/* ---- a message through a ring ---- */

struct slot {
    _Alignas(64) _Atomic(uint32_t) flag; /* number of the message in it */
    char data[PERF_BARE_RING_MOST];
};

struct ring {
    struct slot slots[2][SLOTS]; /* by sending side */
    char user[2][2][PERF_BARE_RING_MOST + 64];
    size_t bytes;
    uint32_t trips; /* of a batch */
    double us[BATCHES];
};

static void ring_send(struct ring *r, int side, uint32_t number)
{
    struct slot *s = &r->slots[side][number % SLOTS];
    memcpy(s->data, r->user[side][0], r->bytes);
    atomic_store_explicit(&s->flag, number, memory_order_release);
}

static void ring_receive(struct ring *r, int side, uint32_t number)
{
    struct slot *s = &r->slots[!side][number % SLOTS];
    uint32_t turns = 0;
    while (atomic_load_explicit(&s->flag, memory_order_acquire) != number)
        perf_pair_wait(&turns);
    memcpy(r->user[side][1], s->data, r->bytes);
}

static void round_trips(int side, void *arg)
{
    struct ring *r = arg;
    uint32_t number = 0;
    for (int b = -1; b < BATCHES; b++) { /* the first is discarded */
        uint64_t start = st_now_ns();
        for (uint32_t i = 0; i < r->trips; i++) {
            number++;
            if (side == 0)
                ring_send(r, side, number);
            ring_receive(r, side, number);
            if (side == 1)
                ring_send(r, side, number);
        }
        if (side == 0 && b >= 0)
            r->us[b] = (double)(st_now_ns() - start) / r->trips / 2 / 1e3;
    }
}

double perf_bare_ring(const int cpus[2], size_t bytes)
{
    struct ring *r = bytes <= PERF_BARE_RING_MOST ? aligned_alloc(64, sizeof *r) : NULL;
    double us = 0;
    if (!r)
        return 0;
    memset(r, 0, sizeof *r);
    r->bytes = bytes;
    r->trips = (uint32_t)(200000 / (200 + bytes / 8)) + 1;
    if (perf_pair(cpus, round_trips, r))
        us = perf_summarise(r->us, BATCHES).median;
    free(r);
    return us;
}

/* ---- copies by both processors ---- */

struct copies {
    char *from[2], *to[2]; /* of each side */
    size_t bytes, each, step;
    unsigned rounds; /* of all messages in a batch */
    _Atomic(uint32_t) arrived;
    double rate[BATCHES];
};

static void copies_once(const struct copies *c, int side)
{
    for (size_t k = 0; k < c->each; k++)
        memcpy(c->to[side] + k * c->step, c->from[side] + k * c->step, c->bytes);
}

/* Waits until both sides have come here as often. */
static void meet(struct copies *c, uint32_t meetings)
{
    uint32_t turns = 0;
    atomic_fetch_add_explicit(&c->arrived, 1, memory_order_acq_rel);
    while (atomic_load_explicit(&c->arrived, memory_order_acquire) < 2 * meetings)
        perf_pair_wait(&turns);
}

static void copy_batches(int side, void *arg)
{
    struct copies *c = arg;
    uint32_t meetings = 0;
    copies_once(c, side); /* touches the memory */
    uint64_t start = st_now_ns();
    copies_once(c, side);
    if (side == 0)
        c->rounds = (unsigned)(BATCH_NS / (double)(st_now_ns() - start + 1)) + 1;
    meet(c, ++meetings);
    for (int b = 0; b < BATCHES; b++) {
        meet(c, ++meetings);
        start = st_now_ns();
        for (unsigned i = 0; i < c->rounds; i++)
            copies_once(c, side);
        meet(c, ++meetings);
        if (side == 0)
            c->rate[b] = 2e3 * (double)c->rounds * (double)c->each * (double)c->bytes / (double)(st_now_ns() - start);
    }
}

double perf_bare_copies(const int cpus[2], size_t bytes, size_t each)
{
    struct copies c = {.bytes = bytes, .each = each, .step = perf_slot_size(bytes)};
    char *memory = aligned_alloc(4096, (4 * each * c.step + 4095) / 4096 * 4096);
    double rate = 0;
    if (!memory)
        return 0;
    memset(memory, 1, 4 * each * c.step);
    for (size_t side = 0; side < 2; side++) {
        c.from[side] = memory + 2 * side * each * c.step;
        c.to[side] = c.from[side] + each * c.step;
    }
    if (perf_pair(cpus, copy_batches, &c))
        rate = perf_summarise(c.rate, BATCHES).median;
    free(memory);
    return rate;
}
