/* A job of one machine without PMIx: ranks exchange cards and meet in fences by files in the launcher's folder. */
#ifndef RTE_PMIX_LOCAL_JOB_H
#define RTE_PMIX_LOCAL_JOB_H

#include "plugin/body.h"
#include "plugin/config.h"
#include "plugin/launcher.h"

/* Opens the rte of this rank. `load` gives the body when the launcher has to be told something, or NULL.
 * STRATA_ERR_STATE: an earlier program of this rank has joined the job; STRATA_ERR_SYSTEM: the folder's files cannot be
 * used, as st_reject says; STRATA_ERR_NOMEM. */
int rte_pmix_local_open(strata_t *s, const struct st_component *c, const struct rte_pmix_config *config,
                        const struct rte_pmix_job *job, const struct rte_pmix_body *(*load)(strata_t *s),
                        struct st_rte **out);

#endif
