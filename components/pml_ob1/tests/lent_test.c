/* The connection dies while the first fragment of a stream is lent to the transport and the rest is queued: the request
 * ends once, and not before it has left the queue. */
#include <check.h>
#include <strata/sdk/btl_hints.h>
#include <strata/sdk/pml.h>
#include "support/run_suite.h"
#include "support/world.h"

enum { LENGTH = 3000, REQUESTS = 8 };

/* Stands in for the transport: it keeps the first fragment, and has no room for the others. */
static struct {
    const struct st_btl_ops *real_ops;
    const struct st_btl_hints *real_hints;
    struct st_btl_ops ops;
    struct st_btl_hints hints;
    struct st_btl_op *lent;
} t;

static int no_room(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                   uint32_t len)
{
    (void)ep, (void)am, (void)hdr, (void)hdr_len, (void)data, (void)len;
    return STRATA_ERR_AGAIN;
}

static int keep(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                uint32_t len, struct st_btl_op *op)
{
    (void)ep, (void)am, (void)hdr, (void)hdr_len, (void)data, (void)len;
    t.lent = op;
    return STRATA_OK;
}

static void stand_in(struct st_btl *btl)
{
    t.real_ops = btl->ops;
    t.real_hints = btl->hints;
    t.ops = *btl->ops;
    t.ops.send = no_room;
    t.hints = *btl->hints;
    t.hints.send_zcopy = keep;
    t.lent = NULL;
    btl->ops = &t.ops;
    btl->hints = &t.hints;
}

static void stand_back(struct st_btl *btl)
{
    btl->ops = t.real_ops;
    btl->hints = t.real_hints;
}

/* As a transport reports it: the loss of the connection, then the end of what it was lent. */
static void connection_dies(struct tw_rank *r)
{
    CHECK(t.lent != NULL);
    CHECK_OK(strata_host_peer_failed(r->s, 1, "the test says so"));
    t.lent->done(t.lent, STRATA_ERR_PEER);
    for (int i = 0; i < 3; i++)
        strata_progress(r->s);
}

static int ended, error;

static void count_end(void *arg, strata_request_t *req, const strata_status_t *status)
{
    (void)arg, (void)req;
    ended++;
    error = status->error;
}

static void with_callback(struct tw_rank *r)
{
    static char data[LENGTH];
    strata_data_t contiguous = {.kind = STRATA_CONTIGUOUS, .length = LENGTH, .u.buffer = data};
    void *storage = NULL;

    CHECK(posix_memalign(&storage, strata_request_align(r->s), strata_request_size(r->s)) == 0);
    CHECK_OK(strata_host_isend(r->comm, &contiguous, 1, 2, STRATA_STANDARD, storage, count_end, NULL));
    connection_dies(r);
    CHECK_EQ(ended, 1);
    CHECK_EQ(error, STRATA_ERR_PEER);
    free(storage);
}

/* Nobody waits for it: its memory is used again afterwards. */
static void freed(struct tw_rank *r)
{
    static char data[LENGTH];
    strata_request_t *q, *later[REQUESTS];
    strata_status_t st;
    int x;

    CHECK_OK(strata_isend(r->comm, data, LENGTH, 1, 2, &q));
    CHECK_OK(strata_request_free(&q));
    connection_dies(r);
    for (int i = 0; i < REQUESTS; i++) {
        CHECK_OK(strata_irecv(r->comm, &x, sizeof(x), STRATA_ANY_SOURCE, 9, &later[i]));
        CHECK_EQ((uintptr_t)later[i] % strata_request_align(r->s), 0);
    }
    for (int i = 0; i < REQUESTS; i++) {
        CHECK_OK(strata_cancel(later[i]));
        CHECK_RC(strata_wait(&later[i], &st), STRATA_ERR_CANCELLED);
    }
}

static void body(struct tw_rank *r)
{
    struct st_btl *btl = r->comm->worker->bml->btls[0];
    int x = 1;

    if (r->rank == 1) {
        CHECK_OK(strata_recv(r->comm, &x, sizeof(x), 0, 1, NULL));
    } else {
        CHECK_OK(strata_ssend(r->comm, &x, sizeof(x), 1, 1)); /* connected, and nothing is queued */
        stand_in(btl);
        (*(tw_body_fn *)r->arg)(r);
        stand_back(btl);
    }
    tw_barrier(r);
}

START_TEST(ends_once)
{
    static tw_body_fn bodies[] = {with_callback, freed};

    tw_run(&(struct tw_options){.n = 2, .settings = "btl=shuffle", .quiet = true}, body, &bodies[_i]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ob1_lent");
    TCase *tc = tcase_create("lent");
    tcase_set_timeout(tc, 0);
    tcase_add_loop_test(tc, ends_once, 0, 2);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
