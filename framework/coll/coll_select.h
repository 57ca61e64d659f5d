/* Selection of the coll component, and the slots of communicators. */
#ifndef ST_COLL_SELECT_H
#define ST_COLL_SELECT_H

#include <strata/sdk/coll.h>

/* s->coll, or NULL when no component is installed. */
int st_coll_select(strata_t *s);
void st_coll_close(strata_t *s);
/* Gives up the communicator's slot, if it has one. */
void st_coll_detach(strata_comm_t *comm);

#endif
