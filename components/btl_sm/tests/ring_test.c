/* A ring by itself: laps, data that wraps, full, lengths that lie, and the counters running over 2^32. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include "ring_inl.h"
#include "support/let_run.h"
#include "support/run_suite.h"

#define MESSAGES 60000u

static const struct sm_geometry geometry = {
    .n_dir = 2, .queue_slots = 8, .n_cells = 1, .cell_data = 64, .n_rings = 1, .ring_slots = 8, .ring_data = 4096};

static uint8_t *memory(void)
{
    size_t n = sm_ring_data_offset(&geometry) + geometry.ring_data;
    uint8_t *p = aligned_alloc(4096, (n + 4095) / 4096 * 4096);
    memset(p, 0, n);
    return p;
}

static uint32_t length_of(uint32_t i)
{
    return i % 5 == 0 ? i % 40 : (i * 2654435761u >> 8) % 1500;
}

static bool put(struct sm_ring_tx *tx, uint32_t i)
{
    uint32_t len = length_of(i), flags = 0, next = tx->dpos;
    struct sm_desc *d = sm_ring_claim(tx);
    uint8_t *at;
    if (!d)
        return false;
    at = d->bytes;
    if (len > SM_DESC_INLINE && !(at = sm_ring_data_room(tx, len, &flags, &next)))
        return false;
    for (uint32_t k = 0; k < len; k++)
        at[k] = (uint8_t)(i + k);
    tx->dpos = next;
    sm_ring_publish(tx, d, sm_word(flags, 0, len));
    return true;
}

static bool take(struct sm_ring_rx *rx, uint32_t i)
{
    uint64_t word;
    const struct sm_desc *d = rx->next;
    const uint8_t *at;
    if (!sm_ring_poll(rx, &word))
        return false;
    /* One assertion per message: Check reports each to its parent. */
    bool good = sm_word_len(word) == length_of(i);
    at = word & SM_WORD_DATA ? sm_ring_data_at(rx, word) : d->bytes;
    for (uint32_t k = 0; good && at && k < length_of(i); k++)
        good = at[k] == (uint8_t)(i + k);
    if (!good || !at)
        ck_abort_msg("message %u is wrong", i);
    sm_ring_advance(rx);
    if (sm_ring_quarter(rx))
        sm_ring_publish_consumed(rx);
    return true;
}

static void *sender(void *arg)
{
    struct sm_ring_tx tx;
    sm_ring_tx_init(&tx, arg, &geometry);
    for (uint32_t i = 0; i < MESSAGES; i++)
        while (!put(&tx, i))
            let_run();
    return NULL;
}

static void start_at(uint8_t *base, uint32_t pos, uint32_t dpos)
{
    struct sm_ring_rx rx = {0};
    sm_ring_rx_init(&rx, base, &geometry);
    rx.pos = pos;
    rx.dpos = dpos;
    sm_ring_publish_consumed(&rx);
}

static void both_sides(uint32_t pos, uint32_t dpos)
{
    uint8_t *base = memory();
    struct sm_ring_rx rx = {0};
    pthread_t t;
    start_at(base, pos, dpos);
    sm_ring_rx_init(&rx, base, &geometry);
    pthread_create(&t, NULL, sender, base);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        while (!take(&rx, i)) {
            sm_ring_expect(&rx);
            let_run();
        }
    }
    pthread_join(t, NULL);
    uint64_t word;
    ck_assert(!sm_ring_poll(&rx, &word));
    free(base);
}

START_TEST(two_threads)
{
    both_sides(0, 0);
}
END_TEST

START_TEST(counters_run_over)
{
    both_sides(UINT32_MAX - 1000, UINT32_MAX - 5000);
}
END_TEST

START_TEST(full)
{
    uint8_t *base = memory();
    struct sm_ring_tx tx;
    struct sm_ring_rx rx = {0};
    uint32_t n = 0, got = 0;
    sm_ring_tx_init(&tx, base, &geometry);
    sm_ring_rx_init(&rx, base, &geometry);
    for (int round = 0; round < 50; round++) {
        uint32_t before = n;
        while (put(&tx, n))
            n++;
        ck_assert_uint_gt(n, before); /* a drained ring always has room */
        while (got < n)
            ck_assert(take(&rx, got++));
    }
    free(base);
}
END_TEST

START_TEST(longest)
{
    /* Three eighths of the data area always fit into a drained ring, wherever it stands. */
    uint8_t *base = memory();
    struct sm_ring_tx tx;
    struct sm_ring_rx rx = {0};
    sm_ring_tx_init(&tx, base, &geometry);
    sm_ring_rx_init(&rx, base, &geometry);
    for (uint32_t i = 0; i < 5000; i++) {
        uint32_t flags, next, len = i % 3 ? 1 + i % 700 : geometry.ring_data / 8 * 3;
        struct sm_desc *d = sm_ring_claim(&tx);
        uint64_t word;
        ck_assert_ptr_nonnull(d);
        ck_assert_ptr_nonnull(sm_ring_data_room(&tx, len, &flags, &next));
        tx.dpos = next;
        sm_ring_publish(&tx, d, sm_word(flags, 0, len));
        ck_assert(sm_ring_poll(&rx, &word));
        ck_assert_ptr_nonnull(sm_ring_data_at(&rx, word));
        ck_assert_uint_eq(rx.dpos, tx.dpos);
        sm_ring_advance(&rx);
        if (sm_ring_quarter(&rx))
            sm_ring_publish_consumed(&rx);
    }
    free(base);
}
END_TEST

START_TEST(lengths_that_lie)
{
    uint8_t *base = memory();
    struct sm_ring_rx rx = {0};
    sm_ring_rx_init(&rx, base, &geometry);
    ck_assert_ptr_null(sm_ring_data_at(&rx, sm_word(SM_WORD_DATA, 0, 4097)));
    ck_assert_ptr_null(sm_ring_data_at(&rx, sm_word(SM_WORD_DATA, 0, UINT32_MAX)));
    rx.dpos = 60;
    ck_assert_ptr_null(sm_ring_data_at(&rx, sm_word(SM_WORD_DATA, 0, 64 * 5))); /* would run over the end */
    ck_assert_uint_eq(rx.dpos, 60);
    ck_assert_ptr_nonnull(sm_ring_data_at(&rx, sm_word(SM_WORD_DATA | SM_WORD_ROLL, 0, 64 * 5)));
    ck_assert_uint_eq(rx.dpos, 64 + 5);
    free(base);
}
END_TEST

START_TEST(small_copies)
{
    uint8_t from[128], to[128];
    for (uint32_t i = 0; i < sizeof from; i++)
        from[i] = (uint8_t)(i + 1);
    for (uint32_t n = 0; n <= 64; n++) {
        memset(to, 0xee, sizeof to);
        sm_copy_small(to + 8, from, n);
        ck_assert_int_eq(memcmp(to + 8, from, n), 0);
        ck_assert_uint_eq(to[7], 0xee);
        ck_assert_uint_eq(to[8 + n], 0xee);
        memset(to, 0xee, sizeof to);
        sm_copy_in(to, from, n, 16);
        ck_assert_int_eq(memcmp(to, from, n), 0);
        ck_assert_uint_eq(to[n], 0xee);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ring");
    TCase *t = tcase_create("ring");
    tcase_add_test(t, two_threads);
    tcase_add_test(t, counters_run_over);
    tcase_add_test(t, full);
    tcase_add_test(t, longest);
    tcase_add_test(t, lengths_that_lie);
    tcase_add_test(t, small_copies);
    suite_add_tcase(s, t);
    return run_suite(s);
}
