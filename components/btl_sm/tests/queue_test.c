/* The shared queue by itself: many producers, full, laps, a producer that dies with a claim. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "queue.h"
#include "support/let_run.h"
#include "support/run_suite.h"

#define PRODUCERS 6u
#define EACH      20000u

struct fixture {
    _Atomic(uint64_t) tail;
    struct sm_slot *slots;
    uint32_t n;
};

static struct fixture *make(uint32_t n)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->n = n;
    f->slots = aligned_alloc(SM_LINE, n * sizeof *f->slots);
    memset(f->slots, 0, n * sizeof *f->slots); /* zeros are an empty queue */
    return f;
}
static void drop(struct fixture *f)
{
    free(f->slots);
    free(f);
}
static bool push(struct fixture *f, uint32_t src, uint32_t value)
{
    uint64_t full;
    struct sm_slot *s = sm_queue_claim(&f->tail, f->slots, f->n, src, &full);
    if (!s)
        return false;
    s->word = value;
    memset(s->bytes, (int)(value & 0xff), 8);
    sm_queue_publish(s, full);
    return true;
}

START_TEST(full_and_laps)
{
    struct fixture *f = make(8);
    struct sm_queue_rx rx;
    uint32_t src;
    sm_queue_rx_init(&rx, f->slots, 8);
    ck_assert_ptr_null(sm_queue_peek(&rx, &src));
    for (uint32_t lap = 0; lap < 100; lap++) {
        for (uint32_t i = 0; i < 8; i++)
            ck_assert(push(f, i, lap * 8 + i));
        ck_assert(!push(f, 9, 0));
        for (uint32_t i = 0; i < 8; i++) {
            struct sm_slot *s = sm_queue_peek(&rx, &src);
            ck_assert_ptr_nonnull(s);
            ck_assert_uint_eq(src, i);
            ck_assert_uint_eq(s->word, lap * 8 + i);
            sm_queue_consume(&rx);
        }
        ck_assert_ptr_null(sm_queue_peek(&rx, &src));
    }
    drop(f);
}
END_TEST

START_TEST(dead_producer)
{
    struct fixture *f = make(8);
    struct sm_queue_rx rx;
    uint64_t full;
    uint32_t src = 0;
    sm_queue_rx_init(&rx, f->slots, 8);
    ck_assert_ptr_nonnull(sm_queue_claim(&f->tail, f->slots, 8, 5, &full)); /* and never publishes */
    ck_assert(push(f, 1, 77));
    ck_assert_ptr_null(sm_queue_peek(&rx, &src));
    ck_assert(sm_queue_stuck(&rx, &src));
    ck_assert_uint_eq(src, 5);
    ck_assert(sm_queue_skip(&rx));
    ck_assert_ptr_nonnull(sm_queue_peek(&rx, &src));
    ck_assert_uint_eq(src, 1);
    ck_assert(!sm_queue_stuck(&rx, &src));
    ck_assert(!sm_queue_skip(&rx));
    sm_queue_consume(&rx);
    for (uint32_t i = 0; i < 20; i++) {
        ck_assert(push(f, 2, i));
        ck_assert_ptr_nonnull(sm_queue_peek(&rx, &src));
        sm_queue_consume(&rx);
    }
    drop(f);
}
END_TEST

START_TEST(tail_left_behind)
{
    /* A producer that died between its claim and moving the tail is helped; nonsense in the tail ends in "full". */
    struct fixture *f = make(8);
    uint64_t full;
    ck_assert(push(f, 0, 1));
    atomic_store(&f->tail, 0);
    ck_assert(push(f, 0, 2));
    ck_assert_uint_eq(atomic_load(&f->tail), 2);
    atomic_store(&f->tail, 1234567);
    ck_assert_ptr_null(sm_queue_claim(&f->tail, f->slots, 8, 0, &full));
    drop(f);
}
END_TEST

struct producer {
    struct fixture *f;
    uint32_t src;
};
static void *produce(void *arg)
{
    struct producer *p = arg;
    for (uint32_t i = 0; i < EACH; i++)
        while (!push(p->f, p->src, i))
            let_run();
    return NULL;
}

START_TEST(many_producers)
{
    struct fixture *f = make(16);
    struct producer p[PRODUCERS];
    pthread_t t[PRODUCERS];
    uint32_t next[PRODUCERS] = {0}, src = 0;
    struct sm_queue_rx rx;
    sm_queue_rx_init(&rx, f->slots, 16);
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        p[i] = (struct producer){f, i};
        pthread_create(&t[i], NULL, produce, &p[i]);
    }
    for (uint32_t got = 0; got < PRODUCERS * EACH;) {
        struct sm_slot *s = sm_queue_peek(&rx, &src);
        if (!s) {
            let_run();
            continue;
        }
        /* Each producer's own order is kept. */
        if (src >= PRODUCERS || s->word != next[src] || s->bytes[7] != (next[src] & 0xff))
            ck_abort_msg("message %u of producer %u is wrong", got, src);
        next[src]++;
        got++;
        sm_queue_consume(&rx);
    }
    for (uint32_t i = 0; i < PRODUCERS; i++)
        pthread_join(t[i], NULL);
    ck_assert_ptr_null(sm_queue_peek(&rx, &src));
    drop(f);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("shared queue");
    TCase *t = tcase_create("queue");
    tcase_add_test(t, full_and_laps);
    tcase_add_test(t, dead_producer);
    tcase_add_test(t, tail_left_behind);
    tcase_add_test(t, many_producers);
    suite_add_tcase(s, t);
    return run_suite(s);
}
