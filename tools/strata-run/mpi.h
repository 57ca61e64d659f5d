/* --mpi: programs of Open MPI 5.0, which joins a job by PMIx, run over Strata. */
#ifndef RUN_MPI_H
#define RUN_MPI_H

#include "environment.h"

/* Sets what strata-mpirun would: the folder of the plugin, and the plugin as Open MPI's pml. What the user has set, by
 * -x as well, is kept. -1, said on stderr: there is no plugin for Open MPI 5.0. */
int mpi_enable(struct environment *env);

#endif
