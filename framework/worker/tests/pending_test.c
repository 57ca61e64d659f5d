/* Peers and the work that waits for them: order of queues, busy paths, turns, what becomes of it when the peer fails.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>
#include "framework/worker/worker.h"
#include "support/fake_stack.h"
#include "support/run_suite.h"

FAKE_STACK_TABLE;

static strata_t *s;
static struct st_worker *w;
static struct st_peer *peer;
static char trace[128];
static int changed, firsts_left, firsts_rc;

struct item {
    struct st_work work;
    char name;
    int rc[4], at; /* what run returns, in turn */
};

static void note(char c)
{
    size_t n = strlen(trace);
    snprintf(trace + n, sizeof trace - n, "%c", c);
}
static int run(void *arg, struct st_work *work)
{
    struct item *i = ST_CONTAINER(work, struct item, work);
    ck_assert_ptr_eq(arg, trace);
    note(i->name);
    return i->rc[i->at++];
}
static void drop(void *arg, struct st_work *work, int rc)
{
    ck_assert_ptr_eq(arg, trace);
    ck_assert_int_eq(rc, STRATA_ERR_PEER);
    note((char)(ST_CONTAINER(work, struct item, work)->name - 'a' + 'A'));
}
static const struct st_work_ops ops = {ST_AM_TEST, run, drop};

static void deliver(void *arg, const struct st_frag *frag)
{
    (void)arg, (void)frag;
}
static void peer_changed(void *arg, struct st_peer *p)
{
    (void)arg;
    ck_assert(p == peer && p->bml);
    changed++;
}
static int firsts(void *arg, struct st_peer *p, uint32_t *busy)
{
    (void)arg;
    note('1');
    if (firsts_rc == STRATA_ERR_AGAIN) {
        *busy |= 1u;
        return 0;
    }
    if (--firsts_left == 0)
        p->firsts &= (uint8_t) ~(1u << ST_AM_TEST);
    return 1;
}
static const struct st_client client = {
    .am = ST_AM_TEST, .deliver = deliver, .peer_changed = peer_changed, .firsts = firsts};

static void start(void)
{
    s = fake_start();
    w = fake.pml->worker;
    memset(trace, 0, sizeof trace);
    changed = firsts_left = firsts_rc = 0;
    ck_assert_int_eq(st_worker_join(w, &client, trace), STRATA_OK);
    ck_assert_int_eq(st_worker_peer(w, 2, &peer), STRATA_OK);
}
static void end(void)
{
    st_worker_leave(w, &client);
    fake_end(s);
}
static void expect(const char *what)
{
    trace[0] = '\0';
    strata_progress(s);
    ck_assert_str_eq(trace, what);
}
static void queue(enum st_work_queue q, struct item *i)
{
    i->work.ops = &ops;
    st_worker_queue(w, peer, q, &i->work);
}

START_TEST(peers)
{
    struct st_peer *again;
    ck_assert_int_eq(st_worker_peer(w, 2, &again), STRATA_OK);
    ck_assert_ptr_eq(again, peer);
    ck_assert_ptr_eq(st_worker_peer_known(w, 2), peer);
    ck_assert_ptr_null(st_worker_peer_known(w, 3));
    ck_assert_int_eq(st_worker_peer_next(w, 0), 2);
    ck_assert_int_eq(st_worker_peer_next(w, 3), -1);
    ck_assert_ptr_null(peer->bml);
    st_worker_facts_changed(w, 2); /* not connected */
    ck_assert_int_eq(changed, 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(st_worker_connect(w, peer), STRATA_OK);
    ck_assert_int_eq(changed, 1);
    st_worker_facts_changed(w, 2);
    st_worker_facts_changed(w, 3);
    st_worker_facts_changed(w, -1);
    ck_assert_int_eq(changed, 2);
    ck_assert_ptr_eq(st_peer_way(peer, 0), st_peer_path(peer, 0));
    ck_assert_uint_eq(st_peer_path_up(peer, 3), 0);
    ck_assert(!st_worker_path_lost(peer, 0)); /* there is no other */
}
END_TEST

/* The first piece of work connects, and the client is told before it runs. */
START_TEST(order_of_queues)
{
    struct item bulk = {.name = 'b'}, rest = {.name = 'r'}, control = {.name = 'c'}, second = {.name = 'd'};
    queue(ST_WORK_BULK, &bulk);
    queue(ST_WORK_REST, &rest);
    queue(ST_WORK_CONTROL, &control);
    queue(ST_WORK_CONTROL, &second);
    firsts_left = 1;
    st_worker_firsts(w, peer, ST_AM_TEST);
    expect("cd1rb");
    ck_assert_int_eq(changed, 1);
    ck_assert(!peer->is_pending);
    expect("");
}
END_TEST

START_TEST(a_busy_path_is_tried_once_a_round)
{
    struct item a = {.name = 'a', .rc = {STRATA_ERR_AGAIN, STRATA_OK}}, b = {.name = 'b'},
                other = {.name = 'o', .work.path = 1}, rdma = {.name = 'g', .work.rdma = true};
    queue(ST_WORK_REST, &a);
    queue(ST_WORK_REST, &b);
    queue(ST_WORK_REST, &other);
    queue(ST_WORK_BULK, &rdma);
    expect("aog"); /* b's path is known to be full */
    expect("ab");
    expect("");
    firsts_rc = STRATA_ERR_AGAIN;
    st_worker_firsts(w, peer, ST_AM_TEST);
    queue(ST_WORK_REST, &b);
    expect("1");
    firsts_rc = STRATA_OK;
    firsts_left = 1;
    expect("1b");
}
END_TEST

START_TEST(turns)
{
    struct item a = {.name = 'a', .rc = {ST_WORK_MORE, ST_WORK_MORE, STRATA_OK}},
                b = {.name = 'b', .rc = {ST_WORK_MORE, STRATA_OK}};
    queue(ST_WORK_BULK, &a);
    queue(ST_WORK_BULK, &b);
    expect("ab");
    expect("ab");
    expect("a");
    expect("");
}
END_TEST

START_TEST(a_failed_peer_drops_its_work)
{
    struct item bulk = {.name = 'b', .rc = {STRATA_ERR_AGAIN}}, control = {.name = 'c', .rc = {STRATA_ERR_AGAIN}};
    queue(ST_WORK_BULK, &bulk);
    queue(ST_WORK_CONTROL, &control);
    st_worker_peer_failed(w, 2, STRATA_ERR_PEER, "gone");
    expect("CB");
    ck_assert_int_eq(peer->failed, STRATA_ERR_PEER);
    ck_assert_int_eq(st_worker_connect(w, peer), STRATA_ERR_PEER);
    expect("");
    ck_assert(!peer->is_pending);
    /* What is queued all the same is dropped, too. */
    queue(ST_WORK_REST, &bulk);
    st_worker_firsts(w, peer, ST_AM_TEST);
    expect("B");
    ck_assert(!peer->is_pending && !peer->firsts);
}
END_TEST

/* Draining waits for pending work of any client. */
START_TEST(draining)
{
    struct item a = {.name = 'a', .rc = {ST_WORK_MORE, STRATA_ERR_AGAIN, ST_WORK_MORE, STRATA_OK}};
    queue(ST_WORK_BULK, &a);
    st_worker_drain(w);
    ck_assert_str_eq(trace, "aaaa");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pending");
    TCase *tc = tcase_create("work");
    tcase_add_checked_fixture(tc, start, end);
    tcase_add_test(tc, peers);
    tcase_add_test(tc, order_of_queues);
    tcase_add_test(tc, a_busy_path_is_tried_once_a_round);
    tcase_add_test(tc, turns);
    tcase_add_test(tc, a_failed_peer_drops_its_work);
    tcase_add_test(tc, draining);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
