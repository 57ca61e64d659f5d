/* BTL conformance: memory that a peer maps (rdma->map), of modules that offer it. */
#include "support/btl_rdma.h"
#include <strata/sdk/mpool.h>

enum { LEN = 20000, AT = 5003, PART = 9001 };

/* Offers `mine` of x to the peer instead of what rdma_setup has offered, and learns where the peer's is. */
static void offer(struct rdma *x, struct st_shared_piece *piece)
{
    struct st_mpool *pool = st_mpool(x->u->r->s);
    CHECK(pool);
    CHECK_OK(pool->ops->alloc_shared(pool, LEN, piece));
    x->mine = piece->memory;
    CHECK_OK(rdma_enroll(x->u, x->mine, LEN, ST_BTL_ANY_USE, &x->mine_reg));
    btl_meet(x->u); /* the first card has arrived at both, and does not come after the second */
    rdma_exchange(x);
}

static int map(struct rdma *x, uint64_t remote, size_t len, struct st_shared_mapping *out)
{
    *out = (struct st_shared_mapping){0};
    return x->u->t->rdma->map(x->u->ep[x->u->peer], remote, x->peer.key, len, out);
}

/* Not a byte beside the registered memory, nor memory that no key names. */
static void refuses(struct rdma *x)
{
    const struct rdma_card good = x->peer;
    const struct {
        uint64_t remote;
        size_t len;
    } bad[] = {{good.base - 1, 8},   {good.base + LEN - 7, 8},       {good.base + LEN, 1},
               {good.base, LEN + 1}, {good.base + AT, LEN - AT + 1}, {good.base + 1, SIZE_MAX}};
    struct st_shared_mapping m;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_RC(map(x, bad[i].remote, bad[i].len, &m), STRATA_ERR_UNSUPPORTED);
        CHECK(!m.memory);
    }
    memset(x->peer.key, 0, sizeof x->peer.key);
    CHECK_RC(map(x, good.base, 8, &m), STRATA_ERR_UNSUPPORTED);
    CHECK(!m.memory);
    x->peer = good;
}

/* Each stores into the other's memory, then into its own; each store is seen at the other side. */
static void share(struct rdma *x, const struct st_shared_mapping *m, int round)
{
    uint64_t own = (uint64_t)(4 * round + x->u->r->rank), peers = (uint64_t)(4 * round + x->u->peer);
    pattern_fill(m->memory, PART, own);
    btl_meet(x->u);
    CHECK_EQ(pattern_check(x->mine + AT, PART, peers), -1);
    CHECK(x->mine[AT - 1] == 0 && x->mine[AT + PART] == 0);
    btl_meet(x->u);
    pattern_fill(x->mine + AT, PART, own + 2);
    btl_meet(x->u);
    CHECK_EQ(pattern_check(m->memory, PART, peers + 2), -1);
    btl_meet(x->u);
}

static void map_both(struct rdma *x)
{
    struct btl_under_test *u = x->u;
    struct st_shared_mapping m;
    int rc = map(x, x->peer.base + AT, PART, &m);
    uint32_t mapped = rc == STRATA_OK;
    if (rc != STRATA_ERR_UNSUPPORTED || u->r->world)
        CHECK_OK(rc);
    btl_send_all(u, u->peer, &mapped, 4, NULL, 0);
    while (!x->masks)
        btl_poll(u);
    if (!mapped || !x->peer_mask) { /* processes that may not look into each other */
        fprintf(stderr, "left out: ranks %d and %d do not both map\n", u->r->rank, u->peer);
        st_shared_unmap(&m);
        return;
    }
    CHECK(m.memory && (u->peer == u->r->rank || m.memory != x->mine + AT));
    refuses(x);
    share(x, &m, 1);
    u->t->ops->disconnect(u->ep[u->peer]); /* the mapping stays */
    u->ep[u->peer] = NULL;
    CHECK_OK(u->t->ops->connect(u->t, u->peer, &u->ep[u->peer]));
    share(x, &m, 2);
    st_shared_unmap(&m);
    CHECK(!m.memory);
}

void rdma_map(struct btl_under_test *u)
{
    struct rdma x;
    struct st_shared_piece piece;
    bool ready = rdma_setup(&x, u);
    char *first = x.mine;
    struct st_btl_reg first_reg = x.mine_reg;
    if (!u->t->rdma->map) {
        if (u->r->rank == 0)
            fprintf(stderr, "left out: btl_%s does not offer map\n", u->t->component->name);
        rdma_teardown(&x);
        return;
    }
    offer(&x, &piece);
    map_both(&x);
    btl_meet(u);
    u->t->rdma->dereg(u->t, &x.mine_reg);
    st_mpool(u->r->s)->ops->free_shared(st_mpool(u->r->s), &piece);
    x.mine = ready ? first : NULL;
    x.mine_reg = first_reg;
    rdma_teardown(&x);
}
