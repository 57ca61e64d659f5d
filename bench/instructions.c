/* One 8-byte message, N times, for an instruction counter: `bench/instructions self N` sends to itself, `sm N` from one
 * context to another of the same process, `openib N` likewise where STRATA_MCA_btl says so. The functions that
 * callgrind is told to count are bench_send and bench_recv; all else (start, warm-up, end) lies outside them. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "support/world.h"

enum { WARM_UP = 2000, TAG = 7 };

void bench_begin(void);
void bench_end(void);
void bench_send(strata_comm_t *comm, const void *buf, int dst);
void bench_recv(strata_comm_t *comm, void *buf, int src);

/* Called once each, around the loop over the messages. */
__attribute__((noinline)) void bench_begin(void)
{
    __asm__ volatile("");
}

__attribute__((noinline)) void bench_end(void)
{
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void bench_send(strata_comm_t *comm, const void *buf, int dst)
{
    CHECK_OK(strata_send(comm, buf, 8, dst, TAG));
}

__attribute__((noinline)) void bench_recv(strata_comm_t *comm, void *buf, int src)
{
    CHECK_OK(strata_recv(comm, buf, 8, src, TAG, STRATA_STATUS_IGNORE));
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

static void *finalize(void *s)
{
    CHECK_OK(strata_finalize(s));
    return NULL;
}

int main(int argc, char **argv)
{
    bool self = argc == 3 && strcmp(argv[1], "self") == 0;
    if (argc != 3 || (!self && strcmp(argv[1], "sm") != 0 && strcmp(argv[1], "openib") != 0)) {
        fprintf(stderr, "usage: %s self|sm|openib MESSAGES\n", argv[0]);
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
    bench_begin();
    for (long i = 0; i < messages; i++) {
        bench_send(strata_world(s[0]), out, n - 1);
        bench_recv(strata_world(to), in, 0);
    }
    bench_end();
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
