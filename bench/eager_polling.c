/* Polling costs of a rank by the number of peers: figures 3 and 20 of the paper on eager RDMA. One process has all
 * contexts; the first N peers have sent to rank 0, so each has a ring there where btl_openib_eager_rdma is on, and are
 * quiet from then on. `bench/eager_polling ROUNDS N...` prints, as "TEST N US", medians:
 * - rings: a call of strata_progress in which nothing has come
 * - ping, ping_last: half of a round trip of 8 bytes between rank 0 and the first or the last one, both in this thread
 * - quiet: a message of 8 bytes to rank 0 of a peer that has sent none for long, each time of another one */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "support/world.h"
#include "median.h"

/* SILENCE: twice the polls after which a ring without messages is quiet (components/btl_openib/eager_rdma). */
enum { MOST = 512, WARM_UP = 40, POLLS = 200, TRIPS = 20, BATCHES = 51, TAG = 7, SILENCE = 2 * 64 * 32 };

static strata_t *s[MOST + 1];
static int partner, peers;

static double microseconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Drives both contexts until the message is there. */
static void message(int from, int to)
{
    char out[8] = "", in[8];
    int sent = 0, received = 0;
    strata_request_t *req[2];

    CHECK_OK(strata_irecv(strata_world(s[to]), in, sizeof in, from, TAG, &req[0]));
    CHECK_OK(strata_isend(strata_world(s[from]), out, sizeof out, to, TAG, &req[1]));
    while (!sent || !received) {
        if (!sent)
            CHECK_OK(strata_test(&req[1], &sent, STRATA_STATUS_IGNORE));
        if (!received)
            CHECK_OK(strata_test(&req[0], &received, STRATA_STATUS_IGNORE));
    }
}

static void polls(int count)
{
    for (int i = 0; i < count; i++)
        (void)strata_progress(s[0]);
}

static void trips(int count)
{
    for (int i = 0; i < count; i++) {
        message(partner, 0);
        message(0, partner);
    }
}

static void measure(const char *name, int n, int count, int parts, void (*run)(int count))
{
    double us[BATCHES], t;

    run(count);
    for (int i = 0; i < BATCHES; i++) {
        t = microseconds();
        run(count);
        us[i] = (microseconds() - t) / (count * parts);
    }
    printf("%s %d %.4f\n", name, n, median(us, BATCHES));
    fflush(stdout);
}

/* Times the first message of each peer, in turn. */
static void first_messages(const char *name)
{
    double us[BATCHES], t;

    for (int i = 0; i < BATCHES; i++) {
        polls(SILENCE);
        t = microseconds();
        message(1 + i * 7 % peers, 0);
        us[i] = microseconds() - t;
    }
    printf("%s %d %.4f\n", name, peers, median(us, BATCHES));
    fflush(stdout);
}

static void find_rings(void *arg, const strata_counter_t *c)
{
    if (strcmp(c->component, "openib") == 0 && strcmp(c->name, "rings_granted") == 0)
        *(uint64_t *)arg += c->value;
}

static void *finalize(void *context)
{
    CHECK_OK(strata_finalize(context));
    return NULL;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 0, most = 0;
    const char *eager = getenv("STRATA_MCA_btl_openib_eager_rdma"),
               *places = getenv("STRATA_MCA_btl_openib_eager_rdma_peers");
    bool each; /* has a ring */
    pthread_t thread[MOST + 1];
    char why[1024] = "";
    uint64_t rings = 0;

    for (int i = 2; i < argc; i++)
        most = atoi(argv[i]) > most ? atoi(argv[i]) : most;
    if (rounds < 1 || most < 1 || most > MOST) {
        fprintf(stderr, "usage: eager_polling ROUNDS PEERS..., growing, 1 to %d\n", MOST);
        return 2;
    }
    each = eager && strcmp(eager, "on") == 0 && places && atoi(places) >= most;
    struct tw_options o = {.n = most + 1, .timeout_s = 3600};
    struct tw_world *w = tw_create(&o);
    for (int i = 0; i <= most; i++)
        CHECK_MSG(tw_init(w, i, &s[i], why, sizeof why) == STRATA_OK, "rank %d: %s", i, why);
    for (int i = 2; i < argc; i++) {
        while (peers < atoi(argv[i])) {
            peers++;
            for (int k = 0; k < WARM_UP; k++)
                message(peers, 0);
        }
        rings = 0;
        CHECK_OK(strata_counters(s[0], find_rings, &rings));
        CHECK_MSG(!each || rings == (uint64_t)peers, "%d peers have %llu rings", peers, (unsigned long long)rings);
        for (int r = 0; r < rounds; r++) {
            measure("rings", peers, POLLS, 1, polls);
            partner = 1;
            measure("ping", peers, TRIPS, 2, trips);
            partner = peers;
            measure("ping_last", peers, TRIPS, 2, trips);
            first_messages("quiet");
        }
    }
    for (int i = 0; i <= most; i++)
        CHECK(pthread_create(&thread[i], NULL, finalize, s[i]) == 0);
    for (int i = 0; i <= most; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
    tw_destroy(w);
    return 0;
}
