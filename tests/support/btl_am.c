/* BTL conformance: active messages arrive exactly once, whole, in order where promised, from whom they came;
 * refused sends took nothing. */
#include <strata/sdk/btl_hints.h>
#include "support/btl_suite.h"

#include <stddef.h>

enum { MAX_ID = 60000 };
#define TOTAL UINT32_MAX /* the message that says how many the others are */

struct sink {
    struct btl_under_test *u;
    uint8_t seen[4][MAX_ID]; /* by sender and message */
    int got;
    int64_t last[4];
    uint32_t total; /* UINT32_MAX: not said yet */
};

/* The length is part of it: a message that is cut or longer does not have its pattern. */
static uint64_t seed_of(uint32_t len, int rank, uint32_t id)
{
    return ((uint64_t)len << 40) ^ ((uint64_t)id << 8) ^ (uint64_t)rank;
}

static void fill(unsigned char *hdr, uint32_t hdr_len, unsigned char *data, uint32_t len, int rank, uint32_t id)
{
    memcpy(hdr, &id, 4);
    pattern_fill(hdr + 4, hdr_len - 4, id + 7);
    pattern_fill(data, len, seed_of(len, rank, id));
}

static void check(const unsigned char *hdr, uint32_t hdr_len, const unsigned char *data, uint32_t len, int rank,
                  uint32_t id)
{
    CHECK_MSG(pattern_check(hdr + 4, hdr_len - 4, id + 7) < 0, "message %u: header of %u bytes is wrong", id, hdr_len);
    ptrdiff_t bad = pattern_check(data, len, seed_of(len, rank, id));
    CHECK_MSG(bad < 0, "message %u of %u bytes from %d: byte %td is wrong", id, len, rank, bad);
}

/* None that was sent more than max_overtaking later has arrived before this one; none at all with ST_BTL_ORDERED. */
static void check_order(struct sink *k, int rank, uint32_t id)
{
    const struct st_btl *t = k->u->t;
    int64_t ahead = k->last[rank] - (int64_t)id;
    CHECK_MSG(ahead <= (int64_t)t->max_overtaking, "message %u from %d came after one sent %lld later, at most %u may",
              id, rank, (long long)ahead, t->max_overtaking);
    if (ahead < 0)
        k->last[rank] = id;
}

static void take(void *arg, const struct st_frag *f)
{
    struct sink *k = arg;
    uint32_t id;
    CHECK(f->hdr_len >= 4 && f->hdr_len <= ST_BTL_HDR_MAX);
    CHECK(f->rank >= 0 && f->rank < k->u->r->n);
    CHECK(!strcmp(f->btl->component->name, k->u->t->component->name));
    memcpy(&id, f->hdr, 4);
    if (id == TOTAL) {
        CHECK_EQ(f->len, sizeof k->total);
        memcpy(&k->total, f->data, sizeof k->total);
        return;
    }
    CHECK(id < MAX_ID);
    CHECK_MSG(!k->seen[f->rank][id], "message %u from %d arrives twice", id, f->rank);
    k->seen[f->rank][id] = 1;
    check(f->hdr, f->hdr_len, f->data, f->len, f->rank, id);
    check_order(k, f->rank, id);
    k->got++;
}

static struct sink *sink_new(struct btl_under_test *u)
{
    struct sink *k = calloc(1, sizeof *k);
    CHECK(k);
    k->u = u;
    k->total = UINT32_MAX;
    for (int i = 0; i < 4; i++)
        k->last[i] = -1;
    btl_handler(u, take, k);
    return k;
}

static void sink_free(struct sink *k)
{
    btl_meet(k->u);
    free(k);
}

/* Every header length with every payload length at a boundary. */
static void sizes(struct btl_under_test *u)
{
    static const uint32_t hdr_lens[] = {4, 5, 8, 12, 16, 24, 31, 32, 33, 40, 47, 48};
    struct st_btl *t = u->t;
    struct sink *k = sink_new(u);
    uint32_t id = 0, max = t->max_send + ST_BTL_HDR_MAX;
    unsigned char hdr[ST_BTL_HDR_MAX], *data = suite_buffer(max);
    for (size_t h = 0; h < sizeof hdr_lens / sizeof hdr_lens[0]; h++) {
        uint32_t hl = hdr_lens[h];
        uint32_t at[] = {0,
                         8,
                         16,
                         64,
                         128,
                         256,
                         512,
                         1024,
                         4096,
                         t->eager_limit,
                         t->pipeline_send,
                         t->max_send,
                         64 - hl,
                         128 - hl,
                         t->eager_limit - hl,
                         t->max_send - hl,
                         max - hl};
        for (size_t i = 0; i < sizeof at / sizeof at[0]; i++)
            for (uint32_t d = 0; d < 3; d++) {
                uint32_t len = at[i] + d - 1;
                if (len > max || len + hl > max)
                    continue;
                fill(hdr, hl, data, len, u->r->rank, id);
                btl_send_all(u, u->peer, hdr, hl, data, len);
                memset(data, 0xee, len); /* copied, or gone, on return */
                memset(hdr, 0xee, hl);
                id++;
            }
    }
    while (k->got < (int)id)
        btl_poll(u);
    suite_buffer_free(data, max);
    sink_free(k);
}

/* Nobody polls while much is sent: what is refused took nothing, what was taken arrives. */
static void flood(struct btl_under_test *u)
{
    struct sink *k = sink_new(u);
    unsigned char hdr[16], data[200];
    uint32_t accepted = 1, limit = (uint32_t)suite_scale(50000);
    /* One first: a transport may connect on the first send. */
    fill(hdr, sizeof hdr, data, 0, u->r->rank, 0);
    btl_send_all(u, u->peer, hdr, sizeof hdr, data, 0);
    while (k->got < 1)
        btl_poll(u);
    btl_meet(u);
    tw_barrier(u->r); /* who meets polls: nobody may send before both have left */
    for (uint32_t tries = 0; tries < limit; tries++) {
        uint32_t len = accepted % 200;
        fill(hdr, sizeof hdr, data, len, u->r->rank, accepted);
        int rc = u->t->ops->send(u->ep[u->peer], ST_AM_TEST, hdr, sizeof hdr, data, len);
        CHECK(rc == STRATA_OK || rc == STRATA_ERR_AGAIN);
        accepted += rc == STRATA_OK;
    }
    CHECK_MSG(accepted > 1, "nothing was accepted");
    CHECK_EQ(k->got, 1); /* deliver comes from progress only */
    tw_barrier(u->r);
    uint32_t after = accepted + 1000; /* and it recovers */
    for (; accepted < after; accepted++) {
        fill(hdr, sizeof hdr, data, accepted % 200, u->r->rank, accepted);
        btl_send_all(u, u->peer, hdr, sizeof hdr, data, accepted % 200);
    }
    uint32_t total = TOTAL;
    btl_send_all(u, u->peer, &total, sizeof total, &accepted, sizeof accepted);
    while ((uint32_t)k->got < k->total)
        btl_poll(u);
    for (uint32_t i = 0; i < (uint32_t)k->got; i++)
        CHECK_MSG(k->seen[u->peer][i], "message %u was lost", i);
    sink_free(k);
}

/* All to all, every rank receives from everybody at once. */
static void incast(struct btl_under_test *u)
{
    struct sink *k = sink_new(u);
    uint32_t n = (uint32_t)suite_scale(5000);
    uint32_t max = u->t->max_send < 9000 ? u->t->max_send : 9000;
    unsigned char hdr[24], *data = suite_buffer(max);
    struct rnd rnd = {(uint64_t)u->r->rank + 5};
    int peers = 0;
    for (int p = 0; p < u->r->n; p++)
        peers += u->ep[p] != NULL;
    for (uint32_t id = 0; id < n; id++)
        for (int p = 0; p < u->r->n; p++) {
            if (!u->ep[p])
                continue;
            uint32_t len = rnd_below(&rnd, 8) ? rnd_below(&rnd, 100) : rnd_below(&rnd, max + 1);
            fill(hdr, sizeof hdr, data, len, u->r->rank, id);
            btl_send_all(u, p, hdr, sizeof hdr, data, len);
        }
    while (k->got < (int)n * peers)
        btl_poll(u);
    suite_buffer_free(data, max);
    sink_free(k);
}

/* Replies from inside deliver, as protocols do. */
struct echo {
    struct btl_under_test *u;
    int replies; /* that came for mine */
    int asked;   /* by the peer */
    int queued;  /* my replies that met STRATA_ERR_AGAIN */
};

static void echo_take(void *arg, const struct st_frag *f)
{
    struct echo *e = arg;
    uint32_t kind;
    memcpy(&kind, f->hdr, 4);
    if (kind == 1) {
        e->replies++;
        return;
    }
    e->asked++;
    kind = 1;
    if (e->u->t->ops->send(e->u->ep[f->rank], ST_AM_TEST, &kind, 4, NULL, 0) == STRATA_ERR_AGAIN)
        e->queued++; /* later, from outside */
}

static void echo_poll(struct echo *e)
{
    btl_poll(e->u);
    for (; e->queued; e->queued--) {
        uint32_t kind = 1;
        if (e->u->t->ops->send(e->u->ep[e->u->peer], ST_AM_TEST, &kind, 4, NULL, 0) != STRATA_OK)
            break;
    }
}

static void from_inside(struct btl_under_test *u)
{
    struct echo e = {.u = u};
    int n = suite_scale(5000);
    uint32_t kind = 0;
    btl_handler(u, echo_take, &e);
    for (int i = 0; i < n; i++)
        while (u->t->ops->send(u->ep[u->peer], ST_AM_TEST, &kind, 4, NULL, 0) == STRATA_ERR_AGAIN)
            echo_poll(&e);
    while (e.replies < n || e.asked < n || e.queued)
        echo_poll(&e);
    btl_meet(u);
    for (int i = 0; i < 3000; i++) /* nothing more comes */
        echo_poll(&e);
    CHECK_EQ(e.replies, n);
    CHECK_EQ(e.asked, n);
}

/* Payloads gathered from iovecs and from a pack callback at offsets. */
static ptrdiff_t pack_pattern(void *user, size_t offset, void *dst, size_t length)
{
    size_t n = length > 1 ? length / 2 + 1 : length; /* partial */
    pattern_fill_at(dst, offset, n, *(uint64_t *)user);
    return (ptrdiff_t)n;
}

struct window_sink {
    int got;
    uint64_t seed;
};

static void window_take(void *arg, const struct st_frag *f)
{
    struct window_sink *k = arg;
    uint64_t offset;
    CHECK_EQ(f->hdr_len, 8);
    memcpy(&offset, f->hdr, 8);
    CHECK_EQ(pattern_check_at(f->data, (size_t)offset, f->len, k->seed), -1);
    k->got++;
}

/* By send_payload, and where there is one by send_bulk in turn. */
static void gathered(struct btl_under_test *u)
{
    struct window_sink k = {.seed = 77};
    size_t total = 3 * (size_t)u->t->max_send + 100;
    char *flat = suite_buffer(total);
    struct strata_iovec iov[4] = {{flat, 1}, {flat + 1, total / 2}, {flat, 0}, {flat + 1 + total / 2, 0}};
    iov[3].length = total - 1 - total / 2;
    strata_data_t data[3] = {
        {.kind = STRATA_CONTIGUOUS, .length = total, .u.buffer = flat},
        {.kind = STRATA_IOVEC, .length = total, .u.iov = {iov, 4}},
        {.kind = STRATA_GENERIC, .length = total, .u.convert = {.pack = pack_pattern, .user = &k.seed}},
    };
    struct rnd rnd = {9};
    int n = 300;
    pattern_fill(flat, total, k.seed);
    btl_handler(u, window_take, &k);
    for (int i = 0; i < n; i++) {
        struct st_payload p = {.data = &data[i % 3]};
        p.length = i < 6 ? u->t->max_send : rnd_below(&rnd, u->t->max_send + 1);
        p.offset = rnd_below(&rnd, (uint32_t)(total - p.length + 1));
        uint64_t hdr = p.offset;
        int rc, (*send)(struct st_btl_endpoint *, enum st_am, const void *, uint32_t, const struct st_payload *) =
                    i % 2 && u->t->hints->send_bulk ? u->t->hints->send_bulk : u->t->ops->send_payload;
        while ((rc = send(u->ep[u->peer], ST_AM_TEST, &hdr, 8, &p)) == STRATA_ERR_AGAIN)
            btl_poll(u);
        CHECK_OK(rc);
    }
    while (k.got < n)
        btl_poll(u);
    btl_meet(u);
    suite_buffer_free(flat, total);
}

/* Messages of all lengths in batches of one to twenty, by every op that takes them; room runs out in the middle. */
static void together(struct btl_under_test *u)
{
    enum { MESSAGES = 3000 };
    const struct st_btl_ops *ops = u->t->ops;
    const struct st_btl_hints *hints = u->t->hints;
    unsigned char hdr[16], *data;
    struct rnd rnd = {13};
    struct sink *k;

    if (!hints->batch) {
        btl_meet(u);
        return;
    }
    k = sink_new(u);
    data = suite_buffer(u->t->max_send);
    for (uint32_t id = 0; id < MESSAGES;) {
        hints->batch(u->t, true);
        for (uint32_t n = 1 + rnd_below(&rnd, 20); n > 0 && id < MESSAGES; n--) {
            uint32_t len = rnd_below(&rnd, rnd_below(&rnd, 4) ? 1500 : u->t->max_send + 1);
            strata_data_t all = {.kind = STRATA_CONTIGUOUS, .length = len, .u.buffer = data};
            struct st_payload p = {.data = &all, .length = len};
            int rc;

            fill(hdr, sizeof hdr, data, len, u->r->rank, id);
            rc = id % 2 ? ops->send(u->ep[u->peer], ST_AM_TEST, hdr, sizeof hdr, data, len)
                        : ops->send_payload(u->ep[u->peer], ST_AM_TEST, hdr, sizeof hdr, &p);
            if (rc == STRATA_ERR_AGAIN)
                break;
            CHECK_OK(rc);
            id++;
        }
        memset(data, 0xee, u->t->max_send); /* copied, or gone, though it waits */
        hints->batch(u->t, false);
        btl_poll(u);
    }
    while (k->got < MESSAGES)
        btl_poll(u);
    suite_buffer_free(data, u->t->max_send);
    sink_free(k);
}

/* Messages whose data stays where it is: it is changed as soon as that is allowed, and must have arrived as it was. */
struct lent {
    struct st_btl_op op;
    char *data;
    uint32_t len;
    bool under_way;
    int ends;
};

static void lent_ends(struct st_btl_op *op, int rc)
{
    struct lent *l = (struct lent *)(void *)op;
    CHECK_OK(rc);
    CHECK_EQ(l->under_way, true);
    l->under_way = false;
    l->ends++;
    memset(l->data, 0xee, l->len);
}

static void lending(struct btl_under_test *u)
{
    enum { BUFFERS = 8, ROUNDS = 60 };
    struct window_sink k = {.seed = 5};
    struct lent lent[BUFFERS] = {0};
    uint32_t most = u->t->max_send, least = u->t->facts.zcopy_cost;
    struct rnd rnd = {11};
    int sends = 0, ends = 0;

    if (!u->t->hints->send_zcopy || least == 0 || least > most) {
        btl_meet(u);
        return;
    }
    btl_handler(u, window_take, &k);
    for (int i = 0; i < BUFFERS; i++)
        lent[i].data = suite_buffer(most);
    for (int i = 0; i < BUFFERS * ROUNDS; i++) {
        struct lent *l = &lent[i % BUFFERS];
        uint64_t offset = rnd_below(&rnd, 100000);
        int rc;
        while (l->under_way)
            btl_poll(u);
        l->op.done = lent_ends;
        l->len = least + rnd_below(&rnd, most - least + 1);
        pattern_fill_at(l->data, (size_t)offset, l->len, k.seed);
        while ((rc = u->t->hints->send_zcopy(u->ep[u->peer], ST_AM_TEST, &offset, 8, l->data, l->len, &l->op)) ==
               STRATA_ERR_AGAIN)
            btl_poll(u);
        CHECK_EQ(rc == STRATA_OK || rc == 1, true);
        if (rc == STRATA_OK)
            l->under_way = true;
        else
            memset(l->data, 0xdd, l->len);
        sends += rc == STRATA_OK;
    }
    while (k.got < BUFFERS * ROUNDS)
        btl_poll(u);
    for (int i = 0; i < BUFFERS; i++) {
        while (lent[i].under_way)
            btl_poll(u);
        ends += lent[i].ends;
    }
    CHECK_EQ(ends, sends);
    CHECK_EQ(sends > 0, true);
    btl_meet(u);
    for (int i = 0; i < BUFFERS; i++)
        suite_buffer_free(lent[i].data, most);
}

const struct btl_case btl_am_cases[] = {
    {"am_sizes", 2, sizes, false},       {"am_flood", 2, flood, false},
    {"am_incast", 4, incast, false},     {"am_from_inside", 2, from_inside, false},
    {"am_gathered", 2, gathered, false}, {"am_together", 2, together, false},
    {"am_lending", 2, lending, false},
};
const size_t n_btl_am_cases = sizeof btl_am_cases / sizeof btl_am_cases[0];
