/* Channels beside strata_send and the raw transport, in turns, for `make bench-channel`: two ranks under strata-run;
 * `channel ROUNDS`. Raw is an active message of the transport, which knows no order and no matching. Times one way by
 * ping-pong, and streams with as many messages under way as each takes; medians with lowest and highest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/channel.h>
#include <strata/sdk/clock.h>
#include <strata/sdk/pml.h>
#include <strata/sdk/worker.h>

enum { MOST_ROUNDS = 99, WARM_UP = 100, WINDOW = 64, TAG = 5, LARGEST = 400000 };
enum way { CHANNEL, SEND, RAW, WAYS };
static const char *const way_names[WAYS] = {"channel", "strata_send", "raw"};

struct bench {
    strata_t *s;
    strata_comm_t *world;
    int rank;
    char *data;
    strata_channel_sender_t *out;
    strata_channel_receiver_t *in;
    struct st_btl_endpoint *ep;
    uint64_t arrived, taken; /* raw messages */
};

static void must(int rc, const char *what)
{
    if (rc == STRATA_OK)
        return;
    fprintf(stderr, "channel: %s: %s\n", what, strata_strerror(rc));
    exit(1);
}

/* ---- the raw transport ---- */

static void raw_deliver(void *arg, const struct st_frag *frag)
{
    struct bench *b = arg;

    if (frag->len)
        memcpy(b->data, frag->data, frag->len);
    b->arrived++;
}
static const struct st_client raw_client = {.am = ST_AM_TEST, .deliver = raw_deliver};

static void raw_open(struct bench *b)
{
    struct st_worker *w = b->world->worker;
    struct st_peer *peer;

    must(st_worker_join(w, &raw_client, b), "joining the worker");
    must(st_worker_peer(w, 1 - b->rank, &peer), "the peer");
    must(st_worker_connect(w, peer), "connecting");
    b->ep = st_peer_way(peer, 0);
}
static void raw_send(struct bench *b, size_t size)
{
    int rc;

    while ((rc = b->ep->btl->ops->send(b->ep, ST_AM_TEST, &size, sizeof(size), b->data, (uint32_t)size)) ==
           STRATA_ERR_AGAIN)
        (void)st_worker_progress(b->world->worker);
    must(rc, "a raw message");
}
static void raw_recv(struct bench *b)
{
    while (b->arrived == b->taken)
        (void)st_worker_progress(b->world->worker);
    b->taken++;
}

/* ---- a message by each way ---- */

static void put(struct bench *b, enum way way, size_t size)
{
    if (way == CHANNEL)
        must(strata_channel_send(b->out, b->data, size, STRATA_CHANNEL_FOREVER), "strata_channel_send");
    else if (way == SEND)
        must(strata_send(b->world, b->data, size, 1 - b->rank, TAG), "strata_send");
    else
        raw_send(b, size);
}
static void take(struct bench *b, enum way way, size_t size)
{
    if (way == CHANNEL)
        must(strata_channel_recv(b->in, b->data, size, NULL, STRATA_CHANNEL_FOREVER), "strata_channel_recv");
    else if (way == SEND)
        must(strata_recv(b->world, b->data, size, 1 - b->rank, TAG, NULL), "strata_recv");
    else
        raw_recv(b);
}

/* One way, in microseconds. */
static double ping_pong(struct bench *b, enum way way, size_t size, int n)
{
    uint64_t begin = 0;

    for (int i = -WARM_UP; i < n; i++) {
        if (i == 0)
            begin = st_now_ns();
        if (b->rank == 0)
            put(b, way, size);
        take(b, way, size);
        if (b->rank == 1)
            put(b, way, size);
    }
    return (double)(st_now_ns() - begin) / 2e3 / n;
}

/* Messages from rank 0 to 1, with a short answer for every WINDOW: microseconds for a message. */
static double stream(struct bench *b, enum way way, size_t size, int n)
{
    uint64_t begin = st_now_ns();

    for (int i = 1; i <= n; i++) {
        if (b->rank == 0)
            put(b, way, size);
        else
            take(b, way, size);
        if (i % WINDOW && i < n)
            continue;
        if (b->rank == 0 && way == CHANNEL)
            must(strata_channel_flush(b->out), "strata_channel_flush");
        if (b->rank == 0)
            take(b, way, 1);
        else
            put(b, way, 1);
        if (b->rank == 1 && way == CHANNEL)
            must(strata_channel_flush(b->out), "strata_channel_flush");
    }
    return (double)(st_now_ns() - begin) / 1e3 / n;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

typedef double (*measure_fn)(struct bench *b, enum way way, size_t size, int n);

static void table(struct bench *b, const char *title, measure_fn measure, int rounds)
{
    static const size_t sizes[] = {10, 100, 1000, 10000, 50000, LARGEST};

    if (b->rank == 0)
        printf("%s\n%8s", title, "bytes");
    for (int w = 0; b->rank == 0 && w < WAYS; w++)
        printf("  %32s", way_names[w]);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        double v[WAYS][MOST_ROUNDS];
        int n = sizes[i] < 10000 ? 10000 : 1000;
        for (int r = 0; r < rounds; r++)
            for (int w = 0; w < WAYS; w++)
                if (w != RAW || sizes[i] <= b->ep->btl->max_send)
                    v[w][r] = measure(b, (enum way)w, sizes[i], n);
        if (b->rank == 0)
            printf("\n%8zu", sizes[i]);
        for (int w = 0; b->rank == 0 && w < WAYS; w++) {
            if (w == RAW && sizes[i] > b->ep->btl->max_send) {
                printf("  %32s", "too long for one");
                continue;
            }
            qsort(v[w], (size_t)rounds, sizeof v[w][0], by_value);
            printf("  %10.3f (%8.3f to %8.3f)", v[w][rounds / 2], v[w][0], v[w][rounds - 1]);
        }
    }
    if (b->rank == 0)
        printf("\n\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct bench b = {.data = calloc(1, LARGEST)};
    int rounds = argc > 1 ? atoi(argv[1]) : 5;

    if (!b.data || rounds < 1 || rounds > MOST_ROUNDS) {
        fprintf(stderr, "usage: channel ROUNDS, 1 to %d\n", MOST_ROUNDS);
        return 2;
    }
    must(strata_init(NULL, &b.s), "strata_init");
    b.world = strata_world(b.s);
    b.rank = strata_rank(b.s);
    if (strata_size(b.s) != 2)
        must(STRATA_ERR_ARG, "it takes 2 ranks");
    must(strata_channel_open_recv(b.s, 1 - b.rank, "bench", 0, &b.in), "strata_channel_open_recv");
    must(strata_channel_open_send(b.s, 1 - b.rank, "bench", &b.out), "strata_channel_open_send");
    raw_open(&b);
    must(strata_fence(b.s), "strata_fence");
    table(&b, "One way by ping-pong, microseconds: median (lowest to highest)", ping_pong, rounds);
    table(&b, "A message of a stream, microseconds: median (lowest to highest)", stream, rounds);
    must(strata_channel_end(b.out, STRATA_CHANNEL_FOREVER), "strata_channel_end");
    (void)strata_channel_recv(b.in, NULL, 0, NULL, STRATA_CHANNEL_FOREVER);
    must(strata_channel_close_send(b.out), "strata_channel_close_send");
    must(strata_channel_close_recv(b.in), "strata_channel_close_recv");
    must(strata_fence(b.s), "strata_fence");
    st_worker_leave(b.world->worker, &raw_client);
    free(b.data);
    return strata_finalize(b.s) == STRATA_OK ? 0 : 1;
}
