/* rte "pmix": joins the job of any launcher that speaks PMIx. This object is what every job loads; the body, with
 * libpmix, is loaded where PMIx is needed. */
#include "plugin/body.h"
#include "plugin/config.h"
#include "plugin/launcher.h"
#include "plugin/local_job.h"

extern const struct st_component st_component_rte_pmix;

static const struct rte_pmix_body *component_body(strata_t *s)
{
    char why[1024];
    const struct rte_pmix_body *body = ST_BODY_OF(rte, pmix, &st_component_rte_pmix, why, sizeof(why));
    if (!body)
        st_log(s, ST_LOG_ERROR, "rte_pmix", "%s", why);
    return body;
}

static int component_open(strata_t *s, const struct st_component *c, const void *config, const strata_host_t *host,
                          struct st_rte **out)
{
    const struct rte_pmix_config *par = config;
    struct rte_pmix_job job;
    char why[1024];
    (void)host;
    if (!rte_pmix_launched()) {
        st_reject(s, c,
                  "no PMIx launcher started this process (PMIX_NAMESPACE, PMIX_RANK and PMIX_SERVER_URI* are "
                  "not in the environment)");
        return STRATA_ERR_UNSUPPORTED;
    }
    if (par->local && rte_pmix_one_machine(&job))
        return rte_pmix_local_open(s, c, par, &job, component_body, out);
    const struct rte_pmix_body *body = ST_BODY_OF(rte, pmix, c, why, sizeof(why));
    if (!body) {
        st_reject(s, c, "%s", why);
        return STRATA_ERR_SYSTEM;
    }
    return body->open(s, c, config, out);
}

static const struct st_param params[] = {
    {.name = "timeout",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct rte_pmix_config, timeout_s),
     .dflt = "60",
     .min = 0,
     .max = 1e6,
     .unit = "seconds",
     .help = "Longest wait for a peer that has not yet published its addresses; 0: for ever.",
     .level = 3},
    {.name = "local",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct rte_pmix_config, local),
     .dflt = "1",
     .help = "Ranks of a job of Open MPI's mpirun that are all on one machine exchange their addresses by files in "
             "mpirun's folder, which needs no libpmix. 0: by PMIx, as in other jobs.",
     .level = 5},
};

static const struct st_rte_component_ops component_ops = {.open = component_open};

ST_COMPONENT(rte, pmix) = {
    ST_COMPONENT_HEAD("rte", "pmix", "0.1.0", "any launcher that speaks PMIx: strata-run, mpirun, srun --mpi=pmix"),
    .ops_size = sizeof(component_ops),
    .priority = 50,
    .params = params,
    .n_params = sizeof(params) / sizeof(params[0]),
    .config_size = sizeof(struct rte_pmix_config),
    .ops = &component_ops,
};
