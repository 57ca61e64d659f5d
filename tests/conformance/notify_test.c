/* Put with notice (strata/sdk/notify.h) over every transport that strata-info finds and the ways of btl_shuffle: the
 * data is there when the notice comes, each comes once, from several senders; back-pressure, a peer that fails, wrong
 * calls.
 */
#include <check.h>
#include <stdatomic.h>
#include <strata/sdk/notify.h>
#include <strata/sdk/pml.h>
#include <strata/sdk/worker.h>
#include "support/over_transports.h"
#include "support/pattern.h"
#include "support/suite.h"

/* The receiver's memory: SLOTS for each sender, filled in turn; a notice is the slot's number and how often it was
 * filled. */
enum { RANKS = 3, SLOTS = 16, SLOT = 20000, AREA = SLOTS * SLOT, VICTIM = 0 };

/* What the receiver tells each sender. */
struct card {
    uint64_t base;
    uint8_t key[ST_BTL_KEY_MAX];
};

struct receiver {
    char *area[RANKS]; /* by sender */
    struct st_btl_reg reg[RANKS];
    uint32_t filled[RANKS][SLOTS];
    _Atomic(uint32_t) got[RANKS];
    bool checks; /* the bytes */
};

struct sender;
struct op {
    struct st_notify n;
    struct sender *s;
    bool under_way;
};

struct sender {
    struct st_worker *worker;
    struct st_peer *peer;
    struct card card;
    char *out;
    struct st_btl_reg reg;
    struct op *op;
    uint32_t under_way, failed;
};

static uint32_t length_of(int from, uint32_t turn, uint32_t slot)
{
    uint32_t r = (uint32_t)(from + 3) * 2654435761u * (turn * SLOTS + slot + 1);
    return r % 5 == 0 ? 1 + (r >> 8) % SLOT : 1 + (r >> 8) % 200;
}
static uint64_t seed_of(int from, uint32_t turn, uint32_t slot)
{
    return (uint64_t)from << 50 ^ (uint64_t)turn << 8 ^ slot;
}

static void notified(void *arg, int from, uint32_t notice)
{
    struct receiver *in = arg;
    uint32_t slot = notice % SLOTS, turn = notice / SLOTS;
    CHECK(from >= 0 && from < RANKS);
    if (in->checks) {
        uint32_t len = length_of(from, turn, slot);
        const char *at = in->area[from] + (size_t)slot * SLOT;
        CHECK_EQ(in->filled[from][slot], turn);
        CHECK_EQ(pattern_check(at, len, seed_of(from, turn, slot)), -1);
    }
    in->filled[from][slot]++;
    atomic_fetch_add(&in->got[from], 1);
}
static void deliver(void *arg, const struct st_frag *frag)
{
    (void)arg, (void)frag;
    CHECK(!"this client gets no messages");
}
static const struct st_client row = {.am = ST_AM_TEST, .deliver = deliver, .notified = notified};

static void done(struct st_notify *n, int rc)
{
    struct op *op = ST_CONTAINER(n, struct op, n);
    CHECK(op->under_way); /* once */
    CHECK(rc == STRATA_OK || rc == STRATA_ERR_PEER);
    op->under_way = false;
    op->s->under_way--;
    op->s->failed += rc != STRATA_OK;
}

static struct st_btl *path_to(struct tw_rank *r, int rank, struct st_peer **peer)
{
    struct st_worker *w = r->comm->worker;
    CHECK_OK(st_worker_peer(w, rank, peer));
    CHECK_OK(st_worker_connect(w, *peer));
    return st_peer_path(*peer, 0)->btl;
}

static void join(struct tw_rank *r, struct receiver *in, bool checks)
{
    *in = (struct receiver){.checks = checks};
    CHECK_OK(st_worker_join(r->comm->worker, &row, in));
    tw_barrier(r);
}

/* The receiver exposes an area to each sender. */
static void expose(struct tw_rank *r, struct receiver *in)
{
    for (int from = 0; from < r->n; from++) {
        struct st_peer *peer;
        struct card card = {0};
        if (from == r->rank && r->n > 1)
            continue;
        struct st_btl *btl = path_to(r, from, &peer);
        in->area[from] = suite_buffer(AREA);
        while (btl->rdma->reg(btl, in->area[from], AREA, ST_BTL_ANY_USE, &in->reg[from]) == STRATA_ERR_AGAIN)
            suite_spin(r->s, 1);
        card.base = (uint64_t)(uintptr_t)in->area[from];
        memcpy(card.key, in->reg[from].key, sizeof card.key);
        CHECK_OK(strata_send(r->comm, &card, sizeof card, from, 1));
    }
}
static void conceal(struct tw_rank *r, struct receiver *in)
{
    for (int from = 0; from < r->n; from++) {
        struct st_peer *peer;
        if (!in->area[from])
            continue;
        CHECK_OK(st_worker_peer(r->comm->worker, from, &peer)); /* it may have failed */
        struct st_btl *btl = st_peer_path(peer, 0)->btl;
        btl->rdma->dereg(btl, &in->reg[from]);
        suite_buffer_free(in->area[from], AREA);
    }
    st_worker_leave(r->comm->worker, &row);
}

static void open_sender(struct tw_rank *r, struct sender *s, uint32_t n_ops)
{
    *s = (struct sender){.worker = r->comm->worker, .op = calloc(n_ops, sizeof(struct op)), .out = suite_buffer(AREA)};
    CHECK(s->op);
    for (uint32_t i = 0; i < n_ops; i++)
        s->op[i] = (struct op){.n.done = done, .s = s};
    CHECK_OK(strata_recv(r->comm, &s->card, sizeof s->card, 0, 1, NULL));
    struct st_btl *btl = path_to(r, 0, &s->peer);
    while (btl->rdma->reg(btl, s->out, AREA, ST_BTL_SOURCE, &s->reg) == STRATA_ERR_AGAIN)
        suite_spin(r->s, 1);
}
static void close_sender(struct tw_rank *r, struct sender *s)
{
    struct st_btl *btl = st_peer_path(s->peer, 0)->btl;
    (void)r;
    CHECK_EQ(s->under_way, 0);
    btl->rdma->dereg(btl, &s->reg);
    suite_buffer_free(s->out, AREA);
    free(s->op);
}

/* Nothing taken: false. */
static bool try_put(struct sender *s, struct op *op, uint32_t slot, uint32_t turn, uint32_t len)
{
    size_t at = (size_t)slot * SLOT;
    struct st_notify_put put = {.local = s->out + at,
                                .reg = &s->reg,
                                .remote = s->card.base + at,
                                .key = s->card.key,
                                .len = len,
                                .am = ST_AM_TEST,
                                .notice = turn * SLOTS + slot};
    op->under_way = true; /* done may be called before this returns */
    s->under_way++;
    int rc = st_worker_put_notify(s->worker, s->peer, 0, &put, &op->n);
    CHECK(rc == STRATA_OK || rc == 1 || rc == STRATA_ERR_AGAIN);
    if (rc != STRATA_OK) {
        op->under_way = false;
        s->under_way--;
    }
    return rc != STRATA_ERR_AGAIN;
}

static void send_turn(struct tw_rank *r, struct sender *s, uint32_t turn)
{
    for (uint32_t i = 0; i < SLOTS; i++) {
        uint32_t slot = (i * 7 + turn) % SLOTS, len = length_of(r->rank, turn, slot);
        pattern_fill(s->out + (size_t)slot * SLOT, len, seed_of(r->rank, turn, slot));
        while (!try_put(s, &s->op[slot], slot, turn, len))
            suite_spin(r->s, 1);
    }
    while (s->under_way)
        suite_spin(r->s, 1);
}

/* Several senders; the receiver gives the slots of a turn back when it has seen them all. */
static void from_several(struct tw_rank *r)
{
    struct receiver in;
    struct sender s;
    uint32_t turns = (uint32_t)suite_scale(150);
    join(r, &in, true);
    if (r->rank == 0) {
        expose(r, &in);
        for (uint32_t turn = 0; turn < turns; turn++)
            for (int from = r->n > 1; from < r->n; from++) {
                while (atomic_load(&in.got[from]) < SLOTS * (turn + 1))
                    suite_spin(r->s, 1);
                suite_signal(r->comm, from, 2);
            }
    } else {
        open_sender(r, &s, SLOTS);
        for (uint32_t turn = 0; turn < turns; turn++) {
            send_turn(r, &s, turn);
            suite_await(r->comm, 0, 2);
        }
        close_sender(r, &s);
    }
    tw_quiesce(r);
    for (int from = 1; r->rank == 0 && from < r->n; from++)
        CHECK_EQ(atomic_load(&in.got[from]), SLOTS * turns); /* none twice */
    conceal(r, &in);
}

enum { MANY = 3000 };

/* More notices than any transport takes, and nobody looks: they wait, and all come. */
static void back_pressure(struct tw_rank *r)
{
    struct receiver in;
    struct sender s;
    join(r, &in, false);
    if (r->rank == 0) {
        expose(r, &in);
        tw_barrier(r);
        while (atomic_load(&in.got[1]) < MANY)
            suite_spin(r->s, 1);
    } else {
        open_sender(r, &s, MANY);
        for (uint32_t i = 0; i < MANY; i++)
            CHECK(try_put(&s, &s.op[i], 0, 0, 0)); /* without data nothing can be refused */
        fprintf(stderr, "%u of %d notices wait\n", s.under_way, MANY);
        CHECK(s.under_way > 0);
        tw_barrier(r); /* until here the receiver takes nothing */
        while (s.under_way)
            suite_spin(r->s, 1);
        CHECK_EQ(s.failed, 0);
        close_sender(r, &s);
    }
    tw_quiesce(r);
    CHECK_EQ(atomic_load(&in.got[1]), r->rank == 0 ? MANY : 0);
    conceal(r, &in);
}

/* The receiver is given up: what waits ends with an error, once each; later ones are refused. */
static void receiver_fails(struct tw_rank *r)
{
    struct receiver in;
    struct sender s;
    join(r, &in, false);
    if (r->rank == VICTIM) {
        expose(r, &in);
        tw_barrier(r);
        CHECK_OK(strata_host_peer_failed(r->s, 1, "the test is over"));
    } else {
        open_sender(r, &s, MANY);
        for (uint32_t i = 0; i < MANY; i++)
            CHECK(try_put(&s, &s.op[i], 0, 0, 0));
        uint32_t waiting = s.under_way;
        CHECK(waiting > 0);
        CHECK_OK(strata_host_peer_failed(r->s, VICTIM, "the test says so"));
        while (s.under_way)
            suite_spin(r->s, 1);
        CHECK(s.failed > 0 && s.failed <= waiting);
        struct st_notify_put put = {.am = ST_AM_TEST};
        CHECK_RC(st_worker_put_notify(s.worker, s.peer, 0, &put, &s.op[0].n), STRATA_ERR_PEER);
        close_sender(r, &s);
        tw_barrier(r);
    }
    tw_quiesce(r);
    conceal(r, &in);
}

static void wrong_calls(struct tw_rank *r)
{
    struct receiver in;
    struct st_peer *peer;
    struct st_notify n = {.done = done};
    struct st_notify_put put = {.am = ST_AM_TEST, .notice = ST_NOTICE_MAX + 1};
    join(r, &in, false);
    (void)path_to(r, 1 - r->rank, &peer);
    CHECK_RC(st_worker_put_notify(r->comm->worker, peer, 0, &put, &n), STRATA_ERR_ARG);
    put = (struct st_notify_put){.am = ST_AM_LANE};
    CHECK_RC(st_worker_put_notify(r->comm->worker, peer, 0, &put, &n), STRATA_ERR_ARG);
    put = (struct st_notify_put){.am = ST_AM_TEST};
    CHECK_RC(st_worker_put_notify(r->comm->worker, peer, 7, &put, &n), STRATA_ERR_ARG);
    tw_quiesce(r);
    conceal(r, &in);
}

static const struct over_case cases[] = {{"from_several", from_several, RANKS, STRATA_THREAD_SINGLE, false},
                                         {"back_pressure", back_pressure, 2, STRATA_THREAD_SINGLE, false},
                                         {"receiver_fails", receiver_fails, 2, STRATA_THREAD_SINGLE, true},
                                         {"wrong_calls", wrong_calls, 2, STRATA_THREAD_SINGLE, false}};

int main(void)
{
    static const char *const more[] = {"btl=shuffle,self btl_shuffle_window=64 btl_shuffle_again_percent=50",
                                       "btl=shuffle,self btl_shuffle_needs_reg=1 btl_shuffle_async_percent=100", NULL};
    return over_main("conformance-notify", cases, sizeof cases / sizeof cases[0], more);
}
