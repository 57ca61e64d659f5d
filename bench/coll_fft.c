/* FFTW-MPI (libfftw3-mpi-dev): complex transforms of N x N x N elements, forward and back, and what their MPI_Alltoall
 * and MPI_Alltoallv take. FFTW's calls come through those below. usage: coll_fft [N [TRANSFORMS]]. Prints
 * "transform SECONDS" and "alltoall SECONDS CALLS" of one, the mean over the ranks; status 1: a wrong result. */
#include <fftw3-mpi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Time and calls of this process: the two functions below have no other place to keep them. */
static double in_calls;
static long calls;

int MPI_Alltoall(const void *sbuf, int scount, MPI_Datatype stype, void *rbuf, int rcount, MPI_Datatype rtype,
                 MPI_Comm c)
{
    double begin = MPI_Wtime();
    int rc = PMPI_Alltoall(sbuf, scount, stype, rbuf, rcount, rtype, c);
    in_calls += MPI_Wtime() - begin;
    calls++;
    return rc;
}

int MPI_Alltoallv(const void *sbuf, const int *scounts, const int *soffsets, MPI_Datatype stype, void *rbuf,
                  const int *rcounts, const int *roffsets, MPI_Datatype rtype, MPI_Comm c)
{
    double begin = MPI_Wtime();
    int rc = PMPI_Alltoallv(sbuf, scounts, soffsets, stype, rbuf, rcounts, roffsets, rtype, c);
    in_calls += MPI_Wtime() - begin;
    calls++;
    return rc;
}

static double input(ptrdiff_t i)
{
    return (double)(i % 251) / 251;
}

int main(int argc, char **argv)
{
    ptrdiff_t n = argc > 1 ? atol(argv[1]) : 64, transforms = argc > 2 ? atol(argv[2]) : 20, n0, first;
    int rank, size, wrong = 0;
    double mine[2], all[2];
    MPI_Init(&argc, &argv);
    fftw_mpi_init();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    ptrdiff_t room = fftw_mpi_local_size_3d(n, n, n, MPI_COMM_WORLD, &n0, &first), used = n0 * n * n;
    fftw_complex *data = fftw_alloc_complex((size_t)room);
    unsigned flags = FFTW_MEASURE | FFTW_MPI_TRANSPOSED_OUT, back_flags = FFTW_MEASURE | FFTW_MPI_TRANSPOSED_IN;
    fftw_plan plan = fftw_mpi_plan_dft_3d(n, n, n, data, data, MPI_COMM_WORLD, FFTW_FORWARD, flags);
    fftw_plan back = fftw_mpi_plan_dft_3d(n, n, n, data, data, MPI_COMM_WORLD, FFTW_BACKWARD, back_flags);
    if (!data || !plan || !back || transforms < 1) {
        fprintf(stderr, "coll_fft: no memory, or wrong numbers\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (ptrdiff_t i = 0; i < used; i++) {
        data[i][0] = input(first * n * n + i);
        data[i][1] = 0;
    }
    in_calls = 0;
    calls = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (ptrdiff_t t = 0; t < transforms; t++) {
        fftw_execute(plan);
        fftw_execute(back);
        for (ptrdiff_t i = 0; i < used; i++) {
            data[i][0] /= (double)(n * n * n);
            data[i][1] /= (double)(n * n * n);
        }
    }
    mine[0] = (MPI_Wtime() - begin) / (double)(2 * transforms);
    mine[1] = in_calls / (double)(2 * transforms);
    for (ptrdiff_t i = 0; i < used && !wrong; i++)
        wrong = fabs(data[i][0] - input(first * n * n + i)) > 1e-6 || fabs(data[i][1]) > 1e-6;
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Reduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("transform %.6f\nalltoall %.6f %ld\n", all[0] / size, all[1] / size, calls);
        if (wrong)
            fprintf(stderr, "coll_fft: the transform back is not the input\n");
    }
    fftw_free(data);
    MPI_Finalize();
    return wrong;
}
