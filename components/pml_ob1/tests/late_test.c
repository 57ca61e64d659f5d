/* Receivers that are late, over the shuffling transport: senders learn it from the answers to announced messages and
 * announce what would be a stream, so that nothing is kept at the receiver; they learn as well when it is over. */
#include <check.h>
#include <stdlib.h>
#include <strata/sdk/clock.h>
#include <strata/sdk/pml.h>
#include "ob1.h"
#include "ob1_inl.h"
#include "support/pattern.h"
#include "support/run_suite.h"
#include "support/world.h"

/* 3000 bytes take 3 us at the 1000 MB/s that the transport says. */
enum { MESSAGE = 3000, WINDOW = 8, LATE_NS = 100000, LEARN = 60, LAST = 8 };

static char data[2][WINDOW][MESSAGE];

static struct ob1 *pml_of(const struct tw_rank *r)
{
    return (struct ob1 *)r->comm->pml;
}

static uint64_t announced(const struct tw_rank *r)
{
    const struct ob1 *pml = pml_of(r);

    return pml->by_protocol[OB1_P_RNDV] + pml->by_protocol[OB1_P_RNDV_EXPOSED] + pml->by_protocol[OB1_P_RNDV_KEY];
}

static struct ob1_peer *peer_of(const struct tw_rank *r)
{
    return ob1_peer_of(st_worker_peer_known(r->comm->worker, !r->rank));
}

/* Before the first contact: the transport says from which length on asking pays. */
static void say_cost(const struct tw_rank *r)
{
    const struct st_bml *bml = r->comm->worker->bml;

    for (size_t i = 0; i < bml->n_btls; i++)
        bml->btls[i]->facts.alone_cost = 600;
}

static void wait_ns(uint64_t ns)
{
    uint64_t end = st_now_ns() + ns;

    while (st_now_ns() < end)
        ;
}

static void check_window(const struct tw_rank *r, int round)
{
    for (int i = 0; i < WINDOW; i++)
        CHECK_EQ(pattern_check(data[r->rank][i], MESSAGE, (uint64_t)(round * WINDOW + i)), -1);
}

static void send_window(struct tw_rank *r, int round)
{
    strata_request_t *q[WINDOW];
    char mark = 0;

    for (int i = 0; i < WINDOW; i++) {
        pattern_fill(data[0][i], MESSAGE, (uint64_t)(round * WINDOW + i));
        CHECK_OK(strata_isend(r->comm, data[0][i], MESSAGE, 1, 1, &q[i]));
    }
    CHECK_OK(strata_send(r->comm, &mark, 1, 1, 2));
    CHECK_OK(strata_waitall(WINDOW, q, NULL));
}

/* What was sent behind the window is here: all of it waits for its receives. */
static void recv_window_late(struct tw_rank *r, int round, size_t *kept)
{
    strata_request_t *q[WINDOW];
    char mark;

    CHECK_OK(strata_recv(r->comm, &mark, 1, 0, 2, NULL));
    *kept = pml_of(r)->unexpected_bytes;
    wait_ns(LATE_NS);
    for (int i = 0; i < WINDOW; i++)
        CHECK_OK(strata_irecv(r->comm, data[1][i], MESSAGE, 0, 1, &q[i]));
    CHECK_OK(strata_waitall(WINDOW, q, NULL));
    check_window(r, round);
}

static void recv_window_early(struct tw_rank *r, int round)
{
    strata_request_t *q[WINDOW];
    char mark = 0;

    for (int i = 0; i < WINDOW; i++)
        CHECK_OK(strata_irecv(r->comm, data[1][i], MESSAGE, 0, 1, &q[i]));
    CHECK_OK(strata_send(r->comm, &mark, 1, 0, 3));
    CHECK_OK(strata_waitall(WINDOW, q, NULL));
    CHECK_OK(strata_recv(r->comm, &mark, 1, 0, 2, NULL));
    check_window(r, round);
}

/* All messages of the last windows are announced, and none of them is kept. */
static void late_windows(struct tw_rank *r, bool learnt)
{
    uint64_t before = 0;
    size_t kept = 0;

    for (int round = 0; round < LEARN; round++) {
        if (round == LEARN - LAST)
            before = announced(r);
        if (r->rank == 0)
            send_window(r, round);
        else
            recv_window_late(r, round, &kept);
        if (r->rank == 1 && (round == 0 || !learnt))
            CHECK(kept >= (size_t)WINDOW * MESSAGE);
        else if (r->rank == 1 && round >= LEARN - LAST)
            CHECK_EQ(kept, 0);
    }
    if (r->rank == 0 && learnt) {
        CHECK_EQ(announced(r) - before, LAST * WINDOW);
        CHECK_EQ(peer_of(r)->flow.answers.habit, OB1_HABIT_LATE);
    } else if (r->rank == 0) {
        CHECK_EQ(announced(r), 0);
    }
}

static void habits_change(struct tw_rank *r)
{
    uint64_t before = 0;
    char *json, mark;

    say_cost(r);
    late_windows(r, true);
    if (r->rank == 0) {
        CHECK_OK(strata_peer_report(r->s, 1, &json));
        CHECK(strstr(json, "\"habit\": \"late\"") && strstr(json, "\"late\": ["));
        free(json);
    }
    for (int round = LEARN; round < 2 * LEARN; round++) {
        if (round == 2 * LEARN - LAST)
            before = announced(r);
        if (r->rank == 0) {
            CHECK_OK(strata_recv(r->comm, &mark, 1, 1, 3, NULL));
            send_window(r, round);
        } else {
            recv_window_early(r, round);
        }
    }
    if (r->rank == 0) { /* the first of a window travels alone: the receiver has answered, nothing is under way */
        CHECK_EQ(peer_of(r)->flow.answers.habit, OB1_HABIT_EARLY);
        CHECK(announced(r) - before <= 2 * LAST);
    }
    tw_quiesce(r);
}

/* Gets that end later or at once; memory that must be registered, announced with a key or without, so that the answer
 * is a request to put. */
static const char *const stacks[] = {
    "btl=shuffle,self btl_shuffle_async_percent=100", "btl=shuffle,self btl_shuffle_async_percent=0",
    "btl=shuffle,self btl_shuffle_needs_reg=1", "btl=shuffle,self btl_shuffle_needs_reg=1 btl_shuffle_put=0"};
enum { STACKS = sizeof(stacks) / sizeof(*stacks) };

START_TEST(late_receivers_are_learnt)
{
    tw_run(&(struct tw_options){.n = 2, .settings = stacks[_i]}, habits_change, NULL);
}
END_TEST

static void nothing_learnt(struct tw_rank *r)
{
    say_cost(r);
    late_windows(r, false);
    tw_quiesce(r);
}

/* Switched off, or limits are the user's. */
static const char *const unlearnt[] = {"btl=shuffle,self mca_base_tune=off", "btl=shuffle,self pml_ob1_alone_min=600",
                                       "btl=shuffle,self pml_ob1_stream_limit=4096",
                                       "btl=shuffle,self pml_ob1_rdma_min=2k", "btl=shuffle,self btl_shuffle_get=0"};
enum { UNLEARNT = sizeof(unlearnt) / sizeof(*unlearnt) };

START_TEST(the_user_wins)
{
    tw_run(&(struct tw_options){.n = 2, .settings = unlearnt[_i]}, nothing_learnt, NULL);
}
END_TEST

/* A blocking send that travels alone is announced at first. Where the receiver is late it had better not wait. */
static void late_and_waited_for(struct tw_rank *r)
{
    enum { ROUNDS = 16, MORE = 64 };
    uint64_t before = 0;
    int here;

    say_cost(r);
    for (int round = 0; round < ROUNDS + MORE; round++) {
        if (round == ROUNDS)
            before = announced(r);
        if (r->rank == 0) {
            pattern_fill(data[0][0], MESSAGE, (uint64_t)round);
            CHECK_OK(strata_send(r->comm, data[0][0], MESSAGE, 1, 1));
            peer_of(r)->flow.late = 0; /* however long it waited: what the receiver says is all that counts here */
            CHECK_OK(strata_recv(r->comm, &here, sizeof(here), 1, 2, NULL));
        } else {
            for (here = 0; !here;)
                CHECK_OK(strata_iprobe(r->comm, 0, 1, &here, NULL));
            wait_ns(LATE_NS);
            CHECK_OK(strata_recv(r->comm, data[1][0], MESSAGE, 0, 1, NULL));
            CHECK_EQ(pattern_check(data[1][0], MESSAGE, (uint64_t)round), -1);
            CHECK_OK(strata_send(r->comm, &here, sizeof(here), 0, 2));
        }
    }
    if (r->rank == 0) {
        CHECK_EQ(before, 8); /* from the second on, until eight have been answered */
        CHECK(announced(r) - before <= 2 && announced(r) > before);
        CHECK_EQ(peer_of(r)->flow.answers.habit, OB1_HABIT_LATE);
    }
    tw_quiesce(r);
}

START_TEST(blocking_sends_do_not_wait_for_late_receivers)
{
    tw_run(&(struct tw_options){.n = 2, .settings = "btl=shuffle,self"}, late_and_waited_for, NULL);
}
END_TEST

/* What a path turns out not to be able to do is out of its table. */
static void get_is_lost(struct tw_rank *r)
{
    static char longer[2][40000];

    say_cost(r);
    for (int i = 0; i < 3; i++) {
        if (r->rank == 0)
            CHECK_OK(strata_send(r->comm, longer[0], sizeof(longer[0]), 1, 1));
        else
            CHECK_OK(strata_recv(r->comm, longer[1], sizeof(longer[1]), 0, 1, NULL));
    }
    if (r->rank == 1) {
        CHECK_EQ(peer_of(r)->table->of.caps & ST_BTL_GET, 0);
        CHECK_EQ(peer_of(r)->alone_min, UINT32_MAX);
        CHECK_EQ(peer_of(r)->table->answer[0][ob1_table_size(sizeof(longer[0]))], OB1_P_PIPELINE);
    }
    tw_quiesce(r);
}

START_TEST(a_lost_ability_leaves_the_table)
{
    tw_run(&(struct tw_options){.n = 2,
                                .settings = "btl=shuffle,self btl_shuffle_unsupported_percent=100 "
                                            "btl_shuffle_rdma_min=8k"},
           get_is_lost, NULL);
}
END_TEST

/* A transport that learns another cost while messages go: the next one goes by it, and the one after back again. */
static void facts_change(struct tw_rank *r)
{
    static char longer[2][40000];
    const size_t cost[] = {8192, ST_BTL_RDMA_NEVER, 8192, ST_BTL_RDMA_NEVER};
    const struct st_bml *bml = r->comm->worker->bml;
    const uint64_t *by = pml_of(r)->by_protocol;

    for (int i = 0; i < 4; i++) {
        uint64_t got = by[OB1_P_GET], in_fragments = by[OB1_P_PIPELINE];
        for (size_t k = 0; k < bml->n_btls; k++)
            bml->btls[k]->facts.rdma_cost = cost[i];
        if (r->rank == 1)
            CHECK_OK(strata_send(r->comm, longer[1], sizeof(longer[1]), 0, 1));
        else
            CHECK_OK(strata_recv(r->comm, longer[0], sizeof(longer[0]), 1, 1, NULL));
        if (r->rank == 0) {
            CHECK_EQ(by[OB1_P_GET] - got, i % 2 == 0);
            CHECK_EQ(by[OB1_P_PIPELINE] - in_fragments, i % 2);
            CHECK(pml_of(r)->n_tables <= 3);
        }
        tw_quiesce(r);
    }
}

START_TEST(costs_that_are_learnt_reach_the_table)
{
    tw_run(&(struct tw_options){.n = 2, .settings = "btl=shuffle,self"}, facts_change, NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ob1_late");
    TCase *tc = tcase_create("late");

    tcase_set_timeout(tc, 0);
    tcase_add_loop_test(tc, late_receivers_are_learnt, 0, STACKS);
    tcase_add_loop_test(tc, the_user_wins, 0, UNLEARNT);
    tcase_add_test(tc, blocking_sends_do_not_wait_for_late_receivers);
    tcase_add_test(tc, a_lost_ability_leaves_the_table);
    tcase_add_test(tc, costs_that_are_learnt_reach_the_table);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
