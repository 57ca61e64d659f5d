/* Several threads that wait in one context, asleep most of the time: each is woken by what ends its wait. A lost
 * wake-up shows as a test that does not end. */
#include <check.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/sleeper.h"
#include "support/let_run.h"
#include "support/random.h"
#include "support/run_suite.h"

enum { THREADS = 4, ROUNDS = 3000 };

static struct sleeper s;
/* What the peer has sent, a bit for each thread it is for; progress hands it over. */
static _Atomic(uint32_t) arrived, word;
static _Atomic(int) got[THREADS], wanted[THREADS];
static _Atomic(bool) over;

static int take(struct st_btl *b)
{
    (void)b;
    uint32_t bits = atomic_load(&arrived);
    int n = 0;
    for (int i = 0; i < THREADS; i++)
        if (bits >> i & 1) {
            atomic_fetch_add(&got[i], 1);
            n++;
        }
    atomic_fetch_and(&arrived, ~bits); /* last: the peer then knows what was taken */
    return n;
}
static int arm(struct st_btl *b, struct st_btl_wait *w)
{
    (void)b;
    w->word = &word;
    w->expect = atomic_load(&word);
    return atomic_load(&arrived) ? STRATA_ERR_AGAIN : STRATA_OK;
}
static void disarm(struct st_btl *b)
{
    (void)b;
}
static const struct st_btl_ops ops = {.progress = take, .arm = arm, .disarm = disarm};

static bool has_it(void *arg)
{
    int i = *(int *)arg;
    return atomic_load(&got[i]) >= atomic_load(&wanted[i]);
}
struct own {
    int index;
    pthread_t thread;
};
/* May not be asked by another thread: it would be in this one's way. */
static bool has_it_acting(void *arg)
{
    struct own *own = arg;
    ck_assert(pthread_equal(own->thread, pthread_self()));
    return has_it(&own->index);
}

static void *waiter(void *arg)
{
    int i = *(int *)arg;
    struct own own = {i, pthread_self()};
    for (int round = 1; round <= ROUNDS; round++) {
        atomic_store(&wanted[i], round);
        if (i % 2)
            st_worker_wait_acting(&s.w.head, has_it_acting, &own);
        else
            st_worker_wait(&s.w.head, has_it, arg);
    }
    return NULL;
}

/* Sends to each thread that waits for something, one or several at a time. */
static void *peer(void *arg)
{
    struct rnd rnd = {7};
    (void)arg;
    while (!atomic_load(&over)) {
        uint32_t bits = 0;
        bool taken = atomic_load(&arrived) == 0; /* asked first: what is taken meanwhile would be sent again */
        for (int i = 0; taken && i < THREADS; i++)
            if (atomic_load(&got[i]) < atomic_load(&wanted[i]) && rnd_below(&rnd, 2))
                bits |= 1u << i;
        if (bits == 0) {
            let_run();
            continue;
        }
        atomic_fetch_or(&arrived, bits);
        atomic_fetch_add(&word, 1);
        syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
    return NULL;
}

START_TEST(each_is_woken)
{
    pthread_t threads[THREADS], sender;
    int index[THREADS];
    sleeper_make(&s, 1, &ops);
    s.w.head.threaded = true;
    ck_assert_int_eq(pthread_create(&sender, NULL, peer, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        index[i] = i;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, waiter, &index[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&over, true);
    pthread_join(sender, NULL);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(atomic_load(&got[i]), ROUNDS);
    ck_assert_uint_eq(atomic_load(&s.w.crowd.n_awake), 0);
    ck_assert_uint_eq(atomic_load(&s.w.crowd.n_asleep), 0);
    ck_assert_uint_eq(atomic_load(&s.w.head.attention), 0);
    sleeper_end(&s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("crowd");
    TCase *t = tcase_create("all");
    tcase_add_test(t, each_is_woken);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
