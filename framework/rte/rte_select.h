/* Selection of the rte. */
#ifndef ST_RTE_SELECT_H
#define ST_RTE_SELECT_H

#include <strata/sdk/rte.h>

/* Sets s->rte. On failure the text for the user is set. */
int st_rte_select(strata_t *s);

#endif
