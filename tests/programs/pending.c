/* Two or four ranks with an operation of each kind under way that only the other one of a pair (0 and 1, 2 and 3) could
 * end: `pending`. Each says "waiting" when all have begun. Status 0 when all end because the peer has failed; each rank
 * prints "rank R: N failed", and of four "rank R goes on" when it has exchanged a message with the same end of the
 * other pair. */
#include <stdio.h>
#include <stdlib.h>
#include <strata/strata.h>

enum { LONG = 8 << 20, KINDS = 4 };

/* With a rank that has not failed. */
static int exchange(strata_comm_t *world, int peer)
{
    strata_request_t *r;
    int out = 7, in = 0, rc = strata_isend(world, &out, sizeof out, peer, 5, &r);

    if (rc == STRATA_OK)
        rc = strata_recv(world, &in, sizeof in, peer, 5, STRATA_STATUS_IGNORE);
    if (rc == STRATA_OK)
        rc = strata_wait(&r, STRATA_STATUS_IGNORE);
    return in == out ? rc : STRATA_ERR_SYSTEM;
}

int main(void)
{
    strata_t *s;
    strata_request_t *r[KINDS] = {NULL};
    int value[2] = {0, 1}, failed = 0, peer, rc = strata_init(NULL, &s);
    char *data = calloc(2, LONG);
    strata_comm_t *world;

    if (rc != STRATA_OK || !data || (strata_size(s) != 2 && strata_size(s) != 4))
        return 1;
    world = strata_world(s);
    peer = strata_rank(s) ^ 1;
    rc = strata_isend(world, &value[0], sizeof value[0], peer, 0, &r[0]);
    if (rc == STRATA_OK)
        rc = strata_recv(world, &value[1], sizeof value[1], peer, 0, STRATA_STATUS_IGNORE);
    if (rc == STRATA_OK)
        rc = strata_wait(&r[0], STRATA_STATUS_IGNORE);
    if (rc == STRATA_OK)
        rc = strata_irecv(world, &value[1], sizeof value[1], peer, 1, &r[0]);
    if (rc == STRATA_OK)
        rc = strata_irecv(world, data, LONG, peer, 2, &r[1]);
    if (rc == STRATA_OK)
        rc = strata_isend(world, data + LONG, LONG, peer, 3, &r[2]);
    if (rc == STRATA_OK)
        rc = strata_isend_mode(world, &value[0], sizeof value[0], peer, 4, STRATA_SYNCHRONOUS, &r[3]);
    fprintf(stderr, rc == STRATA_OK ? "waiting\n" : "failed early\n");
    for (int i = 0; rc == STRATA_OK && i < KINDS; i++)
        failed += strata_wait(&r[i], STRATA_STATUS_IGNORE) == STRATA_ERR_PEER;
    printf("rank %d: %d failed\n", strata_rank(s), failed);
    if (strata_size(s) == 4 && (rc = exchange(world, strata_rank(s) ^ 2)) == STRATA_OK)
        printf("rank %d goes on\n", strata_rank(s));
    fflush(stdout);
    free(data);
    (void)strata_finalize(s);
    return failed == KINDS && rc == STRATA_OK ? 0 : 1;
}
