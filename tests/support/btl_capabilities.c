/* BTL conformance: capability bits. Each is set only together with those that it needs; a passive module is silent
 * until it connects; a registration that is called cheap touches no memory; a full endpoint refuses, and recovers. */
#include <sys/mman.h>
#include <unistd.h>
#include <strata/sdk/clock.h>
#include "support/btl_rdma.h"

#define OF_ENDPOINT (ST_BTL_CROWDED | ST_BTL_FULL)
#define PATIENCE_NS (120 * UINT64_C(1000000000)) /* a safety net: a busy machine is not this late */

static void take(void *arg, const struct st_frag *f)
{
    (void)f;
    ++*(int *)arg;
}

/* ---- bits that need others ---- */

static void implications(uint32_t caps)
{
    if (caps & (ST_BTL_REG_KEPT | ST_BTL_REG_CHEAP))
        CHECK(caps & ST_BTL_NEEDS_REG);
    if (caps & ST_BTL_PUT_APART)
        CHECK(caps & ST_BTL_PUT);
    if (caps & (ST_BTL_KEEP | ST_BTL_BOTH_TOLD))
        CHECK(caps & ST_BTL_MENDS);
}

static void bits(const struct st_btl *t)
{
    implications(t->caps);
    CHECK(!(t->caps & OF_ENDPOINT));
    CHECK(!(t->caps & ST_BTL_COSTLY_POLL) || t->ops->progress);
    CHECK(!(t->caps & ST_BTL_GET) || t->rdma->get);
    CHECK(!(t->caps & ST_BTL_PUT) || t->rdma->put);
    CHECK(!(t->caps & ST_BTL_ORDERED) == (t->max_overtaking != 0));
    CHECK(t->max_overtaking <= ST_BTL_OVERTAKING_MOST);
}

/* ---- ST_BTL_PASSIVE ---- */

static void poll_silent(struct btl_under_test *u, const int *got)
{
    for (int i = 0; i < 2000 && u->t->ops->progress; i++)
        CHECK_EQ(u->t->ops->progress(u->t), 0);
    CHECK_EQ(*got, 0);
}

/* Nothing arrives before the first connect, though the peer has sent, and it arrives afterwards. */
static void passive(struct btl_under_test *u, const int *got)
{
    uint32_t hdr = 1;
    int rc = STRATA_ERR_AGAIN;
    poll_silent(u, got);
    tw_barrier(u->r);
    if (u->r->rank == 0 && u->r->n > 1) {
        btl_connect(u, u->peer);
        for (int i = 0; i < 2000 && rc == STRATA_ERR_AGAIN; i++) {
            rc = u->t->ops->send(u->ep[u->peer], ST_AM_TEST, &hdr, 4, NULL, 0);
            btl_poll(u);
        }
    }
    tw_barrier(u->r);
    if (u->r->rank == 1)
        poll_silent(u, got);
    tw_barrier(u->r);
    if (!u->ep[u->peer])
        btl_connect(u, u->peer);
    if (rc != STRATA_OK)
        btl_send_all(u, u->peer, &hdr, 4, NULL, 0);
    while (*got < 1)
        btl_poll(u);
}

/* ---- ST_BTL_REG_CHEAP ---- */

/* Registering costs the same whatever the length, so it touches none of the pages. */
static void cheap(struct btl_under_test *u)
{
    enum { PAGES = 4096 };
    static unsigned char there[2][PAGES]; /* by rank: they may be threads */
    unsigned char *mine = there[u->r->rank % 2];
    size_t page = (size_t)sysconf(_SC_PAGESIZE), len = PAGES * page;
    struct st_btl_reg reg = {0};
    char *area = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(area != MAP_FAILED);
    CHECK(mincore(area, len, mine) == 0);
    bool seen = !(mine[0] & 1); /* else whoever keeps the pages here cannot be asked */
    CHECK_OK(rdma_enroll(u, area, len, ST_BTL_ANY_USE, &reg));
    CHECK(mincore(area, len, mine) == 0);
    for (size_t i = 0; i < PAGES; i++)
        CHECK_MSG(!seen || !(mine[i] & 1), "reg has touched page %zu", i);
    u->t->rdma->dereg(u->t, &reg);
    munmap(area, len);
}

/* A module that was used before this case, by the same job, has connected before. */
static void capabilities(struct btl_under_test *u)
{
    int got = 0;
    bool used = u->t->messages_sent > 0;
    btl_handler(u, take, &got);
    bits(u->t);
    if (u->t->caps & ST_BTL_PASSIVE && !used)
        passive(u, &got);
    for (int p = 0; p < u->r->n; p++)
        if (!u->ep[p] && (p != u->r->rank || u->r->n == 1))
            btl_connect(u, p);
    btl_meet(u);
    implications(u->ep[u->peer]->caps & ~(unsigned)OF_ENDPOINT);
    if (u->t->caps & ST_BTL_REG_CHEAP)
        cheap(u);
    btl_meet(u);
}

/* ---- ST_BTL_FULL ---- */

struct sink {
    uint32_t got, due; /* messages; how many the peer has sent, or UINT32_MAX: not said yet */
};

static void take_all(void *arg, const struct st_frag *f)
{
    struct sink *k = arg;
    uint32_t total;
    CHECK_EQ(f->hdr_len, sizeof total);
    memcpy(&total, f->hdr, sizeof total);
    if (total == 0)
        k->got++;
    else
        k->due = total - 1;
}

/* Sends until refused, without polling; how many messages were taken. *full: the endpoint has said that it is full. */
static uint32_t fill(struct btl_under_test *u, uint32_t len, const char *data, bool *full)
{
    const struct st_btl_endpoint *ep = u->ep[u->peer];
    const uint32_t most = (64u << 20) / (len + 600), none = 0;
    uint32_t n = 0;
    bool says = false;
    int rc = STRATA_OK;
    while (n < most && (rc == STRATA_OK || (ep->caps & ST_BTL_FULL && !says))) {
        says = (ep->caps & ST_BTL_FULL) != 0;
        rc = u->t->ops->send(u->ep[u->peer], ST_AM_TEST, &none, 4, data, len);
        CHECK(rc == STRATA_OK || rc == STRATA_ERR_AGAIN);
        CHECK_MSG(!says || rc == STRATA_ERR_AGAIN, "message %u was taken by an endpoint that said it was full", n);
        n += rc == STRATA_OK;
        *full |= says;
    }
    return n;
}

/* While the endpoint says that it is full, a send is refused; polling clears the bit, and then a send goes. */
static void full(struct btl_under_test *u)
{
    static const char data[64u << 10];
    const uint32_t lens[] = {100, u->t->max_send < sizeof data ? u->t->max_send : (uint32_t)sizeof data};
    struct sink k = {.due = UINT32_MAX};
    bool seen = false;
    btl_handler(u, take_all, &k);
    for (int i = 0; i < 2; i++) {
        uint32_t total;
        uint64_t start;
        btl_meet(u);
        tw_barrier(u->r); /* who meets polls: nobody may send before both have left */
        total = 1 + fill(u, lens[i], data, &seen);
        tw_barrier(u->r);
        start = st_now_ns();
        while (u->ep[u->peer]->caps & ST_BTL_FULL) {
            btl_poll(u);
            CHECK_MSG(st_now_ns() - start < PATIENCE_NS, "the endpoint still says that it is full");
        }
        btl_send_all(u, u->peer, &total, 4, NULL, 0);
        while (k.got != k.due)
            btl_poll(u);
        btl_meet(u);
        k = (struct sink){.due = UINT32_MAX};
    }
    if (!seen && u->r->rank == 0)
        fprintf(stderr, "left out: btl_%s has not said that it is full\n", u->t->component->name);
}

const struct btl_case btl_capability_cases[] = {{"capabilities", 2, capabilities, true}, {"full", 2, full, false}};
const size_t n_btl_capability_cases = sizeof btl_capability_cases / sizeof btl_capability_cases[0];
