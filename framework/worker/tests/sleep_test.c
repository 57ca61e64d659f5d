/* Sleeping: what is waited for, and what ends it. */
#define _GNU_SOURCE 1
#include <check.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "framework/base/idle_policy.h"
#include "support/sleeper.h"
#include "support/await.h"
#include "support/fake_yield.h"
#include "support/let_run.h"
#include "support/run_suite.h"

static const struct st_btl_ops wakes = {.progress = sleeper_progress, .arm = sleeper_arm, .disarm = sleeper_disarm},
                               cannot = {.progress = sleeper_progress};
static struct sleeper s;
static _Atomic(uint32_t) word;
static int ends[2];

static void begin(void)
{
    atomic_store(&word, 7);
    ck_assert_int_eq(pipe(ends), 0);
    sleeper_make(&s, 2, &wakes);
}
static void end(void)
{
    sleeper_end(&s);
    close(ends[0]);
    close(ends[1]);
}

static bool arm(void)
{
    return worker_sleep_arm(&s.w);
}
static void sleep_and_disarm(void)
{
    worker_sleep(&s.w, TOO_LONG_US);
    worker_sleep_disarm(&s.w);
}

START_TEST(a_module_that_cannot_wake_makes_it_short)
{
    s.module[1].btl.ops = &cannot;
    s.module[0].word = &word;
    ck_assert(arm());
    sleep_and_disarm(); /* ends by itself */
    ck_assert_int_eq(s.module[0].disarmed, 1);
}
END_TEST

START_TEST(what_is_pending_forbids_it)
{
    s.module[1].pending = true;
    ck_assert(!arm());
    ck_assert_int_eq(s.module[0].armed, 1);
    ck_assert_int_eq(s.module[0].disarmed, 1);
    ck_assert_int_eq(s.module[1].disarmed, 0);
}
END_TEST

START_TEST(work_failures_and_news_forbid_it)
{
    const uint32_t reasons[] = {ST_ATTEND_WORK << ST_AM_TEST, ST_ATTEND_FAILURE};
    for (size_t i = 0; i < 2; i++) {
        atomic_store(&s.w.head.attention, reasons[i]);
        ck_assert(!arm());
    }
    atomic_store(&s.w.head.attention, WORKER_MENDING | WORKER_ASLEEP); /* they do not */
    ck_assert(arm());
    worker_sleep_disarm(&s.w);
    st_worker_news(&s.w.head);
    ck_assert(!arm());
    ck_assert_int_eq(s.module[0].armed, s.module[0].disarmed);
}
END_TEST

START_TEST(pending_work_is_tried_again_soon)
{
    atomic_store(&s.w.head.attention, WORKER_PENDING);
    ck_assert(arm());
    sleep_and_disarm();
}
END_TEST

START_TEST(one_word_is_slept_on)
{
    s.module[1].word = &word;
    ck_assert(arm());
    ck_assert_ptr_eq(s.w.sleep.word, &word);
    atomic_fetch_add(&word, 1);
    sleep_and_disarm(); /* it has changed: no sleep at all */
}
END_TEST

START_TEST(two_things_are_waited_for_by_descriptors)
{
    for (int word_of_second = 0; word_of_second < 2; word_of_second++) {
        s.module[0].word = &word;
        s.module[0].fd = ends[1]; /* never readable */
        s.module[1].word = word_of_second ? &word : NULL;
        s.module[1].fd = ends[0];
        ck_assert(arm());
        ck_assert_ptr_null(s.w.sleep.word);
        ck_assert_int_eq((int)s.w.sleep.n_fds, 2);
        ck_assert(!s.w.sleep.deaf);
        ck_assert_int_eq(write(ends[1], "x", 1), 1);
        sleep_and_disarm();
        char byte;
        ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    }
}
END_TEST

START_TEST(a_module_without_a_descriptor_makes_it_short)
{
    s.module[0].word = &word;
    s.module[1].fd = ends[0];
    ck_assert(arm());
    ck_assert(s.w.sleep.deaf);
    sleep_and_disarm();
}
END_TEST

/* State of a thread of this process: 'R', 'S' when it sleeps. */
static char state_of(pid_t thread)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
    fclose(f);
    return state;
}

enum by { BY_WORD, BY_DESCRIPTOR, FROM_INSIDE };
struct waker {
    pid_t sleeper;
    enum by by;
};

static void *wake(void *arg)
{
    const struct waker *w = arg;
    AWAIT(state_of(w->sleeper) == 'S', let_run());
    switch (w->by) {
    case BY_WORD:
        atomic_fetch_add(&word, 1);
        ck_assert_int_ge(syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0), 0);
        break;
    case BY_DESCRIPTOR:
        ck_assert_int_eq(write(ends[1], "x", 1), 1);
        break;
    case FROM_INSIDE:
        st_worker_wake(&s.w.head);
    }
    return NULL;
}

/* With a word, a descriptor, nothing to wait for: each ended by each that can. */
START_TEST(each_way_ends_it)
{
    const enum by by = (enum by)(_i % 3);
    const int has = _i / 3;
    struct waker waker = {.sleeper = gettid(), .by = by};
    pthread_t t;
    if ((by == BY_WORD && has != 0) || (by == BY_DESCRIPTOR && has != 1))
        return;
    if (has == 0)
        s.module[0].word = &word;
    else if (has == 1)
        s.module[0].fd = ends[0];
    ck_assert(arm());
    ck_assert_int_eq(pthread_create(&t, NULL, wake, &waker), 0);
    sleep_and_disarm();
    pthread_join(t, NULL);
    st_worker_wake(&s.w.head); /* nobody sleeps: it does nothing */
    ck_assert(arm());
    st_worker_wake(&s.w.head); /* before the sleep begins */
    sleep_and_disarm();
}
END_TEST

/* A process that has been woken by a transport may be waiting for this processor. */
START_TEST(after_a_wake_the_processor_is_given_up_once)
{
    s.w.head.threaded = _i;
    n_yields = 0;
    fake_ns = 1;
    s.context.spin_limit = 2; /* it yields by itself after two polls */
    st_worker_woke(&s.w.head);
    s.context.spin_limit = 10000;
    st_worker_progress(&s.w.head);
    ck_assert_int_eq(n_yields, 0);
    for (int i = 1; i <= 2; i++) {
        st_worker_woke(&s.w.head);
        st_worker_woke(&s.w.head);
        st_worker_progress(&s.w.head);
        st_worker_progress(&s.w.head);
        ck_assert_int_eq(n_yields, i);
    }
    fake_ns = 0;
    ck_assert(arm()); /* nothing is left that forbids to sleep */
    worker_sleep_disarm(&s.w);
}
END_TEST

/* One that took long is not followed by another soon. */
START_TEST(after_a_long_yield_there_is_none)
{
    static const struct {
        uint64_t wait;
        int yields; /* so far */
    } then[] = {{0, 1}, {15 * 2 * ST_YIELD_LONG_NS, 1}, {2 * 2 * ST_YIELD_LONG_NS, 2}, {0, 3}};

    s.w.head.threaded = _i;
    s.context.spin_limit = 10000;
    n_yields = 0;
    fake_ns = 1;
    yield_ns = 2 * ST_YIELD_LONG_NS;
    st_worker_woke(&s.w.head);
    st_worker_progress(&s.w.head);
    for (size_t i = 0; i < sizeof then / sizeof then[0]; i++) {
        fake_ns += then[i].wait;
        st_worker_woke(&s.w.head);
        st_worker_progress(&s.w.head);
        ck_assert_int_eq(n_yields, then[i].yields);
    }
    fake_ns = 0;
}
END_TEST

static int n_asked;

static bool has_slept(void *arg)
{
    (void)arg;
    n_asked++;
    return s.module[0].disarmed > 0;
}
static bool was_asked_often(void *arg)
{
    (void)arg;
    return ++n_asked > 1000;
}

/* While a long yield is not long ago a wait sleeps after some polls; later it spins again. */
START_TEST(a_busy_machine_makes_waits_sleep)
{
    st_list_init(&s.w.mending);
    s.module[0].word = &word;
    s.config.sleep_max_us = 100;
    s.context.spin_limit = 1000000;
    s.w.head.spin = 1000;
    n_asked = 0;
    fake_ns = 1;
    ck_assert(!st_worker_is_busy(&s.w.head));
    worker_was_long(&s.w, ST_YIELD_LONG_NS);
    ck_assert(st_worker_is_busy(&s.w.head));
    st_worker_wait(&s.w.head, has_slept, NULL);
    ck_assert_int_eq(s.module[0].armed, 1);
    ck_assert_int_le(n_asked, 260);
    fake_ns += 17 * ST_YIELD_LONG_NS;
    n_asked = 0;
    st_worker_wait(&s.w.head, was_asked_often, NULL);
    ck_assert(!st_worker_is_busy(&s.w.head));
    ck_assert_int_eq(s.module[0].armed, 1);
    fake_ns = 0;
}
END_TEST

/* A wait that meets a long yield sleeps next, and so does the one after it. */
START_TEST(a_long_yield_makes_the_machine_busy)
{
    st_list_init(&s.w.mending);
    s.module[0].word = &word;
    s.config.sleep_max_us = 100;
    s.context.spin_limit = 3;
    s.context.yield_limit = 1000000;
    n_yields = n_asked = 0;
    fake_ns = 1;
    yield_ns = 2 * ST_YIELD_LONG_NS;
    for (int waits = 1; waits <= 2; waits++) {
        s.module[0].disarmed = 0;
        st_worker_wait(&s.w.head, has_slept, NULL);
        ck_assert_int_eq(s.module[0].armed, waits);
        ck_assert_int_eq(n_yields, 1);
    }
    ck_assert_int_le(n_asked, 12);
    fake_ns = 0;
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sleep");
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, a_module_that_cannot_wake_makes_it_short);
    tcase_add_test(t, what_is_pending_forbids_it);
    tcase_add_test(t, work_failures_and_news_forbid_it);
    tcase_add_test(t, pending_work_is_tried_again_soon);
    tcase_add_test(t, one_word_is_slept_on);
    tcase_add_test(t, two_things_are_waited_for_by_descriptors);
    tcase_add_test(t, a_module_without_a_descriptor_makes_it_short);
    tcase_add_loop_test(t, each_way_ends_it, 0, 9);
    tcase_add_loop_test(t, after_a_wake_the_processor_is_given_up_once, 0, 2);
    tcase_add_loop_test(t, after_a_long_yield_there_is_none, 0, 2);
    tcase_add_test(t, a_busy_machine_makes_waits_sleep);
    tcase_add_test(t, a_long_yield_makes_the_machine_busy);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
