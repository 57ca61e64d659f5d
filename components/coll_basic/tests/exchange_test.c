/* Exchanges of all with all: in each round a member sends to one other at most, and no two send to the same, so that
 * none is a bottleneck for the others; and each message of a round is received in that round. */
#include "build.h"

#include <check.h>
#include <stdlib.h>
#include "support/run_suite.h"

enum { MOST = 17, ROUNDS = 40, BLOCK = 8 };

/* Whom a member sends to and receives from in a round, or -1. */
struct partners {
    int to, from;
};

static struct partners round_of[ROUNDS][MOST];
static char in[MOST * BLOCK], out[MOST * BLOCK];

/* The rounds of a member; returns how many. */
static int rounds_of(strata_coll_kind_t kind, enum basic_algorithm a, int n, int rank)
{
    static size_t counts[MOST], offsets[MOST];
    static const struct st_pml_ops ops = {.request_size = 8, .request_align = 8};
    strata_comm_t comm = {.size = n, .rank = rank, .ops = &ops};
    struct st_coll_group group = {.comm = &comm};
    strata_coll_t c = STRATA_COLL_INIT(kind);
    ST_ATOMIC(size_t) in_use = 0;
    ST_ATOMIC(uint32_t) started = 0;
    int k = 0;
    for (int i = 0; i < n; i++) {
        counts[i] = BLOCK;
        offsets[i] = (size_t)i * BLOCK;
    }
    c.send = in;
    c.recv = out;
    c.count = BLOCK;
    c.send_counts = c.recv_counts = counts;
    c.send_offsets = c.recv_offsets = offsets;
    struct schedule *s = basic_schedule_make(&group, &c, &in_use);
    ck_assert_ptr_nonnull(s);
    basic_exchange(s, a);
    ck_assert_int_eq(s->build_rc, STRATA_OK);
    round_of[0][rank] = (struct partners){-1, -1};
    for (size_t i = 0; i < s->n; i++) {
        int *partner = s->steps[i].kind == BASIC_SEND ? &round_of[k][rank].to : &round_of[k][rank].from;
        if (s->steps[i].kind == BASIC_SEND || s->steps[i].kind == BASIC_RECV) {
            ck_assert_int_eq(*partner, -1);
            *partner = s->steps[i].peer;
        } else if (s->steps[i].kind == BASIC_WAIT) {
            ck_assert_int_lt(++k, ROUNDS);
            round_of[k][rank] = (struct partners){-1, -1};
        }
    }
    strata_coll_request_t *none;
    s->build_rc = STRATA_ERR_NOMEM; /* it is not to start: then this frees it */
    ck_assert_int_eq(basic_schedule_start(s, &started, &none), STRATA_ERR_NOMEM);
    ck_assert_uint_eq(started, 0);
    return k;
}

static void check_rounds(strata_coll_kind_t kind, enum basic_algorithm a)
{
    for (int n = 2; n <= MOST; n++) {
        int rounds = rounds_of(kind, a, n, 0);
        ck_assert_int_gt(rounds, 0);
        for (int rank = 1; rank < n; rank++)
            ck_assert_int_eq(rounds_of(kind, a, n, rank), rounds);
        for (int k = 0; k < rounds; k++)
            for (int rank = 0; rank < n; rank++) {
                int to = round_of[k][rank].to, from = round_of[k][rank].from;
                ck_assert(to >= 0 && to < n && to != rank && from >= 0 && from < n && from != rank);
                ck_assert_int_eq(round_of[k][to].from, rank);
                ck_assert_int_eq(round_of[k][from].to, rank);
            }
    }
}

START_TEST(nobody_is_a_bottleneck)
{
    check_rounds(STRATA_ALLTOALL, BASIC_PAIRWISE);
    check_rounds(STRATA_ALLTOALL, BASIC_BRUCK);
    check_rounds(STRATA_ALLTOALLV, BASIC_PAIRWISE);
    check_rounds(STRATA_ALLGATHER, BASIC_RING);
    check_rounds(STRATA_ALLGATHER, BASIC_BRUCK);
    check_rounds(STRATA_ALLGATHERV, BASIC_RING);
    check_rounds(STRATA_REDUCE_SCATTER_BLOCK, BASIC_PAIRWISE);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("exchange");
    TCase *tc = tcase_create("exchange");
    tcase_add_test(tc, nobody_is_a_bottleneck);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
