/* A sender that was refused sleeps until there is room: in a ring, in the shared queue, in cells; by word and by
 * descriptor. The worker hears of each wake. One thread plays all ranks. */
#include <poll.h>
#include <strata/sdk/worker.h>

#include "rig.h"
#include "support/run_suite.h"

static int n_got;
static void deliver(void *arg, const struct st_frag *f)
{
    (void)arg, (void)f;
    n_got++;
}

static struct rig_board *board;
static struct rig_rank *r[3];
static struct st_btl_endpoint *to0, *to2;
static struct st_worker wakers; /* the worker of all ranks but 1 */

static void open_job(int64_t rings)
{
    board = rig_board(3);
    for (int i = 0; i < 3; i++) {
        r[i] = malloc(sizeof *r[i]);
        rig_init(r[i], board, i);
        r[i]->par.rings = rings;
        r[i]->par.ring_slots = 16;
        r[i]->par.queue_slots = 16;
        r[i]->par.cells = 4;
        r[i]->par.promote_after = 2;
        rig_open(r[i]);
        r[i]->btl->am[ST_AM_TEST].fn = deliver;
    }
    r[0]->btl->worker = r[2]->btl->worker = &wakers;
    wakers.context = &r[0]->context;
    r[0]->context.spin_limit = 10000;
    to0 = rig_connect(r[1], 0);
    to2 = rig_connect(r[1], 2);
    n_got = 0;
}
static void close_job(void)
{
    for (int i = 0; i < 3; i++) {
        rig_close(r[i]);
        free(r[i]);
    }
    munmap(board, sizeof *board);
}

static int send_to(struct st_btl_endpoint *ep, uint32_t len)
{
    static char data[4096];
    uint32_t hdr = 0;
    return r[1]->btl->ops->send(ep, ST_AM_TEST, &hdr, sizeof hdr, data, len);
}
static void progress(int rank)
{
    while (r[rank]->btl->ops->progress(r[rank]->btl) > 0)
        ;
}
static bool by_fd;
static struct st_btl_wait wait;
static int arm(void)
{
    wait = (struct st_btl_wait){.fd = -1, .by_fd = by_fd};
    return r[1]->btl->ops->arm(r[1]->btl, &wait);
}
/* Rank 1 sleeps, and nothing has woken it. */
static bool sleeps(void)
{
    struct pollfd p = {.fd = wait.fd, .events = POLLIN};
    return wait.word ? atomic_load(wait.word) == wait.expect : poll(&p, 1, 0) == 0;
}
static void disarm(void)
{
    r[1]->btl->ops->disarm(r[1]->btl);
}

/* Fills what rank 0 offers; sleeps; is woken when rank 0 reads, and can send. */
static void fill_and_sleep(uint32_t len)
{
    int n = 0, before = n_got;
    while (send_to(to0, len) == STRATA_OK)
        n++;
    ck_assert_int_gt(n, 0);
    while (arm() != STRATA_OK) /* a look at counters that had moved */
        ck_assert_int_eq(send_to(to0, len), STRATA_ERR_AGAIN);
    ck_assert(sleeps());
    atomic_store(&wakers.attention, 0);
    progress(0);
    ck_assert_int_eq(n_got, before + n);
    ck_assert(!sleeps());
    ck_assert_uint_ne(atomic_load(&wakers.attention), 0);
    disarm();
    ck_assert_int_eq(send_to(to0, len), STRATA_OK);
    progress(0);
}

START_TEST(in_a_ring)
{
    by_fd = _i == 1;
    open_job(1);
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(send_to(to0, 8), STRATA_OK);
        progress(0);
    }
    ck_assert_uint_ne(sm_peer(to0)->hot.word, ST_HOT_NONE);
    for (int round = 0; round < 5; round++)
        fill_and_sleep(round % 2 ? 8 : 2000);
    close_job();
}
END_TEST

START_TEST(in_the_queue)
{
    by_fd = _i == 1;
    open_job(0);
    for (int round = 0; round < 5; round++)
        fill_and_sleep(8);
    close_job();
}
END_TEST

START_TEST(in_cells)
{
    by_fd = _i == 1;
    open_job(0);
    for (int round = 0; round < 5; round++)
        fill_and_sleep(2000);
    close_job();
}
END_TEST

/* All cells are with rank 2, and the message is for rank 0: rank 2 makes the room. */
START_TEST(in_cells_that_another_holds)
{
    by_fd = _i == 1;
    open_job(0);
    while (send_to(to2, 2000) == STRATA_OK)
        ;
    ck_assert_int_eq(send_to(to0, 2000), STRATA_ERR_AGAIN);
    ck_assert_int_eq(arm(), STRATA_OK);
    progress(0);
    ck_assert(sleeps());
    progress(2);
    ck_assert(!sleeps());
    disarm();
    ck_assert_int_eq(send_to(to0, 2000), STRATA_OK);
    progress(0);
    close_job();
}
END_TEST

/* Room that was made between the refusal and the sleep forbids the sleep; nobody who was not refused is woken. */
START_TEST(room_before_the_sleep)
{
    by_fd = _i == 1;
    open_job(0);
    while (send_to(to0, 8) == STRATA_OK)
        ;
    progress(0);
    ck_assert_int_eq(arm(), STRATA_ERR_AGAIN);
    ck_assert_int_eq(arm(), STRATA_OK);
    ck_assert_int_eq(r[2]->btl->ops->progress(r[2]->btl), 0);
    ck_assert(sleeps());
    disarm();
    close_job();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("room");
    TCase *t = tcase_create("by word and by descriptor");
    tcase_add_loop_test(t, in_a_ring, 0, 2);
    tcase_add_loop_test(t, in_the_queue, 0, 2);
    tcase_add_loop_test(t, in_cells, 0, 2);
    tcase_add_loop_test(t, in_cells_that_another_holds, 0, 2);
    tcase_add_loop_test(t, room_before_the_sleep, 0, 2);
    suite_add_tcase(s, t);
    return run_suite(s);
}
