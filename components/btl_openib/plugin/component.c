/* btl_openib: InfiniBand and RoCE by libibverbs. This object is what every job loads; the rest is the component's body,
 * loaded with libibverbs and librdmacm where there may be a device, or where the user's settings ask for the component.
 */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <dlfcn.h>
#include <string.h>
#include <strata/sdk/btl.h>
#include <strata/sdk/component_body.h>
#include "params.h"

bool ib_uverbs_in(const char *folder)
{
    DIR *dir = opendir(folder);
    bool found = false;

    if (!dir)
        return false;
    for (const struct dirent *e = readdir(dir); e && !found; e = readdir(dir))
        found = strncmp(e->d_name, "uverbs", 6) == 0;
    (void)closedir(dir);
    return found;
}

bool ib_may_be_present(const char *classes, const char *nodes)
{
    return ib_uverbs_in(classes) || ib_uverbs_in(nodes) || dlsym(RTLD_DEFAULT, "ibv_get_device_list");
}

ST_BODY_DECLARE(btl, openib, struct st_btl_component_ops);

static int open_body(strata_t *s, const struct st_component *c, const void *config, struct st_btl ***mods, size_t *n)
{
    const struct ib_params *par = config;
    const struct st_btl_component_ops *body;
    char why[1024];

    *n = 0;
    if (!st_asked_by_name(s, c) && !par->devices[0] && !ib_may_be_present(IB_CLASSES, IB_NODES)) {
        st_reject(s, c, "%s", IB_NO_DEVICE);
        return STRATA_ERR_UNSUPPORTED;
    }
    body = ST_BODY_OF(btl, openib, c, why, sizeof why);
    if (!body) {
        st_reject(s, c, "%s", why);
        return STRATA_ERR_SYSTEM;
    }
    return body->open(s, c, config, mods, n);
}

static const struct st_btl_component_ops component_ops = {.open = open_body, .costly_exclusivity = IB_EXCLUSIVITY};

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
