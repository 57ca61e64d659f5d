/* BTL conformance: put with notice, of modules that offer it: at lengths around their limits, and many without a look
 * at what has ended. */
#include "support/btl_rdma.h"

static const size_t lens[] = {1, 8, 63, 200, 4096, 8449, 33001, 100001};
enum { N = sizeof lens / sizeof lens[0], BURST = 2000, BURST_WORD = 0x40000000, BURST_AT = RDMA_AREA - 8 };

struct notices {
    struct rdma x;
    st_deliver_fn fn; /* whose they are otherwise */
    void *arg;
    int got[N], burst;
};

static size_t place(int i)
{
    size_t at = 0;
    for (int k = 0; k < i; k++)
        at += lens[k] + 100;
    return at;
}

/* Four different bytes; the client that the highest bits name is nothing to the module. */
static uint32_t word_of(int i)
{
    return 0x8a5a3c00u + (uint32_t)i;
}

static void take(void *arg, const struct st_frag *f)
{
    struct notices *n = arg;
    uint32_t word, i;
    CHECK_EQ(f->hdr_len, sizeof word);
    CHECK_EQ(f->len, 0);
    CHECK_EQ(f->rank, n->x.u->peer);
    memcpy(&word, f->hdr, sizeof word);
    if (word == BURST_WORD) {
        n->burst++;
        return;
    }
    i = word - word_of(0);
    CHECK(i < N);
    n->got[i]++;
    CHECK_EQ(pattern_check(n->x.mine + place((int)i), lens[i], i + 70), -1); /* the data is there */
}

/* Notices of all modules go to this case, or to whom they belong. */
static void handle(struct notices *n, bool ours)
{
    strata_t *s = n->x.u->r->s;
    n->fn = ours ? n->x.u->t->am[ST_AM_NOTICE].fn : n->fn;
    n->arg = ours ? n->x.u->t->am[ST_AM_NOTICE].arg : n->arg;
    for (size_t i = 0; i < s->n_btls; i++) {
        s->btls[i]->am[ST_AM_NOTICE].fn = ours ? take : n->fn;
        s->btls[i]->am[ST_AM_NOTICE].arg = ours ? n : n->arg;
    }
}

static int put(struct rdma *x, size_t at, size_t len, uint32_t word, struct rdma_op *op)
{
    struct btl_under_test *u = x->u;
    *op = (struct rdma_op){.op.done = rdma_op_done};
    int rc = u->t->rdma->put_notify(u->ep[u->peer], x->local + at, x->peer.base + at, x->peer.key, len, &x->local_reg,
                                    word, &op->op);
    CHECK(rc == 1 || rc == STRATA_OK || rc == STRATA_ERR_AGAIN || rc == STRATA_ERR_UNSUPPORTED);
    CHECK(rc == STRATA_OK || op->calls == 0);
    if (rc == 1)
        *op = (struct rdma_op){.calls = 1};
    return rc;
}

static void await(struct btl_under_test *u, struct rdma_op *op)
{
    while (!op->calls)
        btl_poll(u);
    CHECK_EQ(op->calls, 1);
    CHECK_OK(op->rc);
}

/* All at once; those that the module took. */
static uint32_t put_lengths(struct rdma *x)
{
    struct rdma_op op[N];
    uint32_t mask = 0;
    for (int i = 0; i < N; i++) {
        int rc;
        pattern_fill(x->local + place(i), lens[i], (uint64_t)i + 70);
        while ((rc = put(x, place(i), lens[i], word_of(i), &op[i])) == STRATA_ERR_AGAIN)
            btl_poll(x->u);
        mask |= rc >= STRATA_OK ? 1u << i : 0;
    }
    for (int i = 0; i < N; i++)
        if (mask >> i & 1)
            await(x->u, &op[i]);
    return mask;
}

/* So many as the module takes before it is polled. */
static uint32_t put_burst(struct rdma *x)
{
    static struct rdma_op op[2][BURST]; /* by rank: they may be threads */
    struct rdma_op *mine = op[x->u->r->rank];
    uint32_t n = 0;
    while (n < BURST && put(x, BURST_AT, 8, BURST_WORD, &mine[n]) >= STRATA_OK)
        n++;
    for (uint32_t i = 0; i < n; i++)
        await(x->u, &mine[i]);
    return n;
}

/* Tells the peer what was sent to it, and hears the same. */
static uint32_t exchange(struct rdma *x, uint32_t sent, int message)
{
    btl_send_all(x->u, x->u->peer, &sent, 4, NULL, 0);
    while (x->masks < message)
        btl_poll(x->u);
    return x->peer_mask;
}

/* Both put into each other's memory. Each notice comes once, and when its data is there. */
void rdma_put_notify(struct btl_under_test *u)
{
    struct notices n = {0};
    struct rdma *x = &n.x;
    if (!rdma_setup(x, u) || !u->t->rdma->put_notify) {
        rdma_teardown(x);
        return;
    }
    handle(&n, true);
    memset(x->mine, 0x22, RDMA_AREA);
    btl_meet(u);
    uint32_t expected = exchange(x, put_lengths(x), 1);
    for (int i = 0; i < N; i++)
        while (n.got[i] < (int)(expected >> i & 1))
            btl_poll(u);
    btl_meet(u);
    expected = exchange(x, put_burst(x), 2);
    while (n.burst < (int)expected)
        btl_poll(u);
    btl_meet(u);
    CHECK_EQ(n.burst, expected);
    for (int i = 0; i < N; i++) {
        CHECK(n.got[i] <= 1);
        CHECK(x->mine[place(i) + lens[i]] == 0x22);
    }
    handle(&n, false);
    rdma_teardown(x);
}
