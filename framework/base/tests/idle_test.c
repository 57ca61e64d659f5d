/* Waiting: the policy, the steps, and sleeps that something ends. */
#define _GNU_SOURCE 1
#include <check.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <strata/sdk/idle.h>
#include "framework/base/context.h"
#include "framework/base/idle_policy.h"
#include "support/await.h"
#include "support/let_run.h"
#include "support/run_suite.h"

START_TEST(policy)
{
    uint32_t alone_spin, alone_yield, spin, yield;
    st_idle_policy(-1, -1, 2, 4, &alone_spin, &alone_yield);
    st_idle_policy(-1, -1, 8, 4, &spin, &yield);
    ck_assert_uint_ge(alone_spin, 1000);
    ck_assert_uint_le(spin, 16);
    ck_assert_uint_gt(yield, 0);
    st_idle_policy(7, 9, 8, 4, &spin, &yield);
    ck_assert_uint_eq(spin, 7);
    ck_assert_uint_eq(yield, 9);
    st_idle_policy(0, 0, 1, 4, &spin, &yield);
    ck_assert_uint_eq(spin, 0);
    ck_assert_uint_eq(yield, 0);
    cpu_set_t own;
    ck_assert_int_eq(sched_getaffinity(0, sizeof own, &own), 0);
    ck_assert_uint_ge(st_idle_processors(), (unsigned)CPU_COUNT(&own));
    ck_assert_uint_le(st_idle_processors(), (unsigned)sysconf(_SC_NPROCESSORS_CONF));
}
END_TEST

static const struct st_base_config config = {.sleep_max_us = 50000};

/* Longer than a test may last: a sleep that nothing ends shows. */
enum { TOO_LONG_US = 1000000000 };

static struct st_idle begin(uint32_t spin, uint32_t yield)
{
    strata_t s = {.base = &config, .spin_limit = spin, .yield_limit = yield};
    struct st_idle idle;
    st_idle_begin(&idle, &s);
    return idle;
}

START_TEST(steps)
{
    struct st_idle idle = begin(5, 3);
    for (int round = 0; round < 2; round++) {
        int n = 1;
        while (!st_idle_step(&idle))
            n++;
        ck_assert_int_eq(n, 8);
        ck_assert(st_idle_step(&idle)); /* an idle waiter goes straight back to sleep */
        st_idle_reset(&idle);
    }
    idle = begin(0, 0);
    ck_assert(st_idle_step(&idle));
}
END_TEST

/* ---- modules that can wake, or cannot --------------------------------------------------------------------------- */

struct waker {
    struct st_btl base;
    struct st_btl_wait wait;
    bool pending;
    int armed, disarmed;
};

static int arm(struct st_btl *b, struct st_btl_wait *w)
{
    struct waker *k = (struct waker *)b;
    ck_assert_int_eq(w->fd, -1);
    ck_assert_ptr_null(w->word);
    if (k->pending)
        return STRATA_ERR_AGAIN;
    k->armed++;
    *w = k->wait;
    return STRATA_OK;
}
static void disarm(struct st_btl *b)
{
    ((struct waker *)b)->disarmed++;
}
static int progress(struct st_btl *b)
{
    (void)b;
    return 0;
}
static const struct st_btl_ops wakes = {.progress = progress, .arm = arm, .disarm = disarm},
                               cannot = {.progress = progress}, needs_none = {0};

START_TEST(nothing_can_wake)
{
    struct waker a = {.base.ops = &cannot}, b = {.base.ops = &needs_none};
    struct st_btl *btls[] = {&a.base, &b.base};
    struct st_idle idle = begin(0, 0);
    idle.sleep_us = TOO_LONG_US;
    ck_assert(st_idle_arm(&idle, btls, 2));
    ck_assert(idle.nap_only);
    st_idle_sleep(&idle); /* ends by itself: a nap */
    st_idle_disarm(&idle, btls, 2);
    /* One that needs no polling alone: the sleep is bounded, nothing more. */
    ck_assert(st_idle_arm(&idle, btls + 1, 1));
    ck_assert(!idle.nap_only);
    st_idle_disarm(&idle, btls + 1, 1);
}
END_TEST

START_TEST(pending_forbids_sleep)
{
    struct waker a = {.base.ops = &wakes, .wait = {.fd = -1}}, b = {.base.ops = &wakes, .pending = true};
    struct st_btl *btls[] = {&a.base, &b.base};
    struct st_idle idle = begin(0, 0);
    ck_assert(!st_idle_arm(&idle, btls, 2));
    st_idle_disarm(&idle, btls, 2);
    ck_assert_int_eq(a.armed, 1);
    ck_assert_int_eq(a.disarmed, 1);
    ck_assert_int_eq(b.disarmed, 0);
}
END_TEST

static _Atomic(uint32_t) word;

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

struct wakener {
    pid_t sleeper;
    int fd; /* -1: wakes by the word */
};

static void *wake(void *arg)
{
    const struct wakener *w = arg;
    AWAIT(state_of(w->sleeper) == 'S', let_run());
    if (w->fd >= 0) {
        ck_assert_int_eq(write(w->fd, "x", 1), 1);
    } else {
        atomic_store(&word, 1);
        ck_assert_int_ge(syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0), 0);
    }
    return NULL;
}

START_TEST(a_word_wakes)
{
    struct waker a = {.base.ops = &wakes, .wait = {.fd = -1, .word = &word}};
    struct st_btl *btls[] = {&a.base};
    struct st_idle idle = begin(0, 0);
    struct wakener w = {.sleeper = gettid(), .fd = -1};
    idle.sleep_us = TOO_LONG_US;
    pthread_t t;
    ck_assert(st_idle_arm(&idle, btls, 1));
    ck_assert_int_eq(pthread_create(&t, NULL, wake, &w), 0);
    st_idle_sleep(&idle);
    ck_assert_uint_eq(atomic_load(&word), 1);
    st_idle_disarm(&idle, btls, 1);
    pthread_join(t, NULL);
    st_idle_sleep(&idle); /* the word has changed: no sleep at all */
}
END_TEST

START_TEST(a_descriptor_wakes)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    struct waker a = {.base.ops = &wakes, .wait = {.fd = ends[0]}};
    struct st_btl *btls[] = {&a.base};
    struct st_idle idle = begin(0, 0);
    struct wakener w = {.sleeper = gettid(), .fd = ends[1]};
    struct pollfd p = {.fd = ends[0], .events = POLLIN};
    idle.sleep_us = TOO_LONG_US;
    pthread_t t;
    ck_assert(st_idle_arm(&idle, btls, 1));
    ck_assert_int_eq(idle.n_fds, 1);
    ck_assert_int_eq(pthread_create(&t, NULL, wake, &w), 0);
    st_idle_sleep(&idle);
    ck_assert_int_eq(poll(&p, 1, 0), 1); /* it was the descriptor that ended the sleep */
    pthread_join(t, NULL);
    st_idle_disarm(&idle, btls, 1);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

START_TEST(too_much_to_wait_for)
{
    struct waker w[ST_IDLE_MAX_FDS + 1], two[2];
    struct st_btl *btls[ST_IDLE_MAX_FDS + 1], *pair[2];
    for (int i = 0; i <= ST_IDLE_MAX_FDS; i++) {
        w[i] = (struct waker){.base.ops = &wakes, .wait = {.fd = 0}};
        btls[i] = &w[i].base;
    }
    struct st_idle idle = begin(0, 0);
    ck_assert(st_idle_arm(&idle, btls, ST_IDLE_MAX_FDS + 1));
    ck_assert(idle.nap_only);
    st_idle_disarm(&idle, btls, ST_IDLE_MAX_FDS + 1);
    for (int i = 0; i < 2; i++) {
        two[i] = (struct waker){.base.ops = &wakes, .wait = {.fd = -1, .word = &word}};
        pair[i] = &two[i].base;
    }
    ck_assert(st_idle_arm(&idle, pair, 2));
    ck_assert(idle.nap_only);
    st_idle_disarm(&idle, pair, 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("idle");
    TCase *t = tcase_create("all");
    tcase_add_test(t, policy);
    tcase_add_test(t, steps);
    tcase_add_test(t, nothing_can_wake);
    tcase_add_test(t, pending_forbids_sleep);
    tcase_add_test(t, a_word_wakes);
    tcase_add_test(t, a_descriptor_wakes);
    tcase_add_test(t, too_much_to_wait_for);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
