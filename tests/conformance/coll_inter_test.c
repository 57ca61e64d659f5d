/* Collectives of intercommunicators (strata/coll.h) over every transport that strata-info finds: random calls of two
 * groups of random sizes beside a naive version, several under way at once. Every rank computes from the seed what all
 * ranks give. */
#include "support/coll_pair.h"
#include "support/form.h"
#include "support/over_transports.h"
#include "support/random.h"
#include <strata/coll.h>

enum { MOST = 9, GROUPS = 6, TOGETHER = 4, CALLS = 600, CALLS_FULL = 100000 };

/* An intercommunicator as a member of group `mine` sees it. Members of a group are job ranks first + i, reversed in
 * group 1. */
struct two {
    strata_comm_t *comm; /* NULL: not a member */
    int size[2];
    int mine, rank;
};

/* A call that all members make from the same numbers. */
struct call {
    strata_coll_kind_t kind;
    size_t count[2]; /* of the blocks that a member of the group gives */
    int root_group, root;
    bool ordered;
    uint64_t seed;
    size_t sizes[2][MOST][MOST]; /* elements that a member of the group has for one of the other group */
};

static struct call call_make(struct rnd *r, const struct two *t)
{
    struct call c = {.kind = (strata_coll_kind_t)rnd_below(r, STRATA_SCAN)};
    static const uint32_t most[] = {2, 40, 40, 3000};
    uint32_t below = most[rnd_below(r, 4)];
    if (rnd_below(r, 40) == 0)
        below = 40000;
    c.count[0] = c.count[1] = rnd_below(r, below);
    if (c.kind ==
        STRATA_REDUCE_SCATTER_BLOCK) { /* what a member gives: count[] * size of its own group, in all the same */
        size_t unit = c.count[0] % 1000;
        c.count[0] = unit * (size_t)t->size[1];
        c.count[1] = unit * (size_t)t->size[0];
    }
    if (c.kind == STRATA_ALLGATHERV)
        c.count[1] = rnd_below(r, below);
    c.root_group = (int)rnd_below(r, 2);
    c.root = (int)rnd_below(r, (uint32_t)t->size[c.root_group]);
    c.ordered = rnd_below(r, 2);
    c.seed = rnd_next(r);
    for (int g = 0; g < 2; g++)
        for (int i = 0; i < t->size[g]; i++)
            for (int k = 0; k < t->size[1 - g]; k++)
                c.sizes[g][i][k] = c.kind == STRATA_ALLTOALLV ? rnd_below(r, below) : c.count[g];
    return c;
}

/* Element k of what a member has for block `to`. */
static struct pair given(const struct call *c, int group, int rank, int to, size_t k)
{
    struct rnd r = {c->seed ^ ((uint64_t)(group * MOST + rank) << 56 | (uint64_t)to << 48 | k)};
    uint64_t x = rnd_next(&r);
    return (struct pair){c->ordered ? (uint32_t)x : 1, (uint32_t)(x >> 32)};
}

static struct pair combined(const struct call *c, const struct two *t, int group, int to, size_t k)
{
    struct pair result = given(c, group, t->size[group] - 1, to, k);
    for (int i = t->size[group] - 2; i >= 0; i--) {
        struct pair in = given(c, group, i, to, k);
        compose(NULL, &in, &result, 1);
    }
    return result;
}

/* A call under way at one rank. */
struct running {
    struct call call;
    size_t send_counts[MOST], send_offsets[MOST], recv_counts[MOST], recv_offsets[MOST];
    struct pair *in, *out;
    int blocks_out;
    strata_coll_request_t *req;
};

static bool is_rooted(strata_coll_kind_t kind)
{
    return kind == STRATA_BCAST || kind == STRATA_REDUCE || kind == STRATA_GATHER || kind == STRATA_SCATTER;
}

/* Blocks that I give and get. */
static void blocks_of(const struct call *c, const struct two *t, int *in, int *out)
{
    int other = t->size[1 - t->mine];
    bool root = t->mine == c->root_group && t->rank == c->root, far = t->mine != c->root_group;
    switch (c->kind) {
    case STRATA_BARRIER:
        *in = *out = 0;
        return;
    case STRATA_BCAST:
        *in = root, *out = far;
        return;
    case STRATA_SCATTER:
        *in = root ? other : 0, *out = far;
        return;
    case STRATA_REDUCE:
        *in = far, *out = root;
        return;
    case STRATA_GATHER:
        *in = far, *out = root ? other : 0;
        return;
    case STRATA_ALLREDUCE:
        *in = *out = 1;
        return;
    case STRATA_REDUCE_SCATTER_BLOCK:
        *in = t->size[t->mine], *out = 1;
        return;
    case STRATA_ALLGATHER:
    case STRATA_ALLGATHERV:
        *in = 1, *out = other;
        return;
    default:
        *in = *out = other;
        return;
    }
}

/* What element k of block i of my result must be. */
static struct pair wanted(const struct call *c, const struct two *t, int i, size_t k)
{
    int far = 1 - t->mine;
    switch (c->kind) {
    case STRATA_BCAST:
        return given(c, c->root_group, c->root, 0, k);
    case STRATA_SCATTER:
        return given(c, c->root_group, c->root, t->rank, k);
    case STRATA_REDUCE:
    case STRATA_ALLREDUCE:
        return combined(c, t, far, 0, k);
    case STRATA_REDUCE_SCATTER_BLOCK: { /* element of the vector that the other group gives, in blocks of its own */
        size_t at = (size_t)t->rank * c->count[t->mine] + k;
        return combined(c, t, far, (int)(at / c->count[far]), at % c->count[far]);
    }
    case STRATA_ALLTOALL:
    case STRATA_ALLTOALLV:
        return given(c, far, i, t->rank, k);
    default:
        return given(c, far, i, 0, k);
    }
}

static void fill(struct running *u, const struct two *t, int blocks)
{
    const struct call *c = &u->call;
    struct pair *to = c->kind == STRATA_BCAST ? u->out : u->in;
    for (int i = 0; i < blocks; i++) {
        size_t n = c->kind == STRATA_ALLTOALLV ? u->send_counts[i] : c->count[t->mine];
        size_t at = c->kind == STRATA_ALLTOALLV ? u->send_offsets[i] : (size_t)i * n;
        for (size_t k = 0; k < n; k++)
            to[at + k] = given(c, t->mine, t->rank, i, k);
    }
}

static void start(struct running *u, const struct call *call, const struct two *t)
{
    int mine = t->mine, blocks;
    size_t n_in = call->count[mine] * (MOST + 1), n_out = 0;
    *u = (struct running){.call = *call};
    for (int i = 0; i < t->size[1 - mine]; i++) {
        u->send_counts[i] = call->sizes[mine][t->rank][i];
        u->recv_counts[i] = call->sizes[1 - mine][i][t->rank];
        u->send_offsets[i] =
            call->kind == STRATA_ALLTOALLV && i > 0 ? u->send_offsets[i - 1] + u->send_counts[i - 1] : 0;
        u->recv_offsets[i] = n_out;
        n_out += u->recv_counts[i];
        n_in += call->kind == STRATA_ALLTOALLV ? u->send_counts[i] : 0;
    }
    n_out += call->count[mine];
    u->in = calloc(n_in + 1, sizeof(struct pair));
    u->out = calloc(n_out + 1, sizeof(struct pair));
    CHECK(u->in && u->out);
    blocks_of(call, t, &blocks, &u->blocks_out);
    fill(u, t, blocks);
    strata_coll_t c = STRATA_COLL_INIT(call->kind);
    c.send = u->in, c.recv = u->out;
    c.count = call->count[mine];
    c.element = sizeof(struct pair);
    c.root = mine != call->root_group ? call->root : t->rank == call->root ? STRATA_ROOT : STRATA_PROC_NULL;
    if (is_rooted(call->kind) && c.root == STRATA_PROC_NULL) /* takes no part */
        c.send = c.recv = NULL, c.count = SIZE_MAX;
    c.send_counts = u->send_counts, c.send_offsets = u->send_offsets;
    c.recv_counts = u->recv_counts, c.recv_offsets = u->recv_offsets;
    c.reduce = compose;
    c.not_commutative = call->ordered;
    CHECK_OK(strata_coll_start(t->comm, &c, &u->req));
}

static void finish(struct running *u, const struct two *t, unsigned long number)
{
    const struct call *c = &u->call;
    int failed = 0;
    CHECK_OK(strata_coll_wait(&u->req, &failed));
    CHECK(u->req == NULL && failed == -1);
    bool v = c->kind == STRATA_ALLTOALLV || c->kind == STRATA_ALLGATHERV;
    for (int i = 0; i < u->blocks_out; i++) {
        size_t n = v ? u->recv_counts[i] : c->count[t->mine];
        for (size_t k = 0; k < n; k++) {
            struct pair want = wanted(c, t, i, k), got = u->out[(v ? u->recv_offsets[i] : (size_t)i * n) + k];
            CHECK_MSG(
                want.a == got.a && want.b == got.b,
                "call %lu: kind %d, groups of %d and %d, %zu elements, root %d of group %d, ordered %d: rank %d of "
                "group %d, block %d, element %zu: %x %x, not %x %x",
                number, (int)c->kind, t->size[0], t->size[1], n, c->root, c->root_group, c->ordered, t->rank, t->mine,
                i, k, got.a, got.b, want.a, want.b);
        }
    }
    free(u->in);
    free(u->out);
}

/* Groups of `a` and `b` of the first ranks of the job. */
static struct two two_make(struct tw_rank *r, uint32_t id, int a, int b)
{
    struct two t = {.comm = NULL, .size = {a, b}, .mine = r->rank >= a};
    int world[2][MOST];
    t.rank = t.mine == 0 ? r->rank : a + b - 1 - r->rank;
    for (int i = 0; i < a; i++)
        world[0][i] = i;
    for (int i = 0; i < b; i++)
        world[1][i] = a + b - 1 - i;
    if (r->rank >= a + b)
        return t;
    strata_comm_spec_t spec = {.size = sizeof(spec),
                               .id = id,
                               .rank = t.rank,
                               .n_ranks = t.size[1 - t.mine],
                               .world = world[1 - t.mine],
                               .inter = 1,
                               .n_local = t.size[t.mine],
                               .local = world[t.mine]};
    CHECK_OK(strata_comm_create(r->s, &spec, &t.comm));
    return t;
}

static void random_calls(struct tw_rank *r)
{
    struct two groups[GROUPS];
    int n = r->n < MOST ? r->n : MOST;
    unsigned long seed = test_seed(29), calls = test_sanitized() ? CALLS / 4 : test_quick_form(CALLS, CALLS_FULL);
    struct rnd rnd = {seed};
    if (r->rank == 0)
        test_form_print(seed, calls, CALLS_FULL, "calls");
    for (int i = 0; i < GROUPS; i++) {
        int a = 1 + (int)rnd_below(&rnd, (uint32_t)n - 1),
            b = i == 0 ? n - a : 1 + (int)rnd_below(&rnd, (uint32_t)(n - a));
        groups[i] = two_make(r, (uint32_t)(5000 + i), a, b);
    }
    for (unsigned long i = 0; i < calls;) {
        struct running under_way[TOGETHER];
        const struct two *t = &groups[rnd_below(&rnd, GROUPS)];
        int together = 1 + (int)rnd_below(&rnd, TOGETHER);
        for (int k = 0; k < together; k++) {
            struct call call = call_make(&rnd, t);
            if (t->comm)
                start(&under_way[k], &call, t);
        }
        for (int k = together - 1; k >= 0 && t->comm; k--)
            finish(&under_way[k], t, i + (unsigned long)k);
        i += (unsigned long)together;
    }
    tw_quiesce(r);
    for (int i = 0; i < GROUPS; i++)
        if (groups[i].comm)
            CHECK_OK(strata_comm_free(groups[i].comm));
}

/* Nobody leaves a barrier before all of the other group have called it. Ranks are threads. */
static void barrier(struct tw_rank *r)
{
    static _Atomic(int) came[2];
    struct two t = two_make(r, 5100, 2, r->n - 2);
    strata_coll_t c = STRATA_COLL_INIT(STRATA_BARRIER);
    for (int i = 1; i <= 50; i++) {
        came[t.mine]++;
        CHECK_OK(strata_coll(t.comm, &c));
        CHECK(came[1 - t.mine] >= i * t.size[1 - t.mine]);
    }
    tw_quiesce(r);
    CHECK_OK(strata_comm_free(t.comm));
}

static void wrong_calls(struct tw_rank *r)
{
    struct two t = two_make(r, 5200, 1, 2);
    strata_coll_request_t *req = NULL;
    int block[4] = {0}, far[] = {0, 1};
    strata_coll_t c = STRATA_COLL_INIT(STRATA_ALLREDUCE);
    c.send = STRATA_IN_PLACE, c.recv = block, c.count = 1, c.reduce = compose;
    CHECK_RC(strata_coll_start(t.comm, &c, &req), STRATA_ERR_ARG);
    c.kind = STRATA_SCAN, c.send = block;
    CHECK_RC(strata_coll_start(t.comm, &c, &req), STRATA_ERR_UNSUPPORTED);
    c.kind = STRATA_BCAST, c.root = t.size[1 - t.mine];
    CHECK_RC(strata_coll_start(t.comm, &c, &req), STRATA_ERR_RANK);
    c.kind = STRATA_BCAST, c.root = -1;
    CHECK_RC(strata_coll_start(t.comm, &c, &req), STRATA_ERR_RANK);
    CHECK_RC(strata_coll_start(r->comm, &(strata_coll_t){.size = sizeof(c), .kind = STRATA_BCAST, .root = STRATA_ROOT},
                               &req),
             STRATA_ERR_RANK);
    c.kind = STRATA_REDUCE_SCATTER_BLOCK; /* one element of one member for two */
    CHECK_RC(t.mine == 0 ? strata_coll_start(t.comm, &c, &req) : STRATA_ERR_ARG, STRATA_ERR_ARG);
    tw_quiesce(r);
    CHECK_OK(strata_comm_free(t.comm));
    /* Without the own group there are no collectives; with a wrong one there is no communicator. */
    strata_comm_spec_t spec = {.size = sizeof(spec), .id = 5300, .rank = 0, .n_ranks = 2, .world = far, .inter = 1};
    CHECK_OK(strata_comm_create(r->s, &spec, &t.comm));
    c.kind = STRATA_BARRIER;
    CHECK_RC(strata_coll_start(t.comm, &c, &req), STRATA_ERR_UNSUPPORTED);
    CHECK_OK(strata_comm_free(t.comm));
    spec.n_local = 1;
    CHECK_RC(strata_comm_create(r->s, &spec, &t.comm), STRATA_ERR_ARG);
    spec.local = &(int){(r->rank + 1) % r->n};
    CHECK_RC(strata_comm_create(r->s, &spec, &t.comm), STRATA_ERR_RANK);
}

static const struct over_case cases[] = {
    {"random_calls", random_calls, MOST, STRATA_THREAD_SINGLE, OVER_PROCESSES},
    {"random_calls_of_three", random_calls, 3, STRATA_THREAD_SINGLE, OVER_PROCESSES | OVER_MORE},
    {"barrier", barrier, 5, STRATA_THREAD_SINGLE, 0},
    {"wrong_calls", wrong_calls, 3, STRATA_THREAD_SINGLE, OVER_PROCESSES}};

OVER_SUITE(coll_inter, 0, cases, "btl=shuffle,self");
