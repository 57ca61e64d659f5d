/* BTL conformance: get and put, registered where the module demands it, at every alignment and many at once. */
#include "support/btl_rdma.h"

enum { AREA = RDMA_AREA, MANY = 32 };

void rdma_op_done(struct st_btl_op *o, int rc)
{
    struct rdma_op *p = (struct rdma_op *)o;
    p->rc = rc;
    p->calls++;
}

static void take_card(void *arg, const struct st_frag *f)
{
    struct rdma *x = arg;
    uint32_t mask;
    if (f->len == 0) {
        memcpy(&mask, f->hdr, 4);
        x->peer_mask = mask;
        x->masks++;
        return;
    }
    CHECK_EQ(f->len, sizeof x->peer);
    memcpy(&x->peer, f->data, sizeof x->peer);
    x->cards++;
}

int rdma_enroll(struct btl_under_test *u, void *base, size_t len, enum st_btl_use use, struct st_btl_reg *reg)
{
    int rc;
    while ((rc = u->t->rdma->reg(u->t, base, len, use, reg)) == STRATA_ERR_AGAIN)
        btl_poll(u);
    return rc;
}

static void enroll(struct btl_under_test *u, void *base, size_t len, struct st_btl_reg *reg)
{
    if (u->t->caps & ST_BTL_NEEDS_REG)
        CHECK_OK(rdma_enroll(u, base, len, ST_BTL_ANY_USE, reg));
}

void rdma_exchange(struct rdma *x)
{
    struct rdma_card c = {.base = (uint64_t)(uintptr_t)x->mine};
    uint32_t hdr = 0;
    memcpy(c.key, x->mine_reg.key, sizeof c.key);
    btl_send_all(x->u, x->u->peer, &hdr, 4, &c, sizeof c);
    x->cards_due++;
    while (x->cards < x->cards_due)
        btl_poll(x->u);
}

bool rdma_setup(struct rdma *x, struct btl_under_test *u)
{
    memset(x, 0, sizeof *x);
    x->u = u;
    if (!(u->ep[u->peer]->caps & (ST_BTL_GET | ST_BTL_PUT))) {
        btl_handler(u, take_card, x);
        return false;
    }
    x->mine = suite_buffer(AREA);
    x->local = suite_buffer(AREA);
    pattern_fill(x->mine, AREA, (uint64_t)u->r->rank);
    enroll(u, x->mine, AREA, &x->mine_reg);
    enroll(u, x->local, AREA, &x->local_reg);
    btl_handler(u, take_card, x);
    rdma_exchange(x);
    return true;
}

void rdma_teardown(struct rdma *x)
{
    struct btl_under_test *u = x->u;
    btl_meet(u);
    if (!x->mine)
        return;
    if (u->t->caps & ST_BTL_NEEDS_REG) {
        u->t->rdma->dereg(u->t, &x->mine_reg);
        u->t->rdma->dereg(u->t, &x->local_reg);
    }
    suite_buffer_free(x->mine, AREA);
    suite_buffer_free(x->local, AREA);
}

int rdma_move(struct rdma *x, bool get, char *local, size_t offset, size_t len)
{
    struct btl_under_test *u = x->u;
    struct st_btl_endpoint *ep = u->ep[u->peer];
    struct rdma_op op = {.op.done = rdma_op_done};
    int rc;
    do {
        rc = get ? u->t->rdma->get(ep, local, x->peer.base + offset, x->peer.key, len, &x->local_reg, &op.op)
                 : u->t->rdma->put(ep, local, x->peer.base + offset, x->peer.key, len, &x->local_reg, &op.op);
        if (rc == STRATA_ERR_AGAIN)
            btl_poll(u);
    } while (rc == STRATA_ERR_AGAIN);
    if (rc == STRATA_OK) {
        while (!op.calls)
            btl_poll(u);
        rc = op.rc;
    } else if (rc == 1) {
        CHECK_EQ(op.calls, 0);
        rc = STRATA_OK;
    }
    CHECK(op.calls <= 1);
    if (rc == STRATA_ERR_UNSUPPORTED)
        CHECK(!(ep->caps & (get ? ST_BTL_GET : ST_BTL_PUT)));
    return rc;
}

static void gets(struct btl_under_test *u)
{
    static const size_t lens[] = {1, 2, 7, 8, 9, 63, 64, 65, 4095, 4096, 4097, 65536, 100001, 262144};
    struct rdma x;
    bool ready = rdma_setup(&x, u);
    for (size_t i = 0; ready && i < sizeof lens / sizeof lens[0]; i++)
        for (size_t shift = 0; shift < 3; shift++) {
            size_t at = shift * 13, to = shift * 5, len = lens[i];
            if (!(u->ep[u->peer]->caps & ST_BTL_GET))
                continue;
            memset(x.local, 0x11, AREA);
            int rc = rdma_move(&x, true, x.local + to, at, len);
            if (rc == STRATA_ERR_UNSUPPORTED)
                break;
            CHECK_OK(rc);
            CHECK_EQ(pattern_check_at(x.local + to, at, len, (uint64_t)u->peer), -1);
            CHECK((to == 0 || x.local[to - 1] == 0x11) && x.local[to + len] == 0x11);
        }
    rdma_teardown(&x);
}

/* Both put into each other's memory, then look. */
static void puts_(struct btl_under_test *u)
{
    static const size_t lens[] = {1, 8, 63, 4096, 4097, 100001};
    struct rdma x;
    bool ready = rdma_setup(&x, u);
    uint32_t mask = 0;
    size_t at = 0;
    if (ready)
        memset(x.mine, 0x22, AREA);
    btl_meet(u);
    for (int i = 0; ready && i < 6; i++) {
        size_t len = lens[i];
        pattern_fill(x.local, len, (uint64_t)(i + 50));
        if (u->ep[u->peer]->caps & ST_BTL_PUT) {
            int rc = rdma_move(&x, false, x.local, at, len);
            CHECK(rc == STRATA_OK || rc == STRATA_ERR_UNSUPPORTED);
            mask |= rc == STRATA_OK ? 1u << i : 0;
        }
        at += len + 100;
    }
    if (ready)
        btl_send_all(u, u->peer, &mask, 4, NULL, 0); /* orders the puts before the look */
    while (ready && !x.masks)
        btl_poll(u);
    at = 0;
    for (int i = 0; ready && i < 6; i++) {
        if (x.peer_mask >> i & 1)
            CHECK_EQ(pattern_check(x.mine + at, lens[i], (uint64_t)(i + 50)), -1);
        else
            CHECK(x.mine[at] == 0x22);
        CHECK(x.mine[at + lens[i]] == 0x22);
        at += lens[i] + 100;
    }
    rdma_teardown(&x);
}

/* Many operations under way at once; each is reported exactly once. */
static void many(struct btl_under_test *u)
{
    struct rdma x;
    bool ready = rdma_setup(&x, u);
    struct rdma_op op[MANY];
    size_t piece = AREA / MANY / 8 * 8;
    struct st_btl_endpoint *ep = u->ep[u->peer];
    for (int round = 0; ready && round < 10 && (ep->caps & ST_BTL_GET); round++) {
        memset(x.local, 0, AREA);
        for (int i = 0; i < MANY; i++) {
            op[i] = (struct rdma_op){.op.done = rdma_op_done, .rc = 1};
            size_t at = (size_t)i * piece;
            do {
                op[i].rc =
                    u->t->rdma->get(ep, x.local + at, x.peer.base + at, x.peer.key, piece, &x.local_reg, &op[i].op);
                if (op[i].rc == STRATA_ERR_AGAIN)
                    btl_poll(u);
            } while (op[i].rc == STRATA_ERR_AGAIN);
            CHECK(op[i].rc == 1 || op[i].rc == STRATA_OK || op[i].rc == STRATA_ERR_UNSUPPORTED);
            if (op[i].rc != STRATA_OK)
                op[i].calls = 1;
        }
        for (int i = 0; i < MANY; i++) {
            while (!op[i].calls)
                btl_poll(u);
            CHECK_EQ(op[i].calls, 1);
            if (op[i].rc == STRATA_ERR_UNSUPPORTED)
                continue;
            size_t at = (size_t)i * piece;
            CHECK_EQ(pattern_check_at(x.local + at, at, piece, (uint64_t)u->peer), -1);
        }
    }
    rdma_teardown(&x);
}

const struct btl_case btl_rdma_cases[] = {{"rdma_get", 2, gets, false},
                                          {"rdma_put", 2, puts_, false},
                                          {"rdma_many", 2, many, false},
                                          {"rdma_put_notify", 2, rdma_put_notify, false},
                                          {"rdma_map", 2, rdma_map, false}};
const size_t n_btl_rdma_cases = sizeof btl_rdma_cases / sizeof btl_rdma_cases[0];
