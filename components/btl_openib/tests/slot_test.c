/* Slots of the eager RDMA channel: layout, seals, and the order in which slots become free. */
/* starts first */
/* one thread */
#include <check.h>
#include <stdlib.h>
#include "eager_rdma/ring_order.h"
#include "eager_rdma/slot.h"
#include "support/holds.h"
#include "support/run_suite.h"

static char slot[IB_SLOT_MOST], image[IB_SLOT_MOST], before[IB_SLOT_MOST];

static void fill(char *to, uint32_t n, uint32_t seed)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] = (char)(seed = seed * 1664525 + 1013904223, seed >> 24);
}

/* An image of a message of len bytes; where its header and data begin. */
static char *make_image(uint32_t len, uint8_t flag, bool seal)
{
    char *end = image + sizeof image, *at = end - ib_slot_bytes(len, seal);

    fill(image, sizeof image, len * 7 + flag);
    memcpy(before, image, sizeof image);
    end[-1] = (char)flag;
    if (seal)
        ib_seal(end, len, flag);
    return at;
}

START_TEST(fits_and_comes_back)
{
    const char *end = slot + sizeof slot;

    for (uint32_t len = 0; len <= ib_slot_most(IB_SLOT_MOST, true); len++) {
        uint8_t flag = ib_lap_flag(len);
        uint32_t bytes = ib_slot_bytes(len, true);
        const char *at = make_image(len, flag, true);

        HOLDS(bytes <= IB_SLOT_MOST);
        HOLDS((bytes + IB_LINE - 1) / IB_LINE == ib_seal_lines(len));
        for (uint32_t i = 0; i < ib_seal_lines(len); i++)
            HOLDS((uint8_t)image[sizeof image - i * IB_LINE - 1] == flag);
        memset(slot, 0, sizeof slot);
        memcpy(slot + (at - image), at, bytes);
        HOLDS(ib_seal_whole(end, len, flag));
        ib_seal_open(slot + sizeof slot, len);
        HOLDS(memcmp(slot + (at - image), before + (at - image), len) == 0);
        HOLDS(memcmp(end - IB_FOOTER, before + sizeof before - IB_FOOTER, IB_FOOTER - 1) == 0);
        ib_seal_clear(slot + sizeof slot, len);
        for (uint32_t i = 1; i < IB_SLOT_MOST / IB_LINE; i++)
            HOLDS(end[-(int)(i * IB_LINE) - 1] == 0);
    }
}
END_TEST

/* Every slot size holds what it says, and no byte more. */
START_TEST(most_is_most)
{
    for (uint32_t size = IB_LINE; size <= IB_SLOT_MOST; size += IB_LINE)
        for (int seal = 0; seal < 2; seal++) {
            uint32_t most = ib_slot_most(size, seal);
            ck_assert_uint_le(ib_slot_bytes(most, seal), size);
            ck_assert_uint_gt(ib_slot_bytes(most + 1, seal), size);
        }
}
END_TEST

/* The last line first, any one line missing: not whole, whatever the slot held before. */
START_TEST(a_missing_line_shows)
{
    const char *end = slot + sizeof slot;

    for (uint32_t len = 1; len <= ib_slot_most(IB_SLOT_MOST, true); len += 13)
        for (uint32_t lap = 0; lap < 2; lap++) {
            uint32_t lines = ib_seal_lines(len), longest = ib_slot_most(IB_SLOT_MOST, true);
            if (lines < 2)
                continue;
            uint32_t missing = 1 + len % (lines - 1);
            /* The lap before had a message over all of the slot, with the other value. */
            make_image(longest, ib_lap_flag(lap + 1), true);
            memcpy(slot, image, sizeof slot);
            ib_seal_open(slot + sizeof slot, longest);
            ib_seal_clear(slot + sizeof slot, longest);
            const char *at = make_image(len, ib_lap_flag(lap), true);
            for (uint32_t i = 0; i < lines; i++) {
                size_t from = sizeof slot - (i + 1) * IB_LINE, first = (size_t)(at - image);
                size_t begin = from > first ? from : first;
                if (i != missing)
                    memcpy(slot + begin, image + begin, from + IB_LINE - begin);
            }
            ck_assert(!ib_seal_whole(end, len, ib_lap_flag(lap)));
        }
}
END_TEST

START_TEST(tail_waits_for_the_oldest)
{
    uint32_t seed = 5;

    for (uint32_t n = 2; n <= IB_SLOTS_MOST; n++) {
        struct ib_ring_order r = {.n = n};
        uint32_t held[IB_SLOTS_MOST], slots[IB_SLOTS_MOST], n_held = 0, n_freed = 0, taken = 0;
        for (int step = 0; step < 4000; step++) {
            seed = seed * 1664525 + 1013904223;
            uint32_t left = n - taken % n, want = 1 + (seed >> 4) % 5, k = want < left ? want : left;
            if (seed >> 31 && taken - n_freed + k <= n) { /* a slot that is in use is not taken again */
                held[n_held] = taken % n;
                slots[n_held++] = k;
                ib_ring_take(&r, taken % n, k);
                taken += k;
            } else if (n_held > 0) {
                uint32_t i = (seed >> 8) % n_held, slot_number = held[i], freed = slots[i];
                held[i] = held[--n_held];
                slots[i] = slots[n_held];
                n_freed += ib_ring_free(&r, slot_number, freed);
            }
            HOLDS(r.held == taken - n_freed);
            HOLDS(r.held == 0 || r.tail == n_freed % n);
            HOLDS(n_freed <= taken);
            for (uint32_t i = 0; i < n_held; i++) /* none that is held was passed */
                HOLDS((held[i] + n - r.tail) % n < taken - n_freed);
            if (n_held == 0)
                HOLDS(n_freed == taken);
        }
        ck_assert_uint_gt(taken, 100);
    }
}
END_TEST

/* Messages of any length, each in the slots below those of the one before: none is seen before all of its lines are
 * written, whatever lay there in the laps before. */
static void stale_bytes(uint32_t n, uint32_t size, uint32_t span, bool seal)
{
    static char ring[(IB_SLOTS_MOST + 63) * 192];
    char *top = ring + (n + span - 1) * size;
    uint32_t slot_number = ib_ring_first(span, n), lap = 0, seed = n + span;

    memset(ring, 0, sizeof ring);
    for (uint32_t step = 0; step < 4 * n + 20; step++) {
        char *end = top - slot_number * size;
        uint32_t len =
            (seed = seed * 1664525 + 1013904223) % 3 ? (seed >> 8) % (ib_slot_most(size * span, seal) + 1) : 8;
        uint32_t bytes = ib_slot_bytes(len, seal), k = ib_slots_of(bytes, size, n - slot_number);
        uint8_t flag = ib_lap_flag(lap);
        HOLDS((uint8_t)end[-1] != flag);
        (void)make_image(len, flag, seal);
        HOLDS(end - bytes >= ring);
        if (seal && bytes > IB_LINE) { /* the last line comes first */
            memcpy(end - IB_LINE, image + sizeof image - IB_LINE, IB_LINE);
            HOLDS(!ib_seal_whole(end, len, flag));
        }
        memcpy(end - bytes, image + sizeof image - bytes, bytes);
        if (seal) {
            HOLDS(ib_seal_whole(end, len, flag));
            ib_seal_open(end, len);
            ib_seal_clear(end, len);
        } else {
            ib_slots_clear(end, size, k);
        }
        slot_number += k;
        HOLDS(slot_number <= n);
        if (slot_number == n) {
            slot_number = 0;
            lap++;
        }
    }
    ck_assert_uint_gt(lap, 1);
}

START_TEST(stale_bytes_look_like_none)
{
    for (uint32_t n = 2; n <= IB_SLOTS_MOST; n += n / 2 + 1)
        for (uint32_t size = IB_LINE; size <= 192; size += IB_LINE)
            for (uint32_t span = 1; span <= 41 && span * size <= IB_SLOT_MOST; span += 10) {
                stale_bytes(n, size, span, false);
                stale_bytes(n, size, span, true);
            }
}
END_TEST

/* 128 idle rings with default parameters, each of which begins at a page: a cache of 64 sets with 8 lines each has room
 * for their flags. */
START_TEST(flags_share_few_sets)
{
    enum { SETS = 64, SLOTS = 106, SIZE = 576, RINGS = 128 };
    uint32_t lines[SETS] = {0};

    for (uint32_t i = 0; i < RINGS; i++) {
        uint32_t first = ib_ring_first(i, SLOTS);
        ck_assert_uint_lt(first, SLOTS);
        lines[(SLOTS - first) * (SIZE / IB_LINE) % SETS]++;
    }
    for (uint32_t i = 0; i < SETS; i++)
        ck_assert_uint_le(lines[i], 3);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("slot");
    TCase *t = tcase_create("slot");

    tcase_add_test(t, fits_and_comes_back);
    tcase_add_test(t, most_is_most);
    tcase_add_test(t, a_missing_line_shows);
    tcase_add_test(t, tail_waits_for_the_oldest);
    tcase_add_test(t, stale_bytes_look_like_none);
    tcase_add_test(t, flags_share_few_sets);
    suite_add_tcase(s, t);
    return run_suite(s);
}
