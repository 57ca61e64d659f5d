/* A member of a collective is killed in each of its phases (strata/coll.h). The ranks are contexts of this one thread,
 * which makes a round of progress of each living one in turn: a phase is the number of rounds after which the member
 * makes none any more, and the time from the launcher's word to the end of the others' calls is a number of rounds,
 * whatever else the machine does. All calls end with the dead member's rank, and so does each that is made later;
 * a call that ends well has the right result; nobody writes into memory that a call has given back, or takes what is
 * written there later for the result. Seconds are measured by `make bench-promises`. */
/* one thread */
#include <check.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "support/form.h"
#include "support/run_suite.h"
#include "support/world.h"
#include <strata/coll.h>

enum {
    N = 4,
    VICTIM = 1,
    LATE = 3,
    COUNT = 20000,
    EARLY = 6, /* phases that the short form has, too */
    MOST_PHASES = 400,
    MOST_ROUNDS = 12, /* from the launcher's last word to the end of a call; each run prints how many it were */
    CALM = 100,       /* rounds in which the others come as far as they can */
    HANGS = 100000    /* rounds: a call that nothing disturbs has ended long before */
};

static unsigned in[N][N * COUNT], out[N][N * COUNT], kept[N][N * COUNT], after[N][N * COUNT];

struct job {
    struct tw_world *world;
    strata_t *s[N];
    strata_coll_request_t *req[N];
    int rc[N], failed[N]; /* of the last call that has ended */
    bool dead;            /* VICTIM makes no progress */
    int away;             /* nor does this rank; -1: all do */
    bool keeps;           /* results that calls give back are kept, in `kept` */
};

static void add(void *arg, const void *from, void *inout, size_t count)
{
    (void)arg;
    for (size_t i = 0; i < count; i++)
        ((unsigned *)inout)[i] += ((const unsigned *)from)[i];
}

/* Element i of a rank's input. */
static unsigned given(int rank, size_t i)
{
    return 1 + (unsigned)rank * 1000003u + (unsigned)i;
}

/* Of the inputs of ranks up to `last`. */
static unsigned sum(int last, size_t i)
{
    unsigned all = 0;
    for (int r = 0; r <= last; r++)
        all += given(r, i);
    return all;
}

/* Element k of block b of the result at rank r. */
static unsigned wanted(strata_coll_kind_t kind, int root, size_t count, int r, int b, size_t k)
{
    switch (kind) {
    case STRATA_BCAST:
        return given(root, k);
    case STRATA_REDUCE:
    case STRATA_ALLREDUCE:
        return sum(N - 1, k);
    case STRATA_REDUCE_SCATTER_BLOCK:
        return sum(N - 1, (size_t)r * count + k);
    case STRATA_SCAN:
        return sum(r, k);
    case STRATA_SCATTER:
        return given(root, (size_t)r * count + k);
    case STRATA_ALLTOALL:
    case STRATA_ALLTOALLV:
        return given(b, (size_t)r * count + k);
    default:
        return given(b, k);
    }
}

static int blocks(strata_coll_kind_t kind, int root, int r)
{
    switch (kind) {
    case STRATA_BARRIER:
        return 0;
    case STRATA_REDUCE:
        return r == root;
    case STRATA_GATHER:
        return r == root ? N : 0;
    case STRATA_ALLGATHER:
    case STRATA_ALLGATHERV:
    case STRATA_ALLTOALL:
    case STRATA_ALLTOALLV:
        return N;
    default:
        return 1;
    }
}

/* Whether that is the result of a call that has ended well. */
static bool is_right(const unsigned *result, strata_coll_kind_t kind, int root, size_t count, int r)
{
    for (int b = 0; b < blocks(kind, root, r); b++)
        for (size_t k = 0; k < count; k++)
            if (result[(size_t)b * count + k] != wanted(kind, root, count, r, b, k))
                return false;
    return true;
}

/* An operation, and the component and the way of it. */
struct way {
    const char *name, *settings;
    unsigned kinds; /* bits of strata_coll_kind_t */
};

#define BIT(kind)   (1u << STRATA_##kind)
#define SHORT_OF_SM (BIT(BARRIER) | BIT(BCAST) | BIT(REDUCE) | BIT(ALLREDUCE) | BIT(ALLGATHER) | BIT(ALLTOALL))
#define OF_ARRIVAL                                                                                                     \
    (BIT(BARRIER) | BIT(BCAST) | BIT(ALLREDUCE) | BIT(ALLGATHER) | BIT(ALLGATHERV) | BIT(ALLTOALL) | BIT(ALLTOALLV))

static const struct way ways[] = {
    {"basic", "btl=sm,self coll_sm_ranks=0 coll_arrival_ranks=0", (1u << STRATA_COLL_KINDS) - 1},
    {"sm, buffers", "btl=sm,self coll_arrival_ranks=0 coll_sm_read_min=1g", SHORT_OF_SM},
    {"sm, reads", "btl=sm,self coll_arrival_ranks=0 coll_sm_read_min=1k", SHORT_OF_SM},
    {"pap_direct, copy", "btl=sm,self coll_sm_ranks=0 coll_arrival_form=pap_direct coll_arrival_scheme=copy",
     OF_ARRIVAL},
    {"pap_direct, zcopy", "btl=sm,self coll_sm_ranks=0 coll_arrival_form=pap_direct coll_arrival_scheme=zcopy",
     OF_ARRIVAL},
    {"direct, zcopy", "btl=shuffle,self coll_sm_ranks=0 coll_arrival_form=direct coll_arrival_scheme=zcopy",
     OF_ARRIVAL},
    {"pap_bruck", "btl=sm,self coll_sm_ranks=0 coll_arrival_form=pap_bruck", BIT(ALLTOALL)},
    {"leaders, copy",
     "btl=sm,shuffle,self mca_base_node=1,2 coll_sm_ranks=0 coll_arrival_form=pap_shm_direct coll_arrival_scheme=copy",
     OF_ARRIVAL},
    {"leaders, zcopy, pieces",
     "btl=sm,shuffle,self mca_base_node=1,2 coll_sm_ranks=0 coll_arrival_form=shm_direct coll_arrival_scheme=zcopy "
     "coll_arrival_piece=4k",
     OF_ARRIVAL},
};
enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

/* ---- a job ---- */

static void job_begin(struct job *j, const char *settings)
{
    *j =
        (struct job){.world = tw_create(&(struct tw_options){.n = N, .settings = settings, .quiet = true}), .away = -1};
    for (int r = 0; r < N; r++) {
        for (size_t i = 0; i < (size_t)N * COUNT; i++)
            in[r][i] = given(r, i);
        char err[1024] = "";
        CHECK_MSG(tw_init(j->world, r, &j->s[r], err, sizeof(err)) == STRATA_OK, "rank %d: %s", r, err);
    }
}

static void job_start(struct job *j, int r, unsigned *to, strata_coll_kind_t kind, size_t count, int root)
{
    static size_t counts[N], offsets[N];
    strata_coll_t c = STRATA_COLL_INIT(kind);
    for (size_t i = 0; i < N; i++) {
        counts[i] = count;
        offsets[i] = i * count;
    }
    c.send = kind == STRATA_BCAST ? STRATA_IN_PLACE : in[r];
    if (kind == STRATA_BCAST && r == root)
        memcpy(to, in[r], count * sizeof(unsigned));
    c.recv = to;
    c.count = count;
    c.element = sizeof(unsigned);
    c.root = root;
    c.reduce = add;
    c.send_counts = c.recv_counts = counts;
    c.send_offsets = c.recv_offsets = offsets;
    CHECK_OK(strata_coll_start(strata_world(j->s[r]), &c, &j->req[r]));
}

/* One round of progress of each living rank. */
static void job_round(struct job *j)
{
    for (int r = 0; r < N; r++) {
        int done = 0, failed = -1, rc = STRATA_OK;
        if ((r == VICTIM && j->dead) || r == j->away)
            continue;
        if (j->req[r])
            rc = strata_coll_test(&j->req[r], &done, &failed);
        else
            (void)strata_progress(j->s[r]);
        if (done && j->keeps)
            memcpy(kept[r], out[r], sizeof(out[r]));
        if (done) {
            j->rc[r] = rc;
            j->failed[r] = failed;
        }
    }
}

static bool job_waits(const struct job *j)
{
    for (int r = 0; r < N; r++)
        if (j->req[r] && !(r == VICTIM && j->dead))
            return true;
    return false;
}

/* Rounds until the calls of all living ranks have ended. */
static unsigned job_finish(struct job *j, unsigned most, const char *what)
{
    unsigned rounds = 0;
    for (; job_waits(j); rounds++) {
        CHECK_MSG(rounds < most, "%s: not over after %u rounds", what, most);
        job_round(j);
    }
    return rounds;
}

/* ---- a death ---- */

struct death {
    const struct way *way;
    strata_coll_kind_t kind;
    size_t count; /* elements of a block */
    int root;
    int before; /* calls that end well before */
    int phase;  /* rounds of the victim in its last call, or -1: it does not begin it */
    int word;   /* 0: the launcher tells all at once; 1: when they have done what they can; 2: one of them earlier */
};

static void death_text(const struct death *d, char text[200])
{
    snprintf(text, 200, "%s, operation %d of %zu from %d, %d calls before, phase %d, word %d", d->way->name,
             (int)d->kind, d->count, d->root, d->before, d->phase, d->word);
}

static void death_calm(struct job *j, int rounds)
{
    for (int i = 0; i < rounds; i++)
        job_round(j);
}

static void death_word(struct job *j, const struct death *d)
{
    int first = (VICTIM + 1) % N;
    if (d->word > 0)
        death_calm(j, CALM);
    if (d->word == 2) {
        CHECK_OK(strata_host_peer_failed(j->s[first], VICTIM, "it was killed"));
        death_calm(j, CALM);
    }
    for (int r = 0; r < N; r++)
        if (r != VICTIM && !(d->word == 2 && r == first))
            CHECK_OK(strata_host_peer_failed(j->s[r], VICTIM, "it was killed"));
}

/* A call that ends well had all that it needs of the victim, which had begun it. */
static void death_check(const struct job *j, const struct death *d, bool later)
{
    char text[200];
    death_text(d, text);
    for (int r = 0; r < N; r++) {
        if (r == VICTIM || (j->rc[r] == STRATA_ERR_PEER && j->failed[r] == VICTIM))
            continue;
        bool rooted = d->kind == STRATA_BCAST || d->kind == STRATA_REDUCE || d->kind == STRATA_GATHER ||
                      d->kind == STRATA_SCATTER || d->kind == STRATA_SCAN;
        CHECK_MSG(!later && j->rc[r] == STRATA_OK && (d->phase >= 0 || rooted), "%s: rank %d: %s, failed rank %d", text,
                  r, strata_strerror(j->rc[r]), j->failed[r]);
        CHECK_MSG(is_right(kept[r], d->kind, d->root, d->count, r), "%s: rank %d: a wrong result", text, r);
    }
}

/* The outcome of a death: whether the call was over before it, and rounds of the slowest call it ended. */
struct outcome {
    bool over;
    unsigned rounds;
};

static struct outcome death_run(const struct death *d)
{
    struct job j;
    char text[200];
    death_text(d, text);
    job_begin(&j, d->way->settings);
    for (int i = 0; i < d->before; i++) {
        for (int r = 0; r < N; r++)
            job_start(&j, r, out[r], d->kind, d->count, d->root);
        (void)job_finish(&j, HANGS, text);
    }
    j.keeps = true;
    for (int r = 0; r < N; r++)
        if (r != VICTIM || d->phase >= 0)
            job_start(&j, r, out[r], d->kind, d->count, d->root);
    death_calm(&j, d->phase);
    bool over = d->phase >= 0 && !j.req[VICTIM];
    j.dead = true;
    death_word(&j, d);
    unsigned rounds = job_finish(&j, MOST_ROUNDS, text);
    death_check(&j, d, false);
    death_calm(&j, 1); /* a call may have ended before anybody was told */
    j.keeps = false;
    for (int r = 0; r < N; r++)
        if (r != VICTIM)
            job_start(&j, r, after[r], d->kind, d->count, d->root);
    unsigned again = job_finish(&j, MOST_ROUNDS, text);
    death_check(&j, d, true);
    death_calm(&j, MOST_ROUNDS);
    for (int r = 0; r < N; r++)
        CHECK_MSG(r == VICTIM || !memcmp(kept[r], out[r], sizeof(out[r])), "%s: rank %d: memory was written to later",
                  text, r);
    return (struct outcome){over, again > rounds ? again : rounds};
}

/* In a process of its own, which ends as it is: nothing of the victim, a put under way say, may go on. */
static struct outcome death_apart(const struct death *d)
{
    struct outcome *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = -1;
    char text[200];
    CHECK(shared != MAP_FAILED);
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        *shared = death_run(d);
        _exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    death_text(d, text);
    CHECK_MSG(status == 0, "%s: status %d", text, status);
    struct outcome outcome = *shared;
    CHECK_EQ(munmap(shared, sizeof(*shared)), 0);
    return outcome;
}

/* All phases with each kind of word; in the short form with one, and of the late phases one in three. Returns how
 * many. */
static unsigned deaths_of(struct death d, unsigned *most)
{
    unsigned n = 0;
    bool over = false;
    for (d.phase = -1; !over; d.phase += d.phase < EARLY ? 1 : (int)test_quick_form(3, 1))
        for (int word = 0; word < (int)test_quick_form(1, 3); word++, n++) {
            d.word = (d.phase + 1 + word) % 3;
            struct outcome outcome = death_apart(&d);
            over = outcome.over;
            *most = outcome.rounds > *most ? outcome.rounds : *most;
            CHECK_MSG(d.phase < MOST_PHASES, "%s, operation %d: not over after %d rounds", d.way->name, (int)d.kind,
                      d.phase);
        }
    return n;
}

START_TEST(killed_in_every_phase)
{
    unsigned n = 0, most = 0;
    for (int kind = 0; kind < STRATA_COLL_KINDS; kind++) {
        struct death d = {.way = &ways[_i], .kind = (strata_coll_kind_t)kind};
        if (!(d.way->kinds & 1u << kind))
            continue;
        for (int more = 0; more < (int)test_quick_form(1, 4); more++) {
            bool other = test_quick_form(0, 1) ? more % 2 : kind % 2;
            d.before = test_quick_form(0, 1) ? more / 2 * 2 : kind / 2 % 2;
            d.count = other ? COUNT : 10;
            d.root = other ? VICTIM : 0;
            n += deaths_of(d, &most);
        }
    }
    printf("%s: %u deaths, calls ended at most %u rounds after the launcher's word\n", ways[_i].name, n, most);
}
END_TEST

/* Rank 0 has all that it needs in a call, and LATE does not have rank 0's block, when rank 0 learns of the victim's
 * death: its call ends, and its memory is used for something else. LATE, which nobody has told anything yet, sees that
 * when it goes on: at the start of a further call, which takes no messages. */
static void lent_memory_is_withdrawn(int i)
{
    static const strata_coll_kind_t kinds[] = {STRATA_BCAST, STRATA_ALLGATHER, STRATA_ALLTOALL};
    strata_coll_t barrier = STRATA_COLL_INIT(STRATA_BARRIER);
    strata_coll_request_t *further;
    strata_coll_kind_t kind = kinds[i];
    struct job j;
    int rc = STRATA_ERR_PEER, failed = VICTIM;
    job_begin(&j, "btl=sm,self coll_arrival_ranks=0 coll_sm_read_min=1k");
    for (int r = 0; r < N; r++)
        job_start(&j, r, out[r], kind, COUNT, 0);
    (void)job_finish(&j, HANGS, "the first call");
    memset(out, 0, sizeof(out));
    job_start(&j, LATE, out[LATE], kind, COUNT, 0);
    j.away = LATE;
    for (int r = 0; r < LATE; r++)
        job_start(&j, r, out[r], kind, COUNT, 0);
    death_calm(&j, CALM);
    CHECK(j.req[0]);
    j.dead = true;
    CHECK_OK(strata_host_peer_failed(j.s[0], VICTIM, "it was killed"));
    death_calm(&j, MOST_ROUNDS);
    CHECK(!j.req[0] && j.rc[0] == STRATA_ERR_PEER && j.failed[0] == VICTIM);
    memset(in[0], 0xee, sizeof(in[0]));
    memset(out[0], 0xee, sizeof(out[0]));
    CHECK_OK(strata_coll_start(strata_world(j.s[LATE]), &barrier, &further));
    CHECK(strata_coll_done(j.req[LATE]));
    rc = strata_coll_wait(&j.req[LATE], &failed);
    CHECK_MSG((rc == STRATA_ERR_PEER && failed == VICTIM) ||
                  (rc == STRATA_OK && is_right(out[LATE], kind, 0, COUNT, LATE)),
              "operation %d: %s, failed rank %d, the result is %s", (int)kind, strata_strerror(rc), failed,
              is_right(out[LATE], kind, 0, COUNT, LATE) ? "right" : "wrong");
}

/* Elements of a block: a scan needs memory for two of them, and so much there is not. */
static const size_t huge = PTRDIFF_MAX / sizeof(unsigned);

/* A member whose operation could not start, and said so, takes part in the next one. */
static void no_memory_at_a_start(int i)
{
    (void)i;
    strata_coll_t c = STRATA_COLL_INIT(STRATA_SCAN);
    strata_coll_request_t *none;
    struct job j;
    if (test_sanitized())
        return; /* it ends a process that asks for so much */
    job_begin(&j, ways[0].settings);
    c.send = in[0];
    c.recv = out[0];
    c.count = huge;
    c.element = sizeof(unsigned);
    c.reduce = add;
    CHECK_RC(strata_coll_start(strata_world(j.s[0]), &c, &none), STRATA_ERR_NOMEM);
    for (int r = 0; r < N; r++)
        job_start(&j, r, out[r], STRATA_ALLREDUCE, 10, 0);
    (void)job_finish(&j, HANGS, "an allreduce after a start without memory");
    for (int r = 0; r < N; r++)
        CHECK(j.rc[r] == STRATA_OK && is_right(out[r], STRATA_ALLREDUCE, 0, 10, r));
}

/* A member whose operation waits for the agreement of coll_sm's members, and then has no memory: the others, who have
 * started it, too, learn that it will not come. */
static void no_memory_later(int i)
{
    (void)i;
    struct job j;
    if (test_sanitized())
        return;
    job_begin(&j, ways[1].settings);
    for (int r = 0; r < N; r++)
        job_start(&j, r, out[r], STRATA_SCAN, r == 0 ? huge : 10, 0);
    (void)job_finish(&j, HANGS, "a scan without memory");
    CHECK_EQ(j.rc[0], STRATA_ERR_NOMEM);
    for (int r = 1; r < N; r++)
        CHECK(j.rc[r] == STRATA_ERR_PEER && j.failed[r] == 0);
}

/* Memory that the kernel does not let others read: the call ends soon at all, with the name of one that could not. */
static void memory_cannot_be_read(int i)
{
    strata_coll_t c = STRATA_COLL_INIT(STRATA_BCAST);
    void *hidden = mmap(NULL, COUNT * sizeof(unsigned), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct job j;
    (void)i;
    CHECK(hidden != MAP_FAILED);
    job_begin(&j, ways[2].settings);
    for (int r = 0; r < N; r++)
        job_start(&j, r, out[r], STRATA_BCAST, COUNT, 0);
    (void)job_finish(&j, HANGS, "the first call");
    for (int r = 1; r < N; r++)
        job_start(&j, r, out[r], STRATA_BCAST, COUNT, 0);
    c.recv = hidden;
    c.count = COUNT;
    c.element = sizeof(unsigned);
    CHECK_OK(strata_coll_start(strata_world(j.s[0]), &c, &j.req[0]));
    (void)job_finish(&j, CALM, "a bcast of memory that cannot be read");
    for (int r = 0; r < N; r++)
        CHECK(j.rc[r] == STRATA_ERR_PEER && j.failed[r] > 0);
}

/* ---- a death that is told before the first call ---- */

enum { BATCH = 40 };

struct batch {
    strata_comm_t *comm[N][BATCH];
    strata_coll_request_t *req[N][BATCH];
    int n;
};

static void batch_start(struct batch *b, int r)
{
    const strata_coll_t barrier = STRATA_COLL_INIT(STRATA_BARRIER);
    for (int i = 0; i < b->n; i++)
        CHECK_OK(strata_coll_start(b->comm[r][i], &barrier, &b->req[r][i]));
}

static void batch_end(struct batch *b, int r)
{
    for (int i = 0; i < b->n; i++) {
        int failed = -1;
        CHECK_MSG(strata_coll_done(b->req[r][i]), "rank %d waits in communicator %d of %d", r, i, b->n);
        CHECK_RC(strata_coll_wait(&b->req[r][i], &failed), STRATA_ERR_PEER);
        CHECK_EQ(failed, VICTIM);
    }
}

/* LATE begins its first calls after those of the others have ended: in each communicator both others have told it. */
static void batch_run(struct job *j, uint32_t first_id, int n, bool dies)
{
    static struct batch b;
    b.n = n;
    for (int r = 0; r < N; r++)
        for (int i = 0; i < n; i++) {
            strata_comm_spec_t spec = {.size = sizeof(spec), .id = first_id + (uint32_t)i, .rank = r, .n_ranks = N};
            CHECK_OK(strata_comm_create(j->s[r], &spec, &b.comm[r][i]));
        }
    batch_start(&b, 2);
    batch_start(&b, 0);
    death_calm(j, CALM);
    if (dies)
        CHECK_OK(strata_host_peer_failed(j->s[0], VICTIM, "it was killed"));
    death_calm(j, CALM);
    batch_end(&b, 0);
    batch_end(&b, 2);
    batch_start(&b, LATE);
    death_calm(j, CALM);
    batch_end(&b, LATE);
    for (int r = 0; r < N; r++)
        for (int i = 0; i < n; i++)
            CHECK_OK(strata_comm_free(b.comm[r][i]));
}

/* The launcher tells rank 0 alone. */
static void told_before_the_first_call(int i)
{
    (void)i;
    struct job j;
    job_begin(&j, ways[0].settings);
    for (int r = 0; r < N; r++)
        job_start(&j, r, out[r], STRATA_ALLGATHER, 10, 0);
    (void)job_finish(&j, HANGS, "the first call");
    j.dead = true;
    batch_run(&j, 100, 33, true);
    batch_run(&j, 200, BATCH, false);
}

/* The tests of one case each, in a process of their own as above. */
static void (*const single[])(int) = {lent_memory_is_withdrawn,   lent_memory_is_withdrawn, lent_memory_is_withdrawn,
                                      told_before_the_first_call, no_memory_at_a_start,     no_memory_later,
                                      memory_cannot_be_read};

START_TEST(single_cases)
{
    int status = -1;
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        single[_i](_i);
        _exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_MSG(status == 0, "case %d: status %d", _i, status);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("coll_killed");
    TCase *tc = tcase_create("coll_killed");
    tcase_add_loop_test(tc, single_cases, 0, (int)(sizeof(single) / sizeof(single[0])));
    tcase_add_loop_test(tc, killed_in_every_phase, 0, WAYS);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
