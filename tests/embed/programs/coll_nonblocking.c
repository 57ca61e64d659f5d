/* Nonblocking collectives of a machine: several under way among blocking ones and completed in any order, datatypes,
 * operations and communicators that are freed meanwhile, data with gaps, in place. A performance variable says whether
 * Strata did them by shared memory; with the argument "off" it must not have. */
#include "sent_messages.h"

#include <time.h>

enum { KINDS = 6, MOST = 8 };

static void two_calls(void)
{
    MPI_Request r[2];
    int one = 1, sum;
    MPI(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r[0]));
    MPI(MPI_Ibarrier(MPI_COMM_WORLD, &r[1]));
    MPI(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
}

/* x -> a x + b: composition does not commute. */
static void compose(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++) {
        const unsigned *x = (const unsigned *)in + 2 * i;
        unsigned *y = (unsigned *)inout + 2 * i;
        y[1] = x[0] * y[1] + x[1];
        y[0] = x[0] * y[0];
    }
}

/* One of each kind, of `count` elements. Types and operation are freed before the end. */
static void start(MPI_Comm c, int count, int *blocks[KINDS], int *sent[KINDS], MPI_Request *r)
{
    int me, n;
    MPI_Op op;
    MPI_Datatype pair, holes;
    MPI_Comm_rank(c, &me);
    MPI_Comm_size(c, &n);
    MPI(MPI_Op_create(compose, 0, &op));
    MPI(MPI_Type_contiguous(2, MPI_INT, &pair));
    MPI(MPI_Type_commit(&pair));
    MPI(MPI_Type_vector(count, 1, 2, MPI_INT, &holes));
    MPI(MPI_Type_commit(&holes));
    for (int k = 0; k < KINDS; k++) {
        blocks[k] = malloc(sizeof(int) * 2 * (size_t)(count * n + 1));
        sent[k] = malloc(sizeof(int) * 2 * (size_t)(count * n + 1));
        for (int i = 0; i < 2 * count * n; i++) {
            sent[k][i] = me + 1 + i % 5;
            blocks[k][i] = -7;
        }
    }
    for (int i = 0; i < count && me == n - 1; i++)
        blocks[1][2 * i] = i;
    for (int i = 0; i < count; i++)
        blocks[4][me * count + i] = me * 10 + i;
    MPI(MPI_Ibarrier(c, &r[0]));
    MPI(MPI_Ibcast(blocks[1], 1, holes, n - 1, c, &r[1]));
    MPI(MPI_Ireduce(sent[2], blocks[2], count, pair, op, 0, c, &r[2]));
    MPI(MPI_Iallreduce(sent[3], blocks[3], count, pair, op, c, &r[3]));
    MPI(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, blocks[4], count, MPI_INT, c, &r[4]));
    MPI(MPI_Ialltoall(sent[5], count, MPI_INT, blocks[5], count, MPI_INT, c, &r[5]));
    MPI(MPI_Op_free(&op));
    MPI(MPI_Type_free(&pair));
    MPI(MPI_Type_free(&holes));
}

static void check_reduced(const int *got, int count, int n)
{
    for (int i = 0; i < count; i++) {
        unsigned want[2] = {1, 0}; /* the identity */
        for (int r = n - 1; r >= 0; r--) {
            unsigned in[2] = {(unsigned)(r + 1 + 2 * i % 5), (unsigned)(r + 1 + (2 * i + 1) % 5)};
            int one = 1;
            MPI_Datatype none = MPI_DATATYPE_NULL;
            compose(in, want, &one, &none);
        }
        CHECK((unsigned)got[2 * i] == want[0] && (unsigned)got[2 * i + 1] == want[1], "reduction of %d, pair %d", count,
              i);
    }
}

static void check_all(int me, int n, int count, int *blocks[KINDS], int *sent[KINDS])
{
    for (int i = 0; i < count; i++) {
        CHECK(blocks[1][2 * i] == i, "ibcast of %d, int %d: %d", count, i, blocks[1][2 * i]);
        CHECK(blocks[1][2 * i + 1] == -7, "ibcast of %d, gap %d", count, i);
    }
    if (me == 0)
        check_reduced(blocks[2], count, n);
    check_reduced(blocks[3], count, n);
    for (int r = 0; r < n; r++)
        for (int i = 0; i < count; i++) {
            CHECK(blocks[4][r * count + i] == r * 10 + i, "iallgather of %d", count);
            CHECK(blocks[5][r * count + i] == r + 1 + (me * count + i) % 5, "ialltoall of %d", count);
        }
    for (int k = 0; k < KINDS; k++) {
        free(blocks[k]);
        free(sent[k]);
    }
}

static void together(MPI_Comm c, int count, int round)
{
    int *blocks[KINDS], *sent[KINDS], me, n, done = 0, index, one = 1, sum = 0;
    MPI_Request r[KINDS];
    MPI_Comm_rank(c, &me);
    MPI_Comm_size(c, &n);
    if ((me + round) % 3 == 0)
        nanosleep(&(struct timespec){0, 300000}, NULL);
    start(c, count, blocks, sent, r);
    MPI(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c)); /* a blocking one behind them */
    CHECK(sum == n, "sum %d of %d", sum, n);
    for (int k = 0; k < KINDS && round % 3 == 0; k++) {
        MPI(MPI_Waitany(KINDS, r, &index, MPI_STATUS_IGNORE));
        CHECK(index >= 0 && index < KINDS, "index %d", index);
    }
    while (round % 3 == 1 && !done)
        MPI(MPI_Testall(KINDS, r, &done, MPI_STATUSES_IGNORE));
    for (int k = KINDS - 1; k >= 0 && round % 3 == 2; k--)
        MPI(MPI_Wait(&r[k], MPI_STATUS_IGNORE));
    check_all(me, n, count, blocks, sent);
}

/* The communicator goes away once what is under way has ended. */
static void freed(int round)
{
    int *blocks[KINDS], *sent[KINDS], me, n;
    MPI_Request r[KINDS];
    MPI_Comm c;
    MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, round, &c));
    MPI_Comm_rank(c, &me);
    MPI_Comm_size(c, &n);
    start(c, 10 + round, blocks, sent, r);
    MPI(MPI_Comm_free(&c));
    MPI(MPI_Waitall(KINDS, r, MPI_STATUSES_IGNORE));
    check_all(me, n, 10 + round, blocks, sent);
}

/* A pending one is not freed, though the program asks for it. */
static void kept(MPI_Comm c)
{
    MPI_Request r;
    int me;
    MPI_Comm_rank(c, &me);
    if (me != 0)
        MPI(MPI_Recv(NULL, 0, MPI_INT, 0, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    MPI(MPI_Ibarrier(c, &r));
    if (me == 0) {
        int n;
        MPI_Comm_size(c, &n);
        CHECK(MPI_Request_free(&r) != MPI_SUCCESS && r != MPI_REQUEST_NULL, "a pending barrier was freed");
        for (int i = 1; i < n; i++)
            MPI(MPI_Send(NULL, 0, MPI_INT, i, 77, MPI_COMM_WORLD));
    }
    MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
}

/* A pair type has padding: what Open MPI selected before does it. */
static void pairs(MPI_Comm c)
{
    struct {
        double value;
        int where;
    } in, out = {0, 0};
    MPI_Request r;
    int me, n;
    MPI_Comm_rank(c, &me);
    MPI_Comm_size(c, &n);
    in.value = me == n / 2 ? 5.0 : 1.0;
    in.where = me;
    MPI(MPI_Iallreduce(&in, &out, 1, MPI_DOUBLE_INT, MPI_MAXLOC, c, &r));
    MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
    CHECK(out.value == 5.0 && out.where == n / 2, "maxloc: %g at %d", out.value, out.where);
}

int main(int argc, char **argv)
{
    static const int counts[] = {0, 1, 5, 1000, 9000};
    bool off = argc > 1 && strcmp(argv[1], "off") == 0;
    begin(&argc, &argv, MPI_THREAD_SINGLE, 2);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        for (int round = 0; round < 6; round++)
            together(MPI_COMM_WORLD, counts[i], round);
    for (int round = 0; round < 20; round++)
        freed(round);
    kept(MPI_COMM_WORLD);
    pairs(MPI_COMM_WORLD);
    check_messages(off, two_calls);
    return finish("coll_nonblocking");
}
