/* Completion: wait, test, all, any; persistent requests; requests to and from nobody. */
#include <check.h>
#include <string.h>

#include "framework/pml/veneer.h"
#include "support/fake_stack.h"
#include "support/run_suite.h"

FAKE_STACK_TABLE;

static strata_t *s;
static strata_comm_t *world;
static char buf[64];

static void setup(void)
{
    s = fake_start();
    world = strata_world(s);
}

static void teardown(void)
{
    fake_end(s);
}

static const strata_data_t flat = {.kind = STRATA_CONTIGUOUS, .length = 8, .u.buffer = buf};

START_TEST(wait_and_test)
{
    strata_request_t *r = NULL;
    strata_status_t st;
    int done = -1;
    fake.next_status = (strata_status_t){.source = 3, .tag = 1, .length = 6, .sent = 9, .error = STRATA_ERR_TRUNCATE};
    ck_assert_int_eq(strata_irecv(world, buf, 6, 3, 1, &r), STRATA_OK);
    ck_assert_int_eq(strata_wait(&r, &st), STRATA_ERR_TRUNCATE);
    ck_assert_ptr_null(r);
    ck_assert_uint_eq(st.sent, 9);
    ck_assert_int_eq(fake.freed, 1);
    ck_assert_int_eq(strata_wait(&r, &st), STRATA_OK); /* NULL: empty */
    ck_assert_int_eq(st.source, STRATA_ANY_SOURCE);
    ck_assert_uint_eq(st.sent, 0);
    ck_assert_int_eq(strata_test(&r, &done, &st), STRATA_OK);
    ck_assert_int_eq(done, 1);
    fake.next_status.error = STRATA_OK;
    strata_request_t *older, *newer;
    ck_assert_int_eq(strata_isend(world, buf, 6, 3, 1, &older), STRATA_OK);
    ck_assert_int_eq(strata_isend_mode(world, buf, 6, 3, 1, STRATA_SYNCHRONOUS, &newer), STRATA_OK);
    ck_assert_int_eq(strata_test(&newer, &done, &st), STRATA_OK); /* one progress: the older completed */
    ck_assert_int_eq(done, 0);
    ck_assert_ptr_nonnull(newer);
    ck_assert_int_eq(strata_test(&newer, &done, &st), STRATA_OK);
    ck_assert_int_eq(done, 1);
    ck_assert_ptr_null(newer);
    ck_assert_int_eq(strata_wait(&older, STRATA_STATUS_IGNORE), STRATA_OK);
    ck_assert_int_eq(strata_wait(NULL, &st), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_test(&r, NULL, &st), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_progress(s), 0);
}
END_TEST

START_TEST(at_once)
{
    strata_request_t *r = NULL;
    fake.isend_at_once = true;
    ck_assert_int_eq(strata_isend_data(world, &flat, 0, 0, STRATA_READY, &r), STRATA_OK);
    ck_assert_int_eq(strata_cancel(r), STRATA_ERR_UNSUPPORTED);
    ck_assert_int_eq(strata_wait(&r, STRATA_STATUS_IGNORE), STRATA_OK);
    ck_assert_ptr_null(r);
    ck_assert_int_eq(fake.freed, 0);
    ck_assert_int_eq(fake.progressed, 0);
    ck_assert_int_eq(strata_isend(world, buf, 1, 0, 0, &r), STRATA_OK);
    ck_assert_int_eq(strata_request_free(&r), STRATA_OK);
    ck_assert_ptr_null(r);
    ck_assert_int_eq(fake.freed, 0);
}
END_TEST

START_TEST(all)
{
    strata_request_t *r[4] = {NULL};
    strata_status_t st[4];
    int done;
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(strata_irecv(world, buf, 1, i, 0, &r[i]), STRATA_OK);
    fake.next_status.error = STRATA_ERR_PEER;
    fake_complete(1);
    fake.next_status = (strata_status_t){.source = 2};
    ck_assert_int_eq(strata_waitall(4, r, st), STRATA_ERR_PEER);
    ck_assert_int_eq(st[0].error, STRATA_OK);
    ck_assert_int_eq(st[1].error, STRATA_ERR_PEER);
    ck_assert_int_eq(st[2].source, 2);
    ck_assert_int_eq(st[3].source, STRATA_ANY_SOURCE);
    for (int i = 0; i < 4; i++)
        ck_assert_ptr_null(r[i]);
    ck_assert_int_eq(strata_waitall(4, r, NULL), STRATA_OK);
    ck_assert_int_eq(strata_waitall(0, NULL, NULL), STRATA_OK);
    ck_assert_int_eq(strata_waitall(1, NULL, NULL), STRATA_ERR_ARG);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(strata_irecv(world, buf, 1, i, 0, &r[i]), STRATA_OK);
    ck_assert_int_eq(strata_testall(4, r, &done, st), STRATA_OK);
    ck_assert_int_eq(done, 0);
    ck_assert_ptr_nonnull(r[0]);
    ck_assert_int_eq(strata_testall(4, r, &done, st), STRATA_OK);
    ck_assert_int_eq(done, 1);
    ck_assert_ptr_null(r[0]);
    ck_assert_int_eq(strata_testall(4, r, NULL, st), STRATA_ERR_ARG);
}
END_TEST

START_TEST(any)
{
    strata_request_t *r[3] = {NULL};
    strata_status_t st;
    int index = 7, done = 0;
    ck_assert_int_eq(strata_waitany(3, r, &index, &st), STRATA_OK);
    ck_assert_int_eq(index, -1);
    ck_assert_int_eq(strata_testany(3, r, &index, &done, &st), STRATA_OK);
    ck_assert_int_eq(done, 1);
    ck_assert_int_eq(index, -1);
    ck_assert_int_eq(strata_irecv(world, buf, 1, 0, 0, &r[1]), STRATA_OK);
    ck_assert_int_eq(strata_irecv(world, buf, 1, 0, 0, &r[2]), STRATA_OK);
    fake_complete(1);
    ck_assert_int_eq(strata_waitany(3, r, &index, &st), STRATA_OK);
    ck_assert_int_eq(index, 2);
    ck_assert_ptr_null(r[2]);
    ck_assert_int_eq(strata_testany(3, r, &index, &done, &st), STRATA_OK);
    ck_assert_int_eq(done, 1);
    ck_assert_int_eq(index, 1);
    ck_assert_int_eq(strata_irecv(world, buf, 1, 0, 0, &r[0]), STRATA_OK);
    ck_assert_int_eq(strata_waitany(3, r, &index, &st), STRATA_OK);
    ck_assert_int_eq(index, 0);
    ck_assert_int_eq(strata_waitany(3, NULL, &index, &st), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_testany(3, r, &index, NULL, &st), STRATA_ERR_ARG);
    /* Something else completes first. */
    strata_request_t *other;
    ck_assert_int_eq(strata_irecv(world, buf, 1, 0, 0, &other), STRATA_OK);
    ck_assert_int_eq(strata_irecv(world, buf, 1, 0, 0, &r[0]), STRATA_OK);
    ck_assert_int_eq(strata_testany(3, r, &index, &done, &st), STRATA_OK);
    ck_assert_int_eq(done, 0);
    ck_assert_int_eq(strata_waitany(3, r, &index, &st), STRATA_OK);
    ck_assert_int_eq(strata_wait(&other, &st), STRATA_OK);
}
END_TEST

START_TEST(persistent)
{
    strata_request_t *r[2], *plain;
    strata_status_t st;
    ck_assert_int_eq(strata_send_init(world, &flat, 2, 3, STRATA_SYNCHRONOUS, &r[0]), STRATA_OK);
    ck_assert_int_eq(strata_recv_init(world, &flat, 2, 3, &r[1]), STRATA_OK);
    ck_assert_int_eq(strata_cancel(r[0]), STRATA_ERR_STATE);
    for (int round = 0; round < 3; round++) {
        ck_assert_int_eq(strata_startall(2, r), STRATA_OK);
        ck_assert_int_eq(strata_start(r[0]), STRATA_ERR_STATE);
        ck_assert_int_eq(strata_waitall(2, r, NULL), STRATA_OK);
        ck_assert_ptr_nonnull(r[0]);
        ck_assert_int_eq(strata_wait(&r[0], &st), STRATA_OK); /* inactive: empty */
        ck_assert_int_eq(st.tag, STRATA_ANY_TAG);
    }
    ck_assert_int_eq(fake.started, 6);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(strata_request_free(&r[i]), STRATA_OK);
    ck_assert_int_eq(fake.freed, 2);
    ck_assert_int_eq(strata_request_free(&r[0]), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_start(NULL), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_startall(1, NULL), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_startall(1, r), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_irecv(world, buf, 1, 0, 0, &plain), STRATA_OK);
    ck_assert_int_eq(strata_start(plain), STRATA_ERR_STATE);
    ck_assert_int_eq(strata_cancel(plain), STRATA_OK);
    ck_assert_int_eq(strata_wait(&plain, &st), STRATA_ERR_CANCELLED);
    ck_assert_int_eq(strata_cancel(NULL), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_send_init(world, &flat, 2, 3, STRATA_STANDARD, NULL), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_recv_init(world, &flat, 9, 3, &plain), STRATA_ERR_RANK);
}
END_TEST

START_TEST(nobody)
{
    strata_request_t *r[4];
    strata_status_t st[4];
    ck_assert_int_eq(strata_isend(world, buf, 8, STRATA_PROC_NULL, 0, &r[0]), STRATA_OK);
    ck_assert_int_eq(strata_irecv(world, buf, 8, STRATA_PROC_NULL, 0, &r[1]), STRATA_OK);
    ck_assert_int_eq(strata_cancel(r[1]), STRATA_OK);
    ck_assert_int_eq(strata_isend_data(world, &flat, STRATA_PROC_NULL, 0, STRATA_STANDARD, &r[2]), STRATA_OK);
    ck_assert_int_eq(strata_irecv_data(world, &flat, STRATA_PROC_NULL, 0, &r[3]), STRATA_OK);
    ck_assert_int_eq(strata_waitall(4, r, st), STRATA_OK);
    ck_assert_int_eq(st[1].source, STRATA_PROC_NULL);
    ck_assert_int_eq(st[3].source, STRATA_PROC_NULL);
    ck_assert_uint_eq(st[1].length, 0);
    ck_assert_int_eq(strata_send_init(world, &flat, STRATA_PROC_NULL, 0, STRATA_STANDARD, &r[0]), STRATA_OK);
    ck_assert_int_eq(strata_recv_init(world, &flat, STRATA_PROC_NULL, 0, &r[1]), STRATA_OK);
    for (int round = 0; round < 2; round++) {
        ck_assert_int_eq(strata_startall(2, r), STRATA_OK);
        ck_assert_int_eq(strata_start(r[0]), STRATA_ERR_STATE);
        ck_assert_int_eq(strata_cancel(r[1]), STRATA_OK);
        ck_assert_int_eq(strata_waitall(2, r, st), STRATA_OK);
        ck_assert_int_eq(st[1].source, STRATA_PROC_NULL);
    }
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(strata_request_free(&r[i]), STRATA_OK);
    ck_assert_str_eq(fake.last_op, "");
    ck_assert_int_eq(fake.freed, 0);
}
END_TEST

START_TEST(bad_arguments)
{
    strata_request_t *r = NULL;
    ck_assert_int_eq(strata_isend(world, buf, 1, 0, 0, NULL), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_isend(world, buf, 1, STRATA_PROC_NULL, 0, NULL), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_isend(world, buf, 1, 4, 0, &r), STRATA_ERR_RANK);
    ck_assert_int_eq(strata_isend(world, NULL, 1, 0, 0, &r), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_isend_mode(world, buf, 1, 0, 0, (strata_mode_t)9, &r), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_isend_data(world, &flat, 0, -5, STRATA_STANDARD, &r), STRATA_ERR_TAG);
    ck_assert_int_eq(strata_irecv(world, buf, 1, 0, 0, NULL), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_irecv(world, buf, 1, 0, -2, &r), STRATA_ERR_TAG);
    ck_assert_int_eq(strata_irecv(world, NULL, 1, 0, 0, &r), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_irecv_data(world, &flat, 4, 0, &r), STRATA_ERR_RANK);
    ck_assert_ptr_null(r);
    ck_assert_int_eq(strata_isend(world, NULL, 0, 0, 0, &r), STRATA_OK);
    ck_assert_int_eq(strata_wait(&r, NULL), STRATA_OK);
    ck_assert_int_eq(strata_irecv(world, NULL, 0, 0, 0, &r), STRATA_OK);
    ck_assert_int_eq(strata_wait(&r, NULL), STRATA_OK);
}
END_TEST

/* What upper layers pay per request and communicator before the PML's own part. */
_Static_assert(sizeof(struct strata_request) <= 72, "the head of a request grew");
_Static_assert(sizeof(struct strata_comm) <= 64, "the head of a communicator grew beyond a cache line");

int main(void)
{
    Suite *suite = suite_create("wait");
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, wait_and_test);
    tcase_add_test(t, at_once);
    tcase_add_test(t, all);
    tcase_add_test(t, any);
    tcase_add_test(t, persistent);
    tcase_add_test(t, nobody);
    tcase_add_test(t, bad_arguments);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
