/* Conformance: contiguous, iovec and generic data, in every combination of sender and receiver. The packed stream is
 * the pattern; what it looks like in memory differs. */
#include "support/counters.h"
#include "support/suite.h"

/* Memory of a generic type: the stream with a hole of 3 bytes after every 5. The callbacks move a random number of
 * bytes at a time, as a convertor may. */
struct holes {
    unsigned char *memory;
    size_t length; /* of the stream */
    struct rnd rnd;
};

static size_t place(size_t at)
{
    return at / 5 * 8 + at % 5;
}

static ptrdiff_t holes_pack(void *user, size_t offset, void *dst, size_t length)
{
    struct holes *h = user;
    CHECK(offset + length <= h->length && length > 0);
    size_t n = 1 + rnd_below(&h->rnd, (uint32_t)length);
    n = rnd_below(&h->rnd, 2) ? length : n;
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)dst)[i] = h->memory[place(offset + i)];
    return (ptrdiff_t)n;
}

static ptrdiff_t holes_unpack(void *user, size_t offset, const void *src, size_t length)
{
    struct holes *h = user;
    CHECK(offset + length <= h->length && length > 0);
    size_t n = 1 + rnd_below(&h->rnd, (uint32_t)length);
    n = rnd_below(&h->rnd, 2) ? length : n;
    for (size_t i = 0; i < n; i++)
        h->memory[place(offset + i)] = ((const unsigned char *)src)[i];
    return (ptrdiff_t)n;
}

/* Any of the three kinds over its own memory. */
struct thing {
    strata_data_t data;
    strata_data_kind_t kind;
    size_t len;
    char *flat; /* the stream: source or result */
    struct strata_iovec *iov;
    struct holes holes;
};

static void thing_make(struct thing *t, int kind, size_t len, uint64_t seed)
{
    struct rnd rnd = {seed + len};
    memset(t, 0, sizeof *t);
    t->kind = (strata_data_kind_t)kind;
    t->len = len;
    t->data.kind = t->kind;
    t->data.length = len;
    t->flat = suite_buffer(len);
    if (kind == STRATA_CONTIGUOUS) {
        t->data.u.buffer = t->flat;
    } else if (kind == STRATA_IOVEC) {
        size_t n = 0, at = 0;
        t->iov = calloc(2 * len + 2, sizeof *t->iov);
        CHECK(t->iov);
        while (at < len || n == 0) {
            size_t piece = rnd_below(&rnd, 4) ? rnd_below(&rnd, (uint32_t)(len / 4 + 2)) : 0; /* empty ones too */
            if (n > 2 * len)
                piece = len - at;
            piece = piece < len - at ? piece : len - at;
            t->iov[n++] = (struct strata_iovec){t->flat + at, piece};
            at += piece;
        }
        t->data.u.iov.v = t->iov;
        t->data.u.iov.n = n;
    } else {
        t->holes = (struct holes){suite_buffer(place(len) + 8), len, rnd};
        t->data.u.convert = (strata_convert_t){holes_pack, holes_unpack, &t->holes};
    }
}

static void thing_fill(struct thing *t, uint64_t seed)
{
    pattern_fill(t->flat, t->len, seed);
    for (size_t i = 0; t->kind == STRATA_GENERIC && i < t->len; i++)
        t->holes.memory[place(i)] = (unsigned char)t->flat[i];
}

static void thing_check(struct thing *t, size_t len, uint64_t seed)
{
    for (size_t i = 0; t->kind == STRATA_GENERIC && i < t->len; i++)
        t->flat[i] = (char)t->holes.memory[place(i)];
    for (size_t i = 0; t->kind == STRATA_GENERIC && i < place(t->len); i++)
        CHECK_MSG(i % 8 < 5 || t->holes.memory[i] == 0x5a, "a hole at %zu was written", i);
    ptrdiff_t bad = pattern_check(t->flat, len, seed);
    CHECK_MSG(bad < 0, "kind %d, %zu bytes: byte %td is wrong", (int)t->kind, len, bad);
    for (size_t i = len; i < t->len; i++)
        CHECK_MSG(t->flat[i] == 0x5a, "kind %d: byte %zu behind a message of %zu was written", (int)t->kind, i, len);
}

static void thing_free(struct thing *t)
{
    if (t->holes.memory)
        suite_buffer_free(t->holes.memory, place(t->len) + 8);
    suite_buffer_free(t->flat, t->len);
    free(t->iov);
}

static void one_pair(struct tw_rank *r, int from, int to, size_t len, size_t room, int mode, bool early)
{
    struct thing t;
    strata_status_t st;
    strata_request_t *q = NULL;
    uint64_t seed = len * 9 + (uint64_t)(from * 3 + to);
    if (r->rank == 0) {
        thing_make(&t, from, len, 1);
        thing_fill(&t, seed);
        suite_await(r->comm, 1, 1);
        CHECK_OK(strata_isend_data(r->comm, &t.data, 1, 2, (strata_mode_t)mode, &q));
        CHECK_OK(strata_wait(&q, NULL));
    } else {
        int want = room < len ? STRATA_ERR_TRUNCATE : STRATA_OK;
        size_t got = room < len ? room : len;
        thing_make(&t, to, room, 2);
        if (early)
            CHECK_OK(strata_irecv_data(r->comm, &t.data, 0, 2, &q));
        suite_signal(r->comm, 0, 1);
        if (early) {
            CHECK_RC(strata_wait(&q, &st), want);
        } else {
            suite_arrived(r->comm, 0, 2);
            CHECK_RC(strata_recv_data(r->comm, &t.data, 0, 2, &st), want);
        }
        CHECK_EQ(st.length, got);
        CHECK_EQ(st.sent, len);
        thing_check(&t, got, seed);
    }
    thing_free(&t);
}

static void combinations(struct tw_rank *r)
{
    size_t size[80], n = suite_sizes(r->s, 150000, size, 80);
    for (size_t i = 0; i < n; i++)
        for (int from = 0; from < 3; from++)
            for (int to = 0; to < 3; to++)
                if (suite_every(i + (size_t)(from + to), 3))
                    one_pair(r, from, to, size[i], size[i], (i + (size_t)to) % 4 == 2 ? STRATA_SYNCHRONOUS : 0, i % 2);
}

/* Longer room and shorter room than the message. */
static void cut_and_slack(struct tw_rank *r)
{
    size_t len[] = {1, 60, 5000, suite_long(r->s)};
    for (int i = 0; i < 4; i++)
        for (int from = 0; from < 3; from++)
            for (int to = 0; to < 3; to++)
                for (int early = suite_every((size_t)(i + from + to), 3) ? 0 : 2; early < 2; early++) {
                    one_pair(r, from, to, len[i], len[i] + 777, 0, early);
                    one_pair(r, from, to, len[i], len[i] / 2, 0, early);
                    one_pair(r, from, to, len[i], len[i] - 1, 0, early);
                    one_pair(r, from, to, len[i], 0, 0, early);
                }
}

/* To oneself, through a matched probe, and buffered (the caller's memory is free at once). */
static void other_ways(struct tw_rank *r)
{
    size_t len[] = {40, 3000, suite_long(r->s)};
    char *area = malloc(2 * len[2]);
    void *back;
    size_t back_size;
    CHECK(area);
    CHECK_OK(strata_buffer_attach(r->s, area, 2 * len[2]));
    for (int i = 0; i < 3; i++)
        for (int from = 0; from < 3; from++)
            for (int to = 0; to < 3; to++) {
                struct thing a, b;
                strata_message_t *m = NULL;
                strata_request_t *q = NULL;
                strata_status_t st;
                thing_make(&a, from, len[i], 1);
                thing_make(&b, to, len[i], 2);
                thing_fill(&a, 5);
                CHECK_OK(strata_send_data(r->comm, &a.data, r->rank, 3, STRATA_BUFFERED));
                thing_fill(&a, 6);
                CHECK_OK(strata_mprobe(r->comm, r->rank, 3, &m, &st));
                CHECK_EQ(st.length, len[i]);
                CHECK_OK(strata_imrecv_data(&m, &b.data, &q));
                CHECK_OK(strata_wait(&q, &st));
                thing_check(&b, len[i], 5);
                thing_free(&a);
                thing_free(&b);
            }
    CHECK_OK(strata_buffer_detach(r->s, &back, &back_size));
    free(area);
}

/* Packs up to a byte of the stream, and fails there. */
struct broken {
    size_t at;
};

static ptrdiff_t broken_pack(void *user, size_t offset, void *dst, size_t length)
{
    const struct broken *b = user;
    size_t n = b->at - offset < length ? b->at - offset : length;
    if (n == 0)
        return STRATA_ERR_SYSTEM;
    memset(dst, 0x33, n);
    return (ptrdiff_t)n;
}

/* The message ends with the error at both ends, unless none of it had left: then the next of its tag comes in its
 * place. Messages behind it arrive. */
static void one_broken(struct tw_rank *r, size_t len, size_t at, bool early, bool must)
{
    strata_request_t *q = NULL;
    strata_status_t st;
    int good = 17;

    if (r->rank == 0) {
        struct broken b = {at};
        strata_data_t d = {.kind = STRATA_GENERIC, .length = len, .u.convert = {broken_pack, NULL, &b}};
        suite_await(r->comm, 1, 1);
        CHECK_RC(strata_send_data(r->comm, &d, 1, 2, STRATA_STANDARD), STRATA_ERR_SYSTEM);
        CHECK_OK(strata_send(r->comm, &good, sizeof good, 1, 2));
        return;
    }
    char *in = suite_buffer(len);
    if (early)
        CHECK_OK(strata_irecv(r->comm, in, len, 0, 2, &q));
    suite_signal(r->comm, 0, 1);
    if (!early) {
        suite_arrived(r->comm, 0, 2);
        CHECK_OK(strata_irecv(r->comm, in, len, 0, 2, &q));
    }
    int rc = strata_wait(&q, &st);
    CHECK(rc == STRATA_ERR_SYSTEM || (rc == STRATA_OK && !must));
    CHECK_EQ(st.length, rc == STRATA_OK ? sizeof good : 0);
    if (rc != STRATA_OK)
        CHECK_OK(strata_recv(r->comm, in, sizeof good, 0, 2, NULL));
    CHECK_EQ(memcmp(in, &good, sizeof good), 0);
    suite_buffer_free(in, len);
}

static void broken(struct tw_rank *r)
{
    size_t size[80], n = suite_sizes(r->s, 150000, size, 80), sum = 0;

    for (size_t i = 0; i < n; i++) {
        if (size[i] < sizeof(int))
            continue;
        for (int where = 0; where < 3; where++)
            if (suite_every(i + (size_t)where, 2))
                one_broken(r, size[i], where == 0 ? 0 : where == 1 ? size[i] / 2 : size[i] - 1, sum++ % 2, false);
    }
    one_broken(r, suite_long(r->s), suite_long(r->s) - 1, true, true);
    /* Fragments that were overtaken come before a long message that is sent now. */
    if (r->rank == 0)
        suite_send(r->comm, suite_long(r->s), 1, 3, 4);
    else
        suite_recv(r->comm, suite_long(r->s), 0, 3, 4);
    CHECK_EQ(counted(r->s, "pml", NULL, "unexpected_bytes"), 0);
}

static void bad_data(struct tw_rank *r)
{
    struct strata_iovec v = {r, 4};
    strata_data_t d = {.kind = STRATA_IOVEC, .length = 5, .u.iov = {&v, 1}};
    CHECK_RC(strata_send_data(r->comm, &d, 0, 1, STRATA_STANDARD), STRATA_ERR_ARG); /* the lengths do not add up */
    d.kind = (strata_data_kind_t)9;
    CHECK_RC(strata_send_data(r->comm, &d, 0, 1, STRATA_STANDARD), STRATA_ERR_ARG);
    d = (strata_data_t){.kind = STRATA_GENERIC, .length = 5};
    CHECK_RC(strata_recv_data(r->comm, &d, 0, 1, NULL), STRATA_ERR_ARG);
    CHECK_RC(strata_send_data(r->comm, NULL, 0, 1, STRATA_STANDARD), STRATA_ERR_ARG);
}

static const struct suite_case cases[] = {
    {"combinations", 2, 0, combinations}, {"cut_and_slack", 2, 0, cut_and_slack},
    {"other_ways", 1, 0, other_ways},     {"broken", 2, 0, broken},
    {"bad_data", 1, 0, bad_data},
};
SUITE_GROUP(suite_data, cases);
