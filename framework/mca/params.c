/* The parameters of one context: a list of all that exist, each with the value that counts and where it came from. */
#include "framework/mca/internal.h"

#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(struct st_mca_config, member)

const struct st_param st_mca_params[] = {
    {.name = "component_path",
     .type = ST_PARAM_STRING,
     .offset = AT(component_path),
     .dflt = "",
     .help = "Folders, separated by colons, that are searched for plugins instead of ~/.strata/components and the "
             "installation's own folder.",
     .level = 2},
    {.name = "param_files",
     .type = ST_PARAM_STRING,
     .offset = AT(param_files),
     .dflt = "",
     .help = "Parameter files, separated by colons, that are read instead of the user's and the system's; an earlier "
             "one has precedence; \"none\": no file.",
     .level = 2},
};
const size_t st_n_mca_params = sizeof(st_mca_params) / sizeof(st_mca_params[0]);

char *st_component_folders(const struct st_settings *set)
{
    const struct st_setting *given = st_settings_find(set, "mca_component_path");
    if (given && *given->value)
        return strdup(given->value);
    char *own = st_home_path(".strata/components");
    if (!own)
        return strdup(ST_COMPONENT_DIR);
    size_t n = strlen(own) + strlen(ST_COMPONENT_DIR) + 2;
    char *both = malloc(n);
    if (both)
        snprintf(both, n, "%s:%s", own, ST_COMPONENT_DIR);
    free(own);
    return both;
}

/* ---- the list ------------------------------------------------------------------------------------------------- */

static int params_add_var(struct st_mca *mca, const char *framework, const char *component, const struct st_param *row,
                          void *config)
{
    if (mca->n_vars == mca->room_vars) {
        size_t room = mca->room_vars ? 2 * mca->room_vars : 32;
        struct st_var *v = realloc(mca->vars, room * sizeof(*v));
        if (!v)
            return STRATA_ERR_NOMEM;
        mca->vars = v;
        mca->room_vars = room;
    }
    bool list = row->name == framework; /* the selection list has the framework's own name */
    size_t n = strlen(framework) + strlen(component) + strlen(row->name) + 3;
    char *name = malloc(n);
    if (!name)
        return STRATA_ERR_NOMEM;
    if (list)
        snprintf(name, n, "%s", framework);
    else
        snprintf(name, n, "%s_%s%s%s", framework, component, *component ? "_" : "", row->name);
    mca->vars[mca->n_vars++] = (struct st_var){.name = name,
                                               .framework = framework,
                                               .component = component,
                                               .row = row,
                                               .config = config,
                                               .text = row->dflt,
                                               .where = "default",
                                               .source = ST_SOURCE_DEFAULT};
    return STRATA_OK;
}

static int params_add_item_vars(struct st_mca *mca, struct st_item *item)
{
    const struct st_component *c = item->plugin->component;
    if (!c)
        return STRATA_OK;
    item->config = calloc(1, c->config_size ? c->config_size : 1);
    if (!item->config)
        return STRATA_ERR_NOMEM;
    snprintf(item->priority_text, sizeof(item->priority_text), "%d", c->priority);
    item->priority_row = (struct st_param){
        .name = "priority",
        .type = ST_PARAM_INT,
        .dflt = item->priority_text,
        .min = -1000000,
        .max = 1000000,
        .help = "Preference for this component among those of its framework, higher first; negative: only when named.",
        .level = 3};
    int rc = params_add_var(mca, c->framework, c->name, &item->priority_row, &item->priority);
    for (size_t i = 0; i < c->n_params && !rc; i++)
        rc = params_add_var(mca, c->framework, c->name, &c->params[i], item->config);
    return rc;
}

static int params_by_name(const void *a, const void *b)
{
    return strcmp(((const struct st_var *)a)->name, ((const struct st_var *)b)->name);
}

static int params_list_all(struct st_mca *mca)
{
    int rc = STRATA_OK;
    for (size_t i = 0; i < st_n_mca_params && !rc; i++)
        rc = params_add_var(mca, "mca", "", &st_mca_params[i], &mca->own);
    for (size_t i = 0; i < st_base_n_params && !rc; i++)
        rc = params_add_var(mca, "mca", "base", &st_base_params[i], &mca->base);
    for (size_t i = 0; i < mca->n_frameworks && !rc; i++)
        rc = params_add_var(mca, mca->frameworks[i].name, "", &mca->frameworks[i].row, &mca->frameworks[i].list);
    for (size_t i = 0; i < mca->n_items && !rc; i++)
        rc = params_add_item_vars(mca, &mca->items[i]);
    if (!rc)
        qsort(mca->vars, mca->n_vars, sizeof(*mca->vars), params_by_name);
    return rc;
}

/* ---- values --------------------------------------------------------------------------------------------------- */

static struct st_var *params_find_var(const struct st_mca *mca, const char *name)
{
    struct st_var key = {.name = (char *)name};
    return mca->n_vars ? bsearch(&key, mca->vars, mca->n_vars, sizeof(key), params_by_name) : NULL;
}

/* Parameters of a plugin that could not be loaded cannot be checked; whoever set them did nothing wrong. */
static bool params_of_unloaded(const struct st_mca *mca, const char *name)
{
    for (size_t i = 0; i < mca->n_items; i++) {
        const struct st_plugin *p = mca->items[i].plugin;
        size_t nf = strlen(p->framework), nn = strlen(p->name);
        if (!p->component && !strncmp(name, p->framework, nf) && name[nf] == '_' &&
            !strncmp(name + nf + 1, p->name, nn) && name[nf + 1 + nn] == '_')
            return true;
    }
    return false;
}

static int params_check_known(struct st_mca *mca, char *err, size_t err_size)
{
    for (size_t i = 0; i < mca->settings.n; i++) {
        const struct st_setting *s = &mca->settings.v[i];
        if (params_find_var(mca, s->name) || params_of_unloaded(mca, s->name))
            continue;
        struct st_suggest sg = {.wanted = s->name};
        char near[160];
        (void)st_mca_load(mca, NULL, NULL, 0); /* for names that may be meant */
        for (size_t j = 0; j < mca->n_vars; j++)
            st_suggest_offer(&sg, mca->vars[j].name);
        return st_mca_fail(STRATA_ERR_PARAM, err, err_size, "there is no parameter \"%s\" (%s)%s", s->name, s->where,
                           st_suggest_text(&sg, near, sizeof(near)));
    }
    return STRATA_OK;
}

static int params_resolve(struct st_mca *mca, struct st_var *var, char *err, size_t err_size)
{
    const struct st_setting *s = st_settings_find(&mca->settings, var->name);
    if (s) {
        var->text = s->value;
        var->where = s->where;
        var->source = s->source;
    }
    union st_value value;
    char why[600];
    if (st_param_parse(var->row, var->text, &value, why, sizeof(why)))
        return st_mca_fail(STRATA_ERR_PARAM, err, err_size, "parameter %s = \"%s\" (%s): %s", var->name, var->text,
                           var->where, why);
    st_param_store(var->row, &value, var->config);
    return STRATA_OK;
}

int st_params_extend(struct st_mca *mca, char *err, size_t err_size)
{
    size_t first = mca->n_vars;
    int rc = STRATA_OK;
    for (size_t i = 0; i < mca->n_items && !rc; i++)
        if (!mca->items[i].config)
            rc = params_add_item_vars(mca, &mca->items[i]);
    if (rc)
        return st_mca_fail(rc, err, err_size, "out of memory while listing parameters");
    for (size_t i = first; i < mca->n_vars && !rc; i++)
        rc = params_resolve(mca, &mca->vars[i], err, err_size);
    qsort(mca->vars, mca->n_vars, sizeof(*mca->vars), params_by_name);
    return rc;
}

int st_params_resolve(struct st_mca *mca, char *err, size_t err_size)
{
    int rc = params_list_all(mca);
    if (rc)
        return st_mca_fail(rc, err, err_size, "out of memory while listing parameters");
    rc = params_check_known(mca, err, err_size);
    for (size_t i = 0; i < mca->n_vars && !rc; i++)
        rc = params_resolve(mca, &mca->vars[i], err, err_size);
    return rc;
}
