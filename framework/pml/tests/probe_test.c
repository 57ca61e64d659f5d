/* Probes, matched receives, and the embedder's form of the operations. */
#include <check.h>
#include <sched.h>
#include <string.h>

#include "framework/base/context.h"
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
static int completions;
static strata_status_t completed;

static void complete(void *arg, strata_request_t *req, const strata_status_t *status)
{
    ck_assert_ptr_nonnull(req);
    ck_assert_ptr_eq(arg, buf);
    completions++;
    completed = *status;
}

START_TEST(probes)
{
    strata_status_t st;
    strata_message_t *m = NULL;
    int found = -1;
    fake.next_status = (strata_status_t){.source = 2, .tag = 7, .length = 100};
    ck_assert_int_eq(strata_iprobe(world, 2, 7, &found, &st), STRATA_OK);
    ck_assert_int_eq(found, 0);
    ck_assert_int_eq(fake.progressed, 1);
    fake.message_comes = true;
    ck_assert_int_eq(strata_probe(world, 2, STRATA_ANY_TAG, &st), STRATA_OK);
    ck_assert_uint_eq(st.length, 100);
    ck_assert_int_eq(strata_improbe(world, STRATA_ANY_SOURCE, 7, &found, &m, &st), STRATA_OK);
    ck_assert_int_eq(found, 1);
    ck_assert_ptr_nonnull(m);
    ck_assert_int_eq(strata_mrecv(&m, buf, 8, &st), STRATA_OK);
    ck_assert_ptr_null(m);
    ck_assert_str_eq(fake.last_op, "imrecv");
    fake.taken = 0;
    ck_assert_int_eq(strata_mprobe(world, 2, 7, &m, STRATA_STATUS_IGNORE), STRATA_OK);
    ck_assert_int_eq(fake.taken, 1); /* however often the wait looked */
    strata_request_t *r;
    ck_assert_int_eq(strata_imrecv_data(&m, &flat, &r), STRATA_OK);
    ck_assert_int_eq(strata_wait(&r, &st), STRATA_OK);
    ck_assert_int_eq(strata_imrecv(&m, buf, 8, &r), STRATA_ERR_ARG); /* taken already */
    ck_assert_int_eq(strata_imrecv_data(&m, &flat, &r), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_mrecv(NULL, buf, 8, &st), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_probe(world, 4, 0, &st), STRATA_ERR_RANK);
    ck_assert_int_eq(strata_iprobe(world, 0, -2, &found, &st), STRATA_ERR_TAG);
    ck_assert_int_eq(strata_iprobe(world, 0, 0, NULL, &st), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_mprobe(world, 0, 0, NULL, &st), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_improbe(world, 0, 0, &found, NULL, &st), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_probe(NULL, 0, 0, &st), STRATA_ERR_ARG);
}
END_TEST

START_TEST(probes_of_nobody)
{
    strata_status_t st;
    strata_message_t *m = NULL;
    strata_request_t *r;
    int found = 0;
    ck_assert_int_eq(strata_probe(world, STRATA_PROC_NULL, 0, &st), STRATA_OK);
    ck_assert_int_eq(st.source, STRATA_PROC_NULL);
    ck_assert_int_eq(strata_iprobe(world, STRATA_PROC_NULL, 0, &found, &st), STRATA_OK);
    ck_assert_int_eq(found, 1);
    ck_assert_int_eq(strata_mprobe(world, STRATA_PROC_NULL, 0, &m, &st), STRATA_OK);
    ck_assert_ptr_nonnull(m);
    ck_assert_int_eq(strata_imrecv(&m, buf, 8, &r), STRATA_OK);
    ck_assert_ptr_null(m);
    ck_assert_int_eq(strata_wait(&r, &st), STRATA_OK);
    ck_assert_int_eq(st.source, STRATA_PROC_NULL);
    ck_assert_int_eq(strata_mprobe(world, STRATA_PROC_NULL, 0, &m, &st), STRATA_OK);
    struct strata_request storage;
    ck_assert_int_eq(strata_host_imrecv(&m, &flat, &storage, complete, buf), STRATA_OK);
    ck_assert_int_eq(completions, 1);
    ck_assert_str_eq(fake.last_op, "");
}
END_TEST

START_TEST(embedder)
{
    struct strata_request storage[2];
    ck_assert_uint_eq(strata_request_size(s), sizeof(struct strata_request));
    ck_assert_uint_eq(strata_request_align(s), 8);
    ck_assert_int_eq(strata_host_isend(world, &flat, 0, 0, STRATA_STANDARD, NULL, NULL, NULL), STRATA_ERR_AGAIN);
    ck_assert_int_eq(strata_host_isend(world, &flat, 0, 0, STRATA_STANDARD, &storage[0], NULL, NULL), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_host_isend(world, &flat, 0, 0, STRATA_STANDARD, &storage[0], complete, buf), STRATA_OK);
    ck_assert_int_eq(strata_host_irecv(world, &flat, 0, 0, &storage[1], complete, buf), STRATA_OK);
    ck_assert_int_eq(completions, 0);
    ck_assert_int_eq(strata_host_cancel(&storage[1]), STRATA_OK);
    ck_assert_int_eq(completed.error, STRATA_ERR_CANCELLED);
    strata_progress(s);
    ck_assert_int_eq(completions, 2);
    fake.isend_at_once = true;
    ck_assert_int_eq(strata_host_isend(world, &flat, 0, 0, STRATA_STANDARD, NULL, NULL, NULL), 1);
    ck_assert_int_eq(strata_host_isend(world, &flat, STRATA_PROC_NULL, 0, STRATA_STANDARD, NULL, NULL, NULL), 1);
    ck_assert_int_eq(strata_host_isend(world, &flat, 4, 0, STRATA_STANDARD, NULL, NULL, NULL), STRATA_ERR_RANK);
    ck_assert_int_eq(strata_host_irecv(world, &flat, STRATA_PROC_NULL, 0, &storage[0], complete, buf), STRATA_OK);
    ck_assert_int_eq(completions, 3);
    ck_assert_int_eq(completed.source, STRATA_PROC_NULL);
    ck_assert_int_eq(strata_host_cancel(&storage[0]), STRATA_OK);
    ck_assert_int_eq(strata_host_irecv(world, &flat, 0, 0, NULL, complete, buf), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_host_irecv(world, &flat, 9, 0, &storage[0], complete, buf), STRATA_ERR_RANK);
    ck_assert_int_eq(strata_host_cancel(NULL), STRATA_ERR_ARG);
    strata_message_t *m = NULL;
    int found;
    ck_assert_int_eq(strata_host_imrecv(&m, &flat, &storage[0], complete, buf), STRATA_ERR_ARG);
    fake.message_waits = true;
    ck_assert_int_eq(strata_improbe(world, 0, 0, &found, &m, NULL), STRATA_OK);
    ck_assert_int_eq(strata_host_imrecv(&m, &flat, &storage[0], complete, buf), STRATA_OK);
    ck_assert_ptr_null(m);
    strata_progress(s);
    ck_assert_int_eq(completions, 4);
}
END_TEST

/* In the library's place: how often the processor was given away. */
static int yields;
int sched_yield(void)
{
    yields++;
    return 0;
}

/* A loop around a call that does not wait lets go of the processor once it has spun for as long as a wait would. */
START_TEST(polling_yields)
{
    int found;
    s->spin_limit = 3;
    yields = 0;
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(strata_iprobe(world, 2, 7, &found, NULL), STRATA_OK);
    ck_assert_int_eq(yields, 0);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(strata_iprobe(world, 2, 7, &found, NULL), STRATA_OK);
    ck_assert_int_eq(yields, 5);
    strata_request_t *r[2];
    int done, index;
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(strata_irecv(world, buf, 8, 2, i, &r[i]), STRATA_OK);
    ck_assert_int_eq(strata_test(&r[1], &done, NULL), STRATA_OK); /* an event, though for the other one */
    ck_assert_int_eq(done, 0);
    ck_assert_int_eq(yields, 5);
    ck_assert_int_eq(strata_iprobe(world, 2, 7, &found, NULL), STRATA_OK); /* an event: its request */
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(strata_iprobe(world, 2, 7, &found, NULL), STRATA_OK);
    ck_assert_int_eq(yields, 5);
    ck_assert_int_eq(strata_testany(2, r, &index, &done, NULL), STRATA_OK); /* nothing to look for: it is there */
    ck_assert_int_eq(done, 1);
    ck_assert_int_eq(strata_testall(2, r, &done, NULL), STRATA_OK);
    ck_assert_int_eq(done, 1);
    ck_assert_int_eq(yields, 5);
    ck_assert_int_eq(strata_iprobe(world, 2, 7, &found, NULL), STRATA_OK);
    ck_assert_int_eq(yields, 6);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("probe");
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, probes);
    tcase_add_test(t, probes_of_nobody);
    tcase_add_test(t, embedder);
    tcase_add_test(t, polling_yields);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
