/* Unexpected messages of a peer with a ring of eager RDMA: `kept WHAT ROUNDS [FILE]`. In each round rank 0 sends
 * messages of one to sixty lines, and rank 1 receives none before the last one; then it receives them in an order of
 * its own, some by source and tag, some by wildcards, some after a matched probe, and checks each byte. WHAT:
 * - any: some messages of a round are received after those of the next one; with FILE, ROUNDS more until it exists
 * - quiet: few and short ones; rank 1 waits before it receives them, with ROUNDS more until a ring of its was revoked
 * - killed: rank 0 kills itself when the last round has arrived; rank 1 receives its messages, few and short
 *   ones, afterwards
 * - finalize: messages of the last round are not received, of which one was taken by a probe
 * Rank 1 prints the counters of eager RDMA. */
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include "support/counters.h"
#include "support/suite.h"
#include "support/watchdog.h"

enum { MOST = 30, FEW = 10, LONGEST = 3800, SHORTEST = 1, ALL = 1000, GO = 1001, NEVER = 1002, MORE = 1003 };

static strata_t *s;
static strata_comm_t *world;
static struct rnd rnd = {7};
static int messages = MOST; /* of a round. FEW: all are short, and take less of a ring than may be held */

static size_t length_of(uint64_t number)
{
    const size_t spread = messages == MOST && number % 5 == 0 ? LONGEST : 500;

    return SHORTEST + (size_t)(number * 2654435761u >> 7) % spread;
}

/* An answer after each message, as a burst leaves the ring. */
static void send_round(int round)
{
    static char data[LONGEST + 1];

    for (int i = 0; i < messages; i++) {
        uint64_t number = (uint64_t)round * MOST + (uint64_t)i;
        pattern_fill(data, length_of(number), number);
        CHECK_OK(strata_send(world, data, length_of(number), 1, i));
        suite_await(world, 1, GO);
    }
    suite_signal(world, 1, ALL);
}

/* All messages of the round have arrived, as the sender's order is kept. */
static void await_round(void)
{
    for (int i = 0; i < messages; i++) {
        suite_arrived(world, 0, i);
        suite_signal(world, 0, GO);
    }
    suite_await(world, 0, ALL);
}

static void receive(int round, int i)
{
    static char data[LONGEST + 1];
    uint64_t number = (uint64_t)round * MOST + (uint64_t)i;
    strata_status_t status;
    strata_message_t *m;

    if (rnd_below(&rnd, 3) == 0) {
        CHECK_OK(strata_mprobe(world, STRATA_ANY_SOURCE, i, &m, NULL));
        CHECK_OK(strata_mrecv(&m, data, sizeof data, &status));
    } else {
        CHECK_OK(strata_recv(world, data, sizeof data, rnd_below(&rnd, 2) ? 0 : STRATA_ANY_SOURCE, i, &status));
    }
    CHECK_EQ(status.length, length_of(number));
    CHECK_EQ(pattern_check(data, status.length, number), -1);
}

/* Those with the bits of `which`, in an order at random. */
static void receive_round(int round, uint32_t which)
{
    while (which) {
        int i = (int)rnd_below(&rnd, (uint32_t)messages);
        if (which >> i & 1)
            receive(round, i);
        which &= ~(UINT32_C(1) << i);
    }
}

static void sender(const char *what, int first, int rounds)
{
    for (int round = first; round < first + rounds; round++) {
        send_round(round);
        for (int k = 0; k < 50 && !strcmp(what, "quiet"); k++) {
            nanosleep(&(struct timespec){0, 1000000}, NULL);
            (void)strata_progress(s);
        }
        if (!strcmp(what, "killed") && round == first + rounds - 1)
            raise(SIGKILL);
        suite_signal(world, 1, GO);
    }
}

static void receiver(const char *what, int first, int rounds)
{
    const uint32_t all = (UINT32_C(1) << messages) - 1;
    uint32_t late = 0, now;
    strata_message_t *m;

    for (int round = first; round < first + rounds; round++) {
        bool last = round == first + rounds - 1;
        await_round();
        if (last && !strcmp(what, "killed"))
            CHECK_RC(strata_recv(world, NULL, 0, 0, NEVER, NULL), STRATA_ERR_PEER);
        else
            suite_await(world, 0, GO);
        now = all;
        if (last && !strcmp(what, "finalize"))
            break;
        if (!last && !strcmp(what, "any"))
            now = (uint32_t)rnd_below(&rnd, all) & all;
        if (round > first) /* the older ones of a tag first */
            receive_round(round - 1, late);
        receive_round(round, now);
        late = all & ~now;
    }
    if (!strcmp(what, "finalize"))
        CHECK_OK(strata_mprobe(world, 0, 5, &m, NULL));
}

/* Rank 0 sees the file, rank 1 its revoked rings; one tells the other. */
static int more_rounds(const char *what, const char *until)
{
    const bool quiet = !strcmp(what, "quiet");
    const int decides = quiet ? 1 : 0;
    int more = 0;

    if (!quiet && !until)
        return 0;
    if (strata_rank(s) != decides) {
        CHECK_OK(strata_recv(world, &more, sizeof more, decides, MORE, NULL));
        return more;
    }
    more = quiet ? counted(s, "btl", "openib", "rings_revoked") == 0 : access(until, F_OK) != 0;
    CHECK_OK(strata_send(world, &more, sizeof more, 1 - decides, MORE));
    return more;
}

static void print_counter(void *arg, const strata_counter_t *c)
{
    (void)arg;
    if (strcmp(c->component, "openib") == 0 &&
        (strncmp(c->name, "eager_rdma_", 11) == 0 || strcmp(c->name, "rings_revoked") == 0))
        printf("%s %lu\n", c->name, (unsigned long)c->value);
}

int main(int argc, char **argv)
{
    struct watchdog *dog = watchdog_start(test_timeout(900), 1);
    const char *what = argc > 2 ? argv[1] : "any";
    int rounds = argc > 2 ? atoi(argv[2]) : 1, first = 0;
    strata_config_t config = STRATA_CONFIG_INIT;
    char why[256];

    if (!strcmp(what, "quiet") || !strcmp(what, "killed"))
        messages = FEW;
    config.error_text = why;
    config.error_text_size = sizeof why;
    CHECK_MSG(strata_init(&config, &s) == STRATA_OK, "strata_init: %s", why);
    CHECK_EQ(strata_size(s), 2);
    world = strata_world(s);
    do {
        if (strata_rank(s) == 0)
            sender(what, first, rounds);
        else
            receiver(what, first, rounds);
        if (first == 0 && argc > 3)
            fprintf(stderr, "running\n");
        first += rounds;
    } while (more_rounds(what, argc > 3 ? argv[3] : NULL));
    if (strata_rank(s) == 1) {
        CHECK_OK(strata_counters(s, print_counter, NULL));
        printf("rank 1: all received\n");
    }
    CHECK_OK(strata_finalize(s));
    watchdog_stop(dog);
    return 0;
}
