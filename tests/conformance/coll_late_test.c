/* A member of a collective comes late (strata/coll.h). The ranks are contexts of this one thread, which makes a round
 * of progress of each that has begun its call: what the others have done before the late one comes is exact, whatever
 * else the machine does. In the forms that know of arrivals their blocks are in each other's memory by then, but for
 * those that wait for the leader of the late member's node; in the others a sender waits for those before it. Nobody
 * leaves a call that needs the late member; all leave soon after it has come, which ends its own call alone where all
 * blocks of the others wait for it. */
/* one thread */
#include <check.h>
#include <sys/wait.h>
#include <unistd.h>
#include "support/counters.h"
#include "support/run_suite.h"
#include "support/world.h"
#include <strata/coll.h>

enum {
    MOST = 8,
    SHORT = 10,
    LONG = 20000,     /* no landing cell has room for it */
    CALM = 200,       /* rounds in which the others come as far as they can */
    MOST_ROUNDS = 40, /* from the late one's beginning to the end of all calls; each run prints how many it were */
    ALONE = 2         /* rounds of the late one by itself */
};

/* Which blocks are there before the late member begins. */
enum blocks {
    UNKNOWN, /* not checked */
    NONE,
    EARLY,   /* between any two others */
    WALKED,  /* from a member to those that it sends to before the late one: rank + 1, rank + 2, ... */
    BY_NODES /* between two others of the late one's node, or of other nodes */
};

struct way {
    const char *name, *settings;
    unsigned kinds; /* bits of strata_coll_kind_t */
    int n, late;
    size_t count;      /* elements of a block */
    int first, last;   /* ranks of the late one's node */
    enum blocks early; /* of alltoall and allgather */
    int messages;      /* that the member behind the late one has begun to send, of an alltoall; 0: not looked at */
    bool alone;        /* the late one's call needs no progress of others */
    bool from_start;   /* also in the first call of a communicator */
};

#define BIT(kind)  (1u << STRATA_##kind)
#define EXCHANGES  (BIT(ALLTOALL) | BIT(ALLGATHER))
#define OF_ARRIVAL (EXCHANGES | BIT(BARRIER) | BIT(BCAST) | BIT(ALLREDUCE))
#define DIRECT     "btl=sm,self coll_sm_ranks=0 coll_arrival_scheme="
#define BY_LEADERS                                                                                                     \
    "btl=sm,shuffle,self mca_base_node=3,2,3 coll_sm_ranks=0 coll_arrival_scheme=copy "                                \
    "coll_arrival_form="

static const struct way ways[] = {
    {"pap_direct, cells", DIRECT "copy coll_arrival_form=pap_direct", OF_ARRIVAL, .n = 4, .late = 1, .count = SHORT,
     .early = EARLY, .alone = true},
    {"pap_direct, cells, first call", DIRECT "copy coll_arrival_form=pap_direct", OF_ARRIVAL, .n = 4, .late = 3,
     .count = SHORT, .early = EARLY, .from_start = true},
    {"pap_direct, on demand", DIRECT "copy coll_arrival_form=pap_direct", EXCHANGES, .n = 4, .late = 2, .count = LONG,
     .early = EARLY},
    {"pap_direct, puts", DIRECT "zcopy coll_arrival_form=pap_direct", OF_ARRIVAL, .n = 5, .late = 2, .count = LONG,
     .early = EARLY},
    {"pap_direct, puts, first call", DIRECT "zcopy coll_arrival_form=pap_direct", OF_ARRIVAL, .n = 5, .late = 0,
     .count = LONG, .early = EARLY, .from_start = true},
    {"direct, cells", DIRECT "copy coll_arrival_form=direct", OF_ARRIVAL, .n = 4, .late = 1, .count = SHORT,
     .early = EARLY, .alone = true},
    {"direct, puts", DIRECT "zcopy coll_arrival_form=direct", EXCHANGES, .n = 5, .late = 2, .count = LONG,
     .early = WALKED},
    {"pap_shm_direct, a leader", BY_LEADERS "pap_shm_direct", OF_ARRIVAL, .n = 8, .late = 5, .count = SHORT, .first = 5,
     .last = 7, .early = BY_NODES},
    {"pap_shm_direct, another", BY_LEADERS "pap_shm_direct", OF_ARRIVAL, .n = 8, .late = 4, .count = SHORT, .first = 3,
     .last = 4, .early = BY_NODES},
    {"shm_direct, a leader", BY_LEADERS "shm_direct", OF_ARRIVAL, .n = 8, .late = 5, .count = SHORT, .early = NONE},
    {"pap_bruck", DIRECT "copy coll_arrival_form=pap_bruck", BIT(ALLTOALL), .n = 8, .late = 2, .count = SHORT,
     .messages = 3},
    {"pap_doubling", DIRECT "copy coll_arrival_form=pap_doubling", BIT(ALLTOALL), .n = 8, .late = 2, .count = SHORT,
     .messages = 3},
    {"bruck", DIRECT "copy coll_arrival_form=bruck", BIT(ALLTOALL), .n = 8, .late = 2, .count = SHORT, .messages = 1},
    {"doubling", DIRECT "copy coll_arrival_form=doubling", BIT(ALLTOALL), .n = 8, .late = 2, .count = SHORT,
     .messages = 1},
    {"sm, buffers", "btl=sm,self coll_arrival_ranks=0 coll_sm_read_min=1g", OF_ARRIVAL, .n = 5, .late = 2,
     .count = SHORT, .early = EARLY, .alone = true},
    {"sm, reads", "btl=sm,self coll_arrival_ranks=0 coll_sm_read_min=1k", EXCHANGES, .n = 5, .late = 2, .count = LONG,
     .early = EARLY},
    {"basic", "btl=sm,self coll_sm_ranks=0 coll_arrival_ranks=0", OF_ARRIVAL, .n = 5, .late = 1, .count = SHORT},
};
enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

static unsigned in[MOST][MOST * LONG], out[MOST][MOST * LONG];

/* A call of one kind, of all ranks. */
struct meeting {
    const struct way *way;
    strata_coll_kind_t kind;
    int root;      /* of a bcast: the member behind the late one */
    unsigned turn; /* number of the call */
    strata_t *s[MOST];
    strata_coll_request_t *req[MOST];
};

static void add(void *arg, const void *from, void *inout, size_t count)
{
    (void)arg;
    for (size_t i = 0; i < count; i++)
        ((unsigned *)inout)[i] += ((const unsigned *)from)[i];
}

/* Element k of what a rank has for another, or for all (to 0). */
static unsigned given(const struct meeting *m, int from, int to, size_t k)
{
    return 1 + m->turn * 1000003u + (unsigned)from * 10007u + (unsigned)to * 101u + (unsigned)k;
}

static void meeting_start(struct meeting *m, int r)
{
    const struct way *way = m->way;
    strata_coll_t c = STRATA_COLL_INIT(m->kind);
    memset(out[r], 0, sizeof(out[r]));
    for (int to = 0; to < way->n; to++)
        for (size_t k = 0; k < way->count; k++)
            in[r][(size_t)to * way->count + k] = given(m, r, to, k);
    if (m->kind == STRATA_BCAST && r == m->root)
        memcpy(out[r], in[r], way->count * sizeof(unsigned));
    c.send = m->kind == STRATA_BCAST ? STRATA_IN_PLACE : in[r];
    c.recv = out[r];
    c.count = way->count;
    c.element = sizeof(unsigned);
    c.root = m->root;
    c.reduce = add;
    CHECK_OK(strata_coll_start(strata_world(m->s[r]), &c, &m->req[r]));
}

/* Progress of a rank, which may be in no call or have ended it. */
static void meeting_poll(struct meeting *m, int r)
{
    int done = 0;
    if (m->req[r])
        CHECK_OK(strata_coll_test(&m->req[r], &done, NULL));
    else
        (void)strata_progress(m->s[r]);
}

static void meeting_round(struct meeting *m, bool with_late)
{
    for (int r = 0; r < m->way->n; r++)
        if (with_late || r != m->way->late)
            meeting_poll(m, r);
}

static int meeting_left(const struct meeting *m)
{
    int left = 0;
    for (int r = 0; r < m->way->n; r++)
        left += m->req[r] != NULL;
    return left;
}

static unsigned meeting_finish(struct meeting *m, unsigned most)
{
    unsigned rounds = 0;
    for (; meeting_left(m) > 0; rounds++) {
        CHECK_MSG(rounds < most, "%s, operation %d: not over %u rounds after the last has come", m->way->name,
                  (int)m->kind, rounds);
        meeting_round(m, true);
    }
    return rounds;
}

/* ---- what has come ---- */

static bool block_is_there(const struct meeting *m, int from, int to)
{
    size_t count = m->way->count;
    for (size_t k = 0; k < count; k++)
        if (out[to][(size_t)from * count + k] != given(m, from, m->kind == STRATA_ALLTOALL ? to : 0, k))
            return false;
    return true;
}

static bool way_has_node(const struct way *way, int r)
{
    return r >= way->first && r <= way->last;
}

static bool block_may_move(const struct way *way, int from, int to)
{
    int n = way->n;
    switch (way->early) {
    case EARLY:
        return true;
    case WALKED:
        return (to - from + n) % n < (way->late - from + n) % n;
    case BY_NODES:
        return way_has_node(way, from) == way_has_node(way, to);
    default:
        return false;
    }
}

static void check_early_blocks(const struct meeting *m)
{
    const struct way *way = m->way;
    for (int to = 0; to < way->n && way->early != UNKNOWN; to++)
        for (int from = 0; from < way->n; from++) {
            if (to == way->late || from == to)
                continue;
            bool wanted = from != way->late && block_may_move(way, from, to);
            CHECK_MSG(block_is_there(m, from, to) == wanted,
                      "%s, operation %d, call %u: the block from %d to %d is %s before %d has come", way->name,
                      (int)m->kind, m->turn, from, to, wanted ? "not there" : "there", way->late);
        }
}

static void check_results(const struct meeting *m)
{
    const struct way *way = m->way;
    for (int r = 0; r < way->n; r++)
        for (int from = 0; from < way->n; from++)
            for (size_t k = 0; k < way->count; k++) {
                unsigned sum = 0;
                for (int i = 0; i < way->n; i++)
                    sum += given(m, i, 0, k);
                if (m->kind == STRATA_ALLTOALL || m->kind == STRATA_ALLGATHER)
                    CHECK_EQ(out[r][(size_t)from * way->count + k],
                             given(m, from, m->kind == STRATA_ALLTOALL ? r : 0, k));
                else if (m->kind != STRATA_BARRIER)
                    CHECK_EQ(out[r][k], m->kind == STRATA_ALLREDUCE ? sum : given(m, m->root, 0, k));
            }
}

/* Messages that the member behind the late one has begun to send to landing cells. */
static uint64_t sent_by_next(const struct meeting *m)
{
    return counted(m->s[(m->way->late + 1) % m->way->n], "coll", "arrival", "blocks_to_cells");
}

/* ---- a late member ---- */

static void everybody_calls(struct meeting *m)
{
    m->turn++;
    for (int r = 0; r < m->way->n; r++)
        meeting_start(m, r);
    (void)meeting_finish(m, 100000);
    check_results(m);
}

/* Only in a short bcast the others may leave a call that the late member has not begun: all of them. */
static void check_left(const struct meeting *m)
{
    const struct way *way = m->way;
    bool goes = m->kind == STRATA_BCAST && way->alone;
    if (m->kind == STRATA_BCAST && !goes)
        return;
    CHECK_MSG(meeting_left(m) == (goes ? 0 : way->n - 1),
              "%s, operation %d, call %u: %d of %d are in the call before %d has come", way->name, (int)m->kind,
              m->turn, meeting_left(m), way->n - 1, way->late);
}

static unsigned one_comes_late(struct meeting *m)
{
    const struct way *way = m->way;
    m->turn++;
    uint64_t sent = sent_by_next(m);
    for (int r = 0; r < way->n; r++)
        if (r != way->late)
            meeting_start(m, r);
    for (int i = 0; i < CALM; i++)
        meeting_round(m, false);
    check_left(m);
    if (m->kind == STRATA_ALLTOALL || m->kind == STRATA_ALLGATHER)
        check_early_blocks(m);
    if (way->messages)
        CHECK_EQ(sent_by_next(m) - sent, way->messages);
    meeting_start(m, way->late);
    for (int i = 0; i < ALONE && way->alone; i++)
        meeting_poll(m, way->late);
    CHECK_MSG(!way->alone || !m->req[way->late], "%s, operation %d: the late one's call waits for others", way->name,
              (int)m->kind);
    unsigned rounds = meeting_finish(m, way->from_start ? CALM : MOST_ROUNDS);
    check_results(m);
    return rounds;
}

/* In a process of its own, which ends as it is: one thread cannot finalize several ranks. */
static void late(const struct way *way)
{
    unsigned most = 0;
    for (int kind = 0; kind < STRATA_COLL_KINDS; kind++) {
        struct meeting m = {.way = way, .kind = (strata_coll_kind_t)kind, .root = (way->late + 1) % way->n};
        struct tw_world *world;
        if (!(way->kinds & 1u << kind))
            continue;
        world = tw_create(&(struct tw_options){.n = way->n, .settings = way->settings});
        for (int r = 0; r < way->n; r++)
            CHECK_OK(tw_init(world, r, &m.s[r], NULL, 0));
        for (int i = 0; i < 3 && !way->from_start; i++)
            everybody_calls(&m);
        for (int i = 0; i < 3; i++) {
            unsigned rounds = one_comes_late(&m);
            most = rounds > most ? rounds : most;
        }
    }
    printf("%s: all have left at most %u rounds after the last has come\n", way->name, most);
    fflush(stdout);
}

/* A long block that is read where its owner has it is read in parts, a part in a round: the reader holds the worker's
 * lock meanwhile, and nothing else moves. */
static void long_blocks_are_read_in_parts(void)
{
    enum { BYTES = 20 << 20, LEAST_ROUNDS = 4 };
    strata_t *s[2];
    strata_coll_request_t *req[2];
    char *block[2];
    struct tw_world *world =
        tw_create(&(struct tw_options){.n = 2, .settings = "btl=sm,self coll_arrival_ranks=0 coll_sm_ranks=2"});
    for (int r = 0; r < 2; r++) {
        CHECK_OK(tw_init(world, r, &s[r], NULL, 0));
        block[r] = calloc(BYTES, 1);
        CHECK(block[r]);
    }
    for (int call = 0; call < 3; call++) {
        int done[2] = {0}, rounds = 0;
        for (size_t i = 0; i < BYTES; i++)
            block[0][i] = (char)((size_t)call + 1 + i % 251);
        for (int r = 0; r < 2; r++) {
            strata_coll_t c = STRATA_COLL_INIT(STRATA_BCAST);
            c.recv = block[r];
            c.send = STRATA_IN_PLACE;
            c.count = BYTES;
            CHECK_OK(strata_coll_start(strata_world(s[r]), &c, &req[r]));
        }
        for (; !done[0] || !done[1]; rounds++)
            for (int r = 0; r < 2; r++)
                if (!done[r])
                    CHECK_OK(strata_coll_test(&req[r], &done[r], NULL));
        CHECK(memcmp(block[0], block[1], BYTES) == 0);
        CHECK_MSG(call == 0 || rounds >= LEAST_ROUNDS, "%d bytes were read in %d rounds", (int)BYTES, rounds);
    }
    free(block[0]);
    free(block[1]);
}

START_TEST(others_go_on)
{
    int status = -1;
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        if (_i < WAYS)
            late(&ways[_i]);
        else
            long_blocks_are_read_in_parts();
        _exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_MSG(status == 0, "%s: status %d", _i < WAYS ? ways[_i].name : "long blocks", status);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("coll_late");
    TCase *tc = tcase_create("coll_late");
    tcase_add_loop_test(tc, others_go_on, 0, WAYS + 1);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
