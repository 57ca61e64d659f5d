/* hello: every rank greets rank 0, which prints the greetings in the order of ranks. */
#include <stdio.h>
#include <strata/strata.h>

int main(void)
{
    strata_t *s;
    int rc = strata_init(NULL, &s); /* the reason for a failure has gone to stderr */
    if (rc != STRATA_OK)
        return 1;

    strata_comm_t *world = strata_world(s);
    int rank = strata_rank(s), size = strata_size(s);
    char text[64];
    int length = snprintf(text, sizeof text, "hello from rank %d of %d", rank, size);

    if (rank != 0) {
        rc = strata_send(world, text, (size_t)length + 1, 0, 1);
    } else {
        printf("%s\n", text);
        for (int peer = 1; peer < size && rc == STRATA_OK; peer++) {
            strata_status_t status;
            rc = strata_recv(world, text, sizeof text, peer, 1, &status);
            if (rc == STRATA_OK)
                printf("%s (%zu bytes)\n", text, status.length);
        }
    }
    if (rc != STRATA_OK)
        strata_abort(s, 1, strata_strerror(rc)); /* the launcher ends the others, who might wait for us */

    int fin = strata_finalize(s);
    return rc == STRATA_OK && fin == STRATA_OK ? 0 : 1;
}
