/* What yields and sleeps tell about the run queue, over a processor that is made by hand: it has a clock that only this
 * test moves, and another thread that runs during a yield or does not. */
#include <check.h>

#include "framework/base/run_queue.h"
#include "support/run_suite.h"

static struct {
    uint64_t now_ns, used_ns, n_switches, turn_ns;
    uint64_t alone_ns, shared_ns; /* what a yield takes */
    bool others;                  /* somebody else wants the processor */
    bool counts;                  /* the kernel counts switches */
    int n_yields, n_asked;
} machine;
static struct st_run_queue queue;

static uint64_t now_ns(void)
{
    return machine.now_ns;
}
static void yield(void)
{
    machine.n_yields++;
    machine.now_ns += machine.others ? machine.shared_ns : machine.alone_ns;
    machine.n_switches += machine.others;
    machine.used_ns += machine.turn_ns;
}
static uint64_t switches(void)
{
    machine.n_asked++;
    return machine.counts ? machine.n_switches : 0;
}
static uint64_t used_ns(void)
{
    return machine.used_ns;
}
static const struct st_run_queue_system by_hand = {now_ns, yield, switches, used_ns};

static void begin(void)
{
    machine.now_ns = 1000000;
    machine.n_switches = 3; /* it has not just begun */
    machine.alone_ns = 300;
    machine.shared_ns = 2000;
    machine.turn_ns = 0; /* none is measured */
    machine.others = false;
    machine.counts = true;
    machine.n_yields = machine.n_asked = 0;
    st_run_queue_init(&queue, &by_hand);
}
static void end(void) {}

/* A count of yields after which none is asked about for a while. */
enum { AFTER_THE_FIRST = 257 };

/* The first yields after others have stopped to run may not notice. */
static void settle(bool others)
{
    machine.others = others;
    for (int i = 0; i < 16; i++)
        st_run_queue_yield(&queue);
}

/* n yields, of which each has to tell what the machine does. */
static void yields(int n, bool others)
{
    settle(others);
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(st_run_queue_yield(&queue), others);
}

START_TEST(the_clock_tells_what_the_kernel_has_taught)
{
    yields(112, true);
    yields(112, false);
    machine.n_asked = 0;
    for (int i = 0; i < 8; i++)
        yields(112, i % 2);
    ck_assert_int_eq(machine.n_asked, 2 * 1024 / 256);
}
END_TEST

START_TEST(one_kind_is_known_from_its_first_yield)
{
    settle(_i);
    queue.n_yields = AFTER_THE_FIRST;
    machine.n_asked = 0;
    yields(1, _i);
    yields(1, !_i); /* the other kind takes six times as long, or a sixth */
    ck_assert_int_eq(machine.n_asked, 0);
}
END_TEST

/* The machine becomes slower by a factor: what was learned follows. In between a yield may be taken for the other kind.
 */
START_TEST(what_was_learned_follows_the_machine)
{
    yields(64, true);
    yields(64, false);
    machine.alone_ns *= 8;
    machine.shared_ns *= 8;
    for (int i = 0; i < 30000; i++) {
        machine.others = i / 100 % 2;
        st_run_queue_yield(&queue);
    }
    yields(100, true);
    yields(100, false);
    machine.alone_ns /= 8;
    machine.shared_ns /= 8;
    for (int i = 0; i < 3000; i++) {
        machine.others = i / 300 % 2;
        st_run_queue_yield(&queue);
    }
    yields(100, true);
    yields(100, false);
}
END_TEST

/* An interrupt makes a yield long now and then: the kernel says that nobody ran. */
START_TEST(interrupts_teach_nothing)
{
    for (int i = 0; i < 640; i++) {
        machine.alone_ns = i % 3 == 1 ? 9000 : 300;
        st_run_queue_yield(&queue);
    }
    machine.alone_ns = 300;
    yields(10, true);
    yields(10, false);
}
END_TEST

START_TEST(where_time_does_not_tell_each_is_asked_about)
{
    machine.shared_ns = machine.alone_ns;
    for (int i = 0; i < 128; i++) { /* as long as only one kind is known the other is taken for it */
        machine.others = i < 64;
        st_run_queue_yield(&queue);
    }
    queue.n_yields = AFTER_THE_FIRST;
    machine.n_asked = 0;
    yields(8, true);
    ck_assert_int_eq(machine.n_asked, 4); /* one in 16 is timed at all */
    yields(8, false);
    ck_assert_int_ge(machine.n_asked, 4 + 2 * 15);
}
END_TEST

START_TEST(a_kernel_that_does_not_count_makes_each_a_turn)
{
    machine.counts = false;
    for (int i = 0; i < 100; i++)
        ck_assert(st_run_queue_yield(&queue));
    ck_assert_uint_eq(st_run_queue_stretch(&queue), 1);
}
END_TEST

/* A wait that polls, 40 ns each, and yields after each stretch. */
static void wait_for(int n_yields)
{
    for (int i = 0; i < n_yields; i++) {
        machine.now_ns += 40 * (uint64_t)st_run_queue_stretch(&queue);
        st_run_queue_yield(&queue);
    }
}

START_TEST(alone_it_yields_for_a_sixteenth_of_the_time)
{
    ck_assert_uint_eq(st_run_queue_stretch(&queue), 1);
    wait_for(30);
    uint64_t between = 40 * (uint64_t)st_run_queue_stretch(&queue);
    ck_assert_uint_ge(between, 16 * machine.alone_ns);
    ck_assert_uint_lt(between, 2 * 16 * machine.alone_ns); /* and no later, once somebody comes */
    machine.others = true;
    wait_for(1);
    ck_assert_uint_eq(st_run_queue_stretch(&queue), 1);
    wait_for(20);
    machine.others = false;
    wait_for(40);
    ck_assert_uint_ge(40 * (uint64_t)st_run_queue_stretch(&queue), 16 * machine.alone_ns);
}
END_TEST

/* Yields far apart, as in short waits: nothing is gained by spinning longer. */
START_TEST(seldom_yields_lengthen_nothing)
{
    for (int i = 0; i < 30; i++) {
        machine.now_ns += 1000000;
        st_run_queue_yield(&queue);
    }
    ck_assert_uint_eq(st_run_queue_stretch(&queue), 1);
}
END_TEST

/* A wait of n polls in vain in somebody's own loop, 40 ns each. */
static void pauses(uint32_t n)
{
    for (uint32_t i = 1; i <= n; i++) {
        machine.now_ns += 40;
        st_run_queue_pause(&queue, i);
    }
}

START_TEST(a_loop_that_pauses_yields_as_often)
{
    pauses(10000);
    ck_assert_int_ge(machine.n_yields, 10000 / 256);
    ck_assert_int_le(machine.n_yields, 10000 / 64);
    machine.n_yields = 0;
    pauses(128); /* the next wait begins as the last one went on */
    ck_assert_int_eq(machine.n_yields, 0);
    machine.others = true;
    pauses(256);
    machine.n_yields = 0;
    pauses(10);
    ck_assert_int_eq(machine.n_yields, 10);
}
END_TEST

/* Turns of so much processor time, until they are known. */
static void turns_cost(uint64_t ns)
{
    machine.turn_ns = ns;
    yields(256 * 100, true);
}

START_TEST(sleep_begins_where_turns_have_cost_as_much)
{
    ck_assert_uint_eq(st_run_queue_turns(&queue, 77), 77);
    turns_cost(500);
    ck_assert_uint_eq(st_run_queue_turns(&queue, 77), 77);
    st_run_queue_sleep_cost(&queue, 0); /* nothing measured */
    ck_assert_uint_eq(st_run_queue_turns(&queue, 77), 77);
    st_run_queue_sleep_cost(&queue, 2500);
    ck_assert_uint_eq(st_run_queue_turns(&queue, 77), 10);
    turns_cost(1000);
    ck_assert_uint_eq(st_run_queue_turns(&queue, 77), 5);
    turns_cost(UINT32_MAX);
    ck_assert_uint_eq(st_run_queue_turns(&queue, 77), 2);
    turns_cost(1);
    for (int i = 0; i < 100; i++)
        st_run_queue_sleep_cost(&queue, UINT64_MAX);
    ck_assert_uint_eq(st_run_queue_turns(&queue, 77), 1000);
}
END_TEST

START_TEST(one_wait_in_sixteen_is_measured)
{
    int n = 0;
    for (int i = 0; i < 160; i++)
        n += st_run_queue_samples(&queue);
    ck_assert_int_eq(n, 10);
}
END_TEST

/* The real calls answer, and go forward. */
START_TEST(the_system_answers)
{
    const struct st_run_queue_system *s = &st_run_queue_linux;
    uint64_t now = s->now_ns(), used = s->used_ns(), n = s->switches();
    ck_assert_uint_gt(now, 0);
    ck_assert_uint_gt(used, 0);
    st_run_queue_init(&queue, s);
    for (int i = 0; i < 100; i++)
        st_run_queue_yield(&queue);
    ck_assert_uint_gt(s->now_ns(), now);
    ck_assert_uint_gt(s->used_ns(), used);
    ck_assert_uint_ge(s->switches(), n);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("run_queue");
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, the_clock_tells_what_the_kernel_has_taught);
    tcase_add_loop_test(t, one_kind_is_known_from_its_first_yield, 0, 2);
    tcase_add_test(t, what_was_learned_follows_the_machine);
    tcase_add_test(t, interrupts_teach_nothing);
    tcase_add_test(t, where_time_does_not_tell_each_is_asked_about);
    tcase_add_test(t, a_kernel_that_does_not_count_makes_each_a_turn);
    tcase_add_test(t, alone_it_yields_for_a_sixteenth_of_the_time);
    tcase_add_test(t, seldom_yields_lengthen_nothing);
    tcase_add_test(t, a_loop_that_pauses_yields_as_often);
    tcase_add_test(t, sleep_begins_where_turns_have_cost_as_much);
    tcase_add_test(t, one_wait_in_sixteen_is_measured);
    tcase_add_test(t, the_system_answers);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
