/* The data area of a ring grows with use: how much memory is reserved when, for which message; what is refused; memory
 * that runs out; another sender; a peer that lies. One thread plays all ranks. */
#include "area.h"
#include "rig.h"
#include "support/run_suite.h"

enum { RANKS = 3, LONGEST = 16000 };

static struct rig_board *board;
static struct rig_rank *r[RANKS];
static struct st_btl_endpoint *to0[RANKS];
static uint32_t sent[RANKS], n_got[RANKS];
static uint8_t data[LONGEST];

static void deliver(void *arg, const struct st_frag *f)
{
    uint32_t i;
    (void)arg;
    memcpy(&i, f->hdr, sizeof i);
    bool good = f->len == 0 || (f->data && ((const uint8_t *)f->data)[0] == (uint8_t)i &&
                                ((const uint8_t *)f->data)[f->len - 1] == (uint8_t)i);
    if (!good)
        ck_abort_msg("message %u of rank %d, %u bytes, is wrong", i, f->rank, f->len);
    n_got[f->rank]++;
}

static void open_job(size_t memory_limit)
{
    board = rig_board(RANKS);
    for (int i = 0; i < RANKS; i++) {
        r[i] = malloc(sizeof *r[i]);
        rig_init(r[i], board, i);
        r[i]->par.rings = 1;
        r[i]->par.promote_after = 2;
        r[i]->par.promote_window = 64;
        r[i]->par.memory_limit = i == 0 ? memory_limit : 0;
        rig_open(r[i]);
        r[i]->btl->am[ST_AM_TEST].fn = deliver;
        sent[i] = n_got[i] = 0;
    }
    for (int i = 1; i < RANKS; i++)
        to0[i] = rig_connect(r[i], 0);
}
static void close_job(void)
{
    for (int i = 0; i < RANKS; i++) {
        rig_close(r[i]);
        free(r[i]);
    }
    munmap(board, sizeof *board);
}
static struct sm_module *mod(int i)
{
    return sm_module(r[i]->btl);
}
static int send_one(int from, uint32_t len)
{
    memset(data, (uint8_t)sent[from], len);
    int rc = r[from]->btl->ops->send(to0[from], ST_AM_TEST, &sent[from], sizeof sent[from], data, len);
    sent[from] += rc == STRATA_OK;
    return rc;
}
static void progress(int rank)
{
    while (r[rank]->btl->ops->progress(r[rank]->btl) > 0)
        ;
}
/* n messages, each read before the next. */
static void heat(int from, int n, uint32_t len)
{
    for (int i = 0; i < n; i++) {
        ck_assert_int_eq(send_one(from, len), STRATA_OK);
        progress(0);
        progress(from);
    }
    ck_assert_uint_eq(n_got[from], sent[from]);
}
/* Sends until the ring refuses a message, with nothing read; returns how many went. */
static uint32_t fill(int from, uint32_t len)
{
    uint32_t n = 0;
    while (send_one(from, len) == STRATA_OK)
        n++;
    return n;
}
/* Memory of a ring with a data area that suits payloads of len bytes. */
static size_t ring_with(uint32_t len)
{
    const struct sm_geometry *g = &mod(0)->seg.geometry;
    return (sm_ring_data_offset(g) + sm_area_bytes(g, len > SM_AREA_FIRST / 8 ? sm_area_step(g, len) : 1) + 4095) /
           4096 * 4096;
}
/* Memory of rank 0 beside its base. */
static size_t reserved(void)
{
    return mod(0)->seg.reserved - mod(0)->seg.at.base_end;
}
static uint64_t by_queue(int from)
{
    return mod(from)->count.queue;
}

START_TEST(little_for_short_messages)
{
    open_job(0);
    heat(1, 1000, 8);
    heat(1, 1000, SM_AREA_FIRST / 8);
    ck_assert_uint_eq(by_queue(1), 2);
    ck_assert_uint_ne(sm_peer(to0[1])->hot.word, ST_HOT_NONE);
    ck_assert_uint_eq(reserved(), ring_with(0));
    /* The first longer one goes by the queue and asks for an area; later ones lie in it. */
    uint64_t before = by_queue(1);
    heat(1, 500, 4000);
    ck_assert_uint_eq(by_queue(1), before + 1);
    ck_assert_uint_eq(reserved(), ring_with(4000));
    heat(1, 500, LONGEST);
    ck_assert_uint_eq(by_queue(1), before + 2);
    ck_assert_uint_le(reserved(), mod(0)->seg.at.ring_stride);
    close_job();
}
END_TEST

START_TEST(an_area_for_the_messages_that_made_it_hot)
{
    open_job(0);
    heat(1, 2, 4000);
    ck_assert_uint_eq(reserved(), ring_with(4000));
    heat(1, 500, 4000);
    ck_assert_uint_eq(by_queue(1), 2);
    ck_assert_uint_eq(reserved(), ring_with(4000));
    close_job();
}
END_TEST

START_TEST(a_sender_that_is_ahead_gets_more)
{
    open_job(0);
    heat(1, 20, 1000);
    uint32_t n = fill(1, 2000), more = 0;
    ck_assert_uint_lt(n * 2000, ring_with(1000));
    for (int round = 0; round < 8; round++) {
        progress(0);
        more = fill(1, round < 4 ? 2000 : 4000);
        ck_assert_uint_ge(more, n);
    }
    ck_assert_uint_gt(more, 4 * n);
    progress(0);
    ck_assert_uint_eq(reserved(), mod(0)->seg.at.ring_stride);
    ck_assert_uint_eq(by_queue(1), 2);
    ck_assert_uint_eq(n_got[1], sent[1]);
    close_job();
}
END_TEST

/* The offer wakes a sender that was refused and sleeps; the sender's request wakes the owner. */
START_TEST(asking_wakes_and_the_offer_wakes)
{
    struct st_btl_wait w = {.fd = -1}, w0 = {.fd = -1};
    open_job(0);
    heat(1, 20, 8);
    ck_assert_int_eq(r[0]->btl->ops->arm(r[0]->btl, &w0), STRATA_OK);
    ck_assert_int_eq(send_one(1, 4000), STRATA_OK); /* by the queue */
    ck_assert_uint_ne(atomic_load(w0.word), w0.expect);
    r[0]->btl->ops->disarm(r[0]->btl);
    ck_assert_int_eq(send_one(1, 4000), STRATA_ERR_AGAIN);
    while (r[1]->btl->ops->arm(r[1]->btl, &w) != STRATA_OK) /* a look at counters that had moved */
        ck_assert_int_eq(send_one(1, 4000), STRATA_ERR_AGAIN);
    progress(0);
    ck_assert_uint_ne(atomic_load(w.word), w.expect);
    r[1]->btl->ops->disarm(r[1]->btl);
    ck_assert_int_eq(send_one(1, 4000), STRATA_OK);
    progress(0);
    ck_assert_uint_eq(n_got[1], sent[1]);
    close_job();
}
END_TEST

START_TEST(another_sender_uses_what_is_there)
{
    open_job(0);
    heat(1, 20, 8);
    heat(1, 20, LONGEST);
    size_t before = reserved();
    ck_assert_uint_gt(before, ring_with(1000));
    for (int i = 0; i < 2000 && sm_peer(to0[2])->hot.word == ST_HOT_NONE; i++)
        for (int rank = 2; rank >= 0; rank--) {
            if (rank == 2)
                ck_assert_int_eq(send_one(2, 8), STRATA_OK);
            progress(rank);
        }
    ck_assert_uint_ne(sm_peer(to0[2])->hot.word, ST_HOT_NONE);
    ck_assert_uint_eq(sm_peer(to0[1])->hot.word, ST_HOT_NONE);
    uint64_t queue = by_queue(2);
    heat(2, 100, 1000);
    heat(2, 100, LONGEST);
    ck_assert_uint_eq(by_queue(2), queue);
    ck_assert_uint_eq(reserved(), before);
    close_job();
}
END_TEST

/* Memory for the descriptors, and for the first area or not: the ring is given up when a message needs more, and all
 * goes by the queue. */
START_TEST(memory_runs_out)
{
    open_job(0);
    size_t limit = mod(0)->seg.at.base_end + ring_with(_i ? 4000 : 0);
    close_job();
    open_job(limit);
    heat(1, 20, 8);
    ck_assert_uint_ne(sm_peer(to0[1])->hot.word, ST_HOT_NONE);
    if (_i) { /* more room would be better, but this goes on as it is */
        heat(1, 20, 4000);
        for (int round = 0; round < 4; round++) {
            fill(1, 4000);
            progress(0);
        }
        ck_assert_uint_ne(sm_peer(to0[1])->hot.word, ST_HOT_NONE);
    }
    uint32_t len = _i ? 12500 : LONGEST;           /* of the step that was wished for in vain, or of more */
    ck_assert_int_eq(send_one(1, len), STRATA_OK); /* by the queue, and needs an area */
    ck_assert_int_eq(send_one(1, len), STRATA_ERR_AGAIN);
    progress(0);
    ck_assert_int_eq(send_one(1, len), STRATA_OK);
    ck_assert_uint_eq(sm_peer(to0[1])->hot.word, ST_HOT_NONE);
    progress(0);
    ck_assert_uint_eq(mod(0)->hot.places[0].state, ST_HOT_FREE);
    heat(1, 100, LONGEST);
    heat(1, 100, 8);
    ck_assert_uint_eq(sm_peer(to0[1])->hot.word, ST_HOT_NONE);
    ck_assert_uint_le(mod(0)->seg.reserved, limit);
    ck_assert_int_eq(r[0]->failures + r[1]->failures, 0);
    close_job();
}
END_TEST

START_TEST(an_offer_that_lies)
{
    open_job(0);
    heat(1, 20, 8);
    atomic_store(&sm_peer(to0[1])->tx.ctl->offered, 200);
    ck_assert_int_eq(send_one(1, 1000), STRATA_ERR_AGAIN);
    ck_assert_int_eq(send_one(1, 1000), STRATA_ERR_PEER);
    ck_assert_int_eq(r[1]->failures, 1);
    ck_assert_int_eq(r[1]->last_failure, STRATA_ERR_PROTOCOL);
    close_job();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("data area");
    TCase *t = tcase_create("data area");
    tcase_add_test(t, little_for_short_messages);
    tcase_add_test(t, an_area_for_the_messages_that_made_it_hot);
    tcase_add_test(t, a_sender_that_is_ahead_gets_more);
    tcase_add_test(t, asking_wakes_and_the_offer_wakes);
    tcase_add_test(t, another_sender_uses_what_is_there);
    tcase_add_loop_test(t, memory_runs_out, 0, 2);
    tcase_add_test(t, an_offer_that_lies);
    suite_add_tcase(s, t);
    return run_suite(s);
}
