/* A pipeline over channels: rank 0 makes numbers, each rank behind it adds its own, the last prints the sum.
 *   strata-run -n 4 pipeline */
#include <stdio.h>
#include <stdlib.h>
#include <strata/channel.h>

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
    for (long i = 0; in || i < 1000; i++) {
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
    if (rank == last)
        printf("the sum is %ld\n", sum);
    return strata_finalize(s) == STRATA_OK ? 0 : 1;
}
