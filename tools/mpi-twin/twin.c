/* strata-perf's measurements over MPI: the same loops, compiled once per MPI library. */
#define _GNU_SOURCE 1
#include <mpi.h>
#include "port_mpi.h"

#include "loops.h"

/* What a library says of its own memory: Strata under Open MPI does, by a performance variable. Nothing where there is
 * none. */
static void own_memory(struct loops *l)
{
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    unsigned long long bytes = 0;
    int provided, index, count;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    if (MPI_T_pvar_get_index("pml_strata_memory", MPI_T_PVAR_CLASS_SIZE, &index) == MPI_SUCCESS &&
        MPI_T_pvar_session_create(&session) == MPI_SUCCESS) {
        if (MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) == MPI_SUCCESS) {
            MPI_T_pvar_read(session, handle, &bytes);
            MPI_T_pvar_handle_free(session, &handle);
            show_ranks(l, "of this Strata's own", "kB", (double)bytes * 1e-3);
        }
        MPI_T_pvar_session_free(&session);
    }
    MPI_T_finalize();
}

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
    run_loops(&p, &o, own_memory);
    MPI_Finalize();
    return 0;
}
