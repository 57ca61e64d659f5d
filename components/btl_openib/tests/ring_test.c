/* Rings of eager RDMA between two modules with verbs that are made up, message by message: whatever goes by the ring
 * and beside it, of whatever length, comes once and in order; numbers begin anew; refused posts take nothing. */
/* one thread */
#include <strata/sdk/clock.h>
#include "ring_rig.h"
#include "support/run_suite.h"

/* Sends in bursts, and now and then looks: n messages to one side, which answers some. */
static void traffic(uint32_t n)
{
    struct side *from = &side[0], *to = &side[1];
    uint32_t sent = 0;

    to->answers = from->looks = to->looks = true;
    for (uint32_t round = 0; to->got < n || from->got < to->answered; round++) {
        HOLDS(round < 40 * n);
        for (uint32_t burst = any(8); burst > 0 && sent < n; burst--)
            if (send_number(from, sent) == STRATA_OK)
                sent++;
        if (any(40) == 0)
            (void)ib_send_control(from->p, IB_CONTROL_CREDITS);
        for (uint32_t looks = any(9); looks > 0; looks--)
            progress(to);
        for (uint32_t looks = any(9); looks > 0; looks--)
            progress(from);
    }
    ck_assert_uint_eq(sent, n);
    for (int i = 0; i < 100; i++) /* all that is owed and counted */
        progress(from), progress(to);
    ck_assert_uint_eq(from->p->q[IB_HIGH].posted - to->p->q[IB_HIGH].received, 0);
    ck_assert_uint_eq(to->p->q[IB_HIGH].posted - from->p->q[IB_HIGH].received, 0);
    ck_assert_ptr_null(from->p->error);
    ck_assert_ptr_null(to->p->error);
    ck_assert_uint_gt(from->m.count.ring_sent, n / 4);
}

static const struct {
    uint32_t begin;
    int detect, order;
    uint32_t refuse;
    uint8_t first;
} cases[] = {{0, IB_PARAM_FLAG, IB_POLL_PRIORITISED, 0, 0},
             {UINT16_MAX - 40, IB_PARAM_FLAG, IB_POLL_PRIORITISED, 0, 1},
             {UINT32_MAX - 40, IB_PARAM_SEAL, IB_POLL_PRIORITISED, 0, SLOTS - 1},
             {UINT32_MAX / 2 - 40, IB_PARAM_FLAG, IB_POLL_CIRCULAR, 0, SLOTS - 2},
             {7, IB_PARAM_FLAG, IB_POLL_PRIORITISED, 9, SLOTS / 2},
             {9, IB_PARAM_SEAL, IB_POLL_SEQUENTIAL, 5, 0},
             {UINT16_MAX - 40, IB_PARAM_IMM, IB_POLL_PRIORITISED, 7, 3}};

START_TEST(once_and_in_order)
{
    open_both(cases[_i].begin, cases[_i].detect, cases[_i].order, cases[_i].first);
    refuse = cases[_i].refuse;
    traffic(100000); /* numbers of 16 bits begin anew */
    ck_assert_uint_gt(side[1].m.count.ring_sent, side[1].answered / 4);
    ck_assert_uint_gt(side[0].m.count.ring_around, 0);
    close_both();
}
END_TEST

/* A credit message is polled during the delivery of older messages, of which there are more than one poll returns. */
START_TEST(credits_are_found_early)
{
    struct side *from = &side[0], *to = &side[1];
    uint32_t sent = 0;

    open_both(cases[_i].begin, cases[_i].detect, cases[_i].order, cases[_i].first);
    to->looks = true;
    for (int round = 0; round < 200; round++) {
        for (uint32_t burst = IB_POLLED + any(8); burst > 0; burst--)
            sent += send_number(from, sent) == STRATA_OK;
        (void)ib_send_control(from->p, IB_CONTROL_CREDITS);
        for (int i = 0; i < 40; i++)
            progress(to), progress(from);
        ck_assert_ptr_null(to->p->error);
    }
    ck_assert_uint_eq(to->got, sent);
    ck_assert_uint_eq(from->p->q[IB_HIGH].posted - to->p->q[IB_HIGH].received, 0);
    close_both();
}
END_TEST

/* Whatever message comes then: a number that grows beyond its bits would look like another client. */
START_TEST(numbers_begin_anew)
{
    for (uint32_t begin = UINT16_MAX - 300; begin < UINT16_MAX - 100; begin++) {
        open_both(begin, IB_PARAM_FLAG, IB_POLL_PRIORITISED, (uint8_t)(begin % SLOTS));
        odd_clients = 4;
        traffic(600);
        close_both();
    }
}
END_TEST

static void progress_both(uint32_t times)
{
    for (uint32_t i = 0; i < times; i++)
        progress(&side[1]), progress(&side[0]);
}

/* Both sides in turn, n messages each. */
static void converse(uint32_t n)
{
    struct side *from = &side[0], *to = &side[1];
    uint32_t sent = to->got, answers = from->got;

    for (uint32_t i = 0; i < n; i++) {
        HOLDS(send_number(from, sent + i) == STRATA_OK);
        progress(to), progress(to);
        HOLDS(send_number(to, answers + i) == STRATA_OK);
        progress(from), progress(from);
        HOLDS(!(from->p->ep.caps & ST_BTL_CROWDED) && !(to->p->ep.caps & ST_BTL_CROWDED));
    }
    progress_both(100);
    HOLDS(to->got == sent + n && from->got == answers + n);
}

/* Messages of both sides in turn are no burst; messages of one side in a row are one, of which the layer above is told.
 */
START_TEST(bursts_are_told)
{
    struct side *from = &side[0], *to = &side[1];
    bool told = false;
    uint32_t sent;

    open_both(0, IB_PARAM_FLAG, IB_POLL_PRIORITISED, 0);
    converse(1000);
    sent = to->got;
    ck_assert_uint_gt(from->m.count.ring_sent, sent / 2);
    for (int round = 0; round < 2000 && !told; round++) {
        for (int i = 0; i < 20; i++) { /* the last note was just before, however slow the machine is */
            from->p->q[IB_HIGH].noticed_ns = st_now_ns();
            sent += send_number(from, sent) == STRATA_OK;
        }
        told = from->p->ep.caps & ST_BTL_CROWDED;
        for (int i = 0; i < 40; i++)
            progress(to), progress(from);
    }
    ck_assert(told);
    close_both();
}
END_TEST

enum { WINDOW = 100, TOGETHER = 32, LEARNT = 20 };

/* Message i as pml_ob1 sends several together. */
static int send_together(struct side *s, uint32_t i)
{
    struct numbered m;
    const strata_data_t data = {.kind = STRATA_CONTIGUOUS, .length = bytes_of(i), .u.buffer = m.data};
    const struct st_payload all = {&data, 0, bytes_of(i)};

    make_number(i, &m);
    return ib_send_payload(&s->p->ep, client_of(i), m.hdr, header_of(i), &all);
}

static void send_surely(int (*send)(struct side *s, uint32_t i), struct side *s, uint32_t i)
{
    for (int tries = 0; send(s, i) != STRATA_OK; tries++) {
        HOLDS(tries < 1000);
        progress_both(1);
    }
}

/* A window as pml_ob1 sends it: after a message that is told as a burst the others go together. An answer follows.
 * Returns how many went alone. */
static uint32_t send_window(void)
{
    struct side *from = &side[0], *to = &side[1];
    uint32_t sent = to->got, alone = 0, answers = from->got;

    for (; alone < WINDOW && !(from->p->ep.caps & ST_BTL_CROWDED); alone++) {
        from->p->q[IB_HIGH].noticed_ns = st_now_ns(); /* the last note was just before, however slow the machine is */
        send_surely(send_number, from, sent++);
    }
    for (uint32_t n = alone; n < WINDOW; n += TOGETHER)
        send_surely(send_together, from, sent++);
    from->p->ep.caps &= ~(uint32_t)ST_BTL_CROWDED;
    progress_both(100);
    HOLDS(to->got == sent);
    send_surely(send_number, to, answers);
    progress_both(100);
    HOLDS(from->got == answers + 1);
    return alone;
}

/* Whatever was sent before, each window is a burst from one of its first messages on, and goes beside the ring, as if
 * there was none. Messages in turn go by the ring again. */
START_TEST(windows_go_beside_the_ring)
{
    struct side *from = &side[0];
    uint64_t by_ring = 0;

    open_both(0, IB_PARAM_FLAG, IB_POLL_PRIORITISED, 0);
    from->p->q[IB_HIGH].crowded_at = ib_crowd_from_now(&from->p->q[IB_HIGH]);
    ib_not_crowded(from->p);
    for (int turn = 0; turn < 10; turn++) {
        converse(50 + any(50));
        ck_assert_uint_ge(from->m.count.ring_sent - by_ring, 30);
        for (int i = 0; i < 5 * LEARNT; i++) {
            uint32_t alone = send_window();
            if (i == LEARNT)
                by_ring = from->m.count.ring_sent;
            if (i >= LEARNT)
                ck_assert_uint_le(alone, 20);
        }
        ck_assert_uint_eq(from->m.count.ring_sent, by_ring);
    }
    close_both();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ring");
    TCase *t = tcase_create("ring");

    tcase_add_loop_test(t, once_and_in_order, 0, sizeof cases / sizeof *cases);
    tcase_add_loop_test(t, credits_are_found_early, 0, sizeof cases / sizeof *cases);
    tcase_add_test(t, numbers_begin_anew);
    tcase_add_test(t, bursts_are_told);
    tcase_add_test(t, windows_go_beside_the_ring);
    suite_add_tcase(s, t);
    return run_suite(s);
}
