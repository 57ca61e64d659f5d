/* A ring by itself: laps, data that wraps, full, lengths that lie, the counters running over 2^32, and a data area that
 * grows under way. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "area.h"
#include "ring_inl.h"
#include "support/form.h"
#include "support/let_run.h"
#include "support/run_suite.h"
#include "support/world.h"

enum { LONGEST = 1500 };

/* Messages of each run of two threads: thousands of laps of a ring of 8 slots. */
static uint32_t n_messages(void)
{
    return test_sanitized() ? (uint32_t)test_quick_form(10000, 60000) : 60000;
}

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
    return i % 5 == 0 ? i % 40 : (i * 2654435761u >> 8) % LONGEST;
}

/* Byte k of message i is i + k. */
static uint8_t all_bytes[256 + LONGEST];

static const uint8_t *bytes_of(uint32_t i)
{
    return all_bytes + i % 256;
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
    memcpy(at, bytes_of(i), len);
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
    if (!good || !at || memcmp(at, bytes_of(i), length_of(i)) != 0)
        ck_abort_msg("message %u is wrong", i);
    sm_ring_advance(rx);
    if (sm_ring_quarter(rx))
        sm_ring_publish_consumed(rx);
    return true;
}

static void *sender(void *arg)
{
    struct sm_ring_tx tx;
    uint32_t n = n_messages();
    sm_ring_tx_init(&tx, arg, &geometry);
    sm_ring_tx_widen(&tx, &geometry, sm_area_last(&geometry));
    for (uint32_t i = 0; i < n; i++)
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
    uint32_t n = n_messages();
    pthread_t t;
    start_at(base, pos, dpos);
    sm_ring_rx_init(&rx, base, &geometry);
    sm_ring_rx_widen(&rx, &geometry, sm_area_last(&geometry));
    pthread_create(&t, NULL, sender, base);
    for (uint32_t i = 0; i < n; i++) {
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
    sm_ring_tx_widen(&tx, &geometry, sm_area_last(&geometry));
    sm_ring_rx_widen(&rx, &geometry, sm_area_last(&geometry));
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
    sm_ring_tx_widen(&tx, &geometry, sm_area_last(&geometry));
    sm_ring_rx_widen(&rx, &geometry, sm_area_last(&geometry));
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
    ck_assert_ptr_null(sm_ring_data_at(&rx, sm_word(SM_WORD_DATA, 0, 64))); /* no data area yet */
    sm_ring_rx_widen(&rx, &geometry, sm_area_last(&geometry));
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

/* Messages of any length are sent and read at random while the area grows at random: none overwrites another that has
 * not been read, and when all has been read the longest has room. */
static const struct sm_geometry wide = {
    .n_dir = 2, .queue_slots = 8, .n_cells = 1, .cell_data = 64, .n_rings = 1, .ring_slots = 64, .ring_data = 1 << 20};
enum { GROWING = 3000 };

struct sent {
    const uint8_t *at;
    uint32_t len; /* 0: a word about the area */
};

static bool grow_put(struct sm_ring_tx *tx, uint32_t i, uint32_t len, struct sent *out)
{
    uint32_t flags, next;
    struct sm_desc *d = sm_ring_claim(tx);
    uint8_t *at = d && len <= tx->most ? sm_ring_data_room(tx, len, &flags, &next) : NULL;
    if (!at)
        return false;
    memset(at, (int)(i % 251), len);
    tx->dpos = next;
    sm_ring_publish(tx, d, sm_word(flags, 0, len));
    *out = (struct sent){at, len};
    return true;
}

static bool grow_turn(struct sm_ring_tx *tx, uint32_t step)
{
    struct sm_desc *d = sm_ring_claim(tx);
    if (!d || step <= tx->step)
        return false;
    sm_ring_publish(tx, d, sm_word(SM_AREA_TURN << 16 | SM_WORD_AREA, 0, step));
    sm_ring_tx_widen(tx, &wide, step);
    return true;
}

static bool grow_take(struct sm_ring_rx *rx, uint32_t i, const struct sent *sent)
{
    uint64_t word;
    if (!sm_ring_poll(rx, &word))
        return false;
    sm_ring_advance(rx);
    if (word & SM_WORD_AREA) {
        ck_assert_uint_eq(sent->len, 0);
        sm_ring_rx_widen(rx, &wide, sm_word_len(word));
        sm_ring_publish_consumed(rx);
        return true;
    }
    const uint8_t *at = sm_ring_data_at(rx, word);
    bool good = at == sent->at && sm_word_len(word) == sent->len;
    /* Every byte is the first one. */
    if (!good || at[0] != i % 251 || memcmp(at, at + 1, sent->len - 1) != 0)
        ck_abort_msg("message %u is wrong", i);
    if (sm_ring_quarter(rx))
        sm_ring_publish_consumed(rx);
    return true;
}

START_TEST(an_area_that_grows)
{
    static struct sent sent[GROWING];
    uint8_t *base = aligned_alloc(4096, (sm_ring_data_offset(&wide) + wide.ring_data + 4095) / 4096 * 4096);
    uint32_t last = sm_area_last(&wide), seed = (uint32_t)_i * 2654435761u + 1, n = 0, got = 0, refused = 0;
    struct sm_ring_tx tx;
    struct sm_ring_rx rx = {0};
    memset(base, 0, sm_ring_data_offset(&wide));
    ck_assert_uint_eq(last, 5);
    /* Near the end of the counters in each second run. */
    rx.ctl = (struct sm_ring_ctl *)(void *)base;
    rx.pos = _i % 2 ? UINT32_MAX - 500 : 0;
    rx.dpos = _i % 2 ? UINT32_MAX - 700 * (uint32_t)_i : (uint32_t)_i * 37;
    sm_ring_publish_consumed(&rx);
    sm_ring_tx_init(&tx, base, &wide);
    sm_ring_rx_init(&rx, base, &wide);
    while (got < GROWING) {
        seed = seed * 1664525u + 1013904223u;
        uint32_t dice = seed >> 16, step = tx.step + 1 + dice / 64 % 2;
        if (step > last)
            step = last;
        if (n < GROWING && dice % 64 == 0 && grow_turn(&tx, step)) {
            sent[n++] = (struct sent){0};
        } else if (n < GROWING && dice % 3) {
            uint32_t len = tx.most ? 1 + (dice * 7919u) % (dice % 5 ? 3000 : tx.most) : 0;
            bool drained = got == n;
            if (len > tx.most)
                len = tx.most;
            if (len && grow_put(&tx, n, len, &sent[n]))
                n++;
            else if (len && drained)
                ck_abort_msg("no room for %u bytes at step %u, although all was read", len, tx.step);
            else
                refused++;
        } else {
            for (uint32_t k = dice % 40; k && got < n; k--, got++)
                ck_assert(grow_take(&rx, got, &sent[got]));
        }
    }
    ck_assert_uint_eq(tx.step, last);
    ck_assert_uint_eq(rx.step, last);
    ck_assert_uint_gt(refused, 10);
    free(base);
}
END_TEST

START_TEST(sizes_of_an_area)
{
    struct sm_geometry g = wide;
    ck_assert_uint_eq(sm_area_bytes(&g, 0), 0);
    ck_assert_uint_eq(sm_area_bytes(&g, 1), SM_AREA_FIRST);
    for (g.ring_data = 4096; g.ring_data <= SM_RING_DATA_MOST; g.ring_data *= 2) {
        uint32_t last = sm_area_last(&g);
        ck_assert_uint_le(last, SM_AREA_STEPS);
        ck_assert_uint_eq(sm_area_bytes(&g, last), g.ring_data);
        ck_assert_uint_eq(sm_area_bytes(&g, SM_AREA_STEPS), g.ring_data);
        ck_assert_uint_eq(sm_area_step(&g, 0), 0);
        for (uint32_t bytes = 1; bytes <= sm_area_most(g.ring_data); bytes *= 2)
            ck_assert_uint_ge(sm_area_most(sm_area_bytes(&g, sm_area_step(&g, bytes))), bytes);
        ck_assert_uint_eq(sm_area_step(&g, UINT32_MAX), last);
    }
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
        st_copy_shared(to, from, n, 16);
        ck_assert_int_eq(memcmp(to, from, n), 0);
        ck_assert_uint_eq(to[n], 0xee);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ring");
    TCase *t = tcase_create("ring");
    for (uint32_t k = 0; k < sizeof all_bytes; k++)
        all_bytes[k] = (uint8_t)k;
    tcase_add_test(t, two_threads);
    tcase_add_test(t, counters_run_over);
    tcase_add_test(t, full);
    tcase_add_test(t, longest);
    tcase_add_test(t, lengths_that_lie);
    tcase_add_loop_test(t, an_area_that_grows, 0, 8);
    tcase_add_test(t, sizes_of_an_area);
    tcase_add_test(t, small_copies);
    suite_add_tcase(s, t);
    return run_suite(s);
}
