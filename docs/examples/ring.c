/* ring: a token travels around all ranks a hundred times; each rank adds its number plus one. Rank 0 knows what the sum
 * must be in the end. */
#include <stdint.h>
#include <stdio.h>
#include <strata/strata.h>

#define LAPS 100
#define TAG  7

int main(void)
{
    strata_t *s;
    if (strata_init(NULL, &s) != STRATA_OK)
        return 1;

    strata_comm_t *world = strata_world(s);
    int rank = strata_rank(s), size = strata_size(s);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    uint64_t token = 0, mine = (uint64_t)rank + 1;
    int rc = STRATA_OK;

    for (int lap = 0; lap < LAPS && rc == STRATA_OK; lap++) {
        strata_request_t *request;
        if (rank == 0) {
            /* The receive is posted before the send, so that a ring of one rank, where the message goes to ourselves,
             * works too. */
            uint64_t out = token + mine;
            rc = strata_irecv(world, &token, sizeof token, left, TAG, &request);
            if (rc == STRATA_OK)
                rc = strata_send(world, &out, sizeof out, right, TAG);
            if (rc == STRATA_OK)
                rc = strata_wait(&request, STRATA_STATUS_IGNORE);
        } else {
            rc = strata_recv(world, &token, sizeof token, left, TAG, STRATA_STATUS_IGNORE);
            token += mine;
            if (rc == STRATA_OK)
                rc = strata_send(world, &token, sizeof token, right, TAG);
        }
    }
    if (rc != STRATA_OK)
        strata_abort(s, 1, strata_strerror(rc)); /* the launcher ends the others, who would wait for the token */

    int right_sum = 1;
    if (rank == 0 && rc == STRATA_OK) {
        uint64_t n = (uint64_t)size, expected = LAPS * (n * (n + 1) / 2);
        right_sum = token == expected;
        printf("ring: %d laps of %d ranks, token %llu, expected %llu: %s\n", LAPS, size, (unsigned long long)token,
               (unsigned long long)expected, right_sum ? "ok" : "WRONG");
    }
    int fin = strata_finalize(s);
    return rc == STRATA_OK && fin == STRATA_OK && right_sum ? 0 : 1;
}
