/* A transport without room is asked once for each message: what it refuses is queued, in order, and goes by progress.
 */
#include <check.h>
#include <strata/sdk/pml.h>
#include "support/run_suite.h"
#include "support/world.h"

/* Stands in for the transport's send. */
static struct {
    const struct st_btl_ops *real;
    struct st_btl_ops ops;
    bool full;
    int refuse, asked;
} t;

static int send(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                uint32_t len)
{
    t.asked++;
    if (t.refuse > 0 && t.refuse--)
        return STRATA_ERR_AGAIN;
    return t.full ? STRATA_ERR_AGAIN : t.real->send(ep, am, hdr, hdr_len, data, len);
}

static void one_refused(struct tw_rank *r, strata_mode_t mode, bool nonblocking)
{
    strata_request_t *in[2], *out = NULL;
    int sent[2] = {7, 8}, got[2] = {0, 0};

    for (int i = 0; i < 2; i++)
        CHECK_OK(strata_irecv(r->comm, &got[i], sizeof(int), 0, 1, &in[i]));
    t.full = true;
    t.asked = 0;
    if (nonblocking)
        CHECK_OK(strata_isend_mode(r->comm, &sent[0], sizeof(int), 0, 1, mode, &out));
    else
        CHECK_OK(strata_bsend(r->comm, &sent[0], sizeof(int), 0, 1));
    CHECK_EQ(t.asked, 1);
    /* The next waits behind it without a look. */
    strata_request_t *second;
    CHECK_OK(strata_isend(r->comm, &sent[1], sizeof(int), 0, 1, &second));
    CHECK_EQ(t.asked, 1);
    t.full = false;
    CHECK_OK(strata_waitall(2, in, NULL));
    CHECK(got[0] == 7 && got[1] == 8);
    if (out)
        CHECK_OK(strata_wait(&out, NULL));
    CHECK_OK(strata_wait(&second, NULL));
}

/* A blocking send on the short way: refused once, then taken from the queue. */
static void one_blocking(struct tw_rank *r)
{
    strata_request_t *in;
    int sent = 9, got = 0;

    CHECK_OK(strata_irecv(r->comm, &got, sizeof(int), 0, 1, &in));
    t.refuse = 1;
    t.asked = 0;
    CHECK_OK(strata_send(r->comm, &sent, sizeof(int), 0, 1));
    CHECK_EQ(t.asked, 2);
    CHECK_OK(strata_wait(&in, NULL));
    CHECK_EQ(got, 9);
}

static void body(struct tw_rank *r)
{
    static char area[4096];
    struct st_btl *btl = r->comm->worker->bml->btls[0];
    void *back;
    size_t size;

    t.real = btl->ops;
    t.ops = *btl->ops;
    t.ops.send = send;
    btl->ops = &t.ops; /* before the first message: the PML keeps the function */
    CHECK_OK(strata_buffer_attach(r->s, area, sizeof(area)));
    for (int round = 0; round < 3; round++) { /* the first connects, later ones take the short way */
        one_refused(r, STRATA_STANDARD, true);
        one_refused(r, STRATA_SYNCHRONOUS, true);
        one_refused(r, STRATA_BUFFERED, false);
        one_blocking(r);
    }
    CHECK_OK(strata_buffer_detach(r->s, &back, &size));
    btl->ops = t.real;
}

START_TEST(asked_once)
{
    tw_run(&(struct tw_options){.n = 1, .settings = "btl=self"}, body, NULL);
}
END_TEST

START_TEST(asked_once_with_threads)
{
    tw_run(&(struct tw_options){.n = 1, .settings = "btl=self", .level = STRATA_THREAD_MULTIPLE}, body, NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ob1_refused");
    TCase *tc = tcase_create("refused");
    tcase_set_timeout(tc, 0);
    tcase_add_test(tc, asked_once);
    tcase_add_test(tc, asked_once_with_threads);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
