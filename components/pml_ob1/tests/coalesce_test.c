/* Short messages that go together: over a transport that says of every peer that it is behind, and by batches that no
 * honest peer sends. */
#include <check.h>
#include <strata/sdk/pml.h>
#include "support/pattern.h"
#include "support/world.h"
#include "ob1.h"
#include "support/run_suite.h"

#define ALWAYS                                                                                                         \
    "btl=shuffle btl_shuffle_crowded_percent=100 btl_shuffle_again_percent=0 btl_shuffle_zcopy_min=0 "                 \
    "btl_shuffle_max_send=8k btl_shuffle_eager_limit=8k "
enum { N = 50, OF_A_BATCH = 32 };

static struct ob1 *ob1(const struct tw_rank *r)
{
    return (struct ob1 *)r->comm->pml;
}

static uint64_t fragments(const struct tw_rank *r)
{
    return r->comm->worker->bml->btls[0]->messages_sent;
}

/* The first fragment tells that the peer is behind. */
static void begin(struct tw_rank *r)
{
    char byte = 0;

    if (r->rank == 0)
        CHECK_OK(strata_send(r->comm, &byte, 1, 1, 7));
    else
        CHECK_OK(strata_recv(r->comm, &byte, 1, 0, 7, NULL));
}

static size_t length_of(int i)
{
    static const size_t lengths[] = {8, 0, 1, 7, 9, 64, 100, 65, 16, 300};

    return lengths[i % 10];
}

static void expect(strata_comm_t *c, int i)
{
    char in[2048] = {0};
    strata_status_t st;

    CHECK_OK(strata_recv(c, in, sizeof(in), 0, STRATA_ANY_TAG, &st));
    CHECK_EQ(st.tag, i);
    CHECK_EQ(st.source, 0);
    CHECK_EQ(st.length, length_of(i));
    CHECK_EQ(pattern_check(in, length_of(i), (uint64_t)i), -1);
    CHECK_EQ(in[length_of(i)], 0);
}

/* All that wait go as few fragments, of not too many messages each: none before progress is made, all after. */
static void a_burst(struct tw_rank *r)
{
    static char out[N][512];
    strata_request_t *q[N];
    uint64_t before;

    begin(r);
    before = fragments(r);
    for (int i = 0; r->rank == 0 && i < N; i++) {
        pattern_fill(out[i], length_of(i), (uint64_t)i);
        CHECK_OK(strata_isend(r->comm, out[i], length_of(i), 1, i, &q[i]));
        CHECK_EQ(fragments(r), before);
    }
    for (int i = 0; r->rank == 1 && i < N; i++)
        expect(r->comm, i);
    if (r->rank == 0) {
        CHECK_OK(strata_waitall(N, q, NULL));
        CHECK_EQ(fragments(r), before + (N + OF_A_BATCH - 1) / OF_A_BATCH);
        CHECK_EQ(ob1(r)->n_coalesced, N);
    }
    tw_quiesce(r);
}

START_TEST(burst_goes_as_few)
{
    static const char *const more[] = {"", "btl_shuffle_gather=0", "btl_shuffle_window=1"};
    char settings[512];

    snprintf(settings, sizeof(settings), ALWAYS "%s", more[_i]);
    tw_run(&(struct tw_options){.n = 2, .settings = settings}, a_burst, NULL);
}
END_TEST

/* Without anybody that waits, by progress alone. */
static void nobody_waits(struct tw_rank *r)
{
    static char out[N][512];
    strata_request_t *q;

    begin(r);
    for (int i = 0; r->rank == 0 && i < N; i++) {
        pattern_fill(out[i], length_of(i), (uint64_t)i);
        CHECK_OK(strata_isend(r->comm, out[i], length_of(i), 1, i, &q));
        CHECK_OK(strata_request_free(&q));
    }
    if (r->rank == 0)
        strata_progress(r->s);
    for (int i = 0; r->rank == 1 && i < N; i++)
        expect(r->comm, i);
    tw_quiesce(r);
    CHECK_EQ(ob1(r)->n_coalesced, r->rank == 0 ? N : 0);
}

START_TEST(freed_requests_go)
{
    tw_run(&(struct tw_options){.n = 2, .settings = ALWAYS}, nobody_waits, NULL);
}
END_TEST

/* What cannot go along stays where it is in the order: longer ones, synchronous ones, other kinds of data, those of
 * another context; and a blocking send takes along what was kept back. */
static void mixed(struct tw_rank *r)
{
    enum { LONG = 5000, KINDS = 6 };
    static char out[N][LONG], in[LONG];
    strata_comm_spec_t spec = {.size = sizeof(spec), .id = 9, .rank = r->rank, .n_ranks = r->n};
    static struct strata_iovec half[N][2];
    const size_t length[KINDS] = {24, LONG, 40, 200, 8, 300};
    strata_request_t *q[N];
    strata_comm_t *other;

    CHECK_OK(strata_comm_create(r->s, &spec, &other));
    begin(r);
    for (int i = 0; r->rank == 0 && i < N; i++) {
        int k = i % KINDS;
        strata_comm_t *c = i % 7 == 0 ? other : r->comm;
        pattern_fill(out[i], length[k], (uint64_t)i);
        half[i][0] = (struct strata_iovec){out[i], 100};
        half[i][1] = (struct strata_iovec){out[i] + 100, 100};
        strata_data_t two = {.kind = STRATA_IOVEC, .length = 200, .u.iov = {half[i], 2}};
        q[i] = NULL;
        if (k == 2)
            CHECK_OK(strata_isend_mode(c, out[i], length[k], 1, 1, STRATA_SYNCHRONOUS, &q[i]));
        else if (k == 3)
            CHECK_OK(strata_isend_data(c, &two, 1, 1, STRATA_STANDARD, &q[i]));
        else if (k == 5)
            CHECK_OK(strata_send(c, out[i], length[k], 1, 1));
        else
            CHECK_OK(strata_isend(c, out[i], length[k], 1, 1, &q[i]));
    }
    for (int pass = 0; r->rank == 1 && pass < 2; pass++)
        for (int i = 0; i < N; i++) {
            if ((i % 7 == 0) != (pass == 0))
                continue;
            memset(in, 0, sizeof(in));
            CHECK_OK(strata_recv(pass == 0 ? other : r->comm, in, sizeof(in), 0, 1, NULL));
            CHECK_EQ(pattern_check(in, length[i % KINDS], (uint64_t)i), -1);
        }
    if (r->rank == 0)
        CHECK_OK(strata_waitall(N, q, NULL));
    tw_quiesce(r);
    CHECK_OK(strata_comm_free(other));
}

START_TEST(order_holds)
{
    tw_run(&(struct tw_options){.n = 2, .settings = ALWAYS}, mixed, NULL);
}
END_TEST

START_TEST(order_holds_over_several_paths)
{
    tw_run(&(struct tw_options){.n = 2,
                                .settings = ALWAYS "btl_shuffle_rails=2 btl_shuffle_break_after=40 "
                                                   "btl_shuffle_break_rails=1"},
           mixed, NULL);
}
END_TEST

/* None is kept back when the peer keeps up, nor when it is not wanted. */
static void none_held(struct tw_rank *r)
{
    strata_request_t *q[N];
    char byte = 1;
    uint64_t before;

    begin(r);
    before = fragments(r);
    for (int i = 0; r->rank == 0 && i < N; i++) {
        CHECK_OK(strata_isend(r->comm, &byte, 1, 1, i, &q[i]));
        CHECK_EQ(fragments(r), before + (uint64_t)i + 1);
    }
    for (int i = 0; r->rank == 1 && i < N; i++)
        CHECK_OK(strata_recv(r->comm, &byte, 1, 0, i, NULL));
    if (r->rank == 0)
        CHECK_OK(strata_waitall(N, q, NULL));
    CHECK_EQ(ob1(r)->n_coalesced, 0);
    tw_quiesce(r);
}

START_TEST(none_without_a_reason)
{
    static const char *const settings[] = {ALWAYS "btl_shuffle_crowded_percent=0", ALWAYS "pml_ob1_coalesce=0"};

    tw_run(&(struct tw_options){.n = 2, .settings = settings[_i]}, none_held, NULL);
}
END_TEST

/* ---- batches that cannot be ---- */

struct forged {
    struct wire_batch h;
    struct wire_part part;
    char bytes[16];
    struct wire_part last;
};

static void deliver(struct tw_rank *r, const struct forged *f, uint32_t hdr_len, uint32_t len)
{
    struct st_btl *btl = r->comm->worker->bml->btls[0];
    struct st_frag frag = {.hdr = &f->h, .hdr_len = hdr_len, .data = &f->part, .len = len, .rank = r->rank, .btl = btl};

    (void)btl->am[ST_AM_PML].fn(btl->am[ST_AM_PML].arg, &frag);
}

static void malformed(struct tw_rank *r)
{
    struct forged f = {.h = {.type = OB1_BATCH, .context = 0, .src = 0}, .part = {3, 10}, .last = {3, 1}};
    uint64_t before = ob1(r)->n_protocol_errors;
    char in[16] = {0};

    memcpy(f.bytes, "ten bytes!", 10);
    deliver(r, &f, sizeof(f.h) - 1, sizeof(f.part) + sizeof(f.bytes)); /* half a header */
    CHECK_EQ(ob1(r)->n_protocol_errors, before + 1);
    deliver(r, &f, sizeof(f.h), sizeof(f.part) - 1); /* not even a length */
    CHECK_EQ(ob1(r)->n_protocol_errors, before + 2);
    deliver(r, &f, sizeof(f.h), sizeof(f.part) + 15); /* no room for the zeros behind */
    CHECK_EQ(ob1(r)->n_protocol_errors, before + 3);
    f.part.len = UINT32_MAX; /* rounded up it is 0 */
    deliver(r, &f, sizeof(f.h), sizeof(f.part) + sizeof(f.bytes));
    CHECK_EQ(ob1(r)->n_protocol_errors, before + 4);
    f.part.len = 10; /* one that can be, and one without its byte */
    deliver(r, &f, sizeof(f.h), sizeof(f.part) + sizeof(f.bytes) + sizeof(f.last));
    CHECK_EQ(ob1(r)->n_protocol_errors, before + 5);
    CHECK_OK(strata_recv(r->comm, in, sizeof(in), 0, 3, NULL));
    CHECK(strcmp(in, "ten bytes!") == 0);
    deliver(r, &f, sizeof(f.h), 0); /* none at all: of no harm */
    CHECK_EQ(ob1(r)->n_protocol_errors, before + 5);
}

START_TEST(malformed_ones_are_dropped)
{
    tw_run(&(struct tw_options){.n = 1, .settings = "btl=self", .quiet = true}, malformed, NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ob1_coalesce");
    TCase *tc = tcase_create("coalesce");

    tcase_set_timeout(tc, 0);
    tcase_add_loop_test(tc, burst_goes_as_few, 0, 3);
    tcase_add_test(tc, freed_requests_go);
    tcase_add_test(tc, order_holds);
    tcase_add_test(tc, order_holds_over_several_paths);
    tcase_add_loop_test(tc, none_without_a_reason, 0, 2);
    tcase_add_test(tc, malformed_ones_are_dropped);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
