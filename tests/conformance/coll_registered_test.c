/* Collectives whose blocks are put (coll_arrival) over a transport that checks each access against its registrations:
 * when a call has ended, none of its memory is registered any more, neither the caller's, which is unmapped at once,
 * nor its own copies of inputs in place, operands of reductions, and messages of rounds. */
#include <check.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include "support/counters.h"
#include "support/run_suite.h"
#include "support/world.h"
#include <strata/coll.h>

enum { N = 4, COUNT = 2000, TURNS = 3, BYTES = N * COUNT * sizeof(unsigned) };

#define PUTS                                                                                                           \
    "btl=shuffle,self btl_shuffle_needs_reg=1 coll_sm_ranks=0 coll_arrival_scheme=zcopy "                              \
    "coll_arrival_allreduce_once=0 "

static const char *const settings[] = {
    PUTS "coll_arrival_form=direct",
    PUTS "coll_arrival_form=pap_direct",
    PUTS "coll_arrival_form=pap_bruck",
    PUTS "coll_arrival_form=pap_shm_direct mca_base_node=2 coll_arrival_shm_block=64k coll_arrival_piece=1k",
};

static void add(void *arg, const void *from, void *inout, size_t count)
{
    (void)arg;
    for (size_t i = 0; i < count; i++)
        ((unsigned *)inout)[i] += ((const unsigned *)from)[i];
}

static void registrations_line(void *arg, const strata_mem_line_t *line)
{
    if (strcmp(line->component, "btl_shuffle") == 0 && strcmp(line->category, "registered") == 0)
        *(size_t *)arg += line->bytes;
}

static unsigned *fresh(void)
{
    unsigned *v = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(v != MAP_FAILED);
    return v;
}

/* Element k of what `rank` has for `to`, or for all. */
static unsigned given(int rank, int to, size_t k, int turn)
{
    return (unsigned)rank * 1000000 + (unsigned)to * 100000 + (unsigned)k + (unsigned)turn;
}

static void one(const struct tw_rank *r, strata_coll_kind_t kind, bool in_place, int turn)
{
    unsigned *in = fresh(), *out = fresh(), *from = in_place ? out : in;
    strata_coll_t c = STRATA_COLL_INIT(kind);
    size_t left = 0;
    for (int to = 0; to < N; to++)
        for (size_t k = 0; k < COUNT; k++)
            from[(size_t)to * COUNT + k] = given(r->rank, to, k, turn);
    if (kind == STRATA_ALLGATHER && in_place)
        memmove(out + (size_t)r->rank * COUNT, out, COUNT * sizeof(*out));
    c.send = in_place ? STRATA_IN_PLACE : in;
    c.recv = out;
    c.count = COUNT;
    c.element = sizeof(*in);
    c.root = turn % N;
    c.reduce = add;
    CHECK_OK(strata_coll(r->comm, &c));
    CHECK_OK(strata_mem_report(r->s, registrations_line, &left));
    CHECK_MSG(left == 0, "operation %d%s: %zu bytes of registrations are left", (int)kind, in_place ? " in place" : "",
              left);
    for (size_t k = 0; k < COUNT; k++)
        for (int m = 0; m < N; m++) {
            unsigned got = out[(size_t)m * COUNT + k], sum = 0;
            for (int i = 0; i < N; i++)
                sum += given(i, 0, k, turn);
            if (kind == STRATA_ALLTOALL)
                CHECK_EQ(got, given(m, r->rank, k, turn));
            else if (kind == STRATA_ALLGATHER)
                CHECK_EQ(got, given(m, 0, k, turn));
            else
                CHECK_EQ(out[k], kind == STRATA_ALLREDUCE ? sum : given(c.root, 0, k, turn));
        }
    CHECK_EQ(munmap(in, BYTES), 0);
    CHECK_EQ(munmap(out, BYTES), 0);
}

static void calls(struct tw_rank *r)
{
    for (int turn = 0; turn < TURNS; turn++) {
        one(r, STRATA_ALLTOALL, false, turn);
        one(r, STRATA_ALLTOALL, true, turn);
        one(r, STRATA_ALLGATHER, false, turn);
        one(r, STRATA_ALLGATHER, true, turn);
        one(r, STRATA_ALLREDUCE, false, turn);
        one(r, STRATA_ALLREDUCE, true, turn);
        one(r, STRATA_BCAST, true, turn);
    }
    tw_quiesce(r);
    atomic_fetch_add((atomic_ulong *)r->arg, counted(r->s, "coll", "arrival", "blocks_put"));
}

START_TEST(nothing_stays_registered)
{
    atomic_ulong puts = 0; /* of all ranks: by nodes leaders alone put */
    tw_run(&(struct tw_options){.n = N, .settings = settings[_i]}, calls, &puts);
    ck_assert_uint_gt(atomic_load(&puts), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("coll_registered");
    TCase *tc = tcase_create("coll_registered");
    tcase_add_loop_test(tc, nothing_stays_registered, 0, (int)(sizeof(settings) / sizeof(settings[0])));
    suite_add_tcase(s, tc);
    return run_suite(s);
}
