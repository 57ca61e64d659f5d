/* A pipeline over channels: rank 0 makes numbers, each rank behind it adds its own, the last checks their sum.
 *   strata-run -n 4 pipeline */
#include <stdio.h>
#include <stdlib.h>
#include <strata/channel.h>

enum { N = 1000 };

static void must(int rc, const char *what)
{
    if (rc == STRATA_OK)
        return;
    fprintf(stderr, "pipeline: %s: %s\n", what, strata_strerror(rc));
    exit(1);
}

int main(void)
{
    strata_t *s;
    strata_channel_sender_t *out = NULL;
    strata_channel_receiver_t *in = NULL;
    long sum = 0, value = 0;
    int rc = STRATA_OK;

    must(strata_init(NULL, &s), "strata_init");
    int rank = strata_rank(s), last = strata_size(s) - 1;
    if (rank > 0)
        must(strata_channel_open_recv(s, rank - 1, "numbers", 0, &in), "opening the receiver");
    if (rank < last)
        must(strata_channel_open_send(s, rank + 1, "numbers", &out), "opening the sender");
    for (long i = 0; in || i < N; i++) {
        value = i;
        if (in && (rc = strata_channel_recv(in, &value, sizeof(value), NULL, STRATA_CHANNEL_FOREVER)) != STRATA_OK)
            break; /* STRATA_CHANNEL_ENDED, or an error */
        value += rank;
        sum += value;
        if (out)
            must(strata_channel_send(out, &value, sizeof(value), STRATA_CHANNEL_FOREVER), "sending");
    }
    if (in && rc != STRATA_CHANNEL_ENDED)
        must(rc, "receiving");
    if (in)
        must(strata_channel_close_recv(in), "closing the receiver");
    if (out)
        must(strata_channel_close_send(out), "closing the sender");
    long want = N * (N - 1) / 2 + N * last * (last + 1) / 2;
    if (rank == last)
        printf("pipeline: the sum is %ld: %s\n", sum, sum == want ? "ok" : "wrong");
    return strata_finalize(s) == STRATA_OK && (rank < last || sum == want) ? 0 : 1;
}
