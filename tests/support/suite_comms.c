/* Conformance: matching contexts. */
#include "support/suite.h"

static strata_comm_t *make(strata_t *s, uint32_t id, int rank, int n, const int *world, void *user)
{
    strata_comm_t *c = NULL;
    strata_comm_spec_t spec = {.size = sizeof spec, .id = id, .rank = rank, .n_ranks = n, .world = world, .user = user};
    CHECK_OK(strata_comm_create(s, &spec, &c));
    CHECK(c);
    return c;
}

/* The same source and tag in many contexts at once; each message stays in its own. */
static void many(struct tw_rank *r)
{
    enum { N = 300 };
    strata_comm_t *c[N];
    int peer = 1 - r->rank;
    for (uint32_t i = 0; i < N; i++)
        c[i] = make(r->s, 1000 + i * 7919, r->rank, 2, NULL, &c[i]);
    if (r->rank == 0) {
        for (int i = 0; i < N; i++)
            CHECK_OK(strata_send(c[i], &i, sizeof i, peer, 5));
    } else {
        int v = -1;
        for (int i = N - 1; i >= 0; i--) {
            CHECK_OK(strata_recv(c[i], &v, sizeof v, STRATA_ANY_SOURCE, STRATA_ANY_TAG, NULL));
            CHECK_EQ(v, i);
        }
    }
    for (int i = 0; i < N; i++) {
        CHECK(strata_comm_user(c[i]) == &c[i]);
        CHECK(strata_comm_context(c[i]) == r->s);
        CHECK_EQ(strata_comm_size(c[i]), 2);
        CHECK_EQ(strata_comm_rank(c[i]), r->rank);
        CHECK_OK(strata_comm_free(c[i]));
    }
}

/* Messages for a context that the receiver has not made yet wait for it, short ones and long ones. */
static void before_it_exists(struct tw_rank *r)
{
    size_t len[] = {0, 8, 700, suite_long(r->s)};
    strata_request_t *q[4] = {NULL};
    char *b[4];
    if (r->rank == 0) {
        strata_comm_t *c = make(r->s, 77, 0, 2, NULL, NULL);
        for (int i = 0; i < 4; i++) {
            b[i] = suite_buffer(len[i]);
            pattern_fill(b[i], len[i], (uint64_t)i);
            CHECK_OK(strata_isend(c, b[i], len[i], 1, i, &q[i]));
        }
        suite_signal(r->comm, 1, 1);
        CHECK_OK(strata_waitall(4, q, NULL));
        for (int i = 0; i < 4; i++)
            suite_buffer_free(b[i], len[i]);
        CHECK_OK(strata_comm_free(c));
    } else {
        suite_await(r->comm, 0, 1);
        suite_spin(r->s, 300);
        strata_comm_t *c = make(r->s, 77, 1, 2, NULL, NULL);
        for (int i = 0; i < 4; i++)
            suite_recv(c, len[i], 0, i % 2 ? i : STRATA_ANY_TAG, (uint64_t)i);
        CHECK_OK(strata_comm_free(c));
    }
}

/* An id is used again, after all have freed it, with other members and other ranks. */
static void reuse(struct tw_rank *r)
{
    static const int straight[] = {0, 1}, crossed[] = {1, 0};
    int rounds = suite_scale(500) + 10;
    for (int i = 0; i < rounds; i++) {
        int me = i % 2 ? 1 - r->rank : r->rank, v = i, got = -1;
        strata_comm_t *c = make(r->s, 5, me, 2, i % 2 ? crossed : straight, NULL);
        strata_status_t st;
        CHECK_EQ(strata_comm_rank(c), me);
        CHECK_OK(strata_sendrecv(c, &v, sizeof v, 1 - me, 3, &got, sizeof got, STRATA_ANY_SOURCE, 3, &st));
        CHECK_EQ(got, i);
        CHECK_EQ(st.source, 1 - me);
        CHECK_OK(strata_comm_free(c));
        suite_signal(r->comm, 1 - r->rank, 8);
        suite_await(r->comm, 1 - r->rank, 8);
    }
}

/* Members in another order than in the job, and fewer. */
static void permuted(struct tw_rank *r)
{
    static const int even[] = {2, 0}, all[] = {2, 1, 0};
    int me = 2 - r->rank, got = -1;
    strata_status_t st;
    strata_comm_t *c = make(r->s, 9, me, 3, all, NULL);
    CHECK_OK(strata_sendrecv(c, &me, sizeof me, (me + 1) % 3, 1, &got, sizeof got, (me + 2) % 3, 1, &st));
    CHECK_EQ(got, (me + 2) % 3);
    CHECK_EQ(st.source, (me + 2) % 3);
    CHECK_RC(strata_send(c, &me, sizeof me, 3, 1), STRATA_ERR_RANK);
    CHECK_OK(strata_comm_free(c));
    if (r->rank == 1)
        return;
    me = r->rank == 2 ? 0 : 1;
    c = make(r->s, 10, me, 2, even, NULL);
    CHECK_OK(strata_sendrecv(c, &me, sizeof me, 1 - me, 1, &got, sizeof got, STRATA_ANY_SOURCE, 1, &st));
    CHECK_EQ(got, 1 - me);
    CHECK_EQ(st.source, 1 - me);
    CHECK_OK(strata_comm_free(c));
}

static void bad_specs(struct tw_rank *r)
{
    strata_comm_t *c = NULL, *d = NULL;
    strata_comm_spec_t spec = {.size = sizeof spec, .id = 3, .rank = 0, .n_ranks = 0};
    CHECK_RC(strata_comm_create(r->s, &spec, &c), STRATA_ERR_ARG);
    spec.n_ranks = 1;
    spec.rank = 1;
    CHECK_RC(strata_comm_create(r->s, &spec, &c), STRATA_ERR_RANK);
    int outside = strata_size(r->s);
    spec.rank = 0;
    spec.world = &outside;
    CHECK(strata_comm_create(r->s, &spec, &c) != STRATA_OK);
    CHECK(c == NULL);
    spec.world = &r->rank;
    CHECK_OK(strata_comm_create(r->s, &spec, &c));
    CHECK(strata_comm_create(r->s, &spec, &d) != STRATA_OK); /* the id is in use */
    spec.id = 0;
    CHECK(strata_comm_create(r->s, &spec, &d) != STRATA_OK); /* the world's */
    CHECK(d == NULL);
    CHECK_OK(strata_comm_free(c));
}

static const struct suite_case cases[] = {
    {"many", 2, 0, many},           {"before_it_exists", 2, 0, before_it_exists},
    {"reuse", 2, 0, reuse},         {"permuted", 3, 0, permuted},
    {"bad_specs", 1, 0, bad_specs},
};
SUITE_GROUP(suite_comms, cases);
