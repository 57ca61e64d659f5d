/* Alltoall and incast: what empties a shared receive queue fastest. Every message is stamped and checked. */
#include "kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG = 11, BYTES = 1024, AHEAD = 32 };

static void must(const struct kernel *k, int rc)
{
    if (rc == STRATA_OK)
        return;
    fprintf(stderr, "strata-memscale: rank %d: %s\n", k->rank, strata_strerror(rc));
    exit(EXIT_FAILURE);
}

static void stamp(char *b, int rank, int round)
{
    const int32_t words[2] = {rank, round};

    memcpy(b, words, sizeof words);
    memcpy(b + BYTES - sizeof words, words, sizeof words);
}

static bool stamped(const char *b, int rank, int round)
{
    const int32_t words[2] = {rank, round};

    return memcmp(b, words, sizeof words) == 0 && memcmp(b + BYTES - sizeof words, words, sizeof words) == 0;
}

void kernel_alltoall(struct kernel *k)
{
    const int rounds = kernel_of_class(k, 500, 2000, 10000);
    char *in = kernel_memory((size_t)k->n, BYTES), *out = kernel_memory(1, BYTES);
    strata_request_t **q = kernel_memory(2 * (size_t)k->n, sizeof(void *));
    bool right = true;

    const uint64_t begin = kernel_begin(k);
    for (int round = 0; round < rounds; round++) {
        size_t n = 0;
        for (int d = 1; d < k->n; d++)
            must(k, strata_irecv(k->world, in + (size_t)d * BYTES, BYTES, (k->rank + k->n - d) % k->n, TAG, &q[n++]));
        stamp(out, k->rank, round);
        for (int d = 1; d < k->n; d++)
            must(k, strata_isend(k->world, out, BYTES, (k->rank + d) % k->n, TAG, &q[n++]));
        must(k, strata_waitall(n, q, NULL));
        for (int d = 1; d < k->n; d++)
            right &= stamped(in + (size_t)d * BYTES, (k->rank + k->n - d) % k->n, round);
    }
    kernel_end(k, begin);
    k->right = kernel_sum(k, right ? 0 : 1) == 0;
    free(in);
    free(out);
    free(q);
}

/* A sender is up to AHEAD messages ahead of rank 0. */
static void incast_send(const struct kernel *k, int messages)
{
    char *out = kernel_memory(AHEAD, BYTES);
    strata_request_t *q[AHEAD] = {NULL};

    for (int i = 0; i < messages; i++) {
        char *b = out + (size_t)(i % AHEAD) * BYTES;
        if (i >= AHEAD)
            must(k, strata_wait(&q[i % AHEAD], NULL));
        stamp(b, k->rank, i);
        must(k, strata_isend(k->world, b, BYTES, 0, TAG, &q[i % AHEAD]));
    }
    must(k, strata_waitall((size_t)(messages < AHEAD ? messages : AHEAD), q, NULL));
    free(out);
}

static bool incast_receive(const struct kernel *k, int messages)
{
    char in[BYTES];
    bool right = true;

    for (int i = 0; i < messages; i++) {
        for (int from = 1; from < k->n; from++) {
            must(k, strata_recv(k->world, in, BYTES, from, TAG, STRATA_STATUS_IGNORE));
            right &= stamped(in, from, i);
        }
    }
    return right;
}

void kernel_incast(struct kernel *k)
{
    const int messages = kernel_of_class(k, 5000, 20000, 100000);
    bool right = true;

    const uint64_t begin = kernel_begin(k);
    if (k->rank == 0)
        right = incast_receive(k, messages);
    else
        incast_send(k, messages);
    kernel_end(k, begin);
    k->right = kernel_sum(k, right ? 0 : 1) == 0;
}
