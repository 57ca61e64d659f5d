/* Every collective, blocking and nonblocking, against values that are computed here; on the world, on a part of it in
 * reverse order, on a duplicate; sizes from nothing to large. */
#include <mpi.h>
#include "support.h"

static MPI_Comm c; /* what is tested; me and n its rank and size */
static int me, n;
static bool nonblocking;

/* Runs the blocking or the nonblocking form. */
#define RUN(NAME, ...)                                                                                                 \
    do {                                                                                                               \
        if (nonblocking) {                                                                                             \
            MPI_Request request_;                                                                                      \
            MPI(MPI_I##NAME(__VA_ARGS__, c, &request_));                                                               \
            finish_one(&request_);                                                                                     \
        } else {                                                                                                       \
            MPI(MPI_B##NAME(__VA_ARGS__, c));                                                                          \
        }                                                                                                              \
    } while (0)
/* The two names of an operation: MPI_Ibcast and MPI_Bcast differ in case. */
#define MPI_Bbcast                MPI_Bcast
#define MPI_Breduce               MPI_Reduce
#define MPI_Ballreduce            MPI_Allreduce
#define MPI_Bgather               MPI_Gather
#define MPI_Bgatherv              MPI_Gatherv
#define MPI_Bscatter              MPI_Scatter
#define MPI_Bscatterv             MPI_Scatterv
#define MPI_Ballgather            MPI_Allgather
#define MPI_Ballgatherv           MPI_Allgatherv
#define MPI_Balltoall             MPI_Alltoall
#define MPI_Balltoallv            MPI_Alltoallv
#define MPI_Balltoallw            MPI_Alltoallw
#define MPI_Breduce_scatter       MPI_Reduce_scatter
#define MPI_Breduce_scatter_block MPI_Reduce_scatter_block
#define MPI_Bscan                 MPI_Scan
#define MPI_Bexscan               MPI_Exscan

static void finish_one(MPI_Request *r)
{
    int flag = 0;
    for (int i = 0; i < 3 && !flag; i++)
        MPI(MPI_Test(r, &flag, MPI_STATUS_IGNORE));
    MPI(MPI_Wait(r, MPI_STATUS_IGNORE));
}

static int value(int rank, int i)
{
    return rank * 1009 + i * 7 + (i >> 3);
}

static int *make(size_t count)
{
    return allocate(count * sizeof(int));
}

static void set(int *v, int count, int rank)
{
    for (int i = 0; i < count; i++)
        v[i] = value(rank, i);
}

#define SAME(got, wanted, i)                                                                                           \
    if ((got) != (wanted) && !CHECK((got) == (wanted), "element %d is %d instead of %d", i, got, wanted))              \
    break

static void bcast_and_reduce(int count)
{
    int *a = make((size_t)count), *b = make((size_t)count);
    for (int root = 0; root<n; root += n> 3 ? n - 1 : 1) {
        set(a, count, me == root ? root : 77);
        RUN(bcast, a, count, MPI_INT, root);
        for (int i = 0; i < count; i++)
            SAME(a[i], value(root, i), i);
        set(a, count, me);
        RUN(reduce, a, b, count, MPI_INT, MPI_SUM, root);
        for (int i = 0; i < count && me == root; i++)
            SAME(b[i], value(0, i) * n + 1009 * n * (n - 1) / 2, i);
    }
    set(a, count, me);
    RUN(allreduce, a, b, count, MPI_INT, MPI_MAX);
    for (int i = 0; i < count; i++)
        SAME(b[i], value(n - 1, i), i);
    RUN(allreduce, MPI_IN_PLACE, a, count, MPI_INT, MPI_SUM);
    for (int i = 0; i < count; i++)
        SAME(a[i], value(0, i) * n + 1009 * n * (n - 1) / 2, i);
    set(a, count, me);
    RUN(scan, a, b, count, MPI_INT, MPI_SUM);
    for (int i = 0; i < count; i++)
        SAME(b[i], value(0, i) * (me + 1) + 1009 * me * (me + 1) / 2, i);
    RUN(exscan, a, b, count, MPI_INT, MPI_SUM);
    for (int i = 0; i < count && me > 0; i++)
        SAME(b[i], value(0, i) * me + 1009 * me * (me - 1) / 2, i);
    free(a);
    free(b);
    CHECK(true, "done");
}

static void gather_and_scatter(int count)
{
    size_t all = (size_t)count * (size_t)n;
    int *a = make(all), *b = make(all);
    for (int root = 0; root<n; root += n> 3 ? n - 1 : 1) {
        set(a, count, me);
        RUN(gather, a, count, MPI_INT, b, count, MPI_INT, root);
        for (int i = 0; i < (int)all && me == root; i++)
            SAME(b[i], value(i / count, i % count), i);
        for (int i = 0; i < (int)all; i++)
            a[i] = value(i / count + root, i % count);
        RUN(scatter, a, count, MPI_INT, b, count, MPI_INT, root);
        for (int i = 0; i < count; i++)
            SAME(b[i], value(me + root, i), i);
    }
    set(a, count, me);
    RUN(allgather, a, count, MPI_INT, b, count, MPI_INT);
    for (int i = 0; i < (int)all; i++)
        SAME(b[i], value(i / count, i % count), i);
    for (int i = 0; i < (int)all; i++)
        a[i] = value(me * 100 + i / count, i % count);
    RUN(alltoall, a, count, MPI_INT, b, count, MPI_INT);
    for (int i = 0; i < (int)all; i++)
        SAME(b[i], value(i / count * 100 + me, i % count), i);
    RUN(reduce_scatter_block, a, b, count, MPI_INT, MPI_MAX);
    for (int i = 0; i < count; i++)
        SAME(b[i], value((n - 1) * 100 + me, i), i);
    free(a);
    free(b);
}

/* Forms with counts and displacements: rank r contributes count + r elements. */
static void varying(int count)
{
    int *counts = make((size_t)n), *at = make((size_t)n), *to_counts = make((size_t)n), *to_at = make((size_t)n);
    int total = 0, sent = 0, mine = count + me;
    for (int i = 0; i < n; i++) {
        counts[i] = count + i, at[i] = total + i; /* a hole before each */
        total += count + i;
        to_counts[i] = mine, to_at[i] = sent;
        sent += mine;
    }
    int room = total + n + 1;
    int *a = make((size_t)(room + sent + n * n)), *b = make((size_t)room);
    set(a, mine, me);
    memset(b, -1, (size_t)room * sizeof *b);
    RUN(allgatherv, a, mine, MPI_INT, b, counts, at, MPI_INT);
    for (int r = 0; r < n; r++)
        for (int i = 0; i < counts[r]; i++)
            SAME(b[at[r] + i], value(r, i), i);
    for (int r = 1; r < n; r++)
        CHECK(b[at[r] - 1] == -1, "hole before %d", r);
    RUN(gatherv, a, mine, MPI_INT, b, counts, at, MPI_INT, n - 1);
    for (int r = 0; r < n && me == n - 1; r++)
        for (int i = 0; i < counts[r]; i++)
            SAME(b[at[r] + i], value(r, i), i);
    for (int r = 0; r < n; r++)
        for (int i = 0; i < counts[r]; i++)
            b[at[r] + i] = value(r + 5, i);
    RUN(scatterv, b, counts, at, MPI_INT, a, mine, MPI_INT, 0);
    for (int i = 0; i < mine; i++)
        SAME(a[i], value(me + 5, i), i);
    /* I send mine = count + me elements to each; from r come count + r. */
    for (int r = 0; r < n; r++)
        for (int i = 0; i < mine; i++)
            a[to_at[r] + i] = value(me * 50 + r, i);
    memset(b, -1, (size_t)room * sizeof *b);
    RUN(alltoallv, a, to_counts, to_at, MPI_INT, b, counts, at, MPI_INT);
    for (int r = 0; r < n; r++)
        for (int i = 0; i < counts[r]; i++)
            SAME(b[at[r] + i], value(r * 50 + me, i), i);
    MPI_Datatype *types = allocate((size_t)n * sizeof(MPI_Datatype));
    for (int r = 0; r < n; r++)
        types[r] = MPI_INT, at[r] *= 4, to_at[r] *= 4;
    memset(b, -1, (size_t)room * sizeof *b);
    RUN(alltoallw, a, to_counts, to_at, types, b, counts, at, types);
    for (int r = 0; r < n; r++)
        for (int i = 0; i < counts[r]; i++)
            SAME(b[at[r] / 4 + i], value(r * 50 + me, i), i);
    set(a, total, me);
    RUN(reduce_scatter, a, b, counts, MPI_INT, MPI_SUM);
    int before = 0;
    for (int r = 0; r < me; r++)
        before += counts[r];
    for (int i = 0; i < mine; i++)
        SAME(b[i], value(0, before + i) * n + 1009 * n * (n - 1) / 2, i);
    free(types);
    free(counts);
    free(at);
    free(to_counts);
    free(to_at);
    free(a);
    free(b);
}

/* An operation of ours that does not commute: 2x2 matrices modulo a prime. */
static void product(void *in, void *inout, int *count, MPI_Datatype *type)
{
    long *x = in, *y = inout;
    (void)type;
    for (int i = 0; i < *count; i++, x += 4, y += 4) {
        long z[4] = {x[0] * y[0] + x[1] * y[2], x[0] * y[1] + x[1] * y[3], x[2] * y[0] + x[3] * y[2],
                     x[2] * y[1] + x[3] * y[3]};
        for (int k = 0; k < 4; k++)
            y[k] = z[k] % 10007;
    }
}

static void own_operation(int count)
{
    MPI_Op op;
    MPI_Datatype matrix;
    long *a = allocate((size_t)count * 32), *b = allocate((size_t)count * 32), *wanted = allocate((size_t)count * 32);
    MPI(MPI_Type_contiguous(4, MPI_LONG, &matrix));
    MPI(MPI_Type_commit(&matrix));
    MPI(MPI_Op_create(product, 0, &op));
    for (int r = 0; r < n; r++) {
        for (int i = 0; i < 4 * count; i++)
            b[i] = (r * 31 + i * 17 + 1) % 101;
        if (r == me)
            memcpy(a, b, (size_t)count * 32);
        if (r == 0) {
            memcpy(wanted, b, (size_t)count * 32);
        } else { /* wanted = wanted * b */
            product(wanted, b, &count, &matrix);
            memcpy(wanted, b, (size_t)count * 32);
        }
    }
    RUN(allreduce, a, b, count, matrix, op);
    CHECK(memcmp(b, wanted, (size_t)count * 32) == 0, "not commutative, %d matrices", count);
    MPI(MPI_Op_free(&op));
    MPI(MPI_Type_free(&matrix));
    free(a);
    free(b);
    free(wanted);
}

/* Several nonblocking ones at a time, on one communicator. */
static void overlapping(void)
{
    enum { K = 12, COUNT = 3000 };
    MPI_Request r[K];
    int *a[K], *b[K];
    for (int k = 0; k < K; k++) {
        a[k] = make(COUNT), b[k] = make(COUNT);
        set(a[k], COUNT, me + k);
        if (k % 3 == 0)
            MPI(MPI_Iallreduce(a[k], b[k], COUNT, MPI_INT, MPI_SUM, c, &r[k]));
        else if (k % 3 == 1)
            MPI(MPI_Ibcast(a[k], COUNT, MPI_INT, k % n, c, &r[k]));
        else
            MPI(MPI_Ibarrier(c, &r[k]));
    }
    MPI(MPI_Barrier(c));
    for (int k = K; k-- > 0;)
        MPI(MPI_Wait(&r[k], MPI_STATUS_IGNORE));
    for (int k = 0; k < K; k++) {
        for (int i = 0; i < COUNT && k % 3 == 0; i++)
            SAME(b[k][i], value(k, i) * n + 1009 * n * (n - 1) / 2, i);
        for (int i = 0; i < COUNT && k % 3 == 1; i++)
            SAME(a[k][i], value(k % n + k, i), i);
        free(a[k]);
        free(b[k]);
    }
}

static void neighbours(void)
{
    MPI_Comm grid;
    int dims[1] = {n}, periods[1] = {1}, from[2] = {-1, -1}, to[2] = {me * 2, me * 2 + 1};
    MPI_Comm keep = c;
    MPI(MPI_Cart_create(c, 1, dims, periods, 0, &grid));
    c = grid;
    if (nonblocking) {
        MPI_Request r;
        MPI(MPI_Ineighbor_alltoall(to, 1, MPI_INT, from, 1, MPI_INT, c, &r));
        MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
    } else {
        MPI(MPI_Neighbor_allgather(to, 1, MPI_INT, from, 1, MPI_INT, c));
        CHECK(from[0] == (me + n - 1) % n * 2 && from[1] == (me + 1) % n * 2, "%d %d", from[0], from[1]);
        MPI(MPI_Neighbor_alltoall(to, 1, MPI_INT, from, 1, MPI_INT, c));
    }
    if (n > 2) /* with fewer both neighbours are the same rank */
        CHECK(from[0] == (me + n - 1) % n * 2 + 1 && from[1] == (me + 1) % n * 2, "%d %d", from[0], from[1]);
    c = keep;
    MPI(MPI_Comm_free(&grid));
}

int main(int argc, char **argv)
{
    static const int counts[] = {0, 1, 3, 100, 1500, 9000, 70000};
    static const char *const names[] = {"world", "duplicate", "reversed", "half"};
    begin(&argc, &argv, MPI_THREAD_SINGLE, 2);
    for (int which = 0; which < 4; which++) {
        if (which == 0)
            c = MPI_COMM_WORLD;
        else if (which == 1)
            MPI(MPI_Comm_dup(MPI_COMM_WORLD, &c));
        else
            MPI(MPI_Comm_split(MPI_COMM_WORLD, which == 3 ? t.rank % 2 : 0, -t.rank, &c));
        MPI_Comm_rank(c, &me);
        MPI_Comm_size(c, &n);
        for (int form = 0; form < 2; form++) {
            nonblocking = form == 1;
            for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
                char name[80];
                snprintf(name, sizeof name, "%s, %s, %d", names[which], form ? "nonblocking" : "blocking", counts[i]);
                part(name);
                bcast_and_reduce(counts[i]);
                if (counts[i])
                    gather_and_scatter(counts[i]);
                varying(counts[i]);
                if (counts[i] < 2000)
                    own_operation(counts[i]);
            }
            neighbours();
            for (int i = 0; i < 200; i++)
                MPI(MPI_Barrier(c));
        }
        overlapping();
        if (which)
            MPI(MPI_Comm_free(&c));
    }
    return finish("collectives");
}
