/* One 8-byte message, N times, for an instruction counter: `bench/instructions self N` sends to itself, `sm N` from one
 * context to another of the same process, `openib N` likewise where STRATA_MCA_btl says so, `channel N` as `sm N`
 * through a channel, `channel-openib N` as `openib N` through one. The functions that callgrind is told to count are
 * bench_send, of `channel-openib` bench_send_progressing, and bench_recv; all else (start, warm-up, end) lies outside.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/channel.h>
#include "support/world.h"

enum { WARM_UP = 2000, TAG = 7 };

void bench_begin(void);
void bench_end(void);
/* Where messages go: by a channel, if there is one. */
struct bench_way {
    strata_comm_t *from, *to;
    int dst;
    strata_channel_sender_t *out;
    strata_channel_receiver_t *in;
};
void bench_send(const struct bench_way *w, const void *buf);
void bench_send_progressing(const struct bench_way *w, const void *buf);
void bench_recv(const struct bench_way *w, void *buf);

/* Called once each, around the loop over the messages. */
__attribute__((noinline)) void bench_begin(void)
{
    __asm__ volatile("");
}

__attribute__((noinline)) void bench_end(void)
{
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void bench_send(const struct bench_way *w, const void *buf)
{
    if (w->out)
        CHECK_OK(strata_channel_send(w->out, buf, 8, STRATA_CHANNEL_FOREVER));
    else
        CHECK_OK(strata_send(w->from, buf, 8, w->dst, TAG));
}

/* With a round of progress, as a sender has that waits for the answer. */
__attribute__((noinline)) void bench_send_progressing(const struct bench_way *w, const void *buf)
{
    bench_send(w, buf);
    (void)strata_progress(strata_comm_context(w->from));
}

__attribute__((noinline)) void bench_recv(const struct bench_way *w, void *buf)
{
    if (w->in)
        CHECK_OK(strata_channel_recv(w->in, buf, 8, NULL, STRATA_CHANNEL_FOREVER));
    else
        CHECK_OK(strata_recv(w->to, buf, 8, 0, TAG, STRATA_STATUS_IGNORE));
}

/* Drives both contexts until the message is there: the first ones may need both sides to connect. */
static void warm_message(strata_t *from, strata_t *to, int dst, int src)
{
    strata_request_t *req[2];
    char out[8] = "", in[8];
    int sent = 0, received = 0;
    CHECK_OK(strata_irecv(strata_world(to), in, sizeof in, src, TAG, &req[0]));
    CHECK_OK(strata_isend(strata_world(from), out, sizeof out, dst, TAG, &req[1]));
    while (!sent || !received) {
        if (!sent)
            CHECK_OK(strata_test(&req[1], &sent, STRATA_STATUS_IGNORE));
        if (!received)
            CHECK_OK(strata_test(&req[0], &received, STRATA_STATUS_IGNORE));
    }
}

/* Opens a channel, and has a message go through it: no end waits, since one thread drives both. */
static void open_channel(strata_t *from, strata_t *to, struct bench_way *w)
{
    char out[8] = "", in[8];
    int sent = STRATA_ERR_AGAIN, received = STRATA_ERR_AGAIN;
    CHECK_OK(strata_channel_open_recv(to, 0, "bench", 0, &w->in));
    CHECK_OK(strata_channel_open_send(from, w->dst, "bench", &w->out));
    while (sent == STRATA_ERR_AGAIN || received == STRATA_ERR_AGAIN) {
        if (sent == STRATA_ERR_AGAIN)
            sent = strata_channel_send(w->out, out, sizeof out, 0);
        if (received == STRATA_ERR_AGAIN)
            received = strata_channel_recv(w->in, in, sizeof in, NULL, 0);
    }
    CHECK_OK(sent);
    CHECK_OK(received);
}

static void close_channel(struct bench_way *w)
{
    CHECK_OK(strata_channel_end(w->out, STRATA_CHANNEL_FOREVER));
    CHECK(strata_channel_recv(w->in, NULL, 0, NULL, STRATA_CHANNEL_FOREVER) == STRATA_CHANNEL_ENDED);
    CHECK_OK(strata_channel_close_send(w->out));
    CHECK_OK(strata_channel_close_recv(w->in));
}

static void *finalize(void *s)
{
    CHECK_OK(strata_finalize(s));
    return NULL;
}

int main(int argc, char **argv)
{
    bool self = argc == 3 && strcmp(argv[1], "self") == 0;
    bool puts = argc == 3 && strcmp(argv[1], "channel-openib") == 0;
    bool channel = puts || (argc == 3 && strcmp(argv[1], "channel") == 0);
    if (argc != 3 || (!self && !channel && strcmp(argv[1], "sm") != 0 && strcmp(argv[1], "openib") != 0)) {
        fprintf(stderr, "usage: %s self|sm|openib|channel|channel-openib MESSAGES\n", argv[0]);
        return 2;
    }
    int n = self ? 1 : 2;
    long messages = strtol(argv[2], NULL, 10);
    struct tw_options o = {.n = n};
    struct tw_world *w = tw_create(&o);
    strata_t *s[2] = {NULL, NULL};
    char err[1024] = "", out[8] = "message", in[8] = "";
    for (int i = 0; i < n; i++)
        if (tw_init(w, i, &s[i], err, sizeof err) != STRATA_OK) {
            fprintf(stderr, "%s\n", err);
            return 1;
        }
    strata_t *to = s[n - 1];
    for (int i = 0; i < WARM_UP; i++)
        warm_message(s[0], to, n - 1, 0);
    struct bench_way way = {.from = strata_world(s[0]), .to = strata_world(to), .dst = n - 1};
    if (channel)
        open_channel(s[0], to, &way);
    bench_begin();
    for (long i = 0; i < messages; i++) {
        (puts ? bench_send_progressing : bench_send)(&way, out);
        bench_recv(&way, in);
    }
    bench_end();
    if (channel)
        close_channel(&way);
    if (messages && memcmp(in, out, sizeof in) != 0) {
        fprintf(stderr, "the message came out wrong\n");
        return 1;
    }
    pthread_t other; /* finalize waits for all ranks */
    if (n == 2 && pthread_create(&other, NULL, finalize, s[1]) != 0)
        return 1;
    finalize(s[0]);
    if (n == 2)
        pthread_join(other, NULL);
    tw_destroy(w);
    return 0;
}
