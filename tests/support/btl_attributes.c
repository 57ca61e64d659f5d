/* BTL conformance: what a module says of itself by attributes and capability bits holds. */
#include <sys/mman.h>
#include <unistd.h>
#include <strata/sdk/btl_rdma.h>
#include "support/btl_suite.h"

struct inbox {
    int n;
    uint64_t base; /* the peer's memory */
    uint8_t key[ST_BTL_KEY_MAX];
};

static void take(void *arg, const struct st_frag *f)
{
    struct inbox *in = arg;
    if (f->len == sizeof in->base + sizeof in->key) {
        memcpy(&in->base, f->data, sizeof in->base);
        memcpy(in->key, (const char *)f->data + sizeof in->base, sizeof in->key);
    }
    in->n++;
}

/* Messages are counted, and of bytes the payload. */
static void counts(struct btl_under_test *u)
{
    struct inbox in = {0};
    const struct st_btl *t = u->t;
    uint64_t messages, bytes;
    uint32_t hdr = 1, sent = 0;
    static const char data[3000];
    btl_handler(u, take, &in);
    messages = t->messages_sent;
    bytes = t->bytes_sent;
    for (uint32_t i = 0; i < 50; i++) {
        uint32_t len = i * 60 < t->max_send ? i * 60 : t->max_send;
        btl_send_all(u, u->peer, &hdr, 4, data, len);
        sent += len;
    }
    CHECK(t->messages_sent >= messages + 50);
    CHECK_EQ(t->bytes_sent, bytes + sent);
    while (in.n < 50)
        btl_poll(u);
    btl_meet(u);
}

/* Latency and bandwidth are known, of the module and of each endpoint. */
static void facts(struct btl_under_test *u)
{
    struct inbox in = {0};
    struct st_btl_facts f = st_btl_facts_of(u->ep[u->peer]);
    btl_handler(u, take, &in);
    CHECK(u->t->facts.latency_ns > 0 && u->t->facts.bandwidth_mbs > 0);
    CHECK(f.latency_ns > 0 && f.bandwidth_mbs > 0);
    btl_meet(u);
}

static int enroll(struct btl_under_test *u, void *base, size_t len, enum st_btl_use use, struct st_btl_reg *reg)
{
    int rc;
    while ((rc = u->t->rdma->reg(u->t, base, len, use, reg)) == STRATA_ERR_AGAIN)
        btl_poll(u);
    return rc;
}

enum { AREA = 65536 };

/* Waits for n, without reading anything. */
struct op {
    struct st_btl_op op;
    int calls, rc;
};

static void op_done(struct st_btl_op *op, int rc)
{
    struct op *o = (struct op *)(void *)op;
    o->calls++;
    o->rc = rc;
}

/* Gets the peer's whole area. */
static void fetch(struct btl_under_test *u, const struct inbox *in)
{
    struct st_btl_endpoint *ep = u->ep[u->peer];
    char *local = suite_buffer(AREA);
    struct st_btl_reg reg = {0};
    struct op op = {.op.done = op_done};
    uint64_t before = u->t->bytes_got;
    int rc;
    CHECK_OK(enroll(u, local, AREA, ST_BTL_ANY_USE, &reg));
    while ((rc = u->t->rdma->get(ep, local, in->base, in->key, AREA, &reg, &op.op)) == STRATA_ERR_AGAIN)
        btl_poll(u);
    while (rc == STRATA_OK && !op.calls)
        btl_poll(u);
    if (rc == STRATA_OK)
        rc = op.rc;
    CHECK(rc == 1 || rc == STRATA_OK || rc == STRATA_ERR_UNSUPPORTED);
    if (rc != STRATA_ERR_UNSUPPORTED) {
        CHECK_EQ(pattern_check(local, AREA, (uint64_t)u->peer), -1);
        CHECK_EQ(u->t->bytes_got, before + AREA);
    }
    u->t->rdma->dereg(u->t, &reg);
    suite_buffer_free(local, AREA);
}

/* Each reg is undone by one dereg: what was registered twice and undone once can be got. With ST_BTL_REG_KEPT memory
 * that is registered again has the key that it had. */
static void registered_twice(struct btl_under_test *u)
{
    struct inbox in = {0};
    struct st_btl_reg a = {0}, b = {0};
    uint32_t hdr = 1;
    unsigned char card[sizeof in.base + ST_BTL_KEY_MAX];
    bool works = (u->ep[u->peer]->caps & ST_BTL_GET) != 0;
    btl_handler(u, take, &in);
    if (!works) {
        btl_meet(u);
        return;
    }
    char *mine = suite_buffer(AREA);
    uint64_t base = (uint64_t)(uintptr_t)mine;
    pattern_fill(mine, AREA, (uint64_t)u->r->rank);
    CHECK_OK(enroll(u, mine, AREA, ST_BTL_ANY_USE, &a));
    if (u->t->caps & ST_BTL_REG_KEPT) {
        u->t->rdma->dereg(u->t, &a);
        CHECK_OK(enroll(u, mine, AREA, ST_BTL_ANY_USE, &b));
        CHECK_EQ(memcmp(a.key, b.key, sizeof a.key), 0);
        a = b;
    }
    CHECK_OK(enroll(u, mine, AREA, ST_BTL_ANY_USE, &b));
    u->t->rdma->dereg(u->t, &a);
    memcpy(card, &base, sizeof base);
    memcpy(card + sizeof base, b.key, sizeof b.key);
    btl_send_all(u, u->peer, &hdr, 4, card, sizeof card);
    while (in.n < 1)
        btl_poll(u);
    fetch(u, &in);
    btl_meet(u); /* the peer has fetched, too */
    u->t->rdma->dereg(u->t, &b);
    suite_buffer_free(mine, AREA);
}

/* Memory that cannot be written may be the source of a get or put, or is refused. */
static void read_only(struct btl_under_test *u)
{
    struct inbox in = {0};
    struct st_btl_reg reg = {0};
    btl_handler(u, take, &in);
    if (u->t->caps & ST_BTL_NEEDS_REG) {
        void *page = mmap(NULL, AREA, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(page != MAP_FAILED);
        int rc = enroll(u, page, AREA, ST_BTL_SOURCE, &reg);
        CHECK(rc == STRATA_OK || rc == STRATA_ERR_UNSUPPORTED || rc == STRATA_ERR_NOMEM);
        if (rc == STRATA_OK)
            u->t->rdma->dereg(u->t, &reg);
        munmap(page, AREA);
    }
    btl_meet(u);
}

const struct btl_case btl_attribute_cases[] = {
    {"counts", 2, counts}, {"facts", 2, facts}, {"registered_twice", 2, registered_twice}, {"read_only", 2, read_only}};
const size_t n_btl_attribute_cases = sizeof btl_attribute_cases / sizeof btl_attribute_cases[0];
