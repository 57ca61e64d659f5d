/* Collectives of an MPI library: the median time of each by size. A plain MPI program, run over Strata and over ob1 by
 * bench/embed.sh.
 * usage: collectives [BATCHES [ITERATIONS]] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include "median.h"

enum { MAX_BATCHES = 1000 };

static void barrier(double *in, double *out, int bytes)
{
    (void)in, (void)out, (void)bytes;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void bcast(double *in, double *out, int bytes)
{
    (void)out;
    MPI_Bcast(in, bytes / 8, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

static void allreduce(double *in, double *out, int bytes)
{
    MPI_Allreduce(in, out, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void allgather(double *in, double *out, int bytes)
{
    MPI_Allgather(in, bytes / 8, MPI_DOUBLE, out, bytes / 8, MPI_DOUBLE, MPI_COMM_WORLD);
}

static void alltoall(double *in, double *out, int bytes)
{
    MPI_Alltoall(in, bytes / 8, MPI_DOUBLE, out, bytes / 8, MPI_DOUBLE, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(double *in, double *out, int bytes);
    } what[] = {{"barrier", barrier},
                {"bcast", bcast},
                {"allreduce", allreduce},
                {"allgather", allgather},
                {"alltoall", alltoall}};
    static const int sizes[] = {8, 64, 1024, 65536};
    static double t[MAX_BATCHES];
    int rank, n, batches = argc > 1 ? atoi(argv[1]) : 11, iterations = argc > 2 ? atoi(argv[2]) : 200;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    if (batches < 1 || batches > MAX_BATCHES || iterations < 1) {
        if (rank == 0)
            fprintf(stderr, "collectives: 1 to %d batches of at least 1 iteration\n", MAX_BATCHES);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    double *in = calloc((size_t)n, 65536), *out = calloc((size_t)n, 65536);
    for (size_t w = 0; w < sizeof what / sizeof what[0]; w++) {
        for (size_t s = 0; s < (w ? sizeof sizes / sizeof sizes[0] : 1); s++) { /* a barrier has no size */
            int k = sizes[s] > 4096 ? (iterations + 9) / 10 : iterations;
            what[w].run(in, out, sizes[s]);
            for (int b = 0; b < batches; b++) {
                MPI_Barrier(MPI_COMM_WORLD);
                double t0 = MPI_Wtime();
                for (int i = 0; i < k; i++)
                    what[w].run(in, out, sizes[s]);
                t[b] = (MPI_Wtime() - t0) / k * 1e6;
            }
            if (rank == 0)
                printf("%s %d %.3f\n", what[w].name, sizes[s], median(t, batches));
        }
    }
    free(in);
    free(out);
    MPI_Finalize();
    return 0;
}
