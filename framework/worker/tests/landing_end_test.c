/* The receiver's end of a landing ring on a path that fails; the test is the sender. Rings between ranks are in
 * tests/conformance/landing_ring_test.c and landing_failure_test.c. */
#include <check.h>
#include <string.h>
#include <strata/sdk/landing_ends.h>
#include "framework/worker/worker.h"
#include "support/fake_stack.h"
#include "support/run_suite.h"

FAKE_STACK_TABLE;

enum { PEER = 2, SIZE = 1024, NAME = 3, MESSAGES = 3, LENGTH = 300 };

static strata_t *s;
static struct st_worker *w;
static struct st_peer *peer;
static struct st_landing_receiver *in;
static struct st_landing_card card;
static uint32_t notices[MESSAGES], n_notices, n_unread; /* what was put; of that the module has not read so many */
_Alignas(64) static char staging[SIZE];

static int reg(struct st_btl *b, void *base, size_t length, unsigned uses, struct st_btl_reg *out)
{
    (void)b, (void)base, (void)length, (void)uses;
    memset(out, 0, sizeof *out);
    return STRATA_OK;
}
static void dereg(struct st_btl *b, struct st_btl_reg *r)
{
    (void)b, (void)r;
}
static int reads(struct st_btl *b)
{
    (void)b;
    if (n_unread == 0)
        return 0;
    st_landing_receiver_notified(in, notices[MESSAGES - n_unread--]);
    return 1;
}
static void changed(void *arg, struct st_peer *p)
{
    (void)arg, (void)p;
    if (in)
        st_landing_receiver_changed(in);
}
static void deliver(void *arg, const struct st_frag *frag)
{
    (void)arg, (void)frag;
}
static const struct st_client client = {
    .am = ST_AM_TEST, .deliver = deliver, .peer_changed = changed, .peer_failed = changed};

static void start(void)
{
    static const struct st_btl_rdma rdma = {.reg = reg, .dereg = dereg};
    static struct st_btl_ops ops; /* until the module is closed */
    struct st_landing_where at = {.am = ST_AM_TEST};

    s = fake_start();
    fake.n_paths = 2;
    w = at.worker = fake.pml->worker;
    w->paths = (struct st_worker_paths){.retry_ms = 1000, .wait_ms = 60000};
    ops = *fake.btl[0]->ops;
    ops.progress = reads;
    fake.btl[0]->ops = &ops;
    fake.btl[0]->rdma = &rdma;
    ck_assert_int_eq(st_worker_join(w, &client, NULL), STRATA_OK);
    ck_assert_int_eq(st_worker_peer(w, PEER, &peer), STRATA_OK);
    ck_assert_int_eq(st_worker_connect(w, peer), STRATA_OK);
    st_worker_poll_add(w, fake.btl[0]);
    at.peer = peer;
    ck_assert_int_eq(st_landing_receiver_open(&at, SIZE, NAME, &in, &card), STRATA_OK);
}
static void end(void)
{
    st_landing_receiver_close(in);
    in = NULL;
    st_worker_leave(w, &client);
    fake_end(s);
}

static int put(void *arg, uint32_t which, uint32_t offset, uint32_t len, uint32_t notice)
{
    (void)arg, (void)which;
    memcpy((char *)(uintptr_t)card.base + offset, staging + offset, len);
    notices[n_notices++] = notice;
    return 1;
}

static void takes(int number)
{
    char got[LENGTH], want[LENGTH];
    struct st_landing_view v;

    memset(want, number, sizeof want);
    ck_assert_int_eq(st_landing_receiver_peek(in, &v), STRATA_OK);
    ck_assert_uint_eq(st_landing_length(&v), LENGTH);
    st_landing_copy(&v, got);
    ck_assert_mem_eq(got, want, LENGTH);
    ck_assert_int_eq(st_landing_receiver_release(in, &v), STRATA_OK);
}

/* A credit notices that the path is lost, before the module has read what had come: that is handed out as well. */
START_TEST(credit_notices_the_loss)
{
    struct st_landing_out out;
    struct st_landing_view v;
    char data[LENGTH];

    n_notices = n_unread = 0;
    ck_assert_int_eq(st_landing_out_create(&out, staging, SIZE, NAME, put, NULL), STRATA_OK);
    for (int i = 0; i < MESSAGES; i++) {
        memset(data, i, sizeof data);
        ck_assert_int_eq(st_landing_send(&out, data, sizeof data), STRATA_OK);
    }
    st_landing_receiver_notified(in, notices[0]);
    n_unread = MESSAGES - 1;
    fake.send_rc[0] = STRATA_ERR_PEER;
    fake.btl[0]->path_failed(fake.btl[0]->peer_failed_arg, peer->bml->paths[0].ep, STRATA_ERR_PEER, "cable");
    takes(0);
    peer->bml->paths[0].weight = 0; /* as the bml does when it is told */
    strata_progress(s);
    ck_assert_uint_eq(n_unread, 0);
    for (int i = 1; i < MESSAGES; i++)
        takes(i);
    ck_assert_int_eq(st_landing_receiver_peek(in, &v), STRATA_ERR_PEER);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("landing ends");
    TCase *tc = tcase_create("landing");

    tcase_add_checked_fixture(tc, start, end);
    tcase_add_test(tc, credit_notices_the_loss);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
