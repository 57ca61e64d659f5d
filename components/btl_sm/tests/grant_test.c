/* Rings change hands: granted, used, taken back, given to another; nothing is lost or doubled on the way. */
#define _GNU_SOURCE 1
#include "rig.h"
#include "support/run_suite.h"
#include "support/world.h"

#include <sys/mman.h>
#include <sys/resource.h>

struct log {
    uint32_t seen[4096];
    uint32_t n, twice;
};
static void deliver(void *arg, const struct st_frag *f)
{
    struct log *l = arg;
    uint32_t i;
    memcpy(&i, f->hdr, sizeof i);
    i += (uint32_t)f->rank * 1024;
    l->twice += l->seen[i]++;
    l->n++;
}

struct job {
    struct rig_board *board;
    struct rig_rank *r[4];
    struct st_btl_endpoint *to0[4];
    struct log log;
    uint32_t sent[4];
};

static void job_open(struct job *j, int64_t rings)
{
    memset(j, 0, sizeof *j);
    j->board = rig_board(4);
    for (int i = 0; i < 4; i++) {
        j->r[i] = malloc(sizeof *j->r[i]);
        rig_init(j->r[i], j->board, i);
        j->r[i]->par.rings = rings;
        j->r[i]->par.promote_after = 4;
        j->r[i]->par.promote_window = 64;
        j->r[i]->par.ring_slots = 16;
        rig_open(j->r[i]);
        j->r[i]->btl->am[ST_AM_TEST].fn = deliver;
        j->r[i]->btl->am[ST_AM_TEST].arg = &j->log;
    }
    for (int i = 1; i < 4; i++)
        j->to0[i] = rig_connect(j->r[i], 0);
}
static void job_close(struct job *j)
{
    for (int i = 0; i < 4; i++) {
        rig_close(j->r[i]);
        free(j->r[i]);
    }
    munmap(j->board, sizeof *j->board);
}
static int send_one(struct job *j, int from)
{
    uint32_t i = j->sent[from];
    int rc = j->r[from]->btl->ops->send(j->to0[from], ST_AM_TEST, &i, sizeof i, NULL, 0);
    if (rc == STRATA_OK)
        j->sent[from]++;
    return rc;
}
static void turn(struct job *j, int rank)
{
    for (int i = 0; i < 4; i++)
        j->r[rank]->btl->ops->progress(j->r[rank]->btl);
}
static void heat(struct job *j, int from, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        while (send_one(j, from) == STRATA_ERR_AGAIN)
            turn(j, 0);
        turn(j, 0);
    }
}
static struct sm_module *mod(struct job *j, int i)
{
    return sm_module(j->r[i]->btl);
}

static long faults(void)
{
    struct rusage u;
    ck_assert_int_eq(getrusage(RUSAGE_THREAD, &u), 0);
    return u.ru_minflt;
}

/* The first use of a ring's pages costs no page fault each: both sides have entered them when there was memory. */
START_TEST(a_new_ring_is_warm)
{
#ifdef MADV_POPULATE_WRITE
    static uint8_t data[4000];
    struct job j;
    job_open(&j, 1);
    heat(&j, 1, 20);
    ck_assert_uint_ne(sm_peer(j.to0[1])->hot.word, ST_HOT_NONE);
    enum { MESSAGES = 60, FILLS = 4 };
    uint32_t i = 0;
    for (int fill = 0; fill < FILLS; fill++) { /* until the data area is as large as it can be */
        while (j.r[1]->btl->ops->send(j.to0[1], ST_AM_TEST, &i, sizeof i, data, sizeof data) == STRATA_OK)
            i++;
        for (int k = 0; k < 8; k++)
            turn(&j, 0);
    }
    uint64_t by_cell = mod(&j, 1)->count.cell;
    long before = faults();
    for (uint32_t end = i + MESSAGES; i < end; i++) {
        ck_assert_int_eq(j.r[1]->btl->ops->send(j.to0[1], ST_AM_TEST, &i, sizeof i, data, sizeof data), STRATA_OK);
        turn(&j, 0);
    }
    ck_assert_uint_eq(mod(&j, 1)->count.cell, by_cell);
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!test_sanitized() && madvise(page, 4096, MADV_POPULATE_WRITE) == 0)
        ck_assert_int_lt(faults() - before, MESSAGES / 6);
    else
        printf("a_new_ring_is_warm: not judged: this kernel cannot, or a sanitizer has page faults of its own\n");
    munmap(page, 4096);
    job_close(&j);
#endif
}
END_TEST

START_TEST(promotion)
{
    struct job j;
    job_open(&j, 2);
    ck_assert_uint_eq(sm_peer(j.to0[1])->hot.word, ST_HOT_NONE);
    ck_assert_uint_eq(mod(&j, 0)->seg.reserved,
                      mod(&j, 0)->seg.at.base_end); /* no ring's memory before anybody sends */
    for (int i = 1; i < 4; i++)
        heat(&j, i, 1);
    /* The first of one, however many peers have sent. */
    ck_assert_uint_eq(mod(&j, 0)->seg.reserved,
                      mod(&j, 0)->seg.at.base_end +
                          (sm_ring_data_offset(&mod(&j, 0)->seg.geometry) + SM_AREA_FIRST + 4095) / 4096 * 4096);
    heat(&j, 1, 3);
    ck_assert_uint_eq(mod(&j, 0)->n_order, 1);
    uint64_t by_queue = mod(&j, 1)->count.queue;
    heat(&j, 1, 100);
    ck_assert_uint_eq(mod(&j, 1)->count.queue, by_queue);
    ck_assert_uint_ne(sm_peer(j.to0[1])->hot.word, ST_HOT_NONE);
    char *text = j.r[1]->btl->ops->describe(j.r[1]->btl, j.to0[1]);
    ck_assert_ptr_nonnull(strstr(text, "\"path\":\"ring\""));
    free(text);
    ck_assert_uint_eq(j.log.n, 106);
    job_close(&j);
}
END_TEST

START_TEST(hand_over)
{
    struct job j;
    job_open(&j, 1);
    heat(&j, 1, 10);
    ck_assert_uint_ne(sm_peer(j.to0[1])->hot.word, ST_HOT_NONE);
    /* Some of rank 1's messages lie unread in its ring while rank 2 becomes hotter. */
    for (int k = 0; k < 5; k++)
        ck_assert_int_eq(send_one(&j, 1), STRATA_OK);
    struct sm_module *m = mod(&j, 0);
    for (int k = 0; k < 900 && m->count.revoked == 0; k++)
        heat(&j, 2, 1);
    ck_assert_uint_eq(m->count.revoked, 1);
    ck_assert_uint_eq(m->hot.places[0].state, ST_HOT_REVOKED);
    turn(&j, 0); /* puts the nudge into rank 1's queue */
    turn(&j, 1); /* rank 1 sends nothing, only makes progress: it says good-bye */
    ck_assert_uint_eq(sm_peer(j.to0[1])->hot.word, ST_HOT_NONE);
    turn(&j, 0);
    ck_assert_uint_eq(m->hot.places[0].state, ST_HOT_FREE);
    ck_assert_uint_eq(m->hot.n_revoked, 0);
    heat(&j, 2, 40);
    ck_assert_int_eq(m->rings[0].rank, 2);
    ck_assert_uint_eq(m->hot.places[0].state, ST_HOT_GRANTED);
    heat(&j, 1, 3); /* by the queue again */
    ck_assert_uint_eq(j.log.twice, 0);
    ck_assert_uint_eq(j.log.n, j.sent[1] + j.sent[2]);
    job_close(&j);
}
END_TEST

START_TEST(taken_back_while_full)
{
    struct job j;
    job_open(&j, 1);
    heat(&j, 1, 10);
    while (send_one(&j, 1) == STRATA_OK) /* until the ring is full */
        ;
    struct sm_module *m = mod(&j, 0);
    atomic_store(&m->dir[sm_peer(j.to0[1])->my_index].grant, 0); /* as revoke does */
    ck_assert_int_eq(send_one(&j, 1), STRATA_ERR_AGAIN);         /* no room for the BYE: nothing was taken */
    turn(&j, 0);
    ck_assert_int_eq(send_one(&j, 1), STRATA_OK);
    turn(&j, 0);
    ck_assert_uint_eq(j.log.n, j.sent[1]);
    ck_assert_uint_eq(j.log.twice, 0);
    job_close(&j);
}
END_TEST

START_TEST(disconnect_and_come_back)
{
    struct job j;
    job_open(&j, 1);
    for (int round = 0; round < 20; round++) {
        heat(&j, 1, 20);
        ck_assert_int_eq(send_one(&j, 1), STRATA_OK);
        j.r[1]->btl->ops->disconnect(j.to0[1]);
        j.to0[1] = rig_connect(j.r[1], 0);
        ck_assert_int_eq(send_one(&j, 1), STRATA_OK); /* the old grant still stands there: not to be used */
        ck_assert_uint_eq(sm_peer(j.to0[1])->hot.word, ST_HOT_NONE);
    }
    turn(&j, 0);
    ck_assert_uint_eq(j.log.n, j.sent[1]);
    ck_assert_uint_eq(j.log.twice, 0);
    job_close(&j);
}
END_TEST

START_TEST(generations_run_over)
{
    struct job j;
    job_open(&j, 1);
    mod(&j, 0)->hot.generation = 0x7ffd;
    for (int round = 0; round < 6; round++) {
        heat(&j, 1, 20);
        ck_assert_uint_ne(sm_peer(j.to0[1])->hot.word, ST_HOT_NONE);
        j.r[1]->btl->ops->disconnect(j.to0[1]);
        j.to0[1] = rig_connect(j.r[1], 0);
        turn(&j, 0);
    }
    ck_assert_uint_lt(mod(&j, 0)->hot.generation, 0x7ffd); /* it has run over */
    ck_assert_uint_eq(j.log.n, j.sent[1]);
    ck_assert_uint_eq(j.log.twice, 0);
    job_close(&j);
}
END_TEST

START_TEST(sleeping)
{
    struct job j;
    struct st_btl_wait w = {.fd = -1};
    job_open(&j, 1);
    ck_assert_int_eq(j.r[0]->btl->ops->arm(j.r[0]->btl, &w), STRATA_OK);
    ck_assert_int_eq(w.fd, -1);
    ck_assert_uint_eq(atomic_load(w.word), w.expect);
    ck_assert_int_eq(send_one(&j, 1), STRATA_OK);
    ck_assert_uint_ne(atomic_load(w.word), w.expect); /* a sleeper would be awake */
    j.r[0]->btl->ops->disarm(j.r[0]->btl);
    uint32_t word = atomic_load(w.word);
    ck_assert_int_eq(j.r[0]->btl->ops->arm(j.r[0]->btl, &w), STRATA_ERR_AGAIN); /* something is there */
    turn(&j, 0);
    ck_assert_int_eq(send_one(&j, 1), STRATA_OK);
    ck_assert_uint_eq(atomic_load(w.word), word); /* nobody sleeps: no system call */
    turn(&j, 0);
    heat(&j, 1, 10); /* the same by a ring */
    ck_assert_int_eq(j.r[0]->btl->ops->arm(j.r[0]->btl, &w), STRATA_OK);
    ck_assert_int_eq(send_one(&j, 1), STRATA_OK);
    ck_assert_uint_ne(atomic_load(w.word), w.expect);
    j.r[0]->btl->ops->disarm(j.r[0]->btl);
    ck_assert_int_eq(j.r[0]->btl->ops->arm(j.r[0]->btl, &w), STRATA_ERR_AGAIN);
    job_close(&j);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("grants");
    TCase *t = tcase_create("grants");
    tcase_add_test(t, promotion);
    tcase_add_test(t, a_new_ring_is_warm);
    tcase_add_test(t, hand_over);
    tcase_add_test(t, taken_back_while_full);
    tcase_add_test(t, disconnect_and_come_back);
    tcase_add_test(t, generations_run_over);
    tcase_add_test(t, sleeping);
    suite_add_tcase(s, t);
    return run_suite(s);
}
