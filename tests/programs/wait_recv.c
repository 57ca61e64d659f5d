/* Ranks in a ring that only wait: each exchanges a message with its neighbours, says "waiting", and waits for another
 * from the left that never comes. `wait_recv`: status 0 when every rank's wait ends because the left one has failed. */
#include <stdio.h>
#include <strata/strata.h>

int main(void)
{
    strata_t *s;
    int rc = strata_init(NULL, &s), value = 1, n, left, right;
    strata_request_t *r;

    if (rc != STRATA_OK)
        return 1;
    n = strata_size(s);
    left = (strata_rank(s) + n - 1) % n;
    right = (strata_rank(s) + 1) % n;
    rc = strata_irecv(strata_world(s), &value, sizeof value, left, 1, &r);
    if (rc == STRATA_OK)
        rc = strata_send(strata_world(s), &n, sizeof n, right, 1);
    if (rc == STRATA_OK)
        rc = strata_wait(&r, STRATA_STATUS_IGNORE);
    fprintf(stderr, rc == STRATA_OK ? "waiting\n" : "failed early\n");
    if (rc == STRATA_OK)
        rc = strata_recv(strata_world(s), &value, sizeof value, left, 2, STRATA_STATUS_IGNORE);
    printf("rank %d: %s\n", strata_rank(s), strata_strerror(rc));
    fflush(stdout);
    (void)strata_finalize(s);
    return rc == STRATA_ERR_PEER ? 0 : 1;
}
