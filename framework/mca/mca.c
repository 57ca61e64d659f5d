/* Making and ending the component system of one context, and what the rest of the core asks of it. */
#include "framework/mca/internal.h"

#include <stdlib.h>
#include <string.h>

/* Frameworks of the core: their lists exist even when no component of theirs was found. */
static const char *const core_frameworks[] = {"rte", "memory", "mpool", "rcache", "btl", "bml", "pml", "coll"};

static int mca_add_framework(struct st_mca *mca, const char *name)
{
    for (size_t i = 0; i < mca->n_frameworks; i++)
        if (!strcmp(mca->frameworks[i].name, name))
            return STRATA_OK;
    struct st_framework *f = &mca->frameworks[mca->n_frameworks];
    f->name = strdup(name);
    if (!f->name)
        return STRATA_ERR_NOMEM;
    f->row = (struct st_param){
        .name = f->name,
        .type = ST_PARAM_STRING,
        .dflt = "",
        .help = "Components of this framework to use: a list a,b names them, ^a,b excludes them, empty admits all.",
        .level = 1};
    mca->n_frameworks++;
    return STRATA_OK;
}

static int mca_make_items(struct st_mca *mca)
{
    size_t n_core = sizeof(core_frameworks) / sizeof(core_frameworks[0]);
    mca->n_frameworks = 0;
    mca->items = calloc(mca->plugins.n + 1, sizeof(*mca->items));
    mca->frameworks = calloc(mca->plugins.n + n_core, sizeof(*mca->frameworks));
    if (!mca->items || !mca->frameworks)
        return STRATA_ERR_NOMEM;
    int rc = STRATA_OK;
    for (size_t i = 0; i < n_core && !rc; i++)
        rc = mca_add_framework(mca, core_frameworks[i]);
    for (size_t i = 0; i < mca->plugins.n && !rc; i++) {
        const struct st_plugin *p = &mca->plugins.v[i];
        mca->items[i].plugin = p;
        mca->items[i].fate = p->component ? ST_INFO_LOADED : ST_INFO_NOT_LOADED;
        mca->n_items++;
        rc = mca_add_framework(mca, p->framework);
    }
    return rc;
}

int st_mca_create(const strata_config_t *config, struct st_mca **out, char *err, size_t err_size)
{
    if (err && err_size)
        err[0] = '\0';
    struct st_mca *mca = calloc(1, sizeof(*mca));
    if (!mca)
        return st_mca_fail(STRATA_ERR_NOMEM, err, err_size, "out of memory");
    int rc = st_settings_collect(&mca->settings, config, err, err_size);
    if (rc)
        goto free_settings;
    mca->folders = st_component_folders(&mca->settings);
    if (!mca->folders) {
        rc = st_mca_fail(STRATA_ERR_NOMEM, err, err_size, "out of memory");
        goto free_settings;
    }
    rc = st_repository_open(mca->folders, &mca->plugins, err, err_size);
    if (rc)
        goto free_settings;
    rc = mca_make_items(mca);
    if (rc)
        st_mca_fail(rc, err, err_size, "out of memory");
    if (!rc)
        rc = st_params_resolve(mca, err, err_size);
    if (!rc)
        rc = st_selection_apply(mca, err, err_size);
    if (rc) {
        st_mca_destroy(mca);
        return rc;
    }
    *out = mca;
    return STRATA_OK;

free_settings:
    st_settings_free(&mca->settings);
    free(mca->folders);
    free(mca);
    return rc;
}

void st_mca_destroy(struct st_mca *mca)
{
    if (!mca)
        return;
    for (size_t i = 0; i < mca->n_items; i++) {
        free(mca->items[i].config);
        free(mca->items[i].reason);
    }
    for (size_t i = 0; i < mca->n_frameworks; i++) {
        st_selection_free(&mca->frameworks[i].selection);
        free(mca->frameworks[i].name);
    }
    for (size_t i = 0; i < mca->n_vars; i++)
        free(mca->vars[i].name);
    free(mca->items);
    free(mca->frameworks);
    free(mca->vars);
    st_repository_close(&mca->plugins);
    st_settings_free(&mca->settings);
    free(mca->folders);
    free(mca);
}

const struct st_base_config *st_mca_base_config(const struct st_mca *mca)
{
    return &mca->base;
}

static int mca_by_priority(const void *a, const void *b)
{
    const struct st_candidate *x = a, *y = b;
    if (x->priority != y->priority)
        return x->priority < y->priority ? 1 : -1;
    return strcmp(x->component->name, y->component->name);
}

int st_mca_candidates(struct st_mca *mca, const char *framework, uint32_t ops_size, struct st_candidate **out,
                      size_t *n)
{
    struct st_candidate *list = calloc(mca->n_items + 1, sizeof(*list));
    size_t count = 0;
    if (!list)
        return STRATA_ERR_NOMEM;
    for (size_t i = 0; i < mca->n_items; i++) {
        struct st_item *item = &mca->items[i];
        const struct st_component *c = item->plugin->component;
        if (strcmp(item->plugin->framework, framework) || !item->admitted || !c)
            continue;
        if (c->ops_size != ops_size) {
            char reason[160];
            snprintf(reason, sizeof(reason), "ops struct of %u bytes, %u expected: built for another Strata",
                     c->ops_size, ops_size);
            st_item_set(item, ST_INFO_REJECTED, reason);
            item->broken = true;
            if (!item->by_name)
                continue;
            st_log(NULL, ST_LOG_ERROR, "mca", "component %s_%s, asked for by name: %s", framework, c->name, reason);
            free(list);
            return STRATA_ERR_ABI;
        }
        list[count++] = (struct st_candidate){
            .component = c, .config = item->config, .priority = (int)item->priority, .by_name = item->by_name};
    }
    qsort(list, count, sizeof(*list), mca_by_priority);
    *out = list;
    *n = count;
    return STRATA_OK;
}
