/* Short messages between many ranks at once, for tests of eager RDMA: `storm PATTERN MESSAGES SEED [VICTIM [FILE]]`.
 * Each rank sends MESSAGES of 16 to 4000 bytes; each carries its number among those of its sender to its receiver, and
 * bytes that follow from that, all of which is checked: none is lost, none comes twice, in another order or with other
 * bytes. Rank 0 prints "PATTERN MESSAGES", the messages that all ranks have received. PATTERN:
 * - alltoall: to all others in turn
 * - incast: to rank 0
 * - random: mostly to four ranks, which are others after each 500 messages, so that these become hot and cold again
 * VICTIM kills itself after a third of its messages: what it has sent until then has come, or a part from the front;
 * -1: nobody does. With FILE the ranks go on until it exists, and each says "running" when it has sent MESSAGES. */
#include <signal.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>
#include "support/random.h"
#include "support/suite.h"
#include "support/watchdog.h"

enum { MOST = 4000, FRIENDS = 4, FRIENDLY = 500, AHEAD = 16, DATA = 1, COUNT = 2, POLLS = 64, LOOK_EACH = 32 };

struct lead {
    int32_t from, last; /* last: this is no message but how many there were, as `number` */
    uint64_t number;
};

static strata_t *s;
static strata_comm_t *world;
static int rank, n, victim = -1, n_done;
static uint64_t *sent, *received, total;
static bool *done; /* by rank: all of its messages have come, or it is dead */
static struct rnd dice;
static char in[MOST], out[AHEAD][MOST];
static strata_request_t *request[AHEAD];

static size_t length_of(int from, int to, uint64_t number)
{
    const uint64_t mixed = (number + (uint64_t)from * 131 + (uint64_t)to * 17) * 2654435761u >> 7;

    return sizeof(struct lead) + (size_t)(mixed % (number % 16 == 0 ? MOST - sizeof(struct lead) : 100));
}

static char byte_of(int from, uint64_t number, size_t at)
{
    return (char)((number * 31 + (uint64_t)from * 3 + at * 7) & 0xff);
}

/* ---- receiving ---- */

static void finished(int from)
{
    n_done += !done[from];
    done[from] = true;
}

static void check(const struct lead *l, size_t length, int source)
{
    CHECK_MSG(l->from == source && source != rank, "rank %d: a message of rank %d says that it is of rank %d", rank,
              source, l->from);
    CHECK_MSG(l->number == received[source], "rank %d: message %llu of rank %d where %llu was due", rank,
              (unsigned long long)l->number, source, (unsigned long long)received[source]);
    if (l->last) {
        finished(source);
        return;
    }
    CHECK_MSG(length == length_of(source, rank, l->number), "rank %d: message %llu of rank %d has %zu bytes", rank,
              (unsigned long long)l->number, source, length);
    for (size_t i = sizeof *l; i < length; i++)
        CHECK_MSG(in[i] == byte_of(source, l->number, i),
                  "rank %d: byte %zu of %zu of message %llu of rank %d is wrong", rank, i, length,
                  (unsigned long long)l->number, source);
    received[source]++;
    total++;
}

/* All that is there. */
static void receive_some(void)
{
    strata_status_t status;
    struct lead l;
    int found = 1;

    for (int i = 0; i < POLLS && found; i++) {
        CHECK_OK(strata_iprobe(world, STRATA_ANY_SOURCE, DATA, &found, &status));
        if (!found)
            break;
        int source = status.source, rc = strata_recv(world, in, sizeof in, source, DATA, &status);
        if (rc == STRATA_ERR_PEER && source == victim)
            continue;
        CHECK_OK(rc);
        CHECK(status.length >= sizeof l);
        memcpy(&l, in, sizeof l);
        check(&l, status.length, source);
    }
}

/* ---- sending ---- */

static void await_sent(strata_request_t **q, int to)
{
    int ended = *q == NULL, rc = STRATA_OK;

    while (!ended) {
        rc = strata_test(q, &ended, NULL);
        receive_some();
    }
    CHECK_MSG(rc == STRATA_OK || (rc == STRATA_ERR_PEER && victim >= 0), "rank %d to %d: %s", rank, to,
              strata_strerror(rc));
}

static int target_of(const char *pattern, uint64_t i)
{
    static int friends[FRIENDS];
    int to;

    if (!strcmp(pattern, "incast"))
        return 0;
    if (!strcmp(pattern, "alltoall"))
        return (rank + 1 + (int)(i % (uint64_t)(n - 1))) % n;
    if (i % FRIENDLY == 0)
        for (int k = 0; k < FRIENDS; k++)
            friends[k] = (rank + 1 + (int)rnd_below(&dice, (uint32_t)n - 1)) % n;
    to = rnd_below(&dice, 10) ? friends[rnd_below(&dice, FRIENDS)]
                              : (rank + 1 + (int)rnd_below(&dice, (uint32_t)n - 1)) % n;
    return to;
}

static void send_one(int to, uint64_t i, bool last)
{
    struct lead l = {rank, last, sent[to]};
    char *b = out[i % AHEAD];
    size_t length = last ? sizeof l : length_of(rank, to, l.number);

    await_sent(&request[i % AHEAD], to);
    memcpy(b, &l, sizeof l);
    for (size_t k = sizeof l; k < length; k++)
        b[k] = byte_of(rank, l.number, k);
    int rc = strata_isend(world, b, length, to, DATA, &request[i % AHEAD]);
    CHECK_MSG(rc == STRATA_OK || (rc == STRATA_ERR_PEER && to == victim), "rank %d to %d: %s", rank, to,
              strata_strerror(rc));
    if (rc != STRATA_OK)
        request[i % AHEAD] = NULL;
    sent[to] += !last;
}

/* A dead rank says no end: when a message to it fails it has been reported. */
static void await_death(void)
{
    int rc = STRATA_OK;

    while (rc == STRATA_OK) {
        strata_request_t *q;
        int ended = 0;
        rc = strata_isend(world, NULL, 0, victim, COUNT, &q);
        while (rc == STRATA_OK && !ended) {
            rc = strata_test(&q, &ended, NULL);
            receive_some();
        }
    }
    CHECK_MSG(rc == STRATA_ERR_PEER, "rank %d: %s", rank, strata_strerror(rc));
    finished(victim);
}

/* Whether message i is to be sent. */
static bool goes_on(uint64_t i, uint64_t messages, const char *until)
{
    if (i < messages)
        return true;
    if (i == messages && until)
        fprintf(stderr, "running\n");
    return until && (i % LOOK_EACH != 0 || access(until, F_OK) != 0);
}

static void storm(const char *pattern, uint64_t messages, const char *until)
{
    bool sends = strcmp(pattern, "incast") != 0 || rank != 0;
    uint64_t i;

    for (i = 0; sends && goes_on(i, messages, until); i++) {
        if (rank == victim && i == messages / 3)
            raise(SIGKILL);
        send_one(target_of(pattern, i), i, false);
        if (i % 4 == 0)
            receive_some();
    }
    for (int k = 1; k < n; k++)
        send_one((rank + k) % n, i++, true);
    for (int k = 0; k < AHEAD; k++)
        await_sent(&request[k], -1);
    if (victim >= 0)
        await_death();
    while (n_done < n - 1) {
        receive_some();
        (void)strata_progress(s);
    }
}

/* Sums up at rank 0 what all have received. */
static void sum_up(const char *pattern)
{
    if (rank == 0) {
        for (int from = 1; from < n; from++) {
            uint64_t of = 0;
            if (from != victim)
                CHECK_OK(strata_recv(world, &of, sizeof of, from, COUNT, NULL));
            total += of;
        }
        printf("%s %llu\n", pattern, (unsigned long long)total);
    } else {
        CHECK_OK(strata_send(world, &total, sizeof total, 0, COUNT));
    }
}

int main(int argc, char **argv)
{
    const char *pattern = argc > 1 ? argv[1] : "";
    const uint64_t messages = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    struct watchdog *dog = watchdog_start(test_timeout(1800), 1);
    strata_config_t config = STRATA_CONFIG_INIT;
    char why[256];

    if (messages == 0 || argc < 4) {
        fprintf(stderr, "usage: storm alltoall|incast|random MESSAGES SEED [VICTIM [FILE]]\n");
        return 2;
    }
    victim = argc > 4 ? atoi(argv[4]) : -1;
    config.error_text = why;
    config.error_text_size = sizeof why;
    CHECK_MSG(strata_init(&config, &s) == STRATA_OK, "strata_init: %s", why);
    world = strata_world(s);
    rank = strata_rank(s);
    n = strata_size(s);
    CHECK(n > 1 && victim < n && victim != 0);
    dice.state = (uint64_t)strtoull(argv[3], NULL, 10) * 1000003u + (uint64_t)rank;
    sent = calloc((size_t)n, sizeof *sent);
    received = calloc((size_t)n, sizeof *received);
    done = calloc((size_t)n, sizeof *done);
    CHECK(sent && received && done);
    storm(pattern, messages, argc > 5 ? argv[5] : NULL);
    sum_up(pattern);
    CHECK_OK(strata_finalize(s));
    free(sent);
    free(received);
    free(done);
    watchdog_stop(dog);
    return 0;
}
