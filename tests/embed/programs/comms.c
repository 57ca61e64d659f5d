/* Communicators made and freed very often, while messages of the next ones arrive before the receiver has made them. */
#include <mpi.h>
#include "support.h"

static MPI_Comm w = MPI_COMM_WORLD;

/* Whoever is ahead sends at once on a communicator that others may not have yet: creation is collective, but a rank may
 * leave it before another has finished. */
static void churn(int times)
{
    part("dup and free");
    int to = (t.rank + 1) % t.size, from = (t.rank + t.size - 1) % t.size;
    for (int i = 0; i < times; i++) {
        MPI_Comm c;
        MPI_Request r;
        int x = i * 3 + t.rank, y = -1;
        MPI_Status s;
        if (i % 3 == 2)
            MPI(MPI_Comm_split(w, 0, t.rank, &c));
        else
            MPI(MPI_Comm_dup(w, &c));
        MPI(MPI_Isend(&x, 1, MPI_INT, to, i % 100, c, &r));
        if (i % 64 == t.rank) /* lets the others run ahead */
            usleep(200);
        MPI(MPI_Recv(&y, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, c, &s));
        if (s.MPI_SOURCE != from || s.MPI_TAG != i % 100 || y != i * 3 + from)
            CHECK(false, "round %d: %d from %d tag %d", i, y, s.MPI_SOURCE, s.MPI_TAG);
        MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
        MPI(MPI_Comm_free(&c));
    }
}

/* Messages on a new communicator that arrive while the receiver still sleeps before its part of the creation: the last
 * step of a creation lets some go on before others. Large ones too. */
static void ahead(void)
{
    part("messages before the communicator");
    enum { N = 100000 };
    char *b = allocate(N);
    for (int i = 0; i < 200; i++) {
        MPI_Comm c;
        int late = i % t.size, n = i % 4 == 3 ? N : i;
        MPI_Request *r = allocate((size_t)t.size * sizeof *r);
        if (t.rank == late)
            usleep(300);
        MPI(MPI_Comm_dup(w, &c));
        if (t.rank != late) {
            MPI(MPI_Isend(b, n, MPI_BYTE, late, 4, c, r));
            MPI(MPI_Wait(r, MPI_STATUS_IGNORE));
        } else {
            usleep(i % 10 == 0 ? 1000 : 0);
            for (int k = 1; k < t.size; k++) {
                MPI_Status s;
                MPI(MPI_Recv(b, N, MPI_BYTE, MPI_ANY_SOURCE, 4, c, &s));
                STATUS(&s, s.MPI_SOURCE, 4, n);
            }
        }
        free(r);
        MPI(MPI_Comm_free(&c));
    }
    free(b);
}

/* Many alive at a time, each with its own traffic; freed in another order. */
static void many(int count)
{
    part("many alive");
    MPI_Comm *c = allocate((size_t)count * sizeof *c);
    MPI_Request *r = allocate((size_t)count * sizeof *r);
    int *x = calloc((size_t)count, sizeof *x), *y = calloc((size_t)count, sizeof *y);
    int to = (t.rank + 1) % t.size, from = (t.rank + t.size - 1) % t.size;
    for (int i = 0; i < count; i++)
        MPI(MPI_Comm_dup(w, &c[i]));
    for (int i = 0; i < count; i++) {
        x[i] = i * 100 + t.rank;
        MPI(MPI_Isend(&x[i], 1, MPI_INT, to, 1, c[i], &r[i]));
    }
    for (int k = 0; k < count; k++) { /* the same tag everywhere: only the communicator tells them apart */
        int i = (k * 7 + 3) % count;
        MPI(MPI_Recv(&y[i], 1, MPI_INT, from, 1, c[i], MPI_STATUS_IGNORE));
        CHECK(y[i] == i * 100 + from, "communicator %d: %d", i, y[i]);
    }
    MPI(MPI_Waitall(count, r, MPI_STATUSES_IGNORE));
    for (int k = 0; k < count; k++)
        MPI(MPI_Comm_free(&c[(k * 7 + 3) % count]));
    free(c);
    free(r);
    free(x);
    free(y);
}

/* Freed while transfers are still under way. */
static void freed_early(void)
{
    part("freed while in use");
    enum { N = 200000 };
    int to = (t.rank + 1) % t.size, from = (t.rank + t.size - 1) % t.size;
    char *in = allocate(N), *out = allocate(N);
    for (int i = 0; i < 50; i++) {
        MPI_Comm c;
        MPI_Request r[2];
        fill(out, N, (unsigned)(t.rank + i));
        MPI(MPI_Comm_dup(w, &c));
        MPI(MPI_Irecv(in, N, MPI_BYTE, from, 1, c, &r[0]));
        MPI(MPI_Isend(out, N, MPI_BYTE, to, 1, c, &r[1]));
        MPI(MPI_Comm_free(&c));
        CHECK(c == MPI_COMM_NULL, "handle");
        MPI(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
        CHECK(differs(in, N, (unsigned)(from + i)) < 0, "content in round %d", i);
    }
    free(in);
    free(out);
}

/* Groups: only the members make it. */
static void groups(void)
{
    part("groups");
    MPI_Group all, some;
    MPI_Comm c;
    MPI(MPI_Comm_group(w, &all));
    for (int i = 0; i < 200; i++) {
        int range[1][3] = {{t.size - 1, i % t.size, -1}}, rank, size, sum = 0;
        MPI(MPI_Group_range_incl(all, 1, range, &some));
        MPI(MPI_Group_rank(some, &rank));
        if (rank != MPI_UNDEFINED) {
            MPI(MPI_Comm_create_group(w, some, i, &c));
            MPI(MPI_Comm_size(c, &size));
            CHECK(size == t.size - i % t.size, "size %d", size);
            MPI(MPI_Allreduce(&t.rank, &sum, 1, MPI_INT, MPI_SUM, c));
            CHECK(sum == (t.size - 1 + i % t.size) * size / 2, "sum %d", sum);
            int x = t.rank;
            MPI(MPI_Bcast(&x, 1, MPI_INT, 0, c));
            CHECK(x == t.size - 1, "first is %d", x);
            MPI(MPI_Comm_free(&c));
        }
        MPI(MPI_Group_free(&some));
    }
    MPI(MPI_Group_free(&all));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv, MPI_THREAD_SINGLE, 2);
    churn(argc > 1 ? atoi(argv[1]) : 5000);
    ahead();
    many(300);
    freed_early();
    groups();
    return finish("comms");
}
