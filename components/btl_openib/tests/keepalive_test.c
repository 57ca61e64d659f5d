/* When a silent peer is probed, with verbs that are made up and a clock that the test moves. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "data/rdma.h"
#include "module.h"
#include "support/fake_clock.h"
#include "support/run_suite.h"

enum { DEPTH = 64, KEEPALIVE_MS = 1000, MS = 1000000, STEP = KEEPALIVE_MS * MS / 1000 };

static struct ibv_context device;
static struct ibv_qp qp = {.context = &device};
static struct ib_params params = {.keepalive_ms = KEEPALIVE_MS};
static struct ib_module *m;
static struct ib_peer *p;
static int n_probes;

static int post(struct ibv_qp *to, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    (void)to, (void)bad;
    ck_assert_int_eq(wr->opcode, IBV_WR_RDMA_WRITE);
    ck_assert_int_eq(wr->num_sge, 0);
    n_probes++;
    return 0;
}

static void open_module(void)
{
    n_probes = 0;
    fake_ns = 1;
    m = calloc(1, sizeof *m);
    p = calloc(1, sizeof *p);
    device.ops.post_send = post;
    m->dev.par = &params;
    m->qps.n_peers = 1;
    m->peers.all = p;
    p->ep = (struct st_btl_endpoint){.btl = &m->btl, .rank = 1};
    p->state = IB_UP;
    p->q[IB_LOW] =
        (struct ib_qp){.qp = &qp, .peer = p, .priority = IB_LOW, .depth = DEPTH, .every = 1, .mask = DEPTH - 1};
    p->q[IB_LOW].sent = calloc(DEPTH, sizeof *p->q[IB_LOW].sent);
    ck_assert_int_eq(ib_rdmas_open(&m->rdma), STRATA_OK);
}

static void close_module(void)
{
    free(p->q[IB_LOW].sent);
    st_slab_destroy(&m->rdma.slab);
    free(p);
    free(m);
    fake_ns = 0;
}

/* Rounds of progress until the peer is probed; the time that it took, ns, 0: it was not, within four intervals. */
static uint64_t until_probed(void)
{
    uint64_t began = fake_ns;

    for (int i = 0; i < 4000; i++) {
        fake_ns += STEP;
        ib_keepalive(m);
        if (n_probes)
            return fake_ns - began;
    }
    return 0;
}

/* Whenever the last message comes: within keepalive_ms and a tenth of it, and not before. */
START_TEST(silence_is_found_in_time)
{
    for (int phase = 0; phase < 200; phase += 3) {
        uint64_t took;
        open_module();
        for (int i = 0; i < phase; i++) {
            p->q[IB_HIGH].received++;
            fake_ns += STEP;
            ib_keepalive(m);
        }
        ck_assert_int_eq(n_probes, 0);
        p->q[IB_HIGH].received++;
        took = until_probed();
        ck_assert_uint_ge(took, (uint64_t)KEEPALIVE_MS * MS - STEP);
        ck_assert_uint_le(took, (uint64_t)KEEPALIVE_MS * MS * 11 / 10);
        close_module();
    }
}
END_TEST

/* One that stays silent is probed once in each interval. */
START_TEST(one_probe_in_each_interval)
{
    open_module();
    for (int i = 0; i < 10000; i++) {
        fake_ns += STEP;
        ib_keepalive(m);
        p->q[IB_LOW].done = p->q[IB_LOW].posted;
    }
    ck_assert_int_ge(n_probes, 9);
    ck_assert_int_le(n_probes, 10);
    close_module();
}
END_TEST

/* A peer with a request in flight hears of a lost connection by that. */
START_TEST(not_with_a_request_in_flight)
{
    open_module();
    p->q[IB_LOW].posted = 1;
    ck_assert_uint_eq(until_probed(), 0);
    close_module();
}
END_TEST

START_TEST(never_if_zero)
{
    open_module();
    params.keepalive_ms = 0;
    ck_assert_uint_eq(until_probed(), 0);
    params.keepalive_ms = KEEPALIVE_MS;
    close_module();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ib_keepalive");
    TCase *tc = tcase_create("keepalive");

    tcase_add_test(tc, silence_is_found_in_time);
    tcase_add_test(tc, one_probe_in_each_interval);
    tcase_add_test(tc, not_with_a_request_in_flight);
    tcase_add_test(tc, never_if_zero);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
