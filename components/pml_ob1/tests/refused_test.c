/* A transport without room is asked once for a message, which is then queued, and once for all that are queued in each
 * round of progress. */
#include <check.h>
#include <stdatomic.h>
#include <strata/sdk/pml.h>
#include "support/run_suite.h"
#include "support/world.h"
#include "wire.h"

/* Stands in for the transport's send. */
static struct {
    const struct st_btl_ops *real;
    struct st_btl_ops ops;
    bool full;
    int refuse, asked, refused;
} t;

static int counted(int rc)
{
    t.refused += rc == STRATA_ERR_AGAIN;
    return rc;
}

static int send(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                uint32_t len)
{
    t.asked++;
    if (t.refuse > 0 && t.refuse--)
        return STRATA_ERR_AGAIN;
    return counted(t.full ? STRATA_ERR_AGAIN : t.real->send(ep, am, hdr, hdr_len, data, len));
}

static int send_payload(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                        const struct st_payload *payload)
{
    t.asked++;
    return counted(t.full ? STRATA_ERR_AGAIN : t.real->send_payload(ep, am, hdr, hdr_len, payload));
}

/* Before the first message: the PML keeps the function. */
static void stand_in(struct st_btl *btl)
{
    t.real = btl->ops;
    t.ops = *btl->ops;
    t.ops.send = send;
    t.ops.send_payload = send_payload;
    btl->ops = &t.ops;
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

/* Several that wait could go together: one look for all of them, not another for the first alone. */
static void several(struct tw_rank *r)
{
    enum { N = 3 };
    strata_request_t *in[N], *out[N];
    int sent[N] = {1, 2, 3}, got[N] = {0};

    for (int i = 0; i < N; i++)
        CHECK_OK(strata_irecv(r->comm, &got[i], sizeof(int), 0, 1, &in[i]));
    t.full = true;
    t.asked = 0;
    for (int i = 0; i < N; i++)
        CHECK_OK(strata_isend(r->comm, &sent[i], sizeof(int), 0, 1, &out[i]));
    CHECK_EQ(t.asked, 1);
    for (int round = 1; round <= 5; round++) {
        strata_progress(r->s);
        CHECK_EQ(t.asked, 1 + round);
    }
    t.full = false;
    CHECK_OK(strata_waitall(N, in, NULL));
    CHECK_OK(strata_waitall(N, out, NULL));
    for (int i = 0; i < N; i++)
        CHECK_EQ(got[i], sent[i]);
}

/* Answers to any message that there could be, as only a forging peer sends them. */
static void forge_answers(const struct st_btl *btl, enum ob1_type type, uint64_t bytes)
{
    for (uint64_t generation = 1; generation <= 64; generation++) {
        for (uint64_t index = 0; index < 16; index++) {
            struct wire_control h = {.type = (uint8_t)type, .id = generation << 32 | index, .bytes = bytes};
            struct st_frag frag = {.hdr = &h, .hdr_len = sizeof(h), .rank = 0, .btl = (struct st_btl *)(uintptr_t)btl};
            btl->am[ST_AM_PML].fn(btl->am[ST_AM_PML].arg, &frag);
        }
    }
}

/* A message that has not left cannot have been answered. */
static void forged_answers(struct tw_rank *r)
{
    enum { LENGTH = 1 << 20 };
    static char sent[LENGTH], got[LENGTH];
    const struct st_btl *btl = r->comm->worker->bml->btls[0];
    const size_t length[] = {8, LENGTH};
    strata_request_t *in, *out;

    for (int i = 0; i < 2; i++) {
        sent[0] = sent[LENGTH - 1] = (char)('a' + i);
        CHECK_OK(strata_irecv(r->comm, got, length[i], 0, 1, &in));
        t.full = true;
        CHECK_OK(strata_isend_mode(r->comm, sent, length[i], 0, 1, STRATA_SYNCHRONOUS, &out));
        strata_progress(r->s);
        forge_answers(btl, i ? OB1_FIN : OB1_ACK, length[i]);
        CHECK_EQ(atomic_load(&out->state), ST_REQ_ACTIVE);
        t.full = false;
        CHECK_OK(strata_wait(&out, NULL));
        CHECK_OK(strata_wait(&in, NULL));
        CHECK_EQ(memcmp(sent, got, length[i]), 0);
    }
}

static void body(struct tw_rank *r)
{
    static char area[4096];
    struct st_btl *btl = r->comm->worker->bml->btls[0];
    void *back;
    size_t size;

    stand_in(btl);
    CHECK_OK(strata_buffer_attach(r->s, area, sizeof(area)));
    for (int round = 0; round < 3; round++) { /* the first connects, later ones take the short way */
        one_refused(r, STRATA_STANDARD, true);
        one_refused(r, STRATA_SYNCHRONOUS, true);
        one_refused(r, STRATA_BUFFERED, false);
        one_blocking(r);
        several(r);
    }
    forged_answers(r);
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

/* The real thing: messages until the receiver's ring or queue is full. One is refused, once; all behind it wait. */
static void full_ring(struct tw_rank *r)
{
    enum { N = 2000 };
    static strata_request_t *out[N];
    static int sent[N];
    struct st_btl *btl = r->comm->worker->bml->btls[0];
    int got;

    if (r->rank == 0)
        stand_in(btl);
    /* Enough of them for a ring to be granted. */
    for (int i = 0; i < 200; i++) {
        if (r->rank == 0)
            CHECK_OK(strata_send(r->comm, &i, sizeof(i), 1, 1));
        else
            CHECK_OK(strata_recv(r->comm, &got, sizeof(got), 0, 1, NULL));
    }
    tw_quiesce(r);
    if (r->rank == 0)
        t.refused = 0;
    for (int i = 0; r->rank == 0 && i < N; i++) {
        sent[i] = i;
        CHECK_OK(strata_isend(r->comm, &sent[i], sizeof(int), 1, 1, &out[i]));
    }
    if (r->rank == 0)
        CHECK_EQ(t.refused, 1);
    tw_barrier(r);
    for (int i = 0; r->rank == 1 && i < N; i++) {
        CHECK_OK(strata_recv(r->comm, &got, sizeof(got), 0, 1, NULL));
        CHECK_EQ(got, i);
    }
    if (r->rank == 0) {
        CHECK_OK(strata_waitall(N, out, NULL));
        btl->ops = t.real;
    }
    tw_quiesce(r);
}

START_TEST(full_ring_is_asked_once)
{
    static const char *const settings[] = {"btl=sm", "btl=sm btl_sm_rings=0"};

    tw_run(&(struct tw_options){.n = 2, .settings = settings[_i]}, full_ring, NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ob1_refused");
    TCase *tc = tcase_create("refused");
    tcase_set_timeout(tc, 0);
    tcase_add_test(tc, asked_once);
    tcase_add_test(tc, asked_once_with_threads);
    tcase_add_loop_test(tc, full_ring_is_asked_once, 0, 2);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
