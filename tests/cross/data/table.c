/* The components that are linked in, and what the core has of JSON, which the tests do not ask for. */
#include "framework/base/job_report.h"
#include "framework/base/live.h"
#include "framework/mca/component_table.h"
#include "framework/pml/report.h"

#define COMPONENTS(X)                                                                                                  \
    X(bml_r2) X(btl_self) X(memory_intercept) X(mpool_plain) X(pml_ob1) X(rcache_none) X(rcache_tree) X(rte_host)
#define DECLARE(name) extern const struct st_component st_component_##name;
#define ADDRESS(name) &st_component_##name,

COMPONENTS(DECLARE)
const struct st_component *const st_component_table[] = {COMPONENTS(ADDRESS) NULL};

void st_report_transports(strata_t *s)
{
    (void)s;
}

int strata_peer_report(strata_t *s, int rank, char **json)
{
    (void)s, (void)rank, (void)json;
    return STRATA_ERR_UNSUPPORTED;
}

void st_job_report_start(strata_t *s)
{
    (void)s;
}

void st_job_report_answer(strata_t *s)
{
    (void)s;
}

void st_job_report_end(strata_t *s)
{
    (void)s;
}

void st_job_report_stop(strata_t *s)
{
    (void)s;
}

void st_live_start(strata_t *s)
{
    (void)s;
}

void st_live_answer(strata_t *s)
{
    (void)s;
}

void st_live_stop(strata_t *s)
{
    (void)s;
}
