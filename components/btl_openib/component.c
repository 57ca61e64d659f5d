/* btl_openib: InfiniBand and RoCE by libibverbs. */
#include "distance.h"
#include "fork.h"
#include "openib.h"

#include <stdio.h>
#include <stdlib.h>

static void prepare_forks(const strata_t *s, const struct ib_params *par)
{
    int rc = ib_fork_prepare(par->fork_support);

    if (rc != 0)
        st_log(s, ST_LOG_INFO, "btl_openib", "fork() in this process makes transfers go wrong: %s", ib_fork_why(rc));
}

/* Those that cannot be opened are left out while there are others, unless they were asked for by name, or what the
 * parameters say cannot be had. The first *n of `found` are open then. */
static int open_found(strata_t *s, const struct st_component *c, struct ib_module **found, size_t *n, char *why,
                      size_t why_size)
{
    struct {
        char name[sizeof found[0]->name], why[512];
    } left_out[IB_MAX_RAILS] = {{.name = ""}};
    size_t n_open = 0, n_left = 0;
    int rc = STRATA_OK, first = STRATA_OK;

    for (size_t i = 0; i < *n; i++) {
        char *reason = left_out[n_left].why;
        int one = rc;
        if (rc == STRATA_OK)
            one = ib_module_open(found[i], s, c, reason, sizeof left_out[0].why);
        if (one == STRATA_OK) {
            found[n_open++] = found[i];
            continue;
        }
        if (rc == STRATA_OK) {
            snprintf(left_out[n_left].name, sizeof left_out[0].name, "%s", found[i]->name);
            if (!*reason)
                snprintf(reason, sizeof left_out[0].why, "%s: %s", found[i]->name, strata_strerror(one));
            if (one == STRATA_ERR_PARAM || ib_port_named(found[i]))
                rc = one;
            if (rc != STRATA_OK || n_left == 0)
                snprintf(why, why_size, "%s", reason);
            first = first == STRATA_OK ? one : first;
            n_left++;
        }
        ib_port_close(found[i]);
    }
    *n = n_open;
    if (rc != STRATA_OK || n_open == 0)
        return rc != STRATA_OK ? rc : first;
    for (size_t i = 0; i < n_left; i++)
        st_log(s, ST_LOG_WARN, "btl_openib", "%s (%s is left out)", left_out[i].why, left_out[i].name);
    return STRATA_OK;
}

/* When all are open: who has read a card counts on what it says. */
static int publish(struct ib_module **m, size_t n)
{
    uint64_t rails = 0;
    int rc = STRATA_OK;

    for (size_t i = 0; i < n; i++)
        rails |= (uint64_t)1 << m[i]->place;
    for (size_t i = 0; i < n && rc == STRATA_OK; i++)
        rc = ib_module_publish(m[i], rails);
    return rc;
}

static void close_found(struct ib_module **found, size_t *n)
{
    while (*n > 0)
        ib_port_close(found[--*n]);
}

static int open_modules(strata_t *s, const struct st_component *c, const void *config, struct st_btl ***mods, size_t *n)
{
    const struct ib_params *par = config;
    struct ib_module **found = NULL;
    size_t n_found = 0;
    char why[512] = "";
    int rc = ib_ports_open(par, &found, &n_found, why, sizeof why);

    if (rc == STRATA_OK && n_found > 0 && why[0]) {
        st_log(s, ST_LOG_WARN, "btl_openib", "%s", why);
        why[0] = 0;
    }
    if (n_found > 0)
        prepare_forks(s, par);
    ib_distances(found, n_found);
    if (rc == STRATA_OK && n_found > 0)
        rc = open_found(s, c, found, &n_found, why, sizeof why);
    else
        close_found(found, &n_found);
    if (rc == STRATA_OK)
        rc = publish(found, n_found);
    *n = n_found;
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
