/* A ring of eager RDMA is granted, used, refused and revoked, between two modules with verbs that are made up. What
 * finds no room is repeated, and messages that go beside the ring are counted. */
/* one thread */
#include <strata/sdk/clock.h>
#include <time.h>
#include "ring_rig.h"
#include "support/run_suite.h"

static const int detections[] = {IB_PARAM_FLAG, IB_PARAM_SEAL, IB_PARAM_IMM};

/* Side 1 has granted a ring; n messages have come from side 0. */
static uint32_t grant(void)
{
    uint32_t sent = 0;

    for (; sent < 20; sent++) {
        HOLDS(send_number(&side[0], sent) == STRATA_OK);
        progress(&side[1]), progress(&side[0]), progress(&side[1]);
    }
    ck_assert_uint_eq(side[1].got, sent);
    ck_assert_int_eq(side[1].m.eager.hot.places[0].state, ST_HOT_GRANTED);
    ck_assert_uint_gt(side[0].m.count.ring_sent, 0);
    return sent;
}

/* A peer that sends much is not evicted, whichever way its messages come. */
START_TEST(messages_beside_a_quiet_ring_are_reported)
{
    struct side *from = &side[0], *to = &side[1];
    const struct ib_ring_in *r;

    open_both(0, IB_PARAM_FLAG, IB_POLL_PRIORITISED, 0);
    params.eager_rdma_lively = 0;
    uint32_t sent = grant();
    r = &to->m.eager.rings[0];
    for (int i = 0; i < 100; i++)
        ib_eager_report(&to->m);
    ck_assert(r->quiet);
    ck_assert_uint_eq(to->m.eager.n_lively, 0);
    beside = true;
    for (int i = 0; i < 20; i++, sent++) {
        HOLDS(send_number(from, sent) == STRATA_OK);
        progress(to);
    }
    ck_assert_uint_eq(to->got, sent);
    for (int i = 0; i < 2; i++)
        ib_eager_report(&to->m);
    ck_assert(!r->quiet);
    ck_assert_uint_eq(to->m.eager.n_lively, 1);
    ck_assert_uint_eq(r->arrivals, 0);
    close_both();
}
END_TEST

/* Eager RDMA is off at side 0, whose farewell finds no room at first. */
START_TEST(a_refused_ring_is_returned)
{
    struct side *from = &side[0], *to = &side[1];
    const struct st_hot_place *place;
    struct ib_params off;

    open_both(0, IB_PARAM_FLAG, IB_POLL_PRIORITISED, 0);
    off = params;
    off.eager_rdma = IB_EAGER_OFF;
    from->m.dev.par = &off;
    place = &to->m.eager.hot.places[0];
    for (uint32_t i = 0; i < 20; i++) {
        HOLDS(send_number(from, i) == STRATA_OK);
        progress(to);
    }
    ck_assert_int_eq(place->state, ST_HOT_GRANTED);
    refuse = 1;
    for (int i = 0; i < 50; i++)
        progress(from);
    ck_assert_ptr_null(from->p->ring_out);
    ck_assert(ib_eager_arm(&from->m)); /* a short sleep, after which it is said again */
    refuse = 0;
    for (int i = 0; i < 50; i++)
        progress(from), progress(to);
    ck_assert_int_eq(place->state, ST_HOT_FREE);
    ck_assert(to->p->ringless);
    ck_assert(!ib_eager_arm(&from->m));
    ck_assert_uint_eq(from->m.eager.unsaid, 0);
    ck_assert_uint_eq(from->m.eager.refused, 0);
    close_both();
}
END_TEST

/* Sleeps that end at once, as by messages of peers without a ring, are no long wait. */
START_TEST(rings_are_revoked_after_a_time_of_sleep)
{
    const struct st_hot_place *place;
    struct side *to = &side[1];
    uint64_t begin;
    int naps = 0;

    open_both(0, IB_PARAM_FLAG, IB_POLL_PRIORITISED, 0);
    place = &to->m.eager.hot.places[0];
    (void)grant();
    for (int i = 0; i < 25; i++)
        ck_assert(ib_eager_arm(&to->m));
    ck_assert_int_eq(place->state, ST_HOT_GRANTED);
    begin = st_now_ns();
    for (; place->state == ST_HOT_GRANTED && naps < 1000; naps++) {
        const struct timespec nap = {.tv_nsec = 10000};
        (void)nanosleep(&nap, NULL);
        (void)ib_eager_arm(&to->m);
    }
    ck_assert_int_eq(place->state, ST_HOT_REVOKED);
    ck_assert_int_ge(naps, 15); /* each counts 50 us at most */
    ck_assert_uint_ge(st_now_ns() - begin, 500000);
    close_both();
}
END_TEST

static void progress_both(uint32_t times)
{
    for (uint32_t i = 0; i < times; i++)
        progress(&side[1]), progress(&side[0]);
}

static void send_next(uint32_t *sent)
{
    HOLDS(send_number(&side[0], *sent) == STRATA_OK);
    (*sent)++;
}

/* The ring changes hands again and again; the revocation and the farewell find no room at first. */
START_TEST(revocations_and_farewells_are_repeated)
{
    struct side *from = &side[0], *to = &side[1];
    const struct st_hot_place *place;
    uint32_t sent;

    open_both(UINT16_MAX - 400, detections[_i], IB_POLL_PRIORITISED, 0);
    place = &to->m.eager.hot.places[0];
    sent = grant();
    for (uint32_t round = 1; round <= 200; round++) {
        uint64_t by;

        HOLDS(to->m.count.rings == round && to->m.count.rings_revoked == round - 1);
        for (; sent % 5; progress_both(3)) /* the next one fits the ring */
            send_next(&sent);
        refuse = 1;
        st_hot_revoke_all(&to->m.eager.hot);
        progress_both(5);
        HOLDS(to->m.eager.unsaid == 1 && !from->p->ring_out->left);
        refuse = 0;
        by = from->m.count.ring_sent;
        send_next(&sent); /* the peer does not know yet */
        HOLDS(from->m.count.ring_sent == by + 1);
        for (int i = 0; i < 50; i++)
            progress(to);
        HOLDS(to->m.eager.unsaid == 0 && to->got == sent);
        refuse = 1;
        for (int i = 0; i < 50; i++)
            progress(from);
        HOLDS(from->p->ring_out->left && from->m.eager.unsaid == 1);
        refuse = 0;
        send_next(&sent); /* beside the ring, before the farewell */
        HOLDS(from->m.count.ring_sent == by + 1);
        progress_both(50);
        HOLDS(to->got == sent && place->state == ST_HOT_FREE);
        HOLDS(from->m.eager.unsaid == 0 && from->p->ring_out->word == 0);
        for (int i = 0; i < 30; i++) {
            send_next(&sent);
            progress_both(3);
        }
        HOLDS(to->got == sent && place->state == ST_HOT_GRANTED && from->m.count.ring_sent > by + 1);
    }
    ck_assert_ptr_null(from->p->error);
    ck_assert_ptr_null(to->p->error);
    close_both();
}
END_TEST

/* A message goes by the ring, or is counted as one that goes around it. */
START_TEST(messages_around_a_full_ring_are_counted)
{
    struct side *from = &side[0];
    const struct ib_counts *count = &from->m.count;
    uint32_t sent, by, around, full = 0;

    open_both(0, IB_PARAM_FLAG, IB_POLL_PRIORITISED, 0);
    sent = grant();
    by = (uint32_t)count->ring_sent;
    around = (uint32_t)count->ring_around;
    for (uint32_t n = 1; n <= 40; n++) {
        full += from->p->slots == 0;
        HOLDS(send_number(from, sent++) == STRATA_OK);
        HOLDS(count->ring_sent - by + count->ring_around - around == n);
    }
    ck_assert_uint_gt(full, 10);
    while (send_number(from, sent) == STRATA_OK)
        sent++;
    around = (uint32_t)count->ring_around;
    ck_assert_int_eq(send_number(from, sent), STRATA_ERR_AGAIN);
    ck_assert_uint_eq(count->ring_around, around);
    close_both();
}
END_TEST

/* Credits bound what may overtake a message of low priority, and the ring needs no credits. */
START_TEST(no_message_goes_by_the_ring_beside_low_priority)
{
    struct side *from = &side[0], *to = &side[1];
    struct ib_qp *low;
    uint32_t sent;
    uint64_t by;

    open_both(0, detections[_i], IB_POLL_PRIORITISED, 0);
    sent = grant();
    low = &from->p->q[IB_LOW];
    for (int round = 0; round < 20; round++) {
        low->posted++;
        ib_reorder_begin(from->p);
        by = from->m.count.ring_sent;
        for (int i = 0; i < 30; i++) {
            send_next(&sent);
            progress_both(3);
        }
        HOLDS(from->m.count.ring_sent == by && to->got == sent);
        low->done = low->posted;
        ib_reorder_ended(from->p);
        for (int i = 0; i < 30; i++) {
            send_next(&sent);
            progress_both(3);
        }
        HOLDS(from->m.count.ring_sent > by && to->got == sent);
    }
    ck_assert_ptr_null(from->p->error);
    close_both();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ring_grant");
    TCase *t = tcase_create("ring_grant");

    tcase_add_test(t, messages_beside_a_quiet_ring_are_reported);
    tcase_add_test(t, a_refused_ring_is_returned);
    tcase_add_test(t, rings_are_revoked_after_a_time_of_sleep);
    tcase_add_test(t, messages_around_a_full_ring_are_counted);
    tcase_add_loop_test(t, revocations_and_farewells_are_repeated, 0, sizeof detections / sizeof *detections);
    tcase_add_loop_test(t, no_message_goes_by_the_ring_beside_low_priority, 0, sizeof detections / sizeof *detections);
    suite_add_tcase(s, t);
    return run_suite(s);
}
