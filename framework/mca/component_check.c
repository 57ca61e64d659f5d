/* Whether a symbol that claims to be a component is one that this library can use. */
#include "framework/mca/internal.h"

#include <string.h>

static int component_check_rows(const struct st_component *c, char *why, size_t why_size)
{
    if (c->n_params && !c->params)
        return st_mca_fail(STRATA_ERR_ABI, why, why_size, "%zu parameters, but no table of them", c->n_params);
    for (size_t i = 0; i < c->n_params; i++) {
        if (st_param_check_row(&c->params[i], c->config_size, why, why_size))
            return STRATA_ERR_ABI;
        if (!strcmp(c->params[i].name, "priority"))
            return st_mca_fail(STRATA_ERR_ABI, why, why_size, "parameter \"priority\" is added by the core");
        for (size_t j = 0; j < i; j++)
            if (!strcmp(c->params[i].name, c->params[j].name))
                return st_mca_fail(STRATA_ERR_ABI, why, why_size, "parameter \"%s\" appears twice", c->params[i].name);
    }
    return STRATA_OK;
}

static int component_check_counters(const struct st_component *c, char *why, size_t why_size)
{
    if (c->n_counters && !c->counters)
        return st_mca_fail(STRATA_ERR_ABI, why, why_size, "%zu counters, but no table of them", c->n_counters);
    if (c->n_counters > ST_COUNTERS_MAX)
        return st_mca_fail(STRATA_ERR_ABI, why, why_size, "%zu counters, more than %d", c->n_counters, ST_COUNTERS_MAX);
    for (size_t i = 0; i < c->n_counters; i++) {
        const struct st_counter *row = &c->counters[i];
        if (!row->name || !*row->name || !row->unit || !*row->unit || !row->help || !*row->help)
            return st_mca_fail(STRATA_ERR_ABI, why, why_size, "counter %zu (%s) lacks its name, unit or help", i,
                               row->name ? row->name : "?");
        for (size_t j = 0; j < i; j++)
            if (!strcmp(row->name, c->counters[j].name))
                return st_mca_fail(STRATA_ERR_ABI, why, why_size, "counter \"%s\" appears twice", row->name);
    }
    return STRATA_OK;
}

int st_component_check(const struct st_component *c, const char *framework, const char *name, char *why,
                       size_t why_size)
{
    /* This order is a promise: a component of another ABI may have anything, or nothing, behind these fields. */
    if (c->magic != ST_COMPONENT_MAGIC)
        return st_mca_fail(STRATA_ERR_ABI, why, why_size, "wrong magic 0x%016llx: not a component",
                           (unsigned long long)c->magic);
    if (c->struct_size != sizeof(struct st_component))
        return st_mca_fail(STRATA_ERR_ABI, why, why_size,
                           "component struct of %u bytes, %zu expected: built for another Strata", c->struct_size,
                           sizeof(struct st_component));
    if (c->abi_version != ST_ABI_VERSION)
        return st_mca_fail(STRATA_ERR_ABI, why, why_size, "ABI version %u, %u expected: built for another Strata",
                           c->abi_version, ST_ABI_VERSION);
    if (!c->framework || !c->name || strcmp(c->framework, framework) || strcmp(c->name, name))
        return st_mca_fail(STRATA_ERR_ABI, why, why_size, "calls itself %s_%s, its file %s_%s",
                           c->framework ? c->framework : "(nothing)", c->name ? c->name : "(nothing)", framework, name);
    if (!c->version || !c->summary || !*c->summary)
        return st_mca_fail(STRATA_ERR_ABI, why, why_size, "has no version or no summary");
    if (!c->ops)
        return st_mca_fail(STRATA_ERR_ABI, why, why_size, "has no ops");
    if (c->n_help && !c->help)
        return st_mca_fail(STRATA_ERR_ABI, why, why_size, "%zu help texts, but no table of them", c->n_help);
    int rc = component_check_rows(c, why, why_size);
    return rc ? rc : component_check_counters(c, why, why_size);
}
