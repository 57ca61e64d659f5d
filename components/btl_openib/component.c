/* btl_openib: InfiniBand and RoCE by libibverbs. */
#include "distance.h"
#include "fork.h"
#include "openib.h"

#include <stdlib.h>

static void prepare_forks(const strata_t *s, const struct ib_params *par)
{
    int rc = ib_fork_prepare(par->fork_support);

    if (rc != 0)
        st_log(s, ST_LOG_INFO, "btl_openib", "fork() in this process makes transfers go wrong: %s", ib_fork_why(rc));
}

static int open_modules(strata_t *s, const struct st_component *c, const void *config, struct st_btl ***mods, size_t *n)
{
    const struct ib_params *par = config;
    struct ib_module **found = NULL;
    size_t n_found = 0;
    char why[512] = "";
    int rc = ib_ports_open(par, &found, &n_found, why, sizeof why);

    *n = 0;
    if (rc == STRATA_OK && n_found > 0 && why[0]) {
        st_log(s, ST_LOG_WARN, "btl_openib", "%s", why);
        why[0] = 0;
    }
    if (n_found > 0)
        prepare_forks(s, par);
    ib_distances(found, n_found);
    for (size_t i = 0; i < n_found; i++) {
        if (rc == STRATA_OK)
            rc = ib_module_open(found[i], s, c, (uint32_t)i, why, sizeof why);
        if (rc == STRATA_OK)
            found[(*n)++] = found[i];
        else
            ib_port_close(found[i]);
    }
    if (rc != STRATA_OK || *n == 0) {
        if (why[0])
            st_reject(s, c, "%s", why);
        for (size_t i = 0; i < *n; i++)
            ib_close(&found[i]->btl);
        free(found);
        *n = 0;
        return rc != STRATA_OK ? rc : STRATA_ERR_UNSUPPORTED;
    }
    *mods = (struct st_btl **)(void *)found;
    return STRATA_OK;
}

static const struct st_btl_component_ops component_ops = {.open = open_modules};

ST_COMPONENT(btl, openib) = {
    ST_COMPONENT_HEAD("btl", "openib", "0.1.0", "InfiniBand and RoCE through libibverbs"),
    .ops_size = sizeof(struct st_btl_component_ops),
    .priority = 30,
    .params = ib_param_rows,
    .n_params = IB_N_PARAMS,
    .config_size = sizeof(struct ib_params),
    .ops = &component_ops,
    .counters = ib_counters,
    .n_counters = IB_N_COUNTERS,
};
