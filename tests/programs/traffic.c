/* Many ranks at a time, for tests/openib and bench/srq.sh: `traffic MODE BYTES ROUNDS BATCHES [SECONDS]`. Every message
 * is stamped and checked at both ends. Rank 0 prints "MODE BYTES FIRST MEDIAN": microseconds of the first batch, in
 * which connections are made, and the median of the others.
 * - alltoall: in each round everybody sends a message to everybody
 * - incast: everybody sends to rank 0, up to 16 messages ahead of it
 * - flood: all that a batch sends to both neighbours is on its way before anybody receives
 * - paced: everybody sends to rank 0, and computes for 2 ms after each message without calling anything
 * - pause: everybody sends ROUNDS messages in a row to rank 0, does nothing but progress for 10 ms, and sends two more
 * - overtake: everybody sends a long message and ROUNDS short ones of BYTES to rank 0
 * - stopped: as incast, and rank 0 is stopped for SECONDS in the middle of the second batch
 * - mixed: everybody and rank 0 send to each other, messages of 8, 1000, 20000 and BYTES in turn, everybody but rank 0
 * up to 16 ahead, and rank 0 is stopped likewise */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "support/suite.h"
#include "support/watchdog.h"

enum { AHEAD = 16, MOST_BATCHES = 1000, BARRIER = 1, DATA = 2 };

static strata_t *s;
static strata_comm_t *world;
static int rank, n, rounds, stop_seconds;
static size_t bytes;

struct stamp {
    int32_t from, round;
};

static char *allocate(size_t count)
{
    char *b = calloc(count + 1, bytes);
    CHECK(b);
    return b;
}

/* At both ends, as far as there is room for both. */
static void stamp_ends(char *b, int round, size_t length)
{
    struct stamp st = {rank, round};
    memcpy(b, &st, sizeof st);
    if (length >= 2 * sizeof st)
        memcpy(b + length - sizeof st, &st, sizeof st);
}

static void stamp(char *b, int round)
{
    stamp_ends(b, round, bytes);
}

static void check_ends(const char *b, int from, int round, size_t length)
{
    struct stamp st[2];
    memcpy(&st[0], b, sizeof st[0]);
    memcpy(&st[1], length >= 2 * sizeof st[0] ? b + length - sizeof st[1] : b, sizeof st[1]);
    for (int i = 0; i < 2; i++)
        CHECK_MSG(st[i].from == from && st[i].round == round,
                  "rank %d: round %d of rank %d where round %d of rank %d was due", rank, st[i].round, st[i].from,
                  round, from);
}

static void check_stamp(const char *b, int from, int round)
{
    check_ends(b, from, round, bytes);
}

/* Over a tree: few connections. */
static void barrier(void)
{
    for (int c = 2 * rank + 1; c <= 2 * rank + 2 && c < n; c++)
        suite_await(world, c, BARRIER);
    if (rank) {
        suite_signal(world, (rank - 1) / 2, BARRIER);
        suite_await(world, (rank - 1) / 2, BARRIER);
    }
    for (int c = 2 * rank + 1; c <= 2 * rank + 2 && c < n; c++)
        suite_signal(world, c, BARRIER);
}

static void alltoall(char *in, char *out, strata_request_t **q)
{
    for (int round = 0; round < rounds; round++) {
        for (int i = 1; i < n; i++) {
            int from = (rank + n - i) % n;
            CHECK_OK(strata_irecv(world, in + (size_t)i * bytes, bytes, from, DATA, &q[i]));
        }
        stamp(out, round);
        for (int i = 1; i < n; i++)
            CHECK_OK(strata_isend(world, out, bytes, (rank + i) % n, DATA, &q[n + i]));
        CHECK_OK(strata_waitall((size_t)n - 1, q + 1, NULL));
        CHECK_OK(strata_waitall((size_t)n - 1, q + n + 1, NULL));
        for (int i = 1; i < n; i++)
            check_stamp(in + (size_t)i * bytes, (rank + n - i) % n, round);
    }
}

/* A child continues us: nobody else knows when. */
static void be_stopped(void)
{
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        sleep((unsigned)stop_seconds);
        kill(parent, SIGCONT);
        _exit(0);
    }
    CHECK(child > 0);
    raise(SIGSTOP);
    CHECK(waitpid(child, NULL, 0) == child);
}

static void send_ahead(char *out, strata_request_t **q)
{
    for (int round = 0; round < rounds; round++) {
        char *b = out + (size_t)(round % AHEAD) * bytes;
        if (round >= AHEAD)
            CHECK_OK(strata_wait(&q[round % AHEAD], NULL));
        stamp(b, round);
        CHECK_OK(strata_isend(world, b, bytes, 0, DATA, &q[round % AHEAD]));
    }
    CHECK_OK(strata_waitall((size_t)(rounds < AHEAD ? rounds : AHEAD), q, NULL));
}

static void send_paced(char *out, strata_request_t **q)
{
    for (int round = 0; round < rounds; round++) {
        char *b = out + (size_t)round * bytes;
        stamp(b, round);
        CHECK_OK(strata_isend(world, b, bytes, 0, DATA, &q[round]));
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
    CHECK_OK(strata_waitall((size_t)rounds, q, NULL));
}

static void send_pause(char *out, strata_request_t **q)
{
    struct timespec from, now;

    for (int round = 0; round < rounds; round++) {
        stamp(out, round);
        CHECK_OK(strata_send(world, out, bytes, 0, DATA));
    }
    clock_gettime(CLOCK_MONOTONIC, &from);
    do {
        for (int i = 0; i < 200; i++)
            strata_progress(s);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec < 10000000L);
    for (int i = 0; i < 2; i++) {
        stamp(out + (size_t)i * bytes, rounds + i);
        CHECK_OK(strata_isend(world, out + (size_t)i * bytes, bytes, 0, DATA, &q[i]));
    }
    CHECK_OK(strata_waitall(2, q, NULL));
}

static void incast(char *in, strata_request_t **q, int n_rounds, bool stopped)
{
    for (int round = 0; round < n_rounds; round++) {
        if (stopped && round == n_rounds / 2)
            be_stopped();
        for (int i = 1; i < n; i++)
            CHECK_OK(strata_irecv(world, in + (size_t)i * bytes, bytes, i, DATA, &q[i]));
        CHECK_OK(strata_waitall((size_t)n - 1, q + 1, NULL));
        for (int i = 1; i < n; i++)
            check_stamp(in + (size_t)i * bytes, i, round);
    }
}

/* By the queue of high priority, by that and by low priority, and by RDMA where BYTES is long. */
static size_t mixed_length(int round)
{
    const size_t lengths[] = {8, 1000, 20000, bytes};
    size_t length = lengths[round % 4];
    return length < bytes ? length : bytes;
}

static void mixed_begin(char *in, char *out, int round, strata_request_t **q)
{
    size_t length = mixed_length(round);
    stamp_ends(out, round, length);
    CHECK_OK(strata_irecv(world, in, length, 0, DATA, &q[0]));
    CHECK_OK(strata_isend(world, out, length, 0, DATA, &q[1]));
}

static void mixed_end(const char *in, int round, strata_request_t **q)
{
    CHECK_OK(strata_waitall(2, q, NULL));
    check_ends(in, 0, round, mixed_length(round));
}

static void mixed(char *out, strata_request_t **q)
{
    char *in = allocate(AHEAD);
    for (int round = 0; round < rounds + AHEAD; round++) {
        size_t at = (size_t)(round % AHEAD);
        if (round >= AHEAD && round - AHEAD < rounds)
            mixed_end(in + at * bytes, round - AHEAD, &q[2 * at]);
        if (round < rounds)
            mixed_begin(in + at * bytes, out + at * bytes, round, &q[2 * at]);
    }
    free(in);
}

static void mixed_with_all(char *in, char *out, strata_request_t **q, bool stopped)
{
    for (int round = 0; round < rounds; round++) {
        size_t length = mixed_length(round);
        if (stopped && round == rounds / 2)
            be_stopped();
        stamp_ends(out, round, length);
        for (int i = 1; i < n; i++) {
            CHECK_OK(strata_irecv(world, in + (size_t)i * bytes, length, i, DATA, &q[2 * i]));
            CHECK_OK(strata_isend(world, out, length, i, DATA, &q[2 * i + 1]));
        }
        CHECK_OK(strata_waitall(2 * ((size_t)n - 1), q + 2, NULL));
        for (int i = 1; i < n; i++)
            check_ends(in + (size_t)i * bytes, i, round, length);
    }
}

/* Of a length that goes by itself, and by another queue than the short ones. */
enum { OVERTAKEN = 12000 };

static void overtake(strata_request_t **q)
{
    static char longer[OVERTAKEN];
    char *out = allocate((size_t)rounds);

    longer[0] = (char)rank;
    CHECK_OK(strata_isend(world, longer, OVERTAKEN, 0, DATA, &q[rounds]));
    for (int round = 0; round < rounds; round++) {
        stamp(out + (size_t)round * bytes, round);
        CHECK_OK(strata_isend(world, out + (size_t)round * bytes, bytes, 0, DATA, &q[round]));
    }
    CHECK_OK(strata_waitall((size_t)rounds + 1, q, NULL));
    free(out);
}

static void be_overtaken(char *in)
{
    static char longer[OVERTAKEN];

    /* Meanwhile nobody posts a buffer again: the long ones take all there are. */
    nanosleep(&(struct timespec){0, 50000000}, NULL);
    for (int i = 1; i < n; i++) {
        CHECK_OK(strata_recv(world, longer, OVERTAKEN, i, DATA, NULL));
        CHECK(longer[0] == (char)i);
        for (int round = 0; round < rounds; round++) {
            CHECK_OK(strata_recv(world, in, bytes, i, DATA, NULL));
            check_stamp(in, i, round);
        }
    }
}

static void flood(char *in, char *out, strata_request_t **q)
{
    int left = (rank + n - 1) % n, right = (rank + 1) % n;
    for (int round = 0; round < rounds; round++) {
        char *b = out + (size_t)round * bytes;
        stamp(b, round);
        CHECK_OK(strata_isend(world, b, bytes, left, DATA, &q[2 * round]));
        CHECK_OK(strata_isend(world, b, bytes, right, DATA + 1, &q[2 * round + 1]));
    }
    for (int round = 0; round < rounds; round++) {
        CHECK_OK(strata_recv(world, in, bytes, right, DATA, NULL));
        check_stamp(in, right, round);
        CHECK_OK(strata_recv(world, in, bytes, left, DATA + 1, NULL));
        check_stamp(in, left, round);
    }
    CHECK_OK(strata_waitall(2 * (size_t)rounds, q, NULL));
}

static double batch(const char *mode, int number)
{
    size_t most = (size_t)(rounds > n ? rounds : n);
    char *in = allocate((size_t)n), *out = allocate(most > AHEAD ? most : AHEAD);
    strata_request_t **q = calloc(2 * most + 2 * AHEAD, sizeof *q);
    struct timespec from, to;

    CHECK(q);
    barrier();
    clock_gettime(CLOCK_MONOTONIC, &from);
    if (!strcmp(mode, "alltoall"))
        alltoall(in, out, q);
    else if (!strcmp(mode, "flood"))
        flood(in, out, q);
    else if (!strcmp(mode, "overtake"))
        rank ? overtake(q) : be_overtaken(in);
    else if (!strcmp(mode, "mixed"))
        rank ? mixed(out, q) : mixed_with_all(in, out, q, number == 1);
    else if (rank == 0)
        incast(in, q, rounds + 2 * !strcmp(mode, "pause"), !strcmp(mode, "stopped") && number == 1);
    else if (!strcmp(mode, "paced"))
        send_paced(out, q);
    else if (!strcmp(mode, "pause"))
        send_pause(out, q);
    else
        send_ahead(out, q);
    barrier();
    clock_gettime(CLOCK_MONOTONIC, &to);
    free(in);
    free(out);
    free(q);
    return (double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_nsec - from.tv_nsec) / 1e3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    int batches = argc > 4 ? atoi(argv[4]) : 0;
    double us[MOST_BATCHES + 1];
    char why[1024] = "";
    strata_config_t config = STRATA_CONFIG_INIT;

    bytes = argc > 2 ? (size_t)atol(argv[2]) : 0;
    rounds = argc > 3 ? atoi(argv[3]) : 0;
    stop_seconds = argc > 5 ? atoi(argv[5]) : 1;
    if (bytes < sizeof(struct stamp) || rounds < 1 || batches < 1 || batches > MOST_BATCHES) {
        fprintf(
            stderr,
            "usage: traffic alltoall|incast|flood|paced|pause|overtake|stopped|mixed BYTES ROUNDS BATCHES [SECONDS]\n");
        return 2;
    }
    struct watchdog *dog = watchdog_start(test_timeout(1000), 1);
    config.error_text = why;
    config.error_text_size = sizeof why;
    CHECK_MSG(strata_init(&config, &s) == STRATA_OK, "strata_init: %s", why);
    world = strata_world(s);
    rank = strata_rank(s);
    n = strata_size(s);
    watchdog_name_thread(rank);
    for (int i = 0; i <= batches; i++)
        us[i] = batch(mode, i);
    qsort(us + 1, (size_t)batches, sizeof us[0], by_value);
    if (rank == 0)
        printf("%s %zu %.0f %.0f\n", mode, bytes, us[0], us[1 + batches / 2]);
    CHECK_OK(strata_finalize(s));
    watchdog_stop(dog);
    return 0;
}
