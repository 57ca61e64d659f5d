/* Collectives (strata/coll.h) over every transport that strata-info finds: random calls beside a naive version, in
 * which every rank computes from the seed what all ranks give, and ranks arrive at different times; two communicators
 * from two threads; a member that fails. */
#include <time.h>
#include "support/coll_halves.h"
#include "support/coll_pair.h"
#include "support/form.h"
#include "support/over_transports.h"
#include "support/random.h"
#include "support/suite.h"
#include <strata/coll.h>

enum { MOST = OVER_MOST, RANKS = 9, COUNT = 3000, COUNT_LONG = 40000, CALLS = 1000, CALLS_FULL = 100000 };

/* Addition of pairs; the other reduction is their composition. */
static void add(void *arg, const void *in, void *inout, size_t count)
{
    const struct pair *x = in;
    struct pair *y = inout;
    CHECK(arg == NULL);
    for (size_t i = 0; i < count; i++)
        y[i] = (struct pair){x[i].a + y[i].a, x[i].b + y[i].b};
}

/* A call that all members make from the same numbers. */
struct call {
    strata_coll_t c;
    uint64_t seed;
    bool in_place;
    int n;
    size_t sizes[MOST][MOST]; /* elements that a rank has for another */
};

/* Element k of what `rank` has for `to` (0 where all get the same). */
static struct pair given(const struct call *c, int rank, int to, size_t k)
{
    struct rnd r = {c->seed ^ ((uint64_t)rank << 56 | (uint64_t)to << 48 | k)};
    uint64_t x = rnd_next(&r);
    return (struct pair){(uint32_t)x, (uint32_t)(x >> 32)};
}

static struct call call_make(struct rnd *r, int n)
{
    static const strata_reduce_fn fns[] = {add, compose};
    struct call c = {.c = STRATA_COLL_INIT((strata_coll_kind_t)rnd_below(r, STRATA_COLL_KINDS)), .n = n};
    bool ordered = rnd_below(r, 2);
    c.c.element = sizeof(struct pair);
    switch (rnd_below(r, 8)) {
    case 0:
        c.c.count = rnd_below(r, 2);
        break;
    case 1:
        c.c.count = rnd_below(r, COUNT);
        break;
    case 2:
        c.c.count = rnd_below(r, 16) == 0 ? rnd_below(r, COUNT_LONG) : 1;
        break;
    default:
        c.c.count = rnd_below(r, 40);
        break;
    }
    c.c.root = (int)rnd_below(r, (uint32_t)n);
    c.c.reduce = fns[ordered];
    c.c.not_commutative = ordered;
    c.in_place = rnd_below(r, 3) == 0;
    c.seed = rnd_next(r);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            c.sizes[i][k] = c.c.count == 0 ? 0 : rnd_below(r, (uint32_t)c.c.count + 1);
    for (int i = 0; i < n && (c.in_place || c.c.kind == STRATA_ALLGATHERV); i++)
        for (int k = 0; k < n; k++) /* as much comes as goes; or the same to all */
            c.sizes[i][k] = c.c.kind == STRATA_ALLGATHERV ? c.sizes[i][0] : i < k ? c.sizes[k][i] : c.sizes[i][k];
    return c;
}

/* Combination of element k of the ranks 0 to last, for block `to`. */
static struct pair combined(const struct call *c, int last, int to, size_t k)
{
    struct pair result = given(c, last, to, k);
    for (int i = last - 1; i >= 0; i--) {
        struct pair in = given(c, i, to, k);
        c->c.reduce(NULL, &in, &result, 1);
    }
    return result;
}

static bool is_v(const struct call *c)
{
    return c->c.kind == STRATA_ALLGATHERV || c->c.kind == STRATA_ALLTOALLV;
}

static size_t block_size(const struct call *c, int from, int to)
{
    return is_v(c) ? c->sizes[from][to] : c->c.count;
}

/* How many blocks a rank gives and gets; 0: what it has there is not looked at. */
static int blocks_in(const struct call *c, int rank)
{
    switch (c->c.kind) {
    case STRATA_BARRIER:
        return 0;
    case STRATA_BCAST:
        return rank == c->c.root;
    case STRATA_SCATTER:
        return rank == c->c.root ? c->n : 0;
    case STRATA_ALLTOALL:
    case STRATA_ALLTOALLV:
    case STRATA_REDUCE_SCATTER_BLOCK:
        return c->n;
    default:
        return 1;
    }
}

static int blocks_out(const struct call *c, int rank)
{
    switch (c->c.kind) {
    case STRATA_BARRIER:
        return 0;
    case STRATA_REDUCE:
        return rank == c->c.root;
    case STRATA_GATHER:
        return rank == c->c.root ? c->n : 0;
    case STRATA_ALLGATHER:
    case STRATA_ALLGATHERV:
    case STRATA_ALLTOALL:
    case STRATA_ALLTOALLV:
        return c->n;
    default:
        return 1;
    }
}

/* What element k of block `i` of the result at `rank` must be. */
static struct pair wanted(const struct call *c, int rank, int i, size_t k)
{
    switch (c->c.kind) {
    case STRATA_BCAST:
        return given(c, c->c.root, 0, k);
    case STRATA_REDUCE:
    case STRATA_ALLREDUCE:
        return combined(c, c->n - 1, 0, k);
    case STRATA_REDUCE_SCATTER_BLOCK:
        return combined(c, c->n - 1, rank, k);
    case STRATA_SCAN:
        return combined(c, rank, 0, k);
    case STRATA_SCATTER:
        return given(c, c->c.root, rank, k);
    case STRATA_ALLTOALL:
    case STRATA_ALLTOALLV:
        return given(c, i, rank, k);
    default:
        return given(c, i, 0, k);
    }
}

/* A call that is under way at one rank. */
struct running {
    struct call call;
    size_t send_counts[MOST], send_offsets[MOST], recv_counts[MOST], recv_offsets[MOST];
    struct pair *in, *out;
    strata_coll_request_t *req;
    bool placed; /* the result's own block of a scatter was not to be written */
};

/* In place, the one block that a rank gives lies where it will be in the result. */
static size_t place_of(const struct running *u, int rank)
{
    switch (u->call.c.kind) {
    case STRATA_GATHER:
    case STRATA_ALLGATHER:
        return (size_t)rank * u->call.c.count;
    case STRATA_ALLGATHERV:
        return u->recv_offsets[rank];
    default:
        return 0;
    }
}

static void start(struct running *u, const struct call *call, strata_comm_t *comm)
{
    int rank = strata_comm_rank(comm), n = call->n;
    size_t n_in = 0, n_out = 0;
    *u = (struct running){.call = *call};
    for (int i = 0; i < n; i++) {
        u->send_counts[i] = block_size(call, rank, i);
        u->recv_counts[i] = block_size(call, i, rank);
        u->send_offsets[i] = n_in;
        u->recv_offsets[i] = n_out;
        n_in += u->send_counts[i];
        n_out += u->recv_counts[i];
    }
    u->in = calloc(n_in + 1, sizeof(struct pair));
    u->out = calloc(n_out + 1, sizeof(struct pair));
    CHECK(u->in && u->out);
    bool rooted = call->c.kind == STRATA_REDUCE || call->c.kind == STRATA_GATHER;
    bool scatters = call->c.kind == STRATA_SCATTER, bcast = call->c.kind == STRATA_BCAST;
    bool in_place = bcast || (call->in_place && !scatters && (!rooted || rank == call->c.root));
    for (int i = 0; i < blocks_in(call, rank); i++)
        for (size_t k = 0; k < u->send_counts[i]; k++)
            (in_place ? u->out + place_of(u, rank) : u->in)[u->send_offsets[i] + k] = given(call, rank, i, k);
    strata_coll_t c = call->c;
    c.send = in_place ? STRATA_IN_PLACE : u->in;
    c.recv = u->out;
    u->placed = scatters && call->in_place && rank == c.root;
    if (u->placed)
        c.recv = (void *)(uintptr_t)STRATA_IN_PLACE;
    c.send_counts = u->send_counts, c.send_offsets = u->send_offsets;
    c.recv_counts = u->recv_counts, c.recv_offsets = u->recv_offsets;
    CHECK_OK(strata_coll_start(comm, &c, &u->req));
}

static void finish(struct running *u, strata_comm_t *comm, unsigned long number)
{
    int rank = strata_comm_rank(comm), failed = 0;
    CHECK_OK(strata_coll_wait(&u->req, &failed));
    CHECK(u->req == NULL && failed == -1);
    for (int i = 0; i < blocks_out(&u->call, rank) && !u->placed; i++)
        for (size_t k = 0; k < u->recv_counts[i]; k++) {
            struct pair want = wanted(&u->call, rank, i, k), got = u->out[u->recv_offsets[i] + k];
            CHECK_MSG(want.a == got.a && want.b == got.b,
                      "call %lu: kind %d, %d ranks, %zu elements, root %d, in place %d, ordered %d: rank %d, block %d, "
                      "element %zu: %x %x, not %x %x",
                      number, (int)u->call.c.kind, u->call.n, u->call.c.count, u->call.c.root, u->call.in_place,
                      u->call.c.not_commutative, rank, i, k, got.a, got.b, want.a, want.b);
        }
    free(u->in);
    free(u->out);
}

/* Communicators of the first 1 to n ranks, in the order of ranks and reversed. */
enum { COMMS = 2 * MOST };
static int comms_make(struct tw_rank *r, strata_comm_t **comms, int n)
{
    for (int i = 0; i < 2 * n; i++) {
        int size = i / 2 + 1, world[MOST];
        bool reversed = i % 2;
        comms[i] = NULL;
        if (r->rank >= size)
            continue;
        for (int k = 0; k < size; k++)
            world[k] = reversed ? size - 1 - k : k;
        strata_comm_spec_t spec = {.size = sizeof(spec),
                                   .id = (uint32_t)(1000 + i),
                                   .rank = reversed ? size - 1 - r->rank : r->rank,
                                   .n_ranks = size,
                                   .world = world};
        CHECK_OK(strata_comm_create(r->s, &spec, &comms[i]));
    }
    return 2 * n;
}

/* Members arrive together, or at random within half a millisecond, or one of them up to ten milliseconds late. */
static void arrive(uint64_t seed, unsigned long call, int rank, int n)
{
    struct rnd all = {seed + call * 0x9e3779b97f4a7c15u},
               own = {seed + call * 0x9e3779b97f4a7c15u + 1 + (uint64_t)rank};
    uint32_t pattern = rnd_below(&all, 256), us = 0;
    if (pattern == 0 && (int)rnd_below(&all, (uint32_t)n) == rank)
        us = rnd_below(&own, 10000);
    else if (pattern > 0 && pattern < 64)
        us = rnd_below(&own, 500);
    if (us)
        nanosleep(&(struct timespec){.tv_nsec = (long)us * 1000}, NULL);
}

/* Random calls, one to four under way at once, of members that arrive at different times. */
static void random_calls(struct tw_rank *r)
{
    strata_comm_t *comms[COMMS];
    int n = r->n < MOST ? r->n : MOST, n_comms = r->rank < n ? comms_make(r, comms, n) : 0;
    unsigned long seed = test_seed(28), calls = test_quick_form(CALLS, CALLS_FULL);
    const char *fewer = getenv("STRATA_TEST_CALLS"); /* of scripts that run this case in many jobs */
    if (test_sanitized() || suite_emulated())
        calls = test_quick_form(CALLS / 10, CALLS / 4);
    else if (fewer)
        calls = strtoul(fewer, NULL, 0);
    struct rnd rnd = {seed};
    if (r->rank == 0)
        test_form_print(seed, calls, CALLS_FULL, "calls");
    for (unsigned long i = 0; i < calls && r->rank < n;) {
        struct running under_way[4];
        int which = (int)rnd_below(&rnd, (uint32_t)n_comms), together = 1 + (int)rnd_below(&rnd, 4);
        strata_comm_t *comm = comms[which];
        for (int k = 0; k < together; k++) {
            struct call call = call_make(&rnd, which / 2 + 1);
            if (!comm)
                continue;
            arrive(seed, i + (unsigned long)k, r->rank, n);
            start(&under_way[k], &call, comm);
        }
        for (int k = together - 1; k >= 0 && comm; k--)
            finish(&under_way[k], comm, i + (unsigned long)k);
        i += (unsigned long)together;
    }
    tw_quiesce(r);
    for (int i = 0; i < n_comms; i++)
        if (comms[i])
            CHECK_OK(strata_comm_free(comms[i]));
}

/* A receive from anyone with any tag gets the program's message, not one of a collective. */
static void apart_from_messages(struct tw_rank *r)
{
    strata_coll_t barrier = STRATA_COLL_INIT(STRATA_BARRIER);
    strata_request_t *any;
    strata_status_t status;
    int got = 0, mine = 100 + r->rank;
    CHECK_OK(strata_irecv(r->comm, &got, sizeof(got), STRATA_ANY_SOURCE, STRATA_ANY_TAG, &any));
    for (int i = 0; i < 20; i++)
        CHECK_OK(strata_coll(r->comm, &barrier));
    CHECK_OK(strata_send(r->comm, &mine, sizeof(mine), (r->rank + 1) % r->n, 5));
    CHECK_OK(strata_wait(&any, &status));
    CHECK_EQ(status.tag, 5);
    CHECK_EQ(got, 100 + (r->rank + r->n - 1) % r->n);
    tw_quiesce(r);
}

static void *half_calls(void *arg)
{
    const struct half *h = arg;
    struct rnd rnd = {(uint64_t)h->number + 7};
    const unsigned long calls = test_sanitized() ? test_quick_form(25, 50) : 200;
    for (unsigned long i = 0; i < calls; i++) {
        struct running u;
        struct call call = call_make(&rnd, strata_comm_size(h->comm));
        start(&u, &call, h->comm);
        finish(&u, h->comm, i);
    }
    return NULL;
}

static void two_threads(struct tw_rank *r)
{
    run_halves(r, 2000, half_calls);
}

/* A member frees the communicator as soon as its own calls are complete and goes on in the next one, while another that
 * makes no progress is still in the last call. Ids are used again after all have freed them. `kinds`: a bit each. */
static void free_early(struct tw_rank *r, unsigned kinds, int most_calls)
{
    enum { ROUNDS = 3, MOST_CALLS = 8 };
    const int ids = test_sanitized() ? (int)test_quick_form(6, 20) : 20;
    struct rnd rnd = {29};
    for (int i = 0; i < ROUNDS * ids; i++) {
        strata_comm_spec_t spec = {
            .size = sizeof(spec), .id = (uint32_t)(4000 + i % ids), .rank = r->rank, .n_ranks = r->n};
        struct running u[MOST_CALLS];
        strata_comm_t *comm;
        int n_calls = 1 + (int)rnd_below(&rnd, (uint32_t)most_calls);
        CHECK_OK(strata_comm_create(r->s, &spec, &comm));
        for (int k = 0; k < n_calls; k++) {
            struct call call;
            do
                call = call_make(&rnd, r->n);
            while (!(kinds >> call.c.kind & 1u));
            start(&u[k], &call, comm);
        }
        if (i % r->n == r->rank)
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        for (int k = 0; k < n_calls; k++)
            finish(&u[k], comm, (unsigned long)i);
        CHECK_OK(strata_comm_free(comm));
        if (i % ids == ids - 1)
            tw_quiesce(r);
    }
}

static void freed_early(struct tw_rank *r)
{
    free_early(r, 1u << STRATA_ALLTOALL | 1u << STRATA_ALLTOALLV, 3);
}

/* Roots that leave while others have not begun, one after the other, and what comes after them. */
static void roots_ahead(struct tw_rank *r)
{
    free_early(r, 1u << STRATA_BCAST, 8);
    free_early(r, 1u << STRATA_BCAST | 1u << STRATA_ALLREDUCE | 1u << STRATA_ALLTOALLV, 8);
    free_early(r, 1u << STRATA_BCAST | 1u << STRATA_BARRIER | 1u << STRATA_ALLGATHER | 1u << STRATA_ALLGATHERV, 8);
}

/* Lengths that overflow, in a block or in all of them. */
static void too_long(struct tw_rank *r)
{
    strata_coll_request_t *req = NULL;
    size_t counts[OVER_MOST] = {0}, offsets[OVER_MOST] = {0};
    strata_coll_t c = STRATA_COLL_INIT(STRATA_BCAST);
    c.element = 16;
    c.count = SIZE_MAX / 8;
    CHECK_RC(strata_coll_start(r->comm, &c, &req), STRATA_ERR_ARG);
    c = (strata_coll_t)STRATA_COLL_INIT(STRATA_ALLTOALL);
    c.count = SIZE_MAX / 2 / (size_t)r->n + 1;
    CHECK_RC(strata_coll_start(r->comm, &c, &req), STRATA_ERR_ARG);
    c = (strata_coll_t)STRATA_COLL_INIT(STRATA_ALLTOALLV);
    c.send_counts = c.send_offsets = c.recv_counts = counts;
    c.recv_offsets = offsets;
    offsets[r->n - 1] = SIZE_MAX;
    counts[r->n - 1] = 1;
    CHECK_RC(strata_coll_start(r->comm, &c, &req), STRATA_ERR_ARG);
}

struct found_lines {
    size_t groups, basic;
};

static void memory_line(void *arg, const strata_mem_line_t *line)
{
    struct found_lines *f = arg;
    if (strcmp(line->component, "coll") == 0)
        f->groups += line->bytes;
    if (strcmp(line->component, "coll_basic") == 0)
        f->basic += line->bytes;
}

static struct found_lines memory_of(strata_t *s)
{
    struct found_lines f = {0, 0};
    CHECK_OK(strata_mem_report(s, memory_line, &f));
    return f;
}

/* Memory of a collective is reported while it is under way, and that of a communicator until it is freed. */
static void memory(struct tw_rank *r)
{
    enum { BLOCK = 100000 };
    strata_comm_spec_t spec = {.size = sizeof(spec), .id = 3000, .rank = r->rank, .n_ranks = r->n};
    strata_coll_t c = STRATA_COLL_INIT(STRATA_SCAN), barrier = STRATA_COLL_INIT(STRATA_BARRIER);
    strata_coll_request_t *req;
    strata_comm_t *comm;
    struct pair *in = calloc(BLOCK, sizeof(*in)), *out = calloc(BLOCK, sizeof(*out));
    CHECK_OK(strata_comm_create(r->s, &spec, &comm));
    CHECK_OK(strata_coll(r->comm, &barrier)); /* the components are there */
    struct found_lines before = memory_of(r->s);
    c.send = in;
    c.recv = out;
    c.count = BLOCK;
    c.element = sizeof(struct pair);
    c.reduce = add;
    CHECK_OK(strata_coll(comm, &barrier)); /* what the first operation does besides is done */
    CHECK_OK(strata_coll_start(comm, &c, &req));
    struct found_lines under_way = memory_of(r->s);
    CHECK(under_way.groups > before.groups);
    CHECK(under_way.basic >= before.basic + 2 * BLOCK * sizeof(struct pair));
    CHECK_OK(strata_coll_wait(&req, NULL));
    CHECK(memory_of(r->s).basic < before.basic + BLOCK);
    tw_quiesce(r);
    CHECK_OK(strata_comm_free(comm));
    CHECK_EQ(memory_of(r->s).groups, before.groups);
    CHECK_EQ(memory_of(r->s).basic, before.basic);
    free(in);
    free(out);
}

/* Memory that a parameter of the component bounds. */
struct bounded_lines {
    size_t arrival; /* landing cells and areas of nodes */
    size_t sm;      /* areas */
};

static void bounded_line(void *arg, const strata_mem_line_t *line)
{
    struct bounded_lines *f = arg;
    if (strcmp(line->component, "coll_arrival") == 0 && strcmp(line->category, "other") != 0)
        f->arrival += line->bytes;
    if (strcmp(line->component, "coll_sm") == 0 && strcmp(line->category, "areas") == 0)
        f->sm += line->bytes;
}

/* Landing cells of many communicators together: within coll_arrival_memory, the more of them the smaller; areas of
 * coll_sm: within coll_sm_memory, further communicators have none. The environment sets one of the two parameters to
 * MEMORY_SET. All is given back. */
static void memory_of_many(struct tw_rank *r)
{
    enum { COMMS_HERE = 40, MEMORY_SET = 100000, BLOCK = 200 };
    const char *set = getenv("STRATA_MCA_coll_arrival_memory"), *set_sm = getenv("STRATA_MCA_coll_sm_memory");
    strata_comm_t *comms[COMMS_HERE];
    struct bounded_lines before = {0}, all = {0}, after = {0};
    unsigned char in[OVER_MOST * BLOCK], out[OVER_MOST * BLOCK];
    CHECK((!set || atol(set) == MEMORY_SET) && (!set_sm || atol(set_sm) == MEMORY_SET));
    CHECK_OK(strata_mem_report(r->s, bounded_line, &before));
    for (int i = 0; i < COMMS_HERE; i++) {
        strata_comm_spec_t spec = {.size = sizeof(spec), .id = (uint32_t)(5000 + i), .rank = r->rank, .n_ranks = r->n};
        CHECK_OK(strata_comm_create(r->s, &spec, &comms[i]));
        for (int k = 0; k < 3; k++) {
            strata_coll_t c = STRATA_COLL_INIT(STRATA_ALLTOALL);
            memset(in, i + r->rank, sizeof(in));
            c.send = in, c.recv = out, c.count = BLOCK;
            CHECK_OK(strata_coll(comms[i], &c));
            for (int from = 0; from < r->n; from++)
                CHECK_EQ(out[from * BLOCK], i + from);
        }
    }
    CHECK_OK(strata_mem_report(r->s, bounded_line, &all));
    CHECK(!set || (all.arrival > before.arrival && all.arrival <= MEMORY_SET));
    CHECK(!set_sm || (all.sm > before.sm && all.sm <= MEMORY_SET));
    tw_quiesce(r);
    for (int i = 0; i < COMMS_HERE; i++)
        CHECK_OK(strata_comm_free(comms[i]));
    CHECK_OK(strata_mem_report(r->s, bounded_line, &after));
    CHECK_EQ(after.arrival, before.arrival);
    CHECK_EQ(after.sm, before.sm);
}

static void wrong_calls(struct tw_rank *r)
{
    strata_coll_t c = STRATA_COLL_INIT(STRATA_BCAST);
    strata_coll_request_t *req = NULL;
    c.root = r->n;
    CHECK_RC(strata_coll_start(r->comm, &c, &req), STRATA_ERR_RANK);
    c = (strata_coll_t)STRATA_COLL_INIT(STRATA_ALLREDUCE);
    CHECK_RC(strata_coll_start(r->comm, &c, &req), STRATA_ERR_ARG);
    c = (strata_coll_t)STRATA_COLL_INIT(STRATA_COLL_KINDS);
    CHECK_RC(strata_coll_start(r->comm, &c, &req), STRATA_ERR_ARG);
    CHECK_RC(strata_coll_wait(&req, NULL), STRATA_ERR_ARG);
    too_long(r);
}

static const struct over_case cases[] = {
    {"random_calls", random_calls, RANKS, STRATA_THREAD_SINGLE, OVER_PROCESSES},
    {"random_calls_of_three", random_calls, 3, STRATA_THREAD_SINGLE, OVER_PROCESSES | OVER_MORE},
    {"apart_from_messages", apart_from_messages, 4, STRATA_THREAD_SINGLE, OVER_PROCESSES | OVER_MORE},
    {"two_threads", two_threads, 3, STRATA_THREAD_MULTIPLE, OVER_PROCESSES},
    {"freed_early", freed_early, 3, STRATA_THREAD_SINGLE, OVER_PROCESSES},
    {"roots_ahead", roots_ahead, 3, STRATA_THREAD_SINGLE, OVER_PROCESSES | OVER_MORE},
    {"memory", memory, 3, STRATA_THREAD_SINGLE, OVER_PROCESSES | OVER_MORE},
    {"memory_of_many", memory_of_many, 3, STRATA_THREAD_SINGLE, OVER_PROCESSES},
    {"wrong_calls", wrong_calls, 2, STRATA_THREAD_SINGLE, OVER_PROCESSES}};

OVER_SUITE(coll, 0, cases, "btl=shuffle,self coll_sm_ranks=0 coll_arrival_ranks=0",
           "btl=tcp,self coll_sm_ranks=0 coll_arrival_ranks=0", "btl=sm,self coll_sm_ranks=0");
