/* series: the sum of 1 / k^2, which is pi^2 / 6, in parts. Ranks share the terms of a part; its sum over all ranks is
 * under way while the next part is computed. All results are waited for together. */
#include <math.h>
#include <stdio.h>
#include <strata/coll.h>

enum { PARTS = 8, TERMS = 200000 }; /* terms of a part, of all ranks together */

static void add(void *arg, const void *in, void *inout, size_t count) /* inout[i] = in[i] + inout[i] */
{
    (void)arg;
    for (size_t i = 0; i < count; i++)
        ((double *)inout)[i] += ((const double *)in)[i];
}

int main(void)
{
    static double part[PARTS]; /* belongs to the collective from its start until it is complete */
    strata_coll_request_t *r[PARTS] = {0};
    strata_t *s;
    if (strata_init(NULL, &s) != STRATA_OK)
        return 1;
    strata_comm_t *world = strata_world(s);
    int rank = strata_rank(s), size = strata_size(s), rc = STRATA_OK, failed = -1;

    for (int p = 0; p < PARTS && rc == STRATA_OK; p++) {
        for (int k = (p + 1) * TERMS - rank; k > p * TERMS; k -= size) /* the small terms first */
            part[p] += 1.0 / ((double)k * k);
        strata_coll_t c = STRATA_COLL_INIT(STRATA_ALLREDUCE);
        c.send = STRATA_IN_PLACE;
        c.recv = &part[p];
        c.count = 1;
        c.element = sizeof part[p];
        c.reduce = add;
        rc = strata_coll_start(world, &c, &r[p]); /* as MPI_Iallreduce */
    }
    rc = rc ? rc : strata_coll_waitall(PARTS, r, &failed);
    if (rc != STRATA_OK)
        strata_abort(s, 1, strata_strerror(rc));

    double sum = 0.0;
    for (int p = PARTS - 1; p >= 0; p--)
        sum += part[p];
    int good = fabs(sum - 1.64493406684823) < 1e-6; /* the terms left out are 6e-7 */
    if (rank == 0 || !good)
        printf("series: %d ranks, sum %.6f: %s\n", size, sum, good ? "ok" : "WRONG");
    return strata_finalize(s) == STRATA_OK && rc == STRATA_OK && good ? 0 : 1;
}
