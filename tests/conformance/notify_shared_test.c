/* Puts with notice into memory that the receiver's pool has made for peers (st_mpool_ops.alloc_shared): the data is
 * there when the notice comes, over every transport; over sm it goes by stores, without single copy too. */
#include <stdatomic.h>
#include <strata/sdk/mpool.h>
#include <strata/sdk/notify.h>
#include <strata/sdk/pml.h>
#include <strata/sdk/worker.h>
#include "support/over_transports.h"
#include "support/pattern.h"
#include "support/suite.h"

/* One slot for each turn in flight; the longest is done in pieces. */
enum { SLOTS = 4, SLOT = 200000, AREA = SLOTS * SLOT, TURNS = 600 };

struct card {
    uint64_t base;
    uint8_t key[ST_BTL_KEY_MAX];
};

struct receiver {
    struct st_shared_piece piece;
    uint32_t n, seen; /* seen: slots of this round */
};

static uint32_t length_of(uint32_t i)
{
    return i % 40 == 39 ? SLOT - i : 1 + i * 37 % 3000;
}

static void notified(void *arg, int from, uint32_t notice)
{
    struct receiver *in = arg;
    CHECK_EQ(from, 1);
    CHECK_EQ(notice / SLOTS, in->n / SLOTS); /* in any order */
    CHECK(!(in->seen & 1u << notice % SLOTS));
    in->seen |= 1u << notice % SLOTS;
    CHECK_EQ(pattern_check((char *)in->piece.memory + (size_t)(notice % SLOTS) * SLOT, length_of(notice), notice), -1);
    if (++in->n % SLOTS == 0)
        in->seen = 0;
}
static void deliver(void *arg, const struct st_frag *frag)
{
    (void)arg, (void)frag;
    CHECK_MSG(false, "this client gets no messages");
}
static const struct st_client row = {.am = ST_AM_TEST, .deliver = deliver, .notified = notified};

static struct st_btl *path_to(struct tw_rank *r, int rank, struct st_peer **peer)
{
    CHECK_OK(st_worker_peer(r->comm->worker, rank, peer));
    CHECK_OK(st_worker_connect(r->comm->worker, *peer));
    return st_peer_path(*peer, 0)->btl;
}

static void receive(struct tw_rank *r, struct receiver *in)
{
    struct st_mpool *pool = st_mpool(r->s);
    struct st_peer *peer;
    struct st_btl *btl = path_to(r, 1, &peer);
    struct st_btl_reg reg;
    struct card card;
    CHECK_OK(pool->ops->alloc_shared(pool, AREA, &in->piece));
    while (btl->rdma->reg(btl, in->piece.memory, AREA, ST_BTL_ANY_USE, &reg) == STRATA_ERR_AGAIN)
        suite_spin(r->s, 1);
    card.base = (uint64_t)(uintptr_t)in->piece.memory;
    memcpy(card.key, reg.key, sizeof card.key);
    CHECK_OK(strata_send(r->comm, &card, sizeof card, 1, 1));
    for (uint32_t i = 0; i < TURNS; i += SLOTS) {
        while (in->n < i + SLOTS)
            suite_spin(r->s, 1);
        suite_signal(r->comm, 1, 2);
    }
    tw_quiesce(r);
    CHECK_EQ(in->n, TURNS);
    btl->rdma->dereg(btl, &reg);
    pool->ops->free_shared(pool, &in->piece);
}

static _Atomic(int) under_way;
static void done(struct st_notify *n, int rc)
{
    (void)n;
    CHECK_EQ(rc, STRATA_OK);
    under_way--;
}

/* The local memory may be used again when it returns. */
static void put_one(struct tw_rank *r, struct st_peer *peer, const struct card *card, const char *out,
                    struct st_btl_reg *reg, uint32_t i)
{
    struct st_notify n = {.done = done};
    size_t at = (size_t)(i % SLOTS) * SLOT;
    struct st_notify_put put = {.local = out,
                                .reg = reg,
                                .remote = card->base + at,
                                .key = card->key,
                                .len = length_of(i),
                                .am = ST_AM_TEST,
                                .notice = i};
    int rc;
    under_way = 1;
    while ((rc = st_worker_put_notify(r->comm->worker, peer, 0, &put, &n)) == STRATA_ERR_AGAIN)
        suite_spin(r->s, 1);
    CHECK(rc == STRATA_OK || rc == 1);
    while (rc == STRATA_OK && under_way)
        suite_spin(r->s, 1);
}

static void send(struct tw_rank *r)
{
    static char out[SLOT];
    struct st_peer *peer;
    struct card card;
    struct st_btl_reg reg;
    CHECK_OK(strata_recv(r->comm, &card, sizeof card, 0, 1, NULL));
    struct st_btl *btl = path_to(r, 0, &peer);
    while (btl->rdma->reg(btl, out, SLOT, ST_BTL_SOURCE, &reg) == STRATA_ERR_AGAIN)
        suite_spin(r->s, 1);
    for (uint32_t i = 0; i < TURNS; i++) {
        pattern_fill(out, length_of(i), i);
        put_one(r, peer, &card, out, &reg, i);
        if (i % SLOTS == SLOTS - 1)
            suite_await(r->comm, 0, 2);
    }
    tw_quiesce(r);
    if (strcmp(btl->component->name, "sm") == 0) {
        char *text = btl->ops->describe(btl, NULL), wanted[64];
        snprintf(wanted, sizeof wanted, "\"puts_by_stores\":%d,", TURNS);
        CHECK_MSG(strstr(text, wanted), "%s", text);
        free(text);
    }
    btl->rdma->dereg(btl, &reg);
}

static void into_shared_memory(struct tw_rank *r)
{
    struct receiver in = {.n = 0};
    CHECK_OK(st_worker_join(r->comm->worker, &row, &in));
    tw_barrier(r);
    if (r->rank == 0)
        receive(r, &in);
    else
        send(r);
    st_worker_leave(r->comm->worker, &row);
}

static const struct over_case cases[] = {{"into_shared_memory", into_shared_memory, 2, STRATA_THREAD_SINGLE, false}};

OVER_SUITE(notify_shared, OVER_PUTS, cases, "btl=sm,self btl_sm_single_copy=off", "btl=sm,self btl_sm_rings=0",
           "btl=shuffle,self btl_shuffle_needs_reg=1 btl_shuffle_async_percent=100");
