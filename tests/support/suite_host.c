/* Conformance of the embedder's calls: request storage of its own, completion by callback, callbacks that post again.
 */
#include "support/suite.h"

#include <stdatomic.h>

static void *storage_new(const strata_t *s)
{
    void *p = NULL;
    CHECK_EQ(posix_memalign(&p, strata_request_align(s) < 8 ? 8 : strata_request_align(s), strata_request_size(s)), 0);
    return p;
}

static strata_data_t flat(void *buf, size_t len)
{
    return (strata_data_t){.kind = STRATA_CONTIGUOUS, .length = len, .u.buffer = buf};
}

/* A chain: every completion posts the next receive or send in the same storage, from inside the callback. */
struct chain {
    struct tw_rank *r;
    void *storage;
    char *b;
    size_t len;
    int i, n;
    atomic_int done;
};

static void chain_next(struct chain *c);

static void chain_step(void *arg, strata_request_t *req, const strata_status_t *st)
{
    struct chain *c = arg;
    (void)req;
    CHECK_EQ(st->error, STRATA_OK);
    if (c->r->rank == 1) {
        CHECK_EQ(st->length, c->len);
        CHECK_EQ(st->source, 0);
        ptrdiff_t bad = pattern_check(c->b, c->len, (uint64_t)c->i);
        CHECK_MSG(bad < 0, "message %d: byte %td is wrong", c->i, bad);
    }
    c->i++;
    chain_next(c);
}

static void chain_next(struct chain *c)
{
    int rc = 1;
    strata_data_t d = flat(c->b, c->len);
    while (rc == 1) {
        if (c->i == c->n) {
            atomic_store(&c->done, 1);
            return;
        }
        if (c->r->rank == 1) {
            rc = strata_host_irecv(c->r->comm, &d, 0, 5, c->storage, chain_step, c);
        } else {
            pattern_fill(c->b, c->len, (uint64_t)c->i);
            rc = strata_host_isend(c->r->comm, &d, 1, 5, c->i % 4 ? STRATA_STANDARD : STRATA_SYNCHRONOUS, c->storage,
                                   chain_step, c);
            if (rc == 1) /* complete at once: the callback will not come */
                c->i++;
        }
    }
    CHECK_OK(rc);
}

static void chains(struct tw_rank *r)
{
    size_t len[] = {8, 3000, suite_long(r->s)};
    for (int i = 0; i < 3; i++) {
        struct chain c = {.r = r, .storage = storage_new(r->s), .b = suite_buffer(len[i]), .len = len[i]};
        c.n = suite_scale(i == 2 ? 100 : 1000);
        chain_next(&c);
        while (!atomic_load(&c.done))
            suite_spin(r->s, 1);
        suite_buffer_free(c.b, len[i]);
        free(c.storage);
    }
}

static void note(void *arg, strata_request_t *req, const strata_status_t *st)
{
    (void)req;
    ((strata_status_t *)arg)[0] = *st;
    ((strata_status_t *)arg)[0].tag += 1000; /* called */
}

/* Without storage a send goes at once or not at all. */
static void no_storage(struct tw_rank *r)
{
    size_t len[] = {0, 8, suite_long(r->s)};
    for (int i = 0; i < 3; i++) {
        char *b = suite_buffer(len[i]); /* a tag per round: the sender may be a round ahead */
        strata_data_t d = flat(b, len[i]);
        if (r->rank == 0) {
            int rc, tries = 0;
            pattern_fill(b, len[i], 2);
            do {
                rc = strata_host_isend(r->comm, &d, 1, 60 + i, STRATA_STANDARD, NULL, NULL, NULL);
                if (rc != 1)
                    suite_spin(r->s, 1);
            } while (rc == STRATA_ERR_AGAIN && ++tries < (i == 2 ? 10 : 100000));
            if (i < 2)
                CHECK_EQ(rc, 1);
            else if (rc != 1) /* nothing was sent: the message below is the only one */
                suite_send(r->comm, len[i], 1, 60 + i, 2);
            suite_send(r->comm, 0, 1, 7, 0);
        } else {
            int found = 1;
            suite_recv(r->comm, len[i], 0, 60 + i, 2);
            suite_await(r->comm, 0, 7);
            CHECK_OK(strata_iprobe(r->comm, 0, 60 + i, &found, NULL));
            CHECK_EQ(found, 0);
        }
        suite_buffer_free(b, len[i]);
    }
}

static void storage_kinds(struct tw_rank *r)
{
    void *s1 = storage_new(r->s), *s2 = storage_new(r->s);
    strata_status_t st = {.tag = 0};
    strata_message_t *m = NULL;
    char b[32], small[8];
    strata_data_t d = flat(b, sizeof b), cut = flat(small, sizeof small);
    /* Cancelled. */
    CHECK_OK(strata_host_irecv(r->comm, &d, STRATA_ANY_SOURCE, 40, s1, note, &st));
    CHECK_OK(strata_host_cancel(s1));
    while (st.tag < 900)
        suite_spin(r->s, 1);
    CHECK_EQ(st.error, STRATA_ERR_CANCELLED);
    /* Truncated, to oneself, the storage used again. */
    st.tag = 0;
    CHECK_OK(strata_host_irecv(r->comm, &cut, r->rank, 41, s1, note, &st));
    pattern_fill(b, sizeof b, 1);
    CHECK_OK(strata_send(r->comm, b, sizeof b, r->rank, 41));
    while (st.tag < 900)
        suite_spin(r->s, 1);
    CHECK_EQ(st.error, STRATA_ERR_TRUNCATE);
    CHECK_EQ(st.length, 8);
    CHECK_EQ(st.sent, 32);
    CHECK_EQ(st.tag, 1041);
    /* A matched message. */
    st.tag = 0;
    strata_status_t st2 = {.tag = 0};
    int rc = strata_host_isend(r->comm, &d, r->rank, 42, STRATA_SYNCHRONOUS, s2, note, &st2);
    CHECK(rc == STRATA_OK || rc == 1);
    CHECK_OK(strata_mprobe(r->comm, r->rank, 42, &m, NULL));
    char got[32];
    strata_data_t in = flat(got, sizeof got);
    CHECK_OK(strata_host_imrecv(&m, &in, s1, note, &st));
    while (st.tag < 900 || (rc == STRATA_OK && st2.tag < 900))
        suite_spin(r->s, 1);
    CHECK(m == NULL);
    CHECK_EQ(pattern_check(got, 32, 1), -1);
    free(s1);
    free(s2);
}

/* An embedder's own tags: received by their name, unseen by wildcards. */
static void hidden_tags(struct tw_rank *r)
{
    int value = r->rank + 1, got = 0, found = 1, peer = !r->rank;
    strata_request_t *any = NULL;
    strata_status_t st;
    if (strata_send(r->comm, NULL, 0, STRATA_PROC_NULL, STRATA_TAG_HIDDEN) != STRATA_OK) { /* no embedder here */
        CHECK_RC(strata_send(r->comm, &value, sizeof value, peer, STRATA_TAG_HIDDEN), STRATA_ERR_TAG);
        CHECK_RC(strata_irecv(r->comm, &got, sizeof got, peer, STRATA_TAG_HIDDEN, &any), STRATA_ERR_TAG);
        return;
    }
    CHECK_OK(strata_irecv(r->comm, &got, sizeof got, STRATA_ANY_SOURCE, STRATA_ANY_TAG, &any));
    for (int tag = STRATA_TAG_HIDDEN; tag > STRATA_TAG_HIDDEN - 40; tag--)
        CHECK_OK(strata_send(r->comm, &value, sizeof value, peer, tag));
    CHECK_OK(strata_probe(r->comm, peer, STRATA_TAG_HIDDEN - 39, &st));
    CHECK_EQ(st.tag, STRATA_TAG_HIDDEN - 39);
    CHECK_OK(strata_iprobe(r->comm, peer, STRATA_ANY_TAG, &found, NULL));
    CHECK(!found);
    for (int tag = STRATA_TAG_HIDDEN - 39; tag <= STRATA_TAG_HIDDEN; tag++) {
        int v = 0;
        CHECK_OK(strata_recv(r->comm, &v, sizeof v, tag % 2 ? peer : STRATA_ANY_SOURCE, tag, &st));
        CHECK(v == peer + 1 && st.tag == tag && st.source == peer);
    }
    CHECK_RC(strata_send(r->comm, &value, sizeof value, peer, STRATA_ANY_TAG), STRATA_ERR_TAG);
    CHECK_OK(strata_send(r->comm, &value, sizeof value, peer, 0));
    CHECK_OK(strata_wait(&any, &st));
    CHECK(got == peer + 1 && st.tag == 0);
}

/* Two groups that talk across: ranks are the other group's. */
static void intercommunicator(struct tw_rank *r)
{
    static const int groups[2][2] = {{0, 2}, {3, 1}};
    int mine = r->rank % 2, me = groups[mine][0] == r->rank ? 0 : 1, value = r->rank, got = -1;
    strata_comm_spec_t spec = {
        .size = sizeof spec, .id = 77, .rank = me, .n_ranks = 2, .world = groups[!mine], .inter = 1};
    strata_comm_t *c = NULL;
    strata_status_t st;
    CHECK_OK(strata_comm_create(r->s, &spec, &c));
    for (int other = 0; other < 2; other++)
        CHECK_OK(strata_send(c, &value, sizeof value, other, 5));
    for (int other = 0; other < 2; other++) {
        CHECK_OK(strata_recv(c, &got, sizeof got, other ? STRATA_ANY_SOURCE : 0, 5, &st));
        CHECK(got == groups[!mine][other] && st.source == other);
    }
    CHECK_OK(strata_comm_free(c));
}

struct count_of {
    const char *name;
    uint64_t value;
};

static void take_count(void *arg, const strata_counter_t *c)
{
    struct count_of *w = arg;
    CHECK(c->framework && c->component && c->name && c->unit && c->help);
    if (strcmp(c->framework, "pml") == 0 && strcmp(c->name, w->name) == 0)
        w->value = c->value;
}

static uint64_t counted(struct tw_rank *r, const char *name)
{
    struct count_of w = {name, UINT64_MAX};
    CHECK_OK(strata_counters(r->s, take_count, &w));
    CHECK(w.value != UINT64_MAX);
    return w.value;
}

static void counters(struct tw_rank *r)
{
    uint64_t sent = counted(r, "messages_sent"), received = counted(r, "messages_received"), n = 9, posted = 9;
    int x = 0, y = 0;
    /* The peer sends the ten after our token, which leaves after the first figures have been read. */
    CHECK_OK(strata_sendrecv(r->comm, &x, sizeof x, !r->rank, 100, &y, sizeof y, !r->rank, 100, NULL));
    for (int i = 0; i < 10; i++)
        CHECK_OK(strata_send(r->comm, &x, sizeof x, !r->rank, i));
    for (int i = 9; i >= 0; i--)
        CHECK_OK(strata_recv(r->comm, &x, sizeof x, !r->rank, i, NULL));
    CHECK_OK(strata_comm_queues(r->comm, &n, &posted));
    CHECK(n == 0 && posted == 0);
    CHECK_EQ(counted(r, "messages_sent") - sent, 11);
    /* The peer's token may have come before the first figure was read. */
    uint64_t came = counted(r, "messages_received") - received;
    CHECK(came == 10 || came == 11);
}

static const struct suite_case cases[] = {
    {"chains", 2, 0, chains},
    {"no_storage", 2, 0, no_storage},
    {"storage_kinds", 1, 0, storage_kinds},
    {"hidden_tags", 2, 0, hidden_tags},
    {"intercommunicator", 4, 0, intercommunicator},
    {"counters", 2, 0, counters},
};
SUITE_GROUP(suite_host, cases);
