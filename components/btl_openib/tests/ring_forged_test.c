/* Side 0 is a peer that writes what it likes to its ring of eager RDMA at side 1, without flow control, and ends its
 * use when it likes: side 1 names what makes no sense, delivers nothing of it, ends each look, and may sleep. */
/* one thread */
#include <arpa/inet.h>
#include "ring_rig.h"
#include "support/run_suite.h"

static const int detections[] = {IB_PARAM_FLAG, IB_PARAM_SEAL, IB_PARAM_IMM};
enum { POLLED_DETECTIONS = 2 };
/* Message numbers that make a message of one line, and one of several lines. */
enum { ONE_LINE = 21, LINES = 23 };

static struct ib_ring_in *ring(void)
{
    return &side[1].m.eager.rings[0];
}

static char *slot_end(void)
{
    return (char *)(uintptr_t)ring()->flag + 1;
}

static int state(void)
{
    return side[1].m.eager.hot.places[0].state;
}

/* All rings, without the reports of broken peers. */
static void look(void)
{
    (void)ib_rings_poll(&side[1].m);
}

/* Side 0 has a ring; `sent` messages have come. */
static void grant(int detect, uint32_t sent)
{
    open_both(UINT16_MAX - 40, detect, IB_POLL_PRIORITISED, 0);
    for (uint32_t i = 0; i < sent; i++) {
        HOLDS(send_number(&side[0], i) == STRATA_OK);
        progress(&side[1]), progress(&side[0]), progress(&side[1]);
    }
    ck_assert_uint_eq(side[1].got, sent);
    ck_assert_int_eq(state(), ST_HOT_GRANTED);
    ck_assert_ptr_null(side[1].p->error);
}

/* Writes message i to the ring, whether there is a slot for it or not. */
static void write_number(uint32_t i)
{
    uint64_t before = side[0].m.count.ring_sent;

    side[0].p->slots = SLOTS;
    HOLDS(send_number(&side[0], i) == STRATA_OK);
    HOLDS(side[0].m.count.ring_sent == before + 1);
}

static void broken_by(const char *why)
{
    ck_assert_ptr_nonnull(side[1].p->error);
    ck_assert_str_eq(side[1].p->error, why);
}

/* ---- footers ---- */

#define SENSELESS        "a message in its ring of eager RDMA makes no sense"
#define SENSELESS_NUMBER "the number of a message in its ring of eager RDMA makes no sense"
#define MANY_CREDITS     "it returns more credits than it was given messages"
#define MANY_SLOTS       "it returns more slots of a ring of eager RDMA than were in use"

static const struct {
    const char *error;
    int16_t number; /* added */
    uint16_t len;   /* 0: as it is; as are the others */
    uint16_t credits[IB_PRIORITIES];
    uint8_t slots, am, hdr_len;
    bool delivered;
} forgeries[] = {
    {.error = SENSELESS_NUMBER, .number = ARRIVALS + 1},
    {.error = SENSELESS_NUMBER, .number = INT16_MAX},
    {.error = SENSELESS_NUMBER, .number = INT16_MIN},
    {.error = SENSELESS_NUMBER, .number = -1},
    {.error = SENSELESS_NUMBER, .number = -SLOTS},
    {.error = SENSELESS, .len = UINT16_MAX},
    {.error = SENSELESS, .len = SLOT * SPAN},
    {.error = SENSELESS, .len = IB_USUAL_HDR - 1},
    {.error = SENSELESS, .hdr_len = UINT8_MAX},
    {.error = SENSELESS, .hdr_len = IB_LINE_BODY + 1},
    {.error = SENSELESS, .am = UINT8_MAX},
    {.error = SENSELESS, .am = ST_AM_COUNT},
    {.error = MANY_CREDITS, .credits = {UINT16_MAX, 0}, .delivered = true},
    {.error = MANY_CREDITS, .credits = {0, UINT16_MAX}, .delivered = true},
    {.error = MANY_CREDITS, .credits = {CREDITS + 1, 0}, .delivered = true},
    {.error = MANY_SLOTS, .slots = UINT8_MAX, .delivered = true},
    {.error = MANY_SLOTS, .slots = 1, .delivered = true}, /* side 0 has granted no ring */
};
enum { FORGERIES = sizeof forgeries / sizeof *forgeries };

static void forge(uint32_t i)
{
    struct ib_footer f;

    memcpy(&f, slot_end() - IB_FOOTER, sizeof f);
    f.number = (uint16_t)(f.number + forgeries[i].number);
    f.len = forgeries[i].len ? forgeries[i].len : f.len;
    f.am = forgeries[i].am ? forgeries[i].am : f.am;
    f.hdr_len = forgeries[i].hdr_len ? forgeries[i].hdr_len : f.hdr_len;
    f.slots = forgeries[i].slots;
    memcpy(f.credits, forgeries[i].credits, sizeof f.credits);
    memcpy(slot_end() - IB_FOOTER, &f, sizeof f);
}

START_TEST(a_forged_footer_has_its_error)
{
    uint32_t i = (uint32_t)_i % FORGERIES;

    grant(detections[_i / FORGERIES], ONE_LINE);
    write_number(ONE_LINE);
    forge(i);
    ck_assert(ib_rings_wait(&side[1].m)); /* no sleep before it is named */
    for (int n = 0; n < 3; n++)
        look();
    broken_by(forgeries[i].error);
    ck_assert_uint_eq(side[1].got, ONE_LINE + (forgeries[i].delivered ? 1u : 0u));
    ck_assert_int_eq(state(), forgeries[i].delivered ? ST_HOT_GRANTED : ST_HOT_BROKEN);
    close_both();
}
END_TEST

static const int16_t waiting[] = {1, 2, ARRIVALS};

/* Those before it may come: it is not delivered, and keeps nobody awake. */
START_TEST(a_message_that_waits_for_others_lets_sleep)
{
    int16_t ahead = waiting[_i % 3];
    struct ib_footer f;

    grant(detections[_i / 3], ONE_LINE);
    write_number(ONE_LINE);
    memcpy(&f, slot_end() - IB_FOOTER, sizeof f);
    f.number = (uint16_t)(f.number + ahead);
    memcpy(slot_end() - IB_FOOTER, &f, sizeof f);
    look();
    ck_assert(!ib_rings_wait(&side[1].m));
    ck_assert_uint_eq(side[1].got, ONE_LINE);
    ck_assert_ptr_null(side[1].p->error);
    f.number = (uint16_t)(f.number - ahead);
    memcpy(slot_end() - IB_FOOTER, &f, sizeof f);
    ck_assert(ib_rings_wait(&side[1].m));
    look();
    ck_assert_uint_eq(side[1].got, ONE_LINE + 1);
    ck_assert_ptr_null(side[1].p->error);
    close_both();
}
END_TEST

/* The same while a line of it is missing. */
START_TEST(a_message_without_a_line_lets_sleep)
{
    char seal;

    grant(IB_PARAM_SEAL, LINES);
    write_number(LINES);
    seal = slot_end()[-(int)IB_LINE - 1];
    slot_end()[-(int)IB_LINE - 1] = 0;
    look();
    ck_assert(!ib_rings_wait(&side[1].m));
    ck_assert_uint_eq(side[1].got, LINES);
    slot_end()[-(int)IB_LINE - 1] = seal;
    ck_assert(ib_rings_wait(&side[1].m));
    look();
    ck_assert_uint_eq(side[1].got, LINES + 1);
    ck_assert_ptr_null(side[1].p->error);
    close_both();
}
END_TEST

/* ---- flow ---- */

enum { FLOOD = 10000 };
static uint32_t flooded;

/* The next message is there before the last one was handled. */
static void flood(void *arg, const struct st_frag *f)
{
    (void)arg, (void)f;
    if (++flooded < FLOOD)
        write_number(ONE_LINE);
}

static void begin_flood(int detect)
{
    grant(detect, ONE_LINE);
    for (int i = 0; i < ST_AM_COUNT; i++)
        side[1].m.btl.am[i].fn = flood;
    flooded = 0;
    write_number(ONE_LINE);
}

/* A message from the CQ waits for what the slots can hold, and for no more. */
START_TEST(a_ring_that_never_ends_delays_others_once)
{
    begin_flood(detections[_i]);
    ib_ring_before(&side[1].m, ring());
    ck_assert_uint_ge(flooded, SLOTS);
    ck_assert_uint_lt(flooded, SLOTS + IB_RING_MOST);
    close_both();
}
END_TEST

START_TEST(slots_that_were_not_returned_are_missed)
{
    begin_flood(detections[_i]);
    for (uint32_t n = 0; n <= SLOTS / IB_RING_MOST; n++)
        look();
    ck_assert_uint_gt(flooded, SLOTS);
    broken_by("it has written to slots of its ring of eager RDMA that it had not got back");
    close_both();
}
END_TEST

/* ---- farewells ---- */

static void say_farewell(uint32_t word)
{
    const struct ib_ring_grant g = {.word = word};

    ck_assert_int_eq(ib_send_control_with(side[0].p, IB_CONTROL_FAREWELL, &g, sizeof g), STRATA_OK);
}

/* A message that is written after the farewell is dropped, and is gone when the ring is granted again. */
START_TEST(nothing_comes_after_a_farewell)
{
    uint32_t got = ONE_LINE;

    grant(detections[_i], got);
    write_number(got++);
    say_farewell(ring()->word);
    (void)ib_poll_high(&side[1].m);
    ck_assert_uint_eq(side[1].got, got);
    ck_assert_int_eq(state(), ST_HOT_FREE);
    ck_assert_ptr_null(side[1].p->q[IB_HIGH].ring);
    for (uint32_t i = 0; i < 3; i++)
        write_number(got + i);
    memset(side[1].ring, ib_lap_flag(0), sizeof side[1].ring);
    look();
    ck_assert(!ib_rings_wait(&side[1].m));
    ck_assert_uint_eq(side[1].got, got);
    beside = true;
    for (uint32_t i = 0; i < 30; i++) {
        HOLDS(send_number(&side[0], got++) == STRATA_OK);
        (void)ib_poll_high(&side[1].m);
        look();
        HOLDS(side[1].got == got);
    }
    ck_assert_int_eq(state(), ST_HOT_GRANTED);
    ck_assert_ptr_null(side[1].p->error);
    beside = false;
    write_number(got); /* as if it had its old ring */
    look();
    ck_assert_uint_eq(side[1].got, got);
    close_both();
}
END_TEST

START_TEST(a_farewell_to_another_ring_is_nothing)
{
    grant(detections[_i], ONE_LINE);
    say_farewell(ring()->word ^ 1);
    say_farewell(ring()->word ^ 1u << 16);
    say_farewell(UINT32_MAX);
    (void)ib_poll_high(&side[1].m);
    ck_assert_int_eq(state(), ST_HOT_GRANTED);
    write_number(ONE_LINE);
    look();
    ck_assert_uint_eq(side[1].got, ONE_LINE + 1);
    ck_assert_ptr_null(side[1].p->error);
    close_both();
}
END_TEST

/* Nothing of the ring is handled before a message of low priority. */
START_TEST(a_farewell_of_low_priority_is_none)
{
    struct {
        struct ib_head head;
        struct ib_ring_grant body;
    } farewell = {{.am = IB_CONTROL, .hdr_len = sizeof farewell.body, .control = IB_CONTROL_FAREWELL}, {0}};

    grant(detections[_i], ONE_LINE);
    farewell.body.word = ring()->word;
    arrive(&side[1], (struct ibv_wc){.qp_num = side[1].qp[IB_LOW].qp_num, .opcode = IBV_WC_RECV}, &farewell,
           sizeof farewell);
    (void)ib_poll_high(&side[1].m);
    ck_assert_int_eq(state(), ST_HOT_GRANTED);
    close_both();
}
END_TEST

/* ---- completions of writes ---- */

/* A write with immediate data that has not written a message: to a ring found by these, and to one that is not. */
START_TEST(a_completion_without_a_message_breaks_the_connection)
{
    const struct ibv_wc wc = {.qp_num = 7 + 2,
                              .opcode = IBV_WC_RECV_RDMA_WITH_IMM,
                              .wc_flags = IBV_WC_WITH_IMM,
                              .imm_data = htonl(IB_IMM_RING)};
    uint32_t sent = 3 * SLOTS; /* the slots hold messages of other laps */

    grant(detections[_i], sent);
    ck_assert_uint_eq(side[1].qp[IB_HIGH].qp_num, wc.qp_num);
    arrive(&side[1], wc, "", 0);
    (void)ib_poll_high(&side[1].m);
    broken_by(detections[_i] == IB_PARAM_IMM ? "a write to its ring of eager RDMA has left no message there"
                                             : "it has written to a ring of eager RDMA that it does not have");
    ck_assert_uint_eq(side[1].got, sent);
    close_both();
}
END_TEST

int main(void)
{
    const int all = sizeof detections / sizeof *detections;
    Suite *s = suite_create("ring_forged");
    TCase *t = tcase_create("ring_forged");

    tcase_add_loop_test(t, a_forged_footer_has_its_error, 0, POLLED_DETECTIONS * FORGERIES);
    tcase_add_loop_test(t, a_message_that_waits_for_others_lets_sleep, 0, POLLED_DETECTIONS * 3);
    tcase_add_test(t, a_message_without_a_line_lets_sleep);
    tcase_add_loop_test(t, a_ring_that_never_ends_delays_others_once, 0, POLLED_DETECTIONS);
    tcase_add_loop_test(t, slots_that_were_not_returned_are_missed, 0, POLLED_DETECTIONS);
    tcase_add_loop_test(t, nothing_comes_after_a_farewell, 0, POLLED_DETECTIONS);
    tcase_add_loop_test(t, a_farewell_to_another_ring_is_nothing, 0, POLLED_DETECTIONS);
    tcase_add_loop_test(t, a_farewell_of_low_priority_is_none, 0, all);
    tcase_add_loop_test(t, a_completion_without_a_message_breaks_the_connection, 0, all);
    suite_add_tcase(s, t);
    return run_suite(s);
}
