/* Collectives of a machine: data with gaps that differ by rank, in place, operations that do not commute, communicators
 * that come and go while ranks are late, many calls in a row. A performance variable says whether Strata did them; with
 * the argument "off" it must not have. */
#include "sent_messages.h"

#include <time.h>

enum { MOST = 8 };

/* As a tool that stands before MPI's calls: it must not see what the library calls for itself. */
static int seen;
int MPI_Reduce_local(const void *in, void *inout, int count, MPI_Datatype type, MPI_Op op)
{
    seen++;
    return PMPI_Reduce_local(in, inout, count, type, op);
}
int MPI_Op_commutative(MPI_Op op, int *commutes)
{
    seen++;
    return PMPI_Op_commutative(op, commutes);
}

static void two_calls(void)
{
    int one = 1, sum;
    MPI(MPI_Barrier(MPI_COMM_WORLD));
    MPI(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
}

/* Every second int of 2 * count, at all members or at some: tuned divides a long bcast by elements, and hangs where
 * they differ. */
static void gaps(MPI_Comm c, int count, int round, bool all)
{
    int me, n;
    MPI_Datatype holes;
    MPI_Comm_rank(c, &me);
    MPI_Comm_size(c, &n);
    MPI(MPI_Type_vector(count, 1, 2, MPI_INT, &holes));
    MPI(MPI_Type_commit(&holes));
    int *wide = malloc(sizeof(int) * 2 * (size_t)count), *tight = malloc(sizeof(int) * (size_t)count);
    int root = round % n;
    bool mine = all || (me + round) % 2; /* has gaps */
    for (int i = 0; i < count; i++) {
        wide[2 * i] = me == root ? i * 3 + round : -1;
        wide[2 * i + 1] = -7;
        tight[i] = me == root ? i * 3 + round : -1;
    }
    if (mine)
        MPI(MPI_Bcast(wide, 1, holes, root, c));
    else
        MPI(MPI_Bcast(tight, count, MPI_INT, root, c));
    for (int i = 0; i < count; i++) {
        CHECK((mine ? wide[2 * i] : tight[i]) == i * 3 + round, "bcast of %d ints, round %d, int %d", count, round, i);
        CHECK(wide[2 * i + 1] == -7, "bcast of %d ints, gap %d", count, i);
    }
    free(wide);
    free(tight);
    MPI(MPI_Type_free(&holes));
}

static void in_place(MPI_Comm c, int count)
{
    int me, n;
    MPI_Comm_rank(c, &me);
    MPI_Comm_size(c, &n);
    int *v = malloc(sizeof(int) * (size_t)count * (size_t)n);
    for (int i = 0; i < count * n; i++)
        v[i] = me * 1000 + i;
    MPI(MPI_Alltoall(MPI_IN_PLACE, count, MPI_INT, v, count, MPI_INT, c));
    for (int r = 0; r < n; r++)
        for (int i = 0; i < count; i++)
            CHECK(v[r * count + i] == r * 1000 + me * count + i, "alltoall in place of %d", count);
    for (int i = 0; i < count; i++)
        v[me * count + i] = me * 77 + i;
    MPI(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, v, count, MPI_INT, c));
    for (int r = 0; r < n; r++)
        for (int i = 0; i < count; i++)
            CHECK(v[r * count + i] == r * 77 + i, "allgather in place of %d", count);
    for (int i = 0; i < count; i++)
        v[i] = me + i;
    MPI(MPI_Allreduce(MPI_IN_PLACE, v, count, MPI_INT, MPI_SUM, c));
    for (int i = 0; i < count; i++)
        CHECK(v[i] == n * (n - 1) / 2 + n * i, "allreduce in place of %d", count);
    for (int i = 0; i < count; i++)
        v[i] = me + i;
    MPI(MPI_Reduce(me == 1 ? MPI_IN_PLACE : v, v, count, MPI_INT, MPI_MAX, 1, c));
    for (int i = 0; me == 1 && i < count; i++)
        CHECK(v[i] == n - 1 + i, "reduce in place of %d", count);
    free(v);
}

/* 2 x 2 matrices: a product that does not commute. */
static void product(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++) {
        const long *a = (const long *)in + 4 * i;
        long *b = (long *)inout + 4 * i;
        long c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                     a[2] * b[1] + a[3] * b[3]};
        memcpy(b, c, sizeof c);
    }
}

static void order(MPI_Comm c, int count)
{
    int me, n;
    MPI_Op op;
    MPI_Datatype matrix;
    MPI_Comm_rank(c, &me);
    MPI_Comm_size(c, &n);
    MPI(MPI_Op_create(product, 0, &op));
    MPI(MPI_Type_contiguous(4, MPI_LONG, &matrix));
    MPI(MPI_Type_commit(&matrix));
    long *in = malloc(sizeof(long) * 4 * (size_t)count), *out = malloc(sizeof(long) * 4 * (size_t)count);
    long want[4] = {1, 1, 0, 1};
    for (int i = 0; i < count; i++)
        memcpy(in + 4 * i, (long[]){1, me + 1, me % 2, 1}, 4 * sizeof(long));
    MPI(MPI_Allreduce(in, out, count, matrix, op, c));
    for (int r = 1, one = 1; r < n; r++) {
        long next[4] = {1, r + 1, r % 2, 1};
        long left[4];
        memcpy(left, want, sizeof left);
        product(left, next, &one, &matrix);
        memcpy(want, next, sizeof want);
    }
    for (int i = 0; i < count; i++)
        CHECK(memcmp(out + 4 * i, want, sizeof want) == 0, "matrix %d of %d: %ld %ld %ld %ld", i, count, out[4 * i],
              out[4 * i + 1], out[4 * i + 2], out[4 * i + 3]);
    free(in);
    free(out);
    MPI(MPI_Op_free(&op));
    MPI(MPI_Type_free(&matrix));
}

/* A pair type has padding: what was there before does it. */
static void pairs(MPI_Comm c)
{
    struct {
        double value;
        int where;
    } in, out = {0, 0};
    int me, n;
    MPI_Comm_rank(c, &me);
    MPI_Comm_size(c, &n);
    in.value = me == n / 2 ? 5.0 : 1.0;
    in.where = me;
    MPI(MPI_Allreduce(&in, &out, 1, MPI_DOUBLE_INT, MPI_MAXLOC, c));
    CHECK(out.value == 5.0 && out.where == n / 2, "maxloc: %g at %d", out.value, out.where);
}

static void come_and_go(int rounds)
{
    int me;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    for (int i = 0; i < rounds; i++) {
        MPI_Comm c;
        int n, rank, sum = 0;
        MPI(MPI_Comm_split(MPI_COMM_WORLD, i % 3 == 0 && me == 0 ? 1 : 0, -me, &c));
        MPI_Comm_size(c, &n);
        MPI_Comm_rank(c, &rank);
        if ((me + i) % 3 == 0)
            nanosleep(&(struct timespec){0, 300000}, NULL);
        int one = 1;
        MPI(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c));
        CHECK(sum == n, "round %d: %d of %d", i, sum, n);
        MPI(MPI_Barrier(c));
        MPI(MPI_Comm_free(&c));
    }
}

int main(int argc, char **argv)
{
    static const int counts[] = {0, 1, 5, 1000, 9000};
    bool off = argc > 1 && strcmp(argv[1], "off") == 0;
    begin(&argc, &argv, MPI_THREAD_SINGLE, 2);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        in_place(MPI_COMM_WORLD, counts[i]);
        order(MPI_COMM_WORLD, counts[i] < 10000 ? counts[i] : 10000);
        for (int round = 0; round < 6; round++)
            gaps(MPI_COMM_WORLD, counts[i], round, off);
    }
    pairs(MPI_COMM_WORLD);
    come_and_go(40);
    CHECK(seen == 0, "%d calls of MPI within its own", seen);
    check_messages(off, two_calls);
    return finish("coll_local");
}
