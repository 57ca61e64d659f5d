/* Intercommunicators: made from the world, point-to-point in every form, wildcards, collectives, merged, split, freed.
 */
#include <mpi.h>
#include "support.h"

static MPI_Comm inter, local;
static int me, mine, others; /* my rank in my group; sizes of both */

static void point_to_point(int n)
{
    unsigned char *a = allocate((size_t)n), *b = allocate((size_t)n);
    MPI_Request r[2];
    MPI_Status s;
    MPI_Message m;
    int to = me % others, count, flag;
    /* Low group sends, the other answers; then the other way round. Each may hear from several. */
    int hears = 0;
    for (int i = 0; i < others; i++)
        hears += i % mine == me;
    fill(a, (size_t)n, (unsigned)t.rank);
    MPI(MPI_Isend(a, n, MPI_BYTE, to, 1, inter, &r[0]));
    for (int i = 0; i < hears; i++) {
        MPI(MPI_Probe(MPI_ANY_SOURCE, 1, inter, &s));
        CHECK(s.MPI_SOURCE >= 0 && s.MPI_SOURCE < others && s.MPI_SOURCE % mine == me, "source %d", s.MPI_SOURCE);
        MPI_Get_count(&s, MPI_BYTE, &count);
        CHECK(count == n, "count %d", count);
        MPI(MPI_Mprobe(s.MPI_SOURCE, 1, inter, &m, &s));
        MPI(MPI_Mrecv(b, n, MPI_BYTE, &m, &s));
        STATUS(&s, s.MPI_SOURCE, 1, n);
    }
    MPI(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
    MPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, inter, &flag, &s));
    CHECK(!flag, "nothing is left");
    MPI(MPI_Barrier(inter));
    /* Rank 0 of both: every mode, persistent. */
    if (me == 0) {
        MPI(MPI_Send_init(a, n, MPI_BYTE, 0, 2, inter, &r[0]));
        MPI(MPI_Recv_init(b, n, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, inter, &r[1]));
        for (int i = 0; i < 5; i++) {
            MPI(MPI_Startall(2, r));
            MPI(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
        }
        MPI(MPI_Request_free(&r[0]));
        MPI(MPI_Request_free(&r[1]));
        int leader = t.rank % 2 ? 0 : 1; /* world rank of the other side's first */
        CHECK(differs(b, (size_t)n, (unsigned)leader) < 0, "content");
        MPI(MPI_Sendrecv(a, n, MPI_BYTE, 0, 3, b, n, MPI_BYTE, 0, 3, inter, &s));
        STATUS(&s, 0, 3, n);
        MPI(MPI_Irecv(b, n, MPI_BYTE, 0, 4, inter, &r[1]));
        MPI(MPI_Issend(a, n, MPI_BYTE, 0, 4, inter, &r[0]));
        MPI(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
    }
    MPI(MPI_Barrier(inter));
    free(a);
    free(b);
}

static void collectives(void)
{
    int x, y = -1, *all = allocate((size_t)others * sizeof *all), *sum;
    bool low = t.rank % 2 == 0;
    MPI(MPI_Barrier(inter));
    x = low ? 11 : -1; /* from the low group's first to all of the other */
    MPI(MPI_Bcast(&x, 1, MPI_INT, !low ? 0 : me == 0 ? MPI_ROOT : MPI_PROC_NULL, inter));
    CHECK(low || x == 11, "bcast: %d", x);
    x = me + 1;
    MPI(MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, inter));
    CHECK(y == others * (others + 1) / 2, "allreduce: %d", y);
    MPI(MPI_Allgather(&t.rank, 1, MPI_INT, all, 1, MPI_INT, inter));
    for (int i = 0; i < others; i++)
        CHECK(all[i] == 2 * i + (low ? 1 : 0), "allgather: %d", all[i]);
    int *to = allocate((size_t)others * sizeof *to);
    for (int i = 0; i < others; i++)
        to[i] = 100 * me + i;
    MPI(MPI_Alltoall(to, 1, MPI_INT, all, 1, MPI_INT, inter));
    for (int i = 0; i < others; i++)
        CHECK(all[i] == 100 * i + me, "alltoall: %d", all[i]);
    sum = &y;
    MPI(MPI_Reduce(&x, sum, 1, MPI_INT, MPI_MAX, low ? 0 : me == 0 ? MPI_ROOT : MPI_PROC_NULL, inter));
    CHECK(low || me != 0 || y == others, "reduce: %d", y);
    free(all);
    free(to);
}

static void merged(void)
{
    MPI_Comm both, halves, dup;
    int rank, size, sum, flag;
    bool low = t.rank % 2 == 0;
    MPI(MPI_Intercomm_merge(inter, !low, &both));
    MPI_Comm_rank(both, &rank);
    MPI_Comm_size(both, &size);
    CHECK(size == t.size && rank == (low ? me : others + me), "merged: rank %d of %d", rank, size);
    MPI(MPI_Allreduce(&t.rank, &sum, 1, MPI_INT, MPI_SUM, both));
    CHECK(sum == t.size * (t.size - 1) / 2, "sum %d", sum);
    int x = -1, left = (rank + size - 1) % size;
    MPI(MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 1, &x, 1, MPI_INT, left, 1, both, MPI_STATUS_IGNORE));
    CHECK(x == left, "ring: %d", x);
    MPI(MPI_Comm_free(&both));
    MPI(MPI_Comm_dup(inter, &dup));
    MPI(MPI_Comm_test_inter(dup, &flag));
    CHECK(flag, "a duplicate is an intercommunicator");
    x = -1;
    if (me == 0)
        MPI(MPI_Sendrecv(&t.rank, 1, MPI_INT, 0, 1, &x, 1, MPI_INT, 0, 1, dup, MPI_STATUS_IGNORE));
    CHECK(me != 0 || x == (low ? 1 : 0), "over the duplicate: %d", x);
    if (mine > 1 && others > 1) {
        MPI(MPI_Comm_split(dup, me % 2, 0, &halves));
        x = -1;
        if (me < 2)
            MPI(MPI_Sendrecv(&t.rank, 1, MPI_INT, 0, 1, &x, 1, MPI_INT, 0, 1, halves, MPI_STATUS_IGNORE));
        CHECK(me >= 2 || x == 2 * me + (low ? 1 : 0), "over a half: %d", x);
        MPI(MPI_Comm_free(&halves));
    }
    MPI(MPI_Comm_free(&dup));
}

int main(int argc, char **argv)
{
    static const int sizes[] = {0, 1, 1000, 5000, 100000};
    begin(&argc, &argv, MPI_THREAD_SINGLE, 2);
    for (int round = 0; round < 20; round++) {
        part("create");
        MPI(MPI_Comm_split(MPI_COMM_WORLD, t.rank % 2, 0, &local));
        MPI_Comm_rank(local, &me);
        MPI_Comm_size(local, &mine);
        MPI(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, t.rank % 2 ? 0 : 1, 77, &inter));
        MPI_Comm_remote_size(inter, &others);
        CHECK(mine + others == t.size, "sizes %d and %d", mine, others);
        t.part = "point to point";
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            point_to_point(sizes[i]);
        t.part = "collectives";
        collectives();
        t.part = "merge, dup, split";
        merged();
        if (round % 2) {
            MPI(MPI_Comm_free(&inter));
            MPI(MPI_Comm_free(&local));
        } else {
            MPI(MPI_Comm_free(&local));
            MPI(MPI_Comm_disconnect(&inter));
        }
    }
    return finish("intercomm");
}
