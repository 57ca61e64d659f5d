/* Conformance: wildcards, probe, matched probe, cancel, very many unexpected messages. */
#include "support/suite.h"

static void wildcards(struct tw_rank *r)
{
    if (r->rank) {
        for (int tag = 10; tag < 14; tag++)
            suite_send(r->comm, 100 + (size_t)tag, 0, tag, (uint64_t)(r->rank * 100 + tag));
        return;
    }
    bool seen[3][4] = {{false}};
    char b[200];
    strata_status_t st;
    for (int i = 0; i < 8; i++) {
        int src = STRATA_ANY_SOURCE, tag = i < 2 ? 13 : STRATA_ANY_TAG;
        CHECK_OK(strata_recv(r->comm, b, sizeof b, src, tag, &st));
        CHECK(st.source >= 1 && st.source <= 2 && st.tag >= 10 && st.tag < 14 && (i >= 2 || st.tag == 13));
        CHECK(!seen[st.source][st.tag - 10]);
        seen[st.source][st.tag - 10] = true;
        CHECK_EQ(st.length, 100 + st.tag);
        CHECK_EQ(pattern_check(b, st.length, (uint64_t)(st.source * 100 + st.tag)), -1);
    }
}

/* Of several posted receives that fit, the one posted first takes the message, wildcard or not. */
static void posted_order(struct tw_rank *r)
{
    static const struct {
        int src, tag;
    } post[] = {{STRATA_ANY_SOURCE, 5}, {0, STRATA_ANY_TAG}, {0, 5}, {STRATA_ANY_SOURCE, STRATA_ANY_TAG}, {0, 5}};
    /* Message i has tag sent[i]; the receive it must meet: */
    static const int sent[] = {5, 7, 5, 5, 9}, meets[] = {0, 1, 2, 3, -1};
    strata_request_t *q[6];
    int value[6] = {-1, -1, -1, -1, -1, -1};
    if (r->rank == 1) {
        for (int i = 0; i < 5; i++)
            CHECK_OK(strata_irecv(r->comm, &value[i], sizeof(int), post[i].src, post[i].tag, &q[i]));
        suite_signal(r->comm, 0, 1);
        CHECK_OK(strata_waitall(4, q, NULL));
        for (int i = 0; i < 4; i++)
            CHECK_MSG(meets[value[i]] == i, "message %d met receive %d, not %d", value[i], i, meets[value[i]]);
        int last = -1, done = 1;
        strata_status_t st;
        CHECK_OK(strata_recv(r->comm, &last, sizeof last, 0, 9, &st)); /* tag 9 fits only this one */
        CHECK_EQ(last, 4);
        CHECK_OK(strata_test(&q[4], &done, NULL));
        CHECK(!done);
        suite_signal(r->comm, 0, 2);
        CHECK_OK(strata_wait(&q[4], NULL));
        CHECK_EQ(value[4], 5);
    } else {
        suite_await(r->comm, 1, 1);
        for (int i = 0; i < 5; i++)
            CHECK_OK(strata_send(r->comm, &i, sizeof i, 1, sent[i]));
        suite_await(r->comm, 1, 2);
        int five = 5;
        CHECK_OK(strata_send(r->comm, &five, sizeof five, 1, 5));
    }
}

static void probes(struct tw_rank *r)
{
    size_t len[] = {0, 10, suite_long(r->s)};
    for (int i = 0; i < 3; i++) {
        if (r->rank == 0) {
            suite_send(r->comm, len[i], 1, 20 + i, 1);
            suite_await(r->comm, 1, 1);
            continue;
        }
        strata_status_t st = {0};
        int found = 1;
        CHECK_OK(strata_iprobe(r->comm, 0, 77, &found, &st));
        CHECK_EQ(found, 0);
        CHECK_OK(strata_probe(r->comm, STRATA_ANY_SOURCE, STRATA_ANY_TAG, &st));
        CHECK_EQ(st.source, 0);
        CHECK_EQ(st.tag, 20 + i);
        CHECK_EQ(st.length, len[i]);
        CHECK_OK(strata_iprobe(r->comm, 0, 20 + i, &found, &st));
        CHECK_EQ(found, 1);
        CHECK_EQ(st.length, len[i]);
        suite_recv(r->comm, len[i], 0, 20 + i, 1);
        CHECK_OK(strata_iprobe(r->comm, 0, STRATA_ANY_TAG, &found, NULL));
        CHECK_EQ(found, 0);
        suite_signal(r->comm, 0, 1);
    }
}

/* Probes of messages to oneself, empty ones too, and the ends of the range of tags. */
static void own_probes(struct tw_rank *r)
{
    size_t len[] = {0, 1, 10, suite_long(r->s)};
    int tag[] = {0, STRATA_TAG_MAX};
    for (int i = 0; i < 8; i++) {
        strata_request_t *q = NULL;
        strata_message_t *m = NULL;
        strata_status_t st = {0};
        size_t n = len[i / 2];
        int found = 1, t = tag[i % 2];
        char *out = suite_buffer(n), *in = suite_buffer(n);
        pattern_fill(out, n, 3);
        CHECK_OK(strata_iprobe(r->comm, r->rank, STRATA_ANY_TAG, &found, &st));
        CHECK_EQ(found, 0);
        CHECK_OK(strata_isend(r->comm, out, n, r->rank, t, &q));
        CHECK_OK(strata_iprobe(r->comm, r->rank, t ^ 1, &found, &st));
        CHECK_EQ(found, 0);
        CHECK_OK(strata_probe(r->comm, r->rank, t, &st));
        CHECK(st.source == r->rank && st.tag == t && st.length == n);
        CHECK_OK(strata_mprobe(r->comm, STRATA_ANY_SOURCE, STRATA_ANY_TAG, &m, &st));
        CHECK(st.source == r->rank && st.tag == t && st.length == n);
        CHECK_OK(strata_mrecv(&m, in, n, &st));
        CHECK(st.tag == t && st.length == n);
        CHECK_OK(strata_wait(&q, NULL));
        CHECK_EQ(pattern_check(in, n, 3), -1);
        suite_buffer_free(out, n);
        suite_buffer_free(in, n);
    }
}

/* A matched probe takes the message out: later receives and probes pass it by, and order among the rest holds. */
static void matched_probes(struct tw_rank *r)
{
    size_t len[] = {16, suite_long(r->s)};
    for (int i = 0; i < 2; i++) { /* a tag per round: the sender may be a round ahead */
        if (r->rank == 0) {
            strata_request_t *q[3];
            char *b[3];
            for (int k = 0; k < 3; k++) {
                b[k] = suite_buffer(len[i]);
                pattern_fill(b[k], len[i], (uint64_t)k);
                CHECK_OK(strata_isend(r->comm, b[k], len[i], 1, 40 + i, &q[k]));
            }
            CHECK_OK(strata_waitall(3, q, NULL));
            for (int k = 0; k < 3; k++)
                suite_buffer_free(b[k], len[i]);
            continue;
        }
        strata_message_t *m[2] = {NULL, NULL};
        strata_status_t st;
        int found = 0;
        CHECK_OK(strata_mprobe(r->comm, 0, 40 + i, &m[0], &st));
        CHECK_EQ(st.length, len[i]);
        while (!found)
            CHECK_OK(strata_improbe(r->comm, STRATA_ANY_SOURCE, 40 + i, &found, &m[1], &st));
        CHECK(m[0] && m[1] && m[0] != m[1]);
        suite_recv(r->comm, len[i], 0, 40 + i, 2);
        char *b = suite_buffer(len[i]);
        strata_request_t *q = NULL;
        CHECK_OK(strata_mrecv(&m[1], b, len[i], &st));
        CHECK(m[1] == NULL);
        CHECK_EQ(pattern_check(b, len[i], 1), -1);
        CHECK_OK(strata_imrecv(&m[0], b, len[i], &q));
        CHECK(m[0] == NULL);
        CHECK_OK(strata_wait(&q, &st));
        CHECK_EQ(st.tag, 40 + i);
        CHECK_EQ(st.length, len[i]);
        CHECK_EQ(pattern_check(b, len[i], 0), -1);
        suite_buffer_free(b, len[i]);
        CHECK_OK(strata_improbe(r->comm, 0, 40 + i, &found, &m[0], NULL));
        CHECK_EQ(found, 0);
    }
}

static void cancels(struct tw_rank *r)
{
    strata_request_t *q[4];
    strata_status_t st;
    int v[4] = {0, 0, 0, 0};
    if (r->rank == 0) {
        suite_await(r->comm, 1, 1);
        int x = 77;
        strata_request_t *s = NULL;
        CHECK_OK(strata_isend_mode(r->comm, &x, sizeof x, 1, 5, STRATA_SYNCHRONOUS, &s));
        CHECK_RC(strata_cancel(s), STRATA_ERR_UNSUPPORTED);
        CHECK_OK(strata_wait(&s, NULL));
        suite_signal(r->comm, 1, 2);
        return;
    }
    static const int src[] = {0, STRATA_ANY_SOURCE, 0, STRATA_ANY_SOURCE};
    static const int tag[] = {5, 5, STRATA_ANY_TAG, STRATA_ANY_TAG};
    for (int i = 0; i < 4; i++)
        CHECK_OK(strata_irecv(r->comm, &v[i], sizeof(int), src[i], tag[i], &q[i]));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(strata_cancel(q[i]));
        CHECK_RC(strata_wait(&q[i], &st), STRATA_ERR_CANCELLED);
        CHECK_EQ(st.error, STRATA_ERR_CANCELLED);
        CHECK_EQ(st.length, 0);
        CHECK(q[i] == NULL);
    }
    suite_signal(r->comm, 0, 1);
    suite_await(r->comm, 0, 2); /* by now the message has met the receive that was left */
    CHECK_OK(strata_cancel(q[3]));
    CHECK_OK(strata_wait(&q[3], &st)); /* too late: it completes as usual */
    CHECK_EQ(v[3], 77);
    CHECK_EQ(st.error, STRATA_OK);
    CHECK(v[0] == 0 && v[1] == 0 && v[2] == 0);
}

/* Very many messages that nobody waits for, taken in an order of their own. */
static void unexpected_many(struct tw_rank *r)
{
    int n = suite_scale(100000);
    if (r->rank == 0) {
        for (int i = 0; i < n; i++)
            CHECK_OK(strata_send(r->comm, &i, sizeof i, 1, i));
        suite_signal(r->comm, 1, n);
        suite_await(r->comm, 1, 0);
        return;
    }
    suite_await(r->comm, 0, n);
    int v = -1;
    strata_status_t st;
    for (int i = n - 1; i >= n / 2; i--) { /* the later half backwards */
        CHECK_OK(strata_recv(r->comm, &v, sizeof v, i % 3 ? 0 : STRATA_ANY_SOURCE, i, &st));
        CHECK_EQ(v, i);
    }
    for (int i = 0; i < n / 2; i++) { /* the rest in order, through wildcards */
        CHECK_OK(strata_recv(r->comm, &v, sizeof v, i % 2 ? 0 : STRATA_ANY_SOURCE, STRATA_ANY_TAG, &st));
        CHECK_EQ(v, i);
        CHECK_EQ(st.tag, i);
    }
    suite_signal(r->comm, 0, 0);
}

/* No sender starves while a receiver takes from anybody: as long as others keep it busy, everyone gets through. */
static void fairness(struct tw_rank *r)
{
    enum { SENDERS = 3, ENOUGH = 50, STARVED = 20000000 };
    int got[SENDERS + 1] = {0}, least = 0, go = 1, left = SENDERS;
    strata_status_t st;
    while (r->rank && go) {
        CHECK_OK(strata_send(r->comm, &r->rank, sizeof(int), 0, 1));
        CHECK_OK(strata_recv(r->comm, &go, sizeof go, 0, 2, NULL));
    }
    while (!r->rank && left) {
        int who = -1;
        CHECK_OK(strata_recv(r->comm, &who, sizeof who, STRATA_ANY_SOURCE, 1, &st));
        CHECK_EQ(who, st.source);
        got[who]++;
        least = got[1] < got[2] ? got[1] : got[2];
        least = least < got[3] ? least : got[3];
        CHECK_MSG(got[1] + got[2] + got[3] < STARVED, "starved: %d, %d and %d messages", got[1], got[2], got[3]);
        go = least < ENOUGH;
        left -= !go;
        CHECK_OK(strata_send(r->comm, &go, sizeof go, who, 2));
    }
}

static const struct suite_case cases[] = {
    {"wildcards", 3, 0, wildcards},
    {"posted_order", 2, 0, posted_order},
    {"probes", 2, 0, probes},
    {"own_probes", 1, 0, own_probes},
    {"matched_probes", 2, 0, matched_probes},
    {"cancels", 2, 0, cancels},
    {"unexpected_many", 2, SUITE_SLOW, unexpected_many},
    {"fairness", 4, 0, fairness},
};
SUITE_GROUP(suite_matching, cases);
