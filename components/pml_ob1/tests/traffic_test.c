/* Messages and bytes of each peer are counted both ways: by every protocol, in and out of order, in contexts that have
 * been freed too, at a rank that only receives. */
#include <check.h>
#include <strata/sdk/pml.h>
#include "ob1.h"
#include "peer.h"
#include "support/run_suite.h"
#include "support/world.h"

enum { LONGEST = 300000, ROUNDS = 3, OTHER_CONTEXT = 9 };

static const size_t lengths[] = {0, 1, 8, 64, 65, 1000, 5000, 40000, 100000, LONGEST};
static const strata_mode_t modes[] = {STRATA_STANDARD, STRATA_SYNCHRONOUS};
enum { N_LENGTHS = sizeof(lengths) / sizeof(*lengths), N_MODES = 2, N_SENT = ROUNDS * N_LENGTHS * N_MODES };

static uint64_t bytes_of_all(void)
{
    uint64_t sum = 0;

    for (int i = 0; i < N_LENGTHS; i++)
        sum += lengths[i];
    return sum * N_MODES * ROUNDS;
}

static struct st_pml_traffic traffic(const struct tw_rank *r, int rank)
{
    struct st_pml_traffic t;

    CHECK(r->comm->pml->ops->traffic(r->comm->pml, rank, &t));
    return t;
}

/* Rank 0 sends, rank 1 receives; all requests of a round are under way at once. */
static void stream(const struct tw_rank *r, strata_comm_t *c)
{
    static char out[LONGEST], in[N_LENGTHS * N_MODES][LONGEST];
    strata_request_t *q[N_LENGTHS * N_MODES];

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < N_LENGTHS * N_MODES; i++) {
            size_t length = lengths[i % N_LENGTHS];
            if (r->rank == 0)
                CHECK_OK(strata_isend_mode(c, out, length, 1, i, modes[i / N_LENGTHS], &q[i]));
            else
                CHECK_OK(strata_irecv(c, in[i], length, 0, i, &q[i]));
        }
        CHECK_OK(strata_waitall(N_LENGTHS * N_MODES, q, NULL));
    }
}

static void one_way(struct tw_rank *r)
{
    struct st_pml_traffic t;

    CHECK(!r->comm->pml->ops->traffic(r->comm->pml, !r->rank, &t)); /* no contact so far */
    stream(r, r->comm);
    t = traffic(r, !r->rank);
    CHECK_EQ(r->rank ? t.messages_received : t.messages_sent, N_SENT);
    CHECK_EQ(r->rank ? t.bytes_received : t.bytes_sent, bytes_of_all());
    CHECK_EQ(r->rank ? t.messages_sent : t.messages_received, 0);
    CHECK_EQ(r->rank ? t.bytes_sent : t.bytes_received, 0);
    CHECK((t.heard_by != NULL) == (r->rank == 1));
    CHECK(!t.heard_by || strcmp(t.heard_by->framework, "btl") == 0);
}

/* Counts stay when a context goes, and those of several contexts add up. */
static void freed_contexts(struct tw_rank *r)
{
    strata_comm_spec_t spec = {.size = sizeof(spec), .rank = r->rank, .n_ranks = r->n};
    strata_comm_t *other[3];
    struct st_pml_traffic t;

    for (int i = 0; i < 3; i++) {
        spec.id = (uint32_t)(OTHER_CONTEXT + i);
        CHECK_OK(strata_comm_create(r->s, &spec, &other[i]));
        stream(r, other[i]);
    }
    stream(r, r->comm);
    tw_quiesce(r);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(strata_comm_free(other[(i + 1) % 3]));
        t = traffic(r, !r->rank);
        CHECK_EQ(r->rank ? t.messages_received : t.messages_sent, 4 * N_SENT);
        CHECK_EQ(r->rank ? t.bytes_received : t.bytes_sent, 4 * bytes_of_all());
    }
}

/* Blocking ones, which take the hot paths, by the receive that is posted before, the one after, and one too short. */
static void blocking(struct tw_rank *r)
{
    enum { N = 100, SHORT = 8, SENT = 24 };
    char b[SENT] = {0};
    strata_status_t st;

    for (int i = 0; i < N; i++) {
        if (r->rank == 0) {
            CHECK_OK(strata_send(r->comm, b, SENT, 1, 1));
            CHECK_OK(strata_recv(r->comm, b, SENT, 1, 1, NULL));
        } else {
            int rc = strata_recv(r->comm, b, i % 2 ? SENT : SHORT, 0, 1, &st);
            CHECK_EQ(rc, i % 2 ? STRATA_OK : STRATA_ERR_TRUNCATE);
            CHECK_OK(strata_send(r->comm, b, SHORT, 0, 1));
        }
    }
    struct st_pml_traffic t = traffic(r, !r->rank);
    CHECK_EQ(t.messages_sent, N);
    CHECK_EQ(t.messages_received, N);
    CHECK_EQ(t.bytes_sent, r->rank ? N * SHORT : N * SENT);
    CHECK_EQ(t.bytes_received, r->rank ? N * SENT : N * SHORT);
}

/* In order, shuffled, together, and by paths of which some are lost is what the settings are for. */
static const char *const settings[] = {
    "btl=self,sm",
    "btl=shuffle",
    "btl=shuffle btl_shuffle_crowded_percent=100 btl_shuffle_zcopy_min=0",
    "btl=self,sm pml_ob1_rndv=pipeline",
    "btl=self,sm pml_ob1_path_keep=1",
};
enum { N_SETTINGS = sizeof(settings) / sizeof(*settings) };

START_TEST(each_protocol)
{
    tw_run(&(struct tw_options){.n = 2, .settings = settings[_i]}, one_way, NULL);
}
END_TEST

START_TEST(contexts)
{
    tw_run(&(struct tw_options){.n = 2, .settings = settings[_i]}, freed_contexts, NULL);
}
END_TEST

START_TEST(hot_paths)
{
    tw_run(&(struct tw_options){.n = 2, .settings = settings[_i]}, blocking, NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ob1_traffic");
    TCase *tc = tcase_create("traffic");

    tcase_set_timeout(tc, 0);
    tcase_add_loop_test(tc, each_protocol, 0, N_SETTINGS);
    tcase_add_loop_test(tc, contexts, 0, N_SETTINGS);
    tcase_add_loop_test(tc, hot_paths, 0, N_SETTINGS);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
