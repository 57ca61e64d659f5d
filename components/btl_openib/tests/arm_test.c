/* Getting ready to sleep, with queues of completions that are made up: what is found goes to the stash, and from then
 * on nothing passes it. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "data/completion.h"
#include "support/run_suite.h"

static struct {
    struct ibv_cq cq;
    int there;   /* completions to be found */
    int refused; /* errno of a request for an event; 0: it is granted */
    int polls;
} queue[IB_PRIORITIES];
static struct ibv_context device;
static struct ibv_comp_channel channel;
static struct ib_params params;
static struct ib_module *m;

static int notify(struct ibv_cq *cq, int solicited)
{
    (void)solicited;
    for (int i = 0; i < IB_PRIORITIES; i++)
        if (cq == &queue[i].cq)
            return queue[i].refused;
    return EINVAL;
}

/* Completions that belong to nobody: of receives whose queue pair has gone. */
static int find(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
    int i = cq == &queue[IB_LOW].cq, n = queue[i].there < most ? queue[i].there : most;

    queue[i].polls++;
    queue[i].there -= n;
    memset(wc, 0, (size_t)n * sizeof *wc);
    for (int k = 0; k < n; k++)
        wc[k].status = IBV_WC_WR_FLUSH_ERR;
    return n;
}

static void open_module(void)
{
    memset(queue, 0, sizeof queue);
    m = calloc(1, sizeof *m);
    device.async_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    channel.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    device.ops.poll_cq = find;
    device.ops.req_notify_cq = notify;
    m->dev.par = &params;
    m->dev.verbs = &device;
    m->dev.channel = &channel;
    m->oob.wait_fd = -1;
    m->poll.hot = true;
    m->qps.n_peers = 1;
    st_list_init(&m->conns.pending);
    st_list_init(&m->rdma.waiting);
    for (int i = 0; i < IB_PRIORITIES; i++) {
        queue[i].cq.context = &device;
        m->q[i].cq = &queue[i].cq;
    }
}

static void close_module(void)
{
    close(device.async_fd);
    close(channel.fd);
    free(m);
}

START_TEST(nothing_there)
{
    struct st_btl_wait w = {.fd = -1};

    ck_assert_int_eq(ib_arm(&m->btl, &w), STRATA_OK);
    ck_assert_int_eq(w.fd, channel.fd);
    ck_assert(m->poll.hot && !m->poll.stashed);
}
END_TEST

/* What was found of one priority holds though the other cannot be armed: no look for completions comes before it. */
static void stashed(int of)
{
    struct st_btl_wait w;

    ck_assert_int_eq(ib_arm(&m->btl, &w), STRATA_ERR_AGAIN);
    ck_assert(m->poll.stashed && !m->poll.hot && m->poll.attend);
    ck_assert_int_eq(m->poll.stash[of].n, IB_POLLED);
    queue[IB_HIGH].there = IB_POLLED;
    queue[IB_HIGH].polls = 0;
    ib_reclaim(m);
    ck_assert_int_eq(queue[IB_HIGH].polls, 0);
    ck_assert_int_eq(m->poll.stash[of].n, IB_POLLED);
}

START_TEST(found)
{
    queue[_i].there = IB_POLLED;
    stashed(_i);
}
END_TEST

START_TEST(found_and_refused)
{
    queue[IB_HIGH].there = IB_POLLED;
    queue[IB_LOW].refused = ENOMEM;
    stashed(IB_HIGH);
}
END_TEST

START_TEST(refused)
{
    struct st_btl_wait w;

    queue[_i].refused = ENOMEM;
    ck_assert_int_eq(ib_arm(&m->btl, &w), STRATA_ERR_AGAIN);
    ck_assert(m->poll.hot && !m->poll.stashed);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("getting ready to sleep");
    TCase *t = tcase_create("all");

    tcase_add_checked_fixture(t, open_module, close_module);
    tcase_add_test(t, nothing_there);
    tcase_add_loop_test(t, found, 0, IB_PRIORITIES);
    tcase_add_test(t, found_and_refused);
    tcase_add_loop_test(t, refused, 0, IB_PRIORITIES);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
