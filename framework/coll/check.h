/* Arguments of collectives. */
#ifndef ST_COLL_CHECK_H
#define ST_COLL_CHECK_H

#include <strata/sdk/coll.h>

/* STRATA_OK, or what strata_coll_start says of wrong arguments. */
int coll_check(strata_comm_t *comm, const strata_coll_t *c);

#endif
