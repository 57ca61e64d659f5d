/* strata-perf's measurements over MPI: the same loops, compiled once per MPI library. */
#define _GNU_SOURCE 1
#include <mpi.h>
#include "port_mpi.h"

#include "loops.h"

int main(int argc, char **argv)
{
    struct perf_options o;
    struct port p = {.rank = 0};
    perf_options_parse(argc, argv, true, &o);
    p.t_init = perf_now();
    MPI_Init(NULL, NULL);
    p.t_ready = perf_now();
    if (o.test == PERF_MEMORY)
        p.private_after_init = perf_private_memory();
    MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &p.n);
    if (p.n < ranks_needed(o.test)) {
        if (p.rank == 0)
            fprintf(stderr, "%s needs %d ranks\n", perf_test_name(o.test), ranks_needed(o.test));
        MPI_Finalize();
        return 2;
    }
    run_loops(&p, &o, NULL);
    MPI_Finalize();
    return 0;
}
