/* Nodes for experiments: the ranks of one machine divided into several (mca_base_node). */
#ifndef ST_RTE_NODES_H
#define ST_RTE_NODES_H

#include <strata/sdk/rte.h>

/* From now on `rte` takes for local only the ranks of this rank's own node. `text` says how many of the machine's ranks
 * each node has, in the order of ranks: "4", "3,5"; the last number holds for all further nodes. An empty text changes
 * nothing. STRATA_ERR_PARAM: it says something else; STRATA_ERR_NOMEM. */
int st_rte_divide(struct st_rte *rte, const char *text);

#endif
