/* The cap on unexpected memory, over the shuffling transport and to oneself: a receiver that does not receive makes its
 * senders announce messages, everything arrives in order, and the senders are let go again afterwards. */
#include <check.h>
#include <strata/sdk/pml.h>
#include "peer.h"
#include "support/pattern.h"
#include "support/world.h"
#include "support/run_suite.h"
#include "wire.h"

enum { MESSAGES = 2000, LENGTH = 2000, CAP = 64 * 1024 };

static void add_unexpected(void *arg, const strata_mem_line_t *line)
{
    if (!strcmp(line->component, "pml_ob1") && !strcmp(line->category, "unexpected"))
        *(size_t *)arg += line->bytes;
}

static size_t unexpected(strata_t *s)
{
    size_t bytes = 0;
    CHECK_OK(strata_mem_report(s, add_unexpected, &bytes));
    return bytes;
}

static void flood(struct tw_rank *r)
{
    static char data[MESSAGES][LENGTH];
    strata_request_t *req[MESSAGES];
    char buf[LENGTH];
    int to = r->n - 1;
    size_t most = 0;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MESSAGES; i++) {
            if (r->rank == 0) {
                pattern_fill(data[i], LENGTH, (uint64_t)i);
                CHECK_OK(strata_isend(r->comm, data[i], LENGTH, to, 1, &req[i]));
            }
            if (i % 20 == 0) { /* both get their turns, however the threads are scheduled */
                for (int k = 0; k < 100; k++)
                    strata_progress(r->s);
                tw_quiesce(r);
            }
        }
        if (r->rank == to) {
            most = unexpected(r->s);
            for (int i = 0; i < MESSAGES; i++) {
                CHECK_OK(strata_recv(r->comm, buf, LENGTH, 0, 1, NULL));
                CHECK_EQ(pattern_check(buf, LENGTH, (uint64_t)i), -1);
            }
            /* What a message's own entry takes is not subject to the cap; the payload is. */
            CHECK_MSG(most < (size_t)MESSAGES * 400 + 8 * CAP, "%zu bytes were kept", most);
        }
        if (r->rank == 0)
            CHECK_OK(strata_waitall(MESSAGES, req, NULL));
    }
    tw_quiesce(r);
}

START_TEST(over_shuffle)
{
    /* Fragments are held back for a number of polls. Ranks that wait sleep and do not yield: beside other work a yield
     * lasts as long as everybody's turn. */
    struct tw_options o = {.n = 2,
                           .settings = "btl=shuffle,self btl_shuffle_eager_limit=4k "
                                       "pml_ob1_unexpected_max=64k mca_base_spin=2 mca_base_yield=0"};
    tw_run(&o, flood, NULL);
}
END_TEST

START_TEST(to_oneself)
{
    struct tw_options o = {.n = 1, .settings = "btl=self pml_ob1_unexpected_max=64k"};
    tw_run(&o, flood, NULL);
}
END_TEST

/* Sends this rank what its receiver, itself, would. */
static void throttled(struct tw_rank *r, uint64_t number, bool announce)
{
    struct st_btl *btl = r->comm->worker->bml->btls[0];
    struct wire_control h = {.type = OB1_THROTTLE, .id = number, .bytes = announce};
    struct st_frag frag = {.hdr = &h, .hdr_len = sizeof(h), .rank = 0, .btl = btl};

    btl->am[ST_AM_PML].fn(btl->am[ST_AM_PML].arg, &frag);
}

/* Requests to announce messages, and to go on as before, that come in another order: the newest one counts. */
static void out_of_order(struct tw_rank *r)
{
    const struct ob1_peer *peer;
    strata_request_t *q;
    int x = 1;

    CHECK_OK(strata_irecv(r->comm, &x, sizeof(x), 0, 1, &q));
    CHECK_OK(strata_send(r->comm, &x, sizeof(x), 0, 1));
    CHECK_OK(strata_wait(&q, NULL));
    peer = ob1_peer_of(st_worker_peer_known(r->comm->worker, 0));
    for (uint64_t n = 1; n < 1000; n += 2) {
        throttled(r, n + 1, false);
        throttled(r, n, true);
        CHECK(!peer->announce);
    }
    throttled(r, 1001, true);
    CHECK(peer->announce);
    throttled(r, 1001, false); /* cannot be: nothing has one number twice */
    CHECK(peer->announce);
    throttled(r, 1002, false);
    CHECK(!peer->announce);
}

START_TEST(the_newest_counts)
{
    tw_run(&(struct tw_options){.n = 1, .settings = "btl=self"}, out_of_order, NULL);
}
END_TEST

enum { STREAM = 60000 };

/* Two ranks have sent, in a context that the third never made, more than it wanted to keep: at its end it gives the
 * memory back, peer by peer, and sends nothing. */
static void never_received(struct tw_rank *r)
{
    strata_comm_spec_t spec = {.size = sizeof(spec), .id = 9, .rank = r->rank, .n_ranks = r->n};
    static char data[STREAM];
    strata_request_t *q;
    strata_comm_t *c;

    if (r->rank != 1) {
        CHECK_OK(strata_comm_create(r->s, &spec, &c));
        CHECK_OK(strata_isend(c, data, STREAM, 1, 1, &q));
        CHECK_OK(strata_wait(&q, NULL));
        CHECK_OK(strata_comm_free(c));
    }
    while (r->rank == 1 && unexpected(r->s) < 2 * STREAM)
        strata_progress(r->s);
    tw_quiesce(r);
}

START_TEST(all_is_given_back_at_the_end)
{
    tw_run(&(struct tw_options){.n = 3,
                                .settings = "btl=shuffle btl_shuffle_stream_limit=64k btl_shuffle_max_send=8k "
                                            "pml_ob1_unexpected_max=32k mca_base_spin=2 mca_base_yield=0"},
           never_received, NULL);
}
END_TEST

enum { LONG = 8000, MANY = 400, SPARE = 1 << 20, BLOCK = 8192 };
static size_t left; /* bytes of the category once all has been received */

static void receive_late(struct tw_rank *r)
{
    static char data[LONG], buf[LONG];
    strata_request_t *req[MANY];

    for (int i = 0; i < MANY && r->rank == 0; i++)
        CHECK_OK(strata_isend(r->comm, data, LONG, 1, 1, &req[i]));
    tw_quiesce(r);
    for (int i = 0; i < MANY && r->rank == 1; i++)
        CHECK_OK(strata_recv(r->comm, buf, LONG, 0, 1, NULL));
    if (r->rank == 0)
        CHECK_OK(strata_waitall(MANY, req, NULL));
    tw_quiesce(r);
    if (r->rank == 1)
        left = unexpected(r->s);
}

/* Memory of unexpected messages stays for the next ones, up to the parameter. */
START_TEST(so_much_stays)
{
    struct tw_options o = {.n = 2,
                           .settings = "btl=shuffle,self btl_shuffle_eager_limit=16k mca_base_spin=2 mca_base_yield=0 "
                                       "pml_ob1_unexpected_spare=0 btl_shuffle_keep_percent=0"};
    size_t entries;

    tw_run(&o, receive_late, NULL);
    entries = left;
    o.settings = "btl=shuffle,self btl_shuffle_eager_limit=16k mca_base_spin=2 mca_base_yield=0 "
                 "pml_ob1_unexpected_spare=1m btl_shuffle_keep_percent=0";
    tw_run(&o, receive_late, NULL);
    CHECK_MSG(left <= entries + SPARE && left > entries + SPARE - 2 * BLOCK, "%zu, without spare memory %zu", left,
              entries);
}
END_TEST

enum { MOST = 1000 };

/* All messages stay with the transport, which takes them back: their copies count, so that the sender is asked to
 * announce its messages, and is let go when all are received. */
static void kept_and_left(struct tw_rank *r)
{
    static char data[MOST][LENGTH];
    static int sent;
    static strata_request_t *req[MOST];
    const struct ob1_peer *peer = NULL;
    char buf[LENGTH];

    for (int i = 0; r->rank == 0 && i < MOST && !(peer && peer->announce); sent = ++i) {
        pattern_fill(data[i], LENGTH, (uint64_t)i);
        CHECK_OK(strata_isend(r->comm, data[i], LENGTH, 1, 1, &req[i]));
        peer = ob1_peer_of(st_worker_peer_known(r->comm->worker, 1));
        for (int k = 0; k < 100; k++)
            strata_progress(r->s);
    }
    tw_quiesce(r);
    if (r->rank == 0)
        CHECK_MSG(sent < MOST, "the sender was not asked to announce messages");
    for (int i = 0; i < sent && r->rank == 1; i++) {
        CHECK_OK(strata_recv(r->comm, buf, LENGTH, 0, 1, NULL));
        CHECK_EQ(pattern_check(buf, LENGTH, (uint64_t)i), -1);
    }
    if (r->rank == 0)
        CHECK_OK(strata_waitall((size_t)sent, req, NULL));
    while (r->rank == 0 && peer && peer->announce)
        strata_progress(r->s);
    tw_quiesce(r);
}

START_TEST(what_left_a_transport_counts)
{
    tw_run(&(struct tw_options){.n = 2,
                                .settings = "btl=shuffle,self btl_shuffle_eager_limit=4k pml_ob1_unexpected_max=64k "
                                            "btl_shuffle_keep_percent=100 btl_shuffle_leave_percent=100 "
                                            "mca_base_spin=2 mca_base_yield=0"},
           kept_and_left, NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ob1_cap");
    TCase *tc = tcase_create("cap");
    tcase_set_timeout(tc, 0);
    tcase_add_test(tc, over_shuffle);
    tcase_add_test(tc, to_oneself);
    tcase_add_test(tc, the_newest_counts);
    tcase_add_test(tc, all_is_given_back_at_the_end);
    tcase_add_test(tc, so_much_stays);
    tcase_add_test(tc, what_left_a_transport_counts);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
