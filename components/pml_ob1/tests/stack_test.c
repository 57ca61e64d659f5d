/* The PML over whole stacks, where the conformance suite does not look: contexts freed under queued messages, every
 * rendezvous protocol asked for, reports, a peer that dies. */
#include <check.h>
#include <strata/sdk/pml.h>
#include "support/pattern.h"
#include "support/world.h"
#include "support/run_suite.h"

static void bsend_then_free(struct tw_rank *r)
{
    enum { N = 300, LEN = 900 };
    static char area[N * (LEN + STRATA_BSEND_OVERHEAD)];
    char buf[LEN];
    strata_comm_spec_t spec = {.size = sizeof(spec), .id = 9, .rank = r->rank, .n_ranks = r->n};
    strata_comm_t *c;
    for (int round = 0; round < 3; round++) {
        CHECK_OK(strata_comm_create(r->s, &spec, &c));
        if (r->rank == 0) {
            void *back;
            size_t size;
            CHECK_OK(strata_buffer_attach(r->s, area, sizeof(area)));
            for (int i = 0; i < N; i++) {
                pattern_fill(buf, LEN, (uint64_t)(round * N + i));
                CHECK_OK(strata_bsend(c, buf, LEN, 1, i));
            }
            CHECK_OK(strata_comm_free(c)); /* most of them are still queued */
            CHECK_OK(strata_buffer_detach(r->s, &back, &size));
        } else {
            for (int i = 0; i < N; i++) {
                CHECK_OK(strata_recv(c, buf, LEN, 0, i, NULL));
                CHECK_EQ(pattern_check(buf, LEN, (uint64_t)(round * N + i)), -1);
            }
            CHECK_OK(strata_comm_free(c));
        }
        tw_quiesce(r);
    }
}

START_TEST(context_freed_under_buffered_sends)
{
    struct tw_options o = {.n = 2, .settings = "btl=shuffle,self btl_shuffle_again_percent=80"};
    tw_run(&o, bsend_then_free, NULL);
}
END_TEST

static void long_messages(struct tw_rank *r)
{
    const size_t lengths[] = {70000, 300001, 3000000};
    for (size_t k = 0; k < 3; k++) {
        size_t n = lengths[k];
        char *out = malloc(n), *in = malloc(n);
        strata_request_t *q[2];
        int other = r->n - 1 - r->rank;
        CHECK(out && in);
        pattern_fill(out, n, (uint64_t)r->rank + 10 * k);
        memset(in, 0, n);
        CHECK_OK(strata_irecv(r->comm, in, n, other, 1, &q[0]));
        CHECK_OK(strata_isend(r->comm, out, n, other, 1, &q[1]));
        CHECK_OK(strata_waitall(2, q, NULL));
        CHECK_EQ(pattern_check(in, n, (uint64_t)other + 10 * k), -1);
        free(in);
        free(out);
    }
}

/* What rank 0 has to say about many messages that it gets at a time. */
static void gets_in_a_crowd(struct tw_rank *r)
{
    enum { N = 64, LEN = 5000 };
    const struct st_btl *btl = r->comm->worker->bml->btls[0];
    char *data = calloc(N, LEN);
    strata_request_t *q[N];
    uint64_t before;
    int here = 0;

    CHECK(data);
    if (r->rank == 1)
        pattern_fill(data, N * LEN, 5);
    for (int i = 0; r->rank == 1 && i < N; i++)
        CHECK_OK(strata_isend(r->comm, data + i * LEN, LEN, 0, i, &q[i]));
    while (r->rank == 0 && !here) /* in order: all are announced */
        CHECK_OK(strata_iprobe(r->comm, 1, N - 1, &here, NULL));
    before = btl->messages_sent;
    for (int i = 0; r->rank == 0 && i < N; i++)
        CHECK_OK(strata_irecv(r->comm, data + i * LEN, LEN, 1, i, &q[i]));
    CHECK_OK(strata_waitall(N, q, NULL));
    CHECK_EQ(pattern_check(data, N * LEN, 5), -1);
    tw_quiesce(r);
    if (r->rank == 0) /* N gets, and reports of several of them each */
        CHECK(btl->messages_sent - before <= N + N / 3);
    free(data);
}

START_TEST(gets_are_reported_together)
{
    tw_run(&(struct tw_options){.n = 2,
                                .settings = "btl=shuffle btl_shuffle_async_percent=100 btl_shuffle_piece=1000000 "
                                            "pml_ob1_stream_limit=0 pml_ob1_rndv=get"},
           gets_in_a_crowd, NULL);
}
END_TEST

static const char *const protocols[] = {"auto", "get", "put", "split", "pipeline"};

START_TEST(every_protocol)
{
    static const char *const stacks[] = {
        "btl=self",
        "btl=shuffle,self",
        "btl=shuffle,self btl_shuffle_rails=3 pml_ob1_stripe_min=64k",
        "btl=shuffle,self btl_shuffle_rails=3 btl_shuffle_needs_reg=1 pml_ob1_stripe_min=64k",
        "btl=shuffle,self btl_shuffle_rails=3 btl_shuffle_needs_reg=1 btl_shuffle_put=0 pml_ob1_stripe_min=64k",
        "btl=shuffle,self btl_shuffle_unsupported_percent=50 btl_shuffle_rails=2 pml_ob1_stripe_min=64k",
    };
    char settings[300];
    for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++) {
        snprintf(settings, sizeof(settings), "%s pml_ob1_rndv=%s pml_ob1_piece=50000", stacks[i], protocols[_i]);
        tw_run(&(struct tw_options){.n = i ? 2 : 1, .settings = settings}, long_messages, NULL);
    }
}
END_TEST

static void reports(struct tw_rank *r)
{
    char *json = NULL;
    CHECK_OK(strata_peer_report(r->s, 0, &json));
    CHECK(strstr(json, "eager_limit") && strstr(json, "\"get\""));
    free(json);
}

START_TEST(describes_itself)
{
    tw_run(&(struct tw_options){.n = 1, .settings = "btl=self"}, reports, NULL);
}
END_TEST

/* Nothing waits for a message from a rank that has failed; what has come, and what may come from others, is found. */
static void probe_dead(strata_comm_t *comm)
{
    strata_message_t *m;
    int x = 5, found = 0;

    CHECK_RC(strata_iprobe(comm, 1, 9, &found, NULL), STRATA_ERR_PEER);
    CHECK_RC(strata_improbe(comm, 1, STRATA_ANY_TAG, &found, &m, NULL), STRATA_ERR_PEER);
    CHECK_RC(strata_probe(comm, 1, 9, NULL), STRATA_ERR_PEER);
    CHECK_RC(strata_mprobe(comm, 1, 9, &m, NULL), STRATA_ERR_PEER);
    CHECK_OK(strata_iprobe(comm, 0, 9, &found, NULL));
    CHECK_EQ(found, 0);
    CHECK_OK(strata_iprobe(comm, STRATA_ANY_SOURCE, 9, &found, NULL));
    CHECK_EQ(found, 0);
    CHECK_OK(strata_send(comm, &x, sizeof(x), 0, 11));
    CHECK_OK(strata_probe(comm, 0, 11, NULL));
    CHECK_OK(strata_recv(comm, &x, sizeof(x), 0, 11, NULL));
}

/* Rank 1 is told to be dead while rank 0 has everything under way with it. */
static void dies(struct tw_rank *r)
{
    enum { LONG = 1 << 20 };
    static char buf[4][LONG];
    strata_request_t *q[4];
    strata_status_t st;
    int x = 0;
    if (r->rank == 1) {
        CHECK_OK(strata_send(r->comm, &x, sizeof(x), 0, 7)); /* has arrived: stays receivable */
        CHECK_OK(strata_ssend(r->comm, &x, sizeof(x), 0, 8));
        tw_barrier(r);
        return;
    }
    CHECK_OK(strata_recv(r->comm, &x, sizeof(x), 1, 8, NULL));
    CHECK_OK(strata_isend(r->comm, buf[0], LONG, 1, 1, &q[0]));
    CHECK_OK(strata_irecv(r->comm, buf[1], LONG, 1, 2, &q[1]));
    CHECK_OK(strata_isend_mode(r->comm, buf[2], 8, 1, 3, STRATA_SYNCHRONOUS, &q[2]));
    CHECK_OK(strata_irecv(r->comm, buf[3], LONG, 1, 4, &q[3]));
    CHECK_OK(strata_recv(r->comm, &x, sizeof(x), STRATA_ANY_SOURCE, 7, NULL));
    CHECK_OK(strata_host_peer_failed(r->s, 1, "the test says so"));
    for (int i = 0; i < 4; i++)
        CHECK_RC(strata_wait(&q[i], &st), STRATA_ERR_PEER);
    CHECK_RC(strata_recv(r->comm, &x, sizeof(x), 1, 9, NULL), STRATA_ERR_PEER);
    CHECK_RC(strata_send(r->comm, &x, sizeof(x), 1, 9), STRATA_ERR_PEER);
    probe_dead(r->comm);
    CHECK_OK(strata_irecv(r->comm, &x, sizeof(x), STRATA_ANY_SOURCE, 10, &q[0]));
    CHECK_OK(strata_cancel(q[0]));
    CHECK_RC(strata_wait(&q[0], &st), STRATA_ERR_CANCELLED);
    CHECK_EQ(tw_failures(r->world, 1), 1);
    tw_barrier(r);
}

START_TEST(dead_peer)
{
    struct tw_options o = {.n = 2, .settings = "btl=shuffle,self", .quiet = true};
    tw_run(&o, dies, NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ob1_stack");
    TCase *tc = tcase_create("stack");
    tcase_set_timeout(tc, 0);
    tcase_add_test(tc, context_freed_under_buffered_sends);
    tcase_add_test(tc, gets_are_reported_together);
    tcase_add_loop_test(tc, every_protocol, 0, (int)(sizeof(protocols) / sizeof(protocols[0])));
    tcase_add_test(tc, describes_itself);
    tcase_add_test(tc, dead_peer);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
