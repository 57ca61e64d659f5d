/* Selection of the coll components, and what communicators have here. */
#ifndef ST_COLL_SELECT_H
#define ST_COLL_SELECT_H

#include <strata/sdk/coll.h>

/* Joins the worker, and opens the components unless they wait; s->coll stays NULL when the pml cannot revoke tags. */
int st_coll_select(strata_t *s);
void st_coll_close(strata_t *s);
/* A communicator has been created. Without the lock. */
void st_coll_created(const strata_comm_t *comm);
/* Gives up what the communicator has here, if anything. */
void st_coll_detach(strata_comm_t *comm);
/* Where s->coll is there; with the lock held. */
void st_coll_mem_report(const strata_t *s, st_mem_line_fn line, void *arg);

#endif
