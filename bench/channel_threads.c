/* Threads that send by channels of their own at STRATA_THREAD_MULTIPLE: `channel_threads threads|processes [BATCHES]`,
 * under strata-run -n 2, 3 or 4, started by bench/channel_threads.sh. `threads`: rank 0 has a thread for each other
 * rank. `processes`: the lower half of the ranks each have one, for a rank of the upper half; they share no lock. Rank
 * 0 prints a line a batch: millions of messages of 8 bytes a second of all senders together. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/channel.h>
#include <strata/sdk/clock.h>
#include "support/world.h"

enum { MESSAGES = 50000, BATCHES = 11, MOST = 4, TAG = 5 };

static strata_t *s;
static int batches = BATCHES;

struct side {
    int peer;
    double rate[100]; /* messages a us, of each batch */
};

/* A batch ends when the receiver has taken the last message. */
static void *sender(void *arg)
{
    struct side *side = arg;
    strata_channel_sender_t *out;
    strata_channel_receiver_t *answers;
    char byte;

    CHECK_OK(strata_channel_open_send(s, side->peer, "threads", &out));
    CHECK_OK(strata_channel_open_recv(s, side->peer, "answers", 4096, &answers));
    for (int b = 0; b < batches; b++) {
        uint64_t begin = st_now_ns();
        for (uint64_t i = 0; i < MESSAGES; i++)
            CHECK_OK(strata_channel_send(out, &i, sizeof i, STRATA_CHANNEL_FOREVER));
        CHECK_OK(strata_channel_flush(out));
        CHECK_OK(strata_channel_recv(answers, &byte, 1, NULL, STRATA_CHANNEL_FOREVER));
        side->rate[b] = MESSAGES * 1e3 / (double)(st_now_ns() - begin);
    }
    CHECK_OK(strata_channel_close_send(out));
    CHECK(strata_channel_recv(answers, &byte, 1, NULL, STRATA_CHANNEL_FOREVER) == STRATA_CHANNEL_ENDED);
    CHECK_OK(strata_channel_close_recv(answers));
    return NULL;
}

static void receiver(int from)
{
    strata_channel_receiver_t *in;
    strata_channel_sender_t *answers;
    uint64_t got;
    char byte = 0;

    CHECK_OK(strata_channel_open_recv(s, from, "threads", 0, &in));
    CHECK_OK(strata_channel_open_send(s, from, "answers", &answers));
    for (int b = 0; b < batches; b++) {
        for (uint64_t i = 0; i < MESSAGES; i++) {
            CHECK_OK(strata_channel_recv(in, &got, sizeof got, NULL, STRATA_CHANNEL_FOREVER));
            CHECK(got == i);
        }
        CHECK_OK(strata_channel_send(answers, &byte, 1, STRATA_CHANNEL_FOREVER));
        CHECK_OK(strata_channel_flush(answers));
    }
    CHECK(strata_channel_recv(in, &got, sizeof got, NULL, STRATA_CHANNEL_FOREVER) == STRATA_CHANNEL_ENDED);
    CHECK_OK(strata_channel_close_send(answers));
    CHECK_OK(strata_channel_close_recv(in));
}

/* The sender's threads; of `processes` also the rates of the other senders. */
static void send_all(bool threads, int rank, int size)
{
    static struct side side[MOST];
    pthread_t id[MOST];
    int n = threads ? size - 1 : 1;

    for (int i = 0; i < n; i++) {
        side[i].peer = threads ? i + 1 : rank + size / 2;
        CHECK(pthread_create(&id[i], NULL, sender, &side[i]) == 0);
    }
    for (int i = 0; i < n; i++)
        CHECK(pthread_join(id[i], NULL) == 0);
    if (rank != 0) {
        CHECK_OK(strata_send(strata_world(s), side[0].rate, sizeof side[0].rate, 0, TAG));
        return;
    }
    for (; !threads && n < size / 2; n++)
        CHECK_OK(strata_recv(strata_world(s), side[n].rate, sizeof side[n].rate, n, TAG, NULL));
    for (int b = 1; b < batches; b++) { /* the first opens */
        double sum = 0;
        for (int i = 0; i < n; i++)
            sum += side[i].rate[b];
        printf("%.4f\n", sum);
    }
}

int main(int argc, char **argv)
{
    strata_config_t config = STRATA_CONFIG_INIT;
    bool threads = argc > 1 && strcmp(argv[1], "threads") == 0;

    batches = argc > 2 ? atoi(argv[2]) : BATCHES;
    config.thread_level = STRATA_THREAD_MULTIPLE;
    CHECK_OK(strata_init(&config, &s));
    int rank = strata_rank(s), size = strata_size(s), senders = threads ? 1 : size / 2;
    if ((!threads && (argc < 2 || strcmp(argv[1], "processes") != 0)) || size < 2 || size > MOST ||
        (!threads && size % 2) || batches < 2 || batches > 100) {
        fprintf(stderr, "usage: %s threads|processes [2 to 100 BATCHES], of 2 to 4 ranks\n", argv[0]);
        return 2;
    }
    if (rank < senders)
        send_all(threads, rank, size);
    else
        receiver(threads ? 0 : rank - size / 2);
    CHECK_OK(strata_finalize(s));
    return 0;
}
