/* A long own block of a collective is copied in turns, so that other work of the process goes on between them: when a
 * start returns while the other member is away, the block's end is not there yet. All members get theirs in the end. */
#include <check.h>
#include "support/counters.h"
#include "support/pattern.h"
#include "support/run_suite.h"
#include "support/world.h"
#include <strata/coll.h>

enum { N = 2, BLOCK = 9 << 20, UNTOUCHED = 255 }; /* BLOCK: some turns of 4 MiB */

static const struct run {
    const char *settings, *component;
    strata_coll_kind_t kind;
} runs[] = {
    {"btl=sm,self", "sm", STRATA_ALLTOALL},
    {"btl=sm,self", "sm", STRATA_ALLGATHER},
    {"btl=sm,self coll_sm_read_min=1g", "sm", STRATA_ALLTOALL},
    {"btl=sm,self coll_sm_read_min=1g", "sm", STRATA_ALLGATHER},
    {"btl=sm,self coll_sm_ranks=0", "arrival", STRATA_ALLTOALL},
    {"btl=sm,self coll_sm_ranks=0", "arrival", STRATA_ALLGATHER},
    {"btl=sm,self coll_sm_ranks=0 coll_arrival_form=bruck", "arrival", STRATA_ALLTOALL},
};

/* The pattern of the block of `from` for `to`, which is 0 where all get the same. */
static uint64_t seed_of(int from, int to)
{
    return (uint64_t)(1 + from * N + to);
}

static void meet_first(struct tw_rank *r)
{
    unsigned char given[N] = {0}, got[N];
    strata_coll_t c = STRATA_COLL_INIT(STRATA_ALLTOALL);
    c.send = given;
    c.recv = got;
    c.count = 1;
    CHECK_OK(strata_coll(r->comm, &c)); /* the members agree on the way of later calls */
}

static void long_block(struct tw_rank *r)
{
    const struct run *run = r->arg;
    int n_out = run->kind == STRATA_ALLTOALL ? N : 1;
    unsigned char *out = malloc((size_t)n_out * BLOCK), *in = malloc((size_t)N * BLOCK);
    strata_coll_t c = STRATA_COLL_INIT(run->kind);
    strata_coll_request_t *req;
    CHECK(out && in);
    for (int to = 0; to < n_out; to++)
        pattern_fill(out + (size_t)to * BLOCK, BLOCK, seed_of(r->rank, to));
    memset(in, UNTOUCHED, (size_t)N * BLOCK);
    meet_first(r);
    c.send = out;
    c.recv = in;
    c.count = BLOCK;
    if (r->rank != 0)
        tw_quiesce(r);
    CHECK_OK(strata_coll_start(r->comm, &c, &req));
    if (r->rank == 0) {
        CHECK_EQ(in[BLOCK - 1], UNTOUCHED);
        CHECK(!strata_coll_done(req));
        tw_quiesce(r);
    }
    CHECK_OK(strata_coll_wait(&req, NULL));
    CHECK(in[BLOCK - 1] != UNTOUCHED); /* or the look above has shown nothing */
    for (int from = 0; from < N; from++)
        CHECK_EQ(pattern_check(in + (size_t)from * BLOCK, BLOCK, seed_of(from, n_out > 1 ? r->rank : 0)), -1);
    tw_quiesce(r);
    CHECK_EQ(counted(r->s, "coll", run->component, "calls"), 2);
    free(out);
    free(in);
}

START_TEST(copied_in_turns)
{
    struct run run = runs[_i];
    tw_run(&(struct tw_options){.n = N, .settings = run.settings}, long_block, &run);
}
END_TEST

/* Of a communicator of one member the own block is all. */
static void alone(struct tw_rank *r)
{
    unsigned char *out = malloc(BLOCK), *in = malloc(BLOCK);
    strata_coll_t c = STRATA_COLL_INIT(STRATA_ALLTOALL);
    CHECK(out && in);
    pattern_fill(out, BLOCK, seed_of(0, 0));
    c.send = out;
    c.recv = in;
    c.count = BLOCK;
    CHECK_OK(strata_coll(r->comm, &c));
    CHECK_EQ(memcmp(in, out, BLOCK), 0);
    free(out);
    free(in);
}

START_TEST(of_one_member)
{
    tw_run(&(struct tw_options){.n = 1, .settings = "btl=self"}, alone, NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("coll_own");
    TCase *tc = tcase_create("coll_own");
    tcase_add_loop_test(tc, copied_in_turns, 0, (int)(sizeof(runs) / sizeof(runs[0])));
    tcase_add_test(tc, of_one_member);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
