/* Matching contexts: making and freeing. */
#ifndef ST_PML_COMM_H
#define ST_PML_COMM_H

#include <strata/sdk/pml.h>

/* Makes a communicator of a checked spec; the world too. */
int st_comm_make(strata_t *s, const strata_comm_spec_t *spec, strata_comm_t **out);
void st_comm_destroy(strata_comm_t *comm);

#endif
