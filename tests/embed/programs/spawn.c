/* Jobs that are spawned: traffic between parents and children, among all after a merge, spawning from a spawned job,
 * many in a row, several at a time, disconnect. The children are this program with arguments. */
#include <mpi.h>
#include "support.h"

static char *self;

/* Ring, all to all and a large message over a communicator. */
static void traffic(MPI_Comm c, const char *what)
{
    enum { BIG = 150000 };
    int rank, size, x = -1, sum = 0;
    MPI_Comm_rank(c, &rank);
    MPI_Comm_size(c, &size);
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    unsigned char *b = allocate(2 * BIG);
    MPI_Status s;
    MPI(MPI_Sendrecv(&rank, 1, MPI_INT, to, 1, &x, 1, MPI_INT, from, 1, c, &s));
    CHECK(x == from && s.MPI_SOURCE == from, "%s: ring: %d from %d", what, x, s.MPI_SOURCE);
    fill(b, BIG, (unsigned)rank);
    MPI(MPI_Sendrecv(b, BIG, MPI_BYTE, to, 2, b + BIG, BIG, MPI_BYTE, MPI_ANY_SOURCE, 2, c, &s));
    CHECK(differs(b + BIG, BIG, (unsigned)from) < 0, "%s: large", what);
    MPI(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, c));
    CHECK(sum == size * (size - 1) / 2, "%s: sum %d of %d ranks", what, sum, size);
    for (int i = 1; i < size; i++) {
        int other = (rank + i) % size, back = (rank + size - i) % size;
        x = -1;
        MPI(MPI_Sendrecv(&rank, 1, MPI_INT, other, 3, &x, 1, MPI_INT, back, 3, c, &s));
        CHECK(x == back, "%s: from %d: %d", what, back, x);
    }
    free(b);
}

/* Over the intercommunicator itself: every parent to every child and back. */
static void across(MPI_Comm inter)
{
    int others, rank, x;
    MPI_Comm_remote_size(inter, &others);
    MPI_Comm_rank(inter, &rank);
    MPI_Request *r = allocate(sizeof *r * (size_t)others);
    for (int i = 0; i < others; i++)
        MPI(MPI_Isend(&rank, 1, MPI_INT, i, 5, inter, &r[i]));
    for (int i = 0; i < others; i++) {
        MPI_Status s;
        MPI(MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 5, inter, &s));
        CHECK(x == s.MPI_SOURCE, "across: %d from %d", x, s.MPI_SOURCE);
    }
    MPI(MPI_Waitall(others, r, MPI_STATUSES_IGNORE));
    MPI(MPI_Barrier(inter));
    free(r);
}

static MPI_Comm spawn(int n, const char *what, MPI_Comm parents)
{
    char *args[] = {(char *)(uintptr_t)what, NULL};
    int codes[16];
    MPI_Comm children = MPI_COMM_NULL;
    MPI(MPI_Comm_spawn(self, args, n, MPI_INFO_NULL, 0, parents, &children, codes));
    for (int i = 0; i < n; i++)
        CHECK(codes[i] == MPI_SUCCESS, "child %d: %d", i, codes[i]);
    return children;
}

/* Parents and children do the same. Returns them all in one communicator, parents first. */
static MPI_Comm meet(MPI_Comm inter, bool high)
{
    MPI_Comm all;
    MPI(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    across(inter);
    MPI(MPI_Intercomm_merge(inter, high, &all));
    traffic(all, "merged");
    return all;
}

static void with(MPI_Comm inter, bool high)
{
    MPI_Comm all = meet(inter, high);
    MPI(MPI_Comm_free(&all));
}

/* Joins `mine` with the group whose first is rank `other` of `between`. */
static void join(MPI_Comm mine, MPI_Comm between, int other, bool high)
{
    MPI_Comm inter, all;
    MPI(MPI_Intercomm_create(mine, 0, between, other, 9, &inter));
    MPI(MPI_Intercomm_merge(inter, high, &all));
    traffic(all, "three generations");
    MPI(MPI_Comm_free(&all));
    MPI(MPI_Comm_free(&inter));
}

static int child(const char *what)
{
    MPI_Comm parent;
    traffic(MPI_COMM_WORLD, "children's world");
    MPI(MPI_Comm_get_parent(&parent));
    if (!CHECK(parent != MPI_COMM_NULL, "no parent"))
        return 1;
    MPI_Comm all = meet(parent, true);
    if (strcmp(what, "again") == 0) {
        MPI_Comm grandchildren = spawn(2, "leaf", MPI_COMM_WORLD);
        MPI_Comm two = meet(grandchildren, false);
        join(two, all, 0, true); /* with the parents */
        MPI(MPI_Comm_free(&two));
        MPI(MPI_Comm_disconnect(&grandchildren));
    } else if (strcmp(what, "leaf") == 0) {
        join(all, MPI_COMM_NULL, 0, true);
    }
    MPI(MPI_Comm_free(&all));
    MPI(MPI_Comm_disconnect(&parent));
    long failed = t.failed, sum = 0;
    MPI_Allreduce(&failed, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return sum ? 1 : 0;
}

/* The parents' failures are counted by `finish`, the children's by the exit status of the job: mpirun's. */
int main(int argc, char **argv)
{
    begin(&argc, &argv, MPI_THREAD_SINGLE, 1);
    self = argv[0];
    t.part = argc > 1 ? argv[1] : "parents";
    if (argc > 1 && (strcmp(argv[1], "plain") == 0 || strcmp(argv[1], "again") == 0 || strcmp(argv[1], "leaf") == 0))
        return child(argv[1]);
    int rounds = argc > 1 ? atoi(argv[1]) : 50;
    MPI_Comm c;

    part("one job");
    c = spawn(3, "plain", MPI_COMM_WORLD);
    with(c, false);
    MPI(MPI_Comm_disconnect(&c));

    part("from a spawned job");
    c = spawn(2, "again", MPI_COMM_WORLD);
    MPI_Comm all = meet(c, false);
    join(MPI_COMM_WORLD, all, t.size, false);
    MPI(MPI_Comm_free(&all));
    MPI(MPI_Comm_disconnect(&c));

    part("two at a time, merged with each other");
    MPI_Comm a = spawn(1, "plain", MPI_COMM_WORLD), b = spawn(2, "plain", MPI_COMM_WORLD);
    with(b, false);
    with(a, false);
    MPI(MPI_Comm_disconnect(&a));
    MPI(MPI_Comm_disconnect(&b));

    part("by one rank alone");
    c = spawn(1, "plain", MPI_COMM_SELF);
    with(c, false);
    MPI(MPI_Comm_disconnect(&c));

    for (int i = 0; i < rounds; i++) {
        part("many in a row");
        c = spawn(1 + i % 2, "plain", MPI_COMM_WORLD);
        with(c, false);
        MPI(MPI_Comm_disconnect(&c));
    }
    traffic(MPI_COMM_WORLD, "world");
    return finish("spawn");
}
