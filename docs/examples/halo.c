/* halo: heat on a closed rod, cut into one piece per rank. Each step exchanges the outermost cells with both
 * neighbours by persistent requests; what one rank loses its neighbour gains, so the total must stay what it was. */
#include <math.h>
#include <stdio.h>
#include <strata/strata.h>

enum { CELLS = 1000, STEPS = 500 }; /* cells per rank */

static strata_data_t cell(double *c) /* one double, as strata_send_init and strata_recv_init want it described */
{
    return (strata_data_t){.kind = STRATA_CONTIGUOUS, .length = sizeof *c, .u.buffer = c};
}

int main(void)
{
    static double now[CELLS + 2], next[CELLS + 2]; /* [0] and [CELLS + 1] are the neighbours' cells */
    strata_t *s;
    if (strata_init(NULL, &s) != STRATA_OK)
        return 1;
    strata_comm_t *world = strata_world(s);
    int rank = strata_rank(s), size = strata_size(s), left = (rank + size - 1) % size, right = (rank + 1) % size;
    for (int i = 1; i <= CELLS; i++)
        now[i] = rank == 0 && i == 1 ? 1000.0 : 0.0;

    enum { LEFTWARD, RIGHTWARD }; /* tags: the direction in which a cell travels */
    strata_data_t d[] = {cell(&now[0]), cell(&now[CELLS + 1]), cell(&now[1]), cell(&now[CELLS])};
    strata_request_t *r[4] = {0};
    int rc = strata_recv_init(world, &d[0], left, RIGHTWARD, &r[0]);
    rc = rc ? rc : strata_recv_init(world, &d[1], right, LEFTWARD, &r[1]);
    rc = rc ? rc : strata_send_init(world, &d[2], left, LEFTWARD, STRATA_STANDARD, &r[2]);
    rc = rc ? rc : strata_send_init(world, &d[3], right, RIGHTWARD, STRATA_STANDARD, &r[3]);

    for (int step = 0; step < STEPS && rc == STRATA_OK; step++) {
        rc = strata_startall(4, r);
        rc = rc ? rc : strata_waitall(4, r, NULL); /* a persistent request survives: the next step starts it again */
        for (int i = 1; i <= CELLS; i++)
            next[i] = now[i] + 0.25 * (now[i - 1] - 2.0 * now[i] + now[i + 1]);
        for (int i = 1; i <= CELLS; i++)
            now[i] = next[i];
    }
    double sum = 0.0, part;
    for (int i = 1; i <= CELLS; i++)
        sum += now[i];
    if (rank != 0)
        rc = rc ? rc : strata_send(world, &sum, sizeof sum, 0, 2);
    for (int peer = 1; rank == 0 && rc == STRATA_OK && peer < size; peer++, sum += part)
        rc = strata_recv(world, &part, sizeof part, peer, 2, STRATA_STATUS_IGNORE);
    if (rc != STRATA_OK)
        strata_abort(s, 1, strata_strerror(rc)); /* the launcher ends the others, who might wait for us */

    int good = rank != 0 || (fabs(sum - 1000.0) < 1e-6 && now[1] < 1000.0);
    if (rank == 0)
        printf("halo: %d ranks, %d steps, total heat %.6f: %s\n", size, STEPS, sum, good ? "ok" : "WRONG");
    for (int i = 0; i < 4; i++)
        strata_request_free(&r[i]);
    return strata_finalize(s) == STRATA_OK && rc == STRATA_OK && good ? 0 : 1;
}
