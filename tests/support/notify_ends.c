/* Both ends of puts with notice; see notify_ends.h. */
#include "support/notify_ends.h"
#include "support/suite.h"

uint32_t notify_length(int from, uint32_t turn, uint32_t slot)
{
    uint32_t r = (uint32_t)(from + 3) * 2654435761u * (turn * NOTIFY_SLOTS + slot + 1);
    return r % 5 == 0 ? 1 + (r >> 8) % NOTIFY_SLOT : 1 + (r >> 8) % 200;
}

uint64_t notify_seed(int from, uint32_t turn, uint32_t slot)
{
    return (uint64_t)from << 50 ^ (uint64_t)turn << 8 ^ slot;
}

void notify_look(struct notify_receiver *in, int from, uint32_t slot, uint32_t turn)
{
    const char *at = in->area[from] + (size_t)slot * NOTIFY_SLOT;
    CHECK_EQ(in->filled[from][slot], turn);
    CHECK_EQ(pattern_check(at, notify_length(from, turn, slot), notify_seed(from, turn, slot)), -1);
}

static void ends_notified(void *arg, int from, uint32_t notice)
{
    struct notify_receiver *in = arg;
    uint32_t slot = notice % NOTIFY_SLOTS, turn = notice / NOTIFY_SLOTS;
    CHECK(from >= 0 && from < NOTIFY_MOST_RANKS);
    if (in->look)
        in->look(in, from, slot, turn);
    in->filled[from][slot]++;
    atomic_fetch_add(&in->got[from], 1);
}

static void ends_deliver(void *arg, const struct st_frag *frag)
{
    (void)arg, (void)frag;
    CHECK_MSG(false, "this client gets no messages");
}

static const struct st_client row = {.am = ST_AM_TEST, .deliver = ends_deliver, .notified = ends_notified};

static void ends_done(struct st_notify *n, int rc)
{
    struct notify_op *op = ST_CONTAINER(n, struct notify_op, n);
    CHECK(op->under_way); /* once */
    CHECK(rc == STRATA_OK || rc == STRATA_ERR_PEER);
    op->under_way = false;
    op->s->under_way--;
    op->s->failed += rc != STRATA_OK;
}

static struct st_btl *ends_path(struct tw_rank *r, int rank, struct st_peer **peer)
{
    struct st_worker *w = r->comm->worker;
    CHECK_OK(st_worker_peer(w, rank, peer));
    CHECK_OK(st_worker_connect(w, *peer));
    return st_peer_path(*peer, 0)->btl;
}

static void ends_register(struct tw_rank *r, struct st_btl *btl, void *area, enum st_btl_use use,
                          struct st_btl_reg *reg)
{
    int rc;
    while ((rc = btl->rdma->reg(btl, area, NOTIFY_AREA, use, reg)) == STRATA_ERR_AGAIN)
        suite_spin(r->s, 1);
    CHECK_OK(rc);
}

void notify_join(struct tw_rank *r, struct notify_receiver *in)
{
    CHECK_OK(st_worker_join(r->comm->worker, &row, in));
    tw_barrier(r);
}

void notify_expose(struct tw_rank *r, struct notify_receiver *in)
{
    for (int from = 0; from < r->n; from++) {
        struct st_peer *peer;
        struct notify_card card = {0};
        if (from == r->rank && r->n > 1)
            continue;
        struct st_btl *btl = ends_path(r, from, &peer);
        in->area[from] = suite_buffer(NOTIFY_AREA);
        ends_register(r, btl, in->area[from], ST_BTL_ANY_USE, &in->reg[from]);
        card.base = (uint64_t)(uintptr_t)in->area[from];
        memcpy(card.key, in->reg[from].key, sizeof card.key);
        CHECK_OK(strata_send(r->comm, &card, sizeof card, from, 1));
    }
}

void notify_conceal(struct tw_rank *r, struct notify_receiver *in)
{
    for (int from = 0; from < r->n; from++) {
        struct st_peer *peer;
        if (!in->area[from])
            continue;
        CHECK_OK(st_worker_peer(r->comm->worker, from, &peer)); /* it may have failed */
        struct st_btl *btl = st_peer_path(peer, 0)->btl;
        btl->rdma->dereg(btl, &in->reg[from]);
        suite_buffer_free(in->area[from], NOTIFY_AREA);
    }
    st_worker_leave(r->comm->worker, &row);
}

void notify_open(struct tw_rank *r, struct notify_sender *s, uint32_t n_ops)
{
    *s = (struct notify_sender){
        .worker = r->comm->worker, .op = calloc(n_ops, sizeof *s->op), .out = suite_buffer(NOTIFY_AREA)};
    CHECK(s->op);
    for (uint32_t i = 0; i < n_ops; i++)
        s->op[i] = (struct notify_op){.n.done = ends_done, .s = s};
    CHECK_OK(strata_recv(r->comm, &s->card, sizeof s->card, 0, 1, NULL));
    ends_register(r, ends_path(r, 0, &s->peer), s->out, ST_BTL_SOURCE, &s->reg);
}

void notify_close(struct notify_sender *s)
{
    struct st_btl *btl = st_peer_path(s->peer, 0)->btl;
    CHECK_EQ(s->under_way, 0);
    btl->rdma->dereg(btl, &s->reg);
    suite_buffer_free(s->out, NOTIFY_AREA);
    free(s->op);
}

int notify_put(struct notify_sender *s, struct notify_op *op, uint32_t slot, uint32_t turn, uint32_t len)
{
    size_t at = (size_t)slot * NOTIFY_SLOT;
    struct st_notify_put put = {.local = s->out + at,
                                .reg = &s->reg,
                                .remote = s->card.base + at,
                                .key = s->card.key,
                                .len = len,
                                .am = ST_AM_TEST,
                                .notice = turn * NOTIFY_SLOTS + slot};
    op->under_way = true; /* done may be called before this returns */
    s->under_way++;
    int rc = st_worker_put_notify(s->worker, s->peer, 0, &put, &op->n);
    CHECK(rc == STRATA_OK || rc == 1 || rc == STRATA_ERR_AGAIN || rc == STRATA_ERR_PEER);
    if (rc != STRATA_OK) {
        op->under_way = false;
        s->under_way--;
    }
    s->refused += rc == STRATA_ERR_AGAIN;
    return rc;
}

void notify_turn(struct tw_rank *r, struct notify_sender *s, uint32_t turn)
{
    for (uint32_t i = 0; i < NOTIFY_SLOTS; i++) {
        uint32_t slot = (i * 7 + turn) % NOTIFY_SLOTS, len = notify_length(r->rank, turn, slot);
        int rc;
        pattern_fill(s->out + (size_t)slot * NOTIFY_SLOT, len, notify_seed(r->rank, turn, slot));
        while ((rc = notify_put(s, &s->op[slot], slot, turn, len)) == STRATA_ERR_AGAIN)
            suite_spin(r->s, 1);
        CHECK(rc != STRATA_ERR_PEER);
    }
    while (s->under_way)
        suite_spin(r->s, 1);
    CHECK_EQ(s->failed, 0);
}

void notify_await(struct tw_rank *r, struct notify_receiver *in, uint32_t turns)
{
    for (int from = r->n > 1; from < r->n; from++)
        while (atomic_load(&in->got[from]) < NOTIFY_SLOTS * turns)
            suite_spin(r->s, 1);
}

void notify_mingle(struct tw_rank *r, uint32_t round)
{
    if (r->n < 3)
        return;
    int by = 1 + (int)(round % (uint32_t)(r->n - 1));
    suite_signal(r->comm, (r->rank + by) % r->n, 4);
    suite_await(r->comm, (r->rank + r->n - by) % r->n, 4);
}

void notify_turns(struct tw_rank *r, struct notify_receiver *in, uint32_t turns,
                  void (*seen)(struct notify_receiver *in))
{
    struct notify_sender s;
    notify_join(r, in);
    if (r->rank == 0) {
        notify_expose(r, in);
        for (uint32_t turn = 0; turn < turns; turn++) {
            notify_await(r, in, turn + 1);
            if (seen)
                seen(in);
            notify_mingle(r, turn);
            for (int from = r->n > 1; from < r->n; from++)
                suite_signal(r->comm, from, 2);
        }
    } else {
        notify_open(r, &s, NOTIFY_SLOTS);
        for (uint32_t turn = 0; turn < turns; turn++) {
            notify_turn(r, &s, turn);
            notify_mingle(r, turn);
            suite_await(r->comm, 0, 2);
        }
        notify_close(&s);
    }
    tw_quiesce(r);
    for (int from = 1; r->rank == 0 && from < r->n; from++)
        CHECK_EQ(atomic_load(&in->got[from]), NOTIFY_SLOTS * turns); /* none twice */
    notify_conceal(r, in);
}
