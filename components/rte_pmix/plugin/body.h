/* What the body, which is linked with libpmix, does for the plugin. */
#ifndef RTE_PMIX_BODY_H
#define RTE_PMIX_BODY_H

#include <strata/sdk/component_body.h>
#include <strata/sdk/rte.h>

struct rte_pmix_body {
    /* Joins the job through PMIx: the component's open. */
    int (*open)(strata_t *s, const struct st_component *c, const void *config, struct st_rte **out);
    /* Ends the job of a process that has not joined through PMIx; may return. */
    void (*abort)(strata_t *s, int status, const char *reason);
    /* Joins at the end of the process without leaving, which tells the launcher that this rank has failed. */
    void (*fail)(void);
};

ST_BODY_DECLARE(rte, pmix, struct rte_pmix_body);

#endif
