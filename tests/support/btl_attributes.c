/* BTL conformance: what a module says of itself by attributes and capability bits holds. */
#include <sys/mman.h>
#include "support/btl_rdma.h"
#include <strata/sdk/btl_hints.h>
#include <strata/sdk/thresholds.h>

static void take(void *arg, const struct st_frag *f)
{
    (void)f;
    ++*(int *)arg;
}

/* Messages are counted, and of bytes the payload. */
static void counts(struct btl_under_test *u)
{
    int got = 0;
    const struct st_btl *t = u->t;
    uint64_t messages, bytes;
    uint32_t hdr = 1, sent = 0;
    static const char data[3000];
    btl_handler(u, take, &got);
    messages = t->messages_sent;
    bytes = t->bytes_sent;
    for (uint32_t i = 0; i < 50; i++) {
        uint32_t len = i * 60 < t->max_send ? i * 60 : t->max_send;
        btl_send_all(u, u->peer, &hdr, 4, data, len);
        sent += len;
    }
    CHECK(t->messages_sent >= messages + 50);
    CHECK_EQ(t->bytes_sent, bytes + sent);
    while (got < 50)
        btl_poll(u);
    btl_meet(u);
}

/* Latency and bandwidth are known, of the module and of each endpoint; an endpoint's facts stay what they are while its
 * capabilities do, and give thresholds that a message can reach. */
static void facts(struct btl_under_test *u)
{
    int got = 0;
    btl_handler(u, take, &got);
    CHECK(u->t->facts.latency_ns > 0 && u->t->facts.bandwidth_mbs > 0);
    for (int p = 0; p < u->r->n; p++) {
        struct st_btl_facts f, again;
        struct st_thresholds t;
        if (!u->ep[p])
            continue;
        f = st_btl_facts_of(u->ep[p]);
        again = st_btl_facts_of(u->ep[p]);
        CHECK(f.latency_ns > 0 && f.bandwidth_mbs > 0);
        CHECK_EQ(f.latency_ns, again.latency_ns);
        CHECK_EQ(f.bandwidth_mbs, again.bandwidth_mbs);
        st_thresholds_derive(u->t, &f, &t);
        CHECK(t.stream_limit >= t.eager_limit && t.eager_limit <= u->t->max_send);
        CHECK(u->t->hints->send_zcopy || t.zcopy_min == UINT32_MAX);
        CHECK((u->t->caps & (ST_BTL_GET | ST_BTL_PUT)) || t.rdma_min == ST_BTL_RDMA_NEVER);
    }
    btl_meet(u);
}

/* Each reg is undone by one dereg: what was registered twice and undone once can be got. With ST_BTL_REG_KEPT memory
 * that is registered again has the key that it had. */
static void registered_twice(struct btl_under_test *u)
{
    struct rdma x;
    struct st_btl_reg again = {0};
    if (rdma_setup(&x, u) && (u->ep[u->peer]->caps & ST_BTL_GET)) {
        if (u->t->caps & ST_BTL_REG_KEPT) {
            u->t->rdma->dereg(u->t, &x.mine_reg);
            CHECK_OK(rdma_enroll(u, x.mine, RDMA_AREA, ST_BTL_ANY_USE, &again));
            CHECK_EQ(memcmp(x.mine_reg.key, again.key, sizeof again.key), 0);
            x.mine_reg = again;
        }
        CHECK_OK(rdma_enroll(u, x.mine, RDMA_AREA, ST_BTL_ANY_USE, &again));
        u->t->rdma->dereg(u->t, &x.mine_reg);
        x.mine_reg = again;
        btl_meet(u); /* the first card has arrived at both, and does not come after the second */
        rdma_exchange(&x);
        uint64_t before = u->t->bytes_got;
        int rc = rdma_move(&x, true, x.local, 0, RDMA_AREA);
        CHECK(rc == STRATA_OK || rc == STRATA_ERR_UNSUPPORTED);
        if (rc == STRATA_OK) {
            CHECK_EQ(pattern_check(x.local, RDMA_AREA, (uint64_t)u->peer), -1);
            CHECK_EQ(u->t->bytes_got, before + RDMA_AREA);
        }
    }
    rdma_teardown(&x);
}

/* Memory that cannot be written may be the source of a get or put, or is refused. */
static void read_only(struct btl_under_test *u)
{
    int got = 0;
    struct st_btl_reg reg = {0};
    btl_handler(u, take, &got);
    if (u->t->caps & ST_BTL_NEEDS_REG) {
        void *page = mmap(NULL, RDMA_AREA, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(page != MAP_FAILED);
        int rc = rdma_enroll(u, page, RDMA_AREA, ST_BTL_SOURCE, &reg);
        CHECK(rc == STRATA_OK || rc == STRATA_ERR_UNSUPPORTED || rc == STRATA_ERR_NOMEM);
        if (rc == STRATA_OK)
            u->t->rdma->dereg(u->t, &reg);
        munmap(page, RDMA_AREA);
    }
    btl_meet(u);
}

const struct btl_case btl_attribute_cases[] = {{"counts", 2, counts, false},
                                               {"facts", 2, facts, false},
                                               {"registered_twice", 2, registered_twice, false},
                                               {"read_only", 2, read_only, false}};
const size_t n_btl_attribute_cases = sizeof btl_attribute_cases / sizeof btl_attribute_cases[0];
