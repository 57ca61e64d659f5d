/* Communicators without a worker: epochs that wrap, which adverts can be true, sizes of landing cells. */
#include <check.h>
#include <stdlib.h>
#include "in.h"
#include "slot.h"
#include "support/run_suite.h"

enum { N = 4, ME = 1 };

/* Member i is rank i of the job. */
struct fake {
    struct arrival a;
    strata_comm_t comm;
    struct st_coll_group group;
    struct st_peer peer[N];
    struct slot *s;
};

static void fake_make(struct fake *f, uint16_t epoch)
{
    *f = (struct fake){.a.config = {.cell = 1000, .memory = 1000000}};
    f->comm.size = N;
    f->comm.rank = ME;
    f->group.comm = &f->comm;
    atomic_init(&f->group.failed, -1);
    st_list_init(&f->a.slots);
    f->s = calloc(1, sizeof(*f->s) + N * sizeof(f->s->member[0]));
    ck_assert_ptr_nonnull(f->s);
    f->s->base.group = &f->group;
    f->s->a = &f->a;
    f->s->n = f->s->n_all = f->s->n_cells = N;
    f->s->epoch = epoch;
    for (int i = 0; i < N; i++) {
        f->peer[i].rank = i;
        f->s->member[i].peer = i == ME ? NULL : &f->peer[i];
    }
    st_list_append(&f->a.slots, &f->s->node);
}

static void fake_free(struct fake *f)
{
    free(f->s->cells);
    free(f->s);
}

static bool keep(struct fake *f, int rank, int src, uint16_t epoch, uint32_t cell)
{
    struct wire_advert advert = {.type = ARRIVAL_ADVERT, .epoch = epoch, .src = src, .cell = cell};
    uint8_t key[ST_BTL_KEY_MAX] = {(uint8_t)epoch};
    return in_keep_advert(f->s, rank, &advert, key);
}

/* From each epoch: that of the call and the next are kept, once each, also where the number wraps; no other. */
START_TEST(adverts_of_two_epochs_are_kept)
{
    static const uint16_t epochs[] = {0, 1, 7, 32767, 32768, 65534, 65535};
    for (size_t i = 0; i < sizeof(epochs) / sizeof(epochs[0]); i++) {
        struct fake f;
        uint16_t now = epochs[i], next = (uint16_t)(now + 1);
        fake_make(&f, now);
        ck_assert(!keep(&f, 2, 2, (uint16_t)(now - 1), 1));
        ck_assert(!keep(&f, 2, 2, (uint16_t)(now + N + 2), 1));
        ck_assert(!keep(&f, 2, 2, (uint16_t)(now + 32768), 1));
        ck_assert(!f.s->member[2].met);
        ck_assert(keep(&f, 2, 2, next, 77));
        ck_assert(keep(&f, 2, 2, now, 77));
        ck_assert(!keep(&f, 2, 2, next, 78));
        ck_assert(!keep(&f, 2, 2, now, 78));
        ck_assert(f.s->member[2].met);
        ck_assert_uint_eq(f.s->member[2].cell, 77);
        ck_assert_uint_eq(f.s->member[2].came[now & 1u].advert.epoch, now);
        ck_assert_uint_eq(f.s->member[2].came[next & 1u].advert.epoch, next);
        ck_assert_uint_eq(f.s->member[2].came[next & 1u].key[0], (uint8_t)next);
        fake_free(&f);
    }
}
END_TEST

START_TEST(adverts_of_wrong_members_are_refused)
{
    struct fake f;
    fake_make(&f, 0);
    ck_assert(!keep(&f, 2, 3, 0, 1));
    ck_assert(!keep(&f, 2, -1, 0, 1));
    ck_assert(!keep(&f, 2, N, 0, 1));
    ck_assert(!keep(&f, ME, ME, 0, 1));
    ck_assert(keep(&f, 3, 3, 0, 1));
    fake_free(&f);
}
END_TEST

/* The end of a call empties its own generation of cells and leaves what has come for the next call. */
START_TEST(next_epoch_keeps_what_came_for_it)
{
    struct fake f;
    fake_make(&f, 65535);
    for (int turn = 0; turn < 4; turn++) {
        uint16_t now = f.s->epoch;
        struct came *here = &f.s->member[2].came[now & 1u], *ahead = &f.s->member[2].came[(now + 1) & 1u];
        here->advert.epoch = now;
        ahead->advert.epoch = (uint16_t)(now + 1);
        here->begun = here->whole = here->in_cell = here->advertised = true;
        here->total = here->got = 5;
        ahead->begun = ahead->advertised = true;
        ahead->total = 9;
        ahead->got = 3;
        slot_next_epoch(f.s, REACH_ALL);
        ck_assert_uint_eq(f.s->epoch, (uint16_t)(now + 1));
        ck_assert(!here->begun && !here->whole && !here->in_cell && !here->advertised);
        ck_assert(here->total == 0 && here->got == 0);
        ck_assert(ahead->begun && ahead->advertised && ahead->total == 9 && ahead->got == 3);
    }
    ck_assert_uint_eq(f.s->epoch, 3);
    fake_free(&f);
}
END_TEST

/* A member that gets blocks of others may be calls ahead: its advert is kept, apart from those of the calls before. */
START_TEST(an_advert_of_calls_ahead_is_kept)
{
    struct fake f;
    fake_make(&f, 65534);
    ck_assert(keep(&f, 2, 2, 0, 5));
    ck_assert(!slot_has_advert(f.s, 2));
    slot_next_epoch(f.s, REACH_ROOT);
    ck_assert(!slot_has_advert(f.s, 2));
    slot_next_epoch(f.s, REACH_ROOT);
    ck_assert_uint_eq(f.s->epoch, 0);
    ck_assert(slot_has_advert(f.s, 2));
    slot_next_epoch(f.s, REACH_ROOT);
    ck_assert(!f.s->member[2].came[0].advertised);
    fake_free(&f);
}
END_TEST

/* A block may go when its receiver has begun the call before: all have after a call of all, each says so after others.
 */
START_TEST(credits)
{
    struct fake f;
    fake_make(&f, 65534);
    ck_assert(slot_may_send(f.s, 2) && slot_is_even(f.s)); /* nothing of earlier calls lies anywhere */
    slot_next_epoch(f.s, REACH_ROOT);
    ck_assert(!slot_may_send(f.s, 2) && !slot_is_even(f.s));
    ck_assert(slot_heard(f.s, 2, 65534));
    ck_assert(slot_may_send(f.s, 2) && !slot_may_send(f.s, 3));
    slot_next_epoch(f.s, REACH_ROOT); /* now the call 0 */
    ck_assert(!slot_may_send(f.s, 2));
    ck_assert(!slot_heard(f.s, 2, 65534)); /* late */
    ck_assert(slot_heard(f.s, 2, 1));      /* a call ahead */
    ck_assert(!slot_heard(f.s, 2, 0));     /* nothing new */
    slot_next_epoch(f.s, REACH_ROOT);
    slot_next_epoch(f.s, REACH_ROOT);
    ck_assert(slot_may_send(f.s, 2) && !slot_may_send(f.s, 3));
    slot_next_epoch(f.s, REACH_ALL);
    ck_assert(slot_may_send(f.s, 2) && slot_may_send(f.s, 3) && slot_is_even(f.s));
    fake_free(&f);
}
END_TEST

/* The skew that a call tells is the same at all members: a rooted call and one in rounds change nothing of it. */
START_TEST(skew_of_calls_of_all_alone)
{
    struct fake f;
    fake_make(&f, 7);
    f.s->member[2].came[1].waited = 5;
    slot_next_epoch(f.s, REACH_ALL);
    ck_assert_uint_eq(f.s->skew, 5);
    f.s->member[2].came[0].waited = 9;
    slot_next_epoch(f.s, REACH_ROOT);
    ck_assert_uint_eq(f.s->skew, 5);
    ck_assert_uint_eq(f.s->member[2].came[0].waited, 0);
    ck_assert(!slot_is_even(f.s));
    f.s->member[2].came[1].waited = 3;
    slot_next_epoch(f.s, REACH_BEGUN);
    ck_assert_uint_eq(f.s->skew, 5);
    ck_assert(slot_is_even(f.s));
    f.s->member[3].came[0].waited = 2;
    slot_next_epoch(f.s, REACH_ALL);
    ck_assert_uint_eq(f.s->skew, 2);
    fake_free(&f);
}
END_TEST

/* No two cells of neighbouring epochs or of different members overlap, and all lie in the memory. */
START_TEST(cells_are_apart)
{
    struct fake f;
    fake_make(&f, 65535);
    slot_make_cells(f.s);
    ck_assert_uint_eq(f.s->cell, 1000);
    ck_assert_uint_eq(f.a.cell_bytes, (size_t)2 * N * 1000);
    bool seen[2 * N] = {false};
    for (int m = 0; m < N; m++)
        for (int k = 0; k < 2; k++) {
            ptrdiff_t at = slot_cell(f.s, m, (uint16_t)(65535 + k)) - f.s->cells;
            ck_assert(at >= 0 && at % 1000 == 0 && at / 1000 < (ptrdiff_t)2 * N);
            ck_assert(!seen[at / 1000]);
            seen[at / 1000] = true;
        }
    fake_free(&f);
}
END_TEST

START_TEST(cells_fit_the_memory)
{
    static const struct {
        int scheme;
        size_t memory, taken, cell;
    } cases[] = {{SCHEME_AUTO, 8000, 0, 1000},   {SCHEME_AUTO, 7999, 0, 500},  {SCHEME_AUTO, 8000, 3999, 500},
                 {SCHEME_COPY, 8000, 6999, 125}, {SCHEME_COPY, 8000, 7500, 0}, {SCHEME_COPY, 0, 0, 0},
                 {SCHEME_AUTO, 8000, 90000, 0},  {SCHEME_ZCOPY, 1000000, 0, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fake f;
        fake_make(&f, 0);
        f.a.config.scheme = cases[i].scheme;
        f.a.config.memory = cases[i].memory;
        f.a.cell_bytes = cases[i].taken;
        slot_make_cells(f.s);
        ck_assert_uint_eq(f.s->cell, cases[i].cell);
        ck_assert_uint_eq(f.a.cell_bytes, cases[i].taken + 2 * N * cases[i].cell);
        ck_assert((f.s->cells != NULL) == (cases[i].cell > 0));
        ck_assert(f.s->begun);
        fake_free(&f);
    }
}
END_TEST

/* A retired communicator is answered for until its id is used again: from the creation of the next one on, its adverts
 * are held for its first collective here. */
START_TEST(retired_until_used_again)
{
    const struct wire_advert advert = {.comm = 7, .src = 2};
    uint8_t key[ST_BTL_KEY_MAX] = {0};
    struct fake f;
    fake_make(&f, 0);
    f.comm.id = 7;
    early_retire(&f.a, 6);
    early_retire(&f.a, 7);
    early_retire(&f.a, 8);
    ck_assert(early_is_retired(&f.a, 7));
    early_created(&f.a.base, 7);
    ck_assert(!early_is_retired(&f.a, 7));
    ck_assert(early_is_retired(&f.a, 6) && early_is_retired(&f.a, 8));
    early_hold(&f.a, 2, &advert, key);
    early_freed(&f.a.base, 6);
    ck_assert_uint_eq(f.a.n_early, 1);
    early_freed(&f.a.base, 7); /* without a call here */
    ck_assert_uint_eq(f.a.n_early, 0);
    early_hold(&f.a, 2, &advert, key);
    early_replay(f.s);
    ck_assert(f.a.n_early == 0 && f.s->member[2].met);
    early_forget(&f.a);
    fake_free(&f);
}
END_TEST

/* Adverts that come before the communicator: those of it are taken, others stay. */
START_TEST(early_adverts_are_replayed)
{
    struct fake f;
    uint8_t key[ST_BTL_KEY_MAX] = {0};
    fake_make(&f, 65535);
    f.comm.id = 7;
    for (uint32_t comm = 6; comm <= 7; comm++)
        for (int rank = 2; rank < N; rank++) {
            struct wire_advert advert = {.epoch = (uint16_t)(65535 + rank - 2), .comm = comm, .src = rank, .cell = 9};
            early_hold(&f.a, rank, &advert, key);
        }
    ck_assert_uint_eq(f.a.n_early, 4);
    early_replay(f.s);
    ck_assert_uint_eq(f.a.n_early, 2);
    ck_assert(f.s->member[2].came[1].advertised && f.s->member[3].came[0].advertised);
    ck_assert_uint_eq(f.a.counted[COUNT_REFUSED], 0);
    early_forget(&f.a);
    ck_assert_uint_eq(f.a.n_early, 0);
    fake_free(&f);
}
END_TEST

/* Numbers in notices begin again after the last: those of living communicators are left out. */
START_TEST(ids_of_living_slots_are_left_out)
{
    struct fake f;
    strata_comm_t one = {.size = 1, .id = 9};
    struct st_coll_group group = {.comm = &one};
    struct st_coll_slot *made[2];
    fake_make(&f, 0); /* of the number 0 */
    f.a.config.ranks = N;
    f.a.next_id = NOTICE_IDS - 1;
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(slot_attach(&f.a.base, &group, &made[i]), STRATA_OK);
    ck_assert_uint_eq(((struct slot *)made[0])->id, NOTICE_IDS - 1);
    ck_assert_uint_eq(((struct slot *)made[1])->id, 1);
    ck_assert_ptr_eq(slot_of_id(&f.a, 0), f.s);
    for (int i = 0; i < 2; i++)
        free(made[i]);
    fake_free(&f);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("slot");
    TCase *tc = tcase_create("slot");
    tcase_add_test(tc, adverts_of_two_epochs_are_kept);
    tcase_add_test(tc, adverts_of_wrong_members_are_refused);
    tcase_add_test(tc, next_epoch_keeps_what_came_for_it);
    tcase_add_test(tc, an_advert_of_calls_ahead_is_kept);
    tcase_add_test(tc, credits);
    tcase_add_test(tc, skew_of_calls_of_all_alone);
    tcase_add_test(tc, cells_are_apart);
    tcase_add_test(tc, cells_fit_the_memory);
    tcase_add_test(tc, retired_until_used_again);
    tcase_add_test(tc, early_adverts_are_replayed);
    tcase_add_test(tc, ids_of_living_slots_are_left_out);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
