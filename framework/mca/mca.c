/* Making and ending the component system of one context, and what the rest of the core asks of it. */
#include "framework/mca/internal.h"

#include <stdlib.h>
#include <string.h>

/* Frameworks of the core: their lists exist even when no component of theirs was found. */
static const char *const core_frameworks[] = {"rte", "memory", "mpool", "rcache", "btl", "bml", "pml", "coll"};

/* Those of them that a job may never ask for. */
static const char *const waiting_frameworks[] = {"memory", "mpool", "rcache", "coll"};

static bool mca_may_wait(const char *name)
{
    for (size_t i = 0; i < sizeof(waiting_frameworks) / sizeof(waiting_frameworks[0]); i++)
        if (!strcmp(waiting_frameworks[i], name))
            return true;
    return false;
}

/* A setting is the framework's list, or a parameter of one of its components. */
static bool mca_named(const struct st_settings *settings, const char *framework)
{
    size_t n = strlen(framework);
    for (size_t i = 0; i < settings->n; i++) {
        const char *name = settings->v[i].name;
        if (!strncmp(name, framework, n) && (name[n] == '\0' || name[n] == '_'))
            return true;
    }
    return false;
}

static enum st_want mca_wants_any(const struct st_wanted *wanted, const char *framework, const char *name)
{
    (void)wanted, (void)framework, (void)name;
    return ST_WANT_LOADED;
}

static enum st_want mca_wants_needed(const struct st_wanted *wanted, const char *framework, const char *name)
{
    if (mca_may_wait(framework) && !mca_named(wanted->arg, framework))
        return ST_WANT_LATER;
    return st_selection_passes_over(wanted->arg, framework, name) ? ST_WANT_NAME : ST_WANT_LOADED;
}

static enum st_want mca_wants_one(const struct st_wanted *wanted, const char *framework, const char *name)
{
    (void)name;
    return !strcmp(wanted->arg, framework) ? ST_WANT_LOADED : ST_WANT_LATER;
}

static enum st_want mca_wants_left_out(const struct st_wanted *wanted, const char *framework, const char *name)
{
    const struct st_plugin_list *list = wanted->arg;
    for (size_t i = 0; i < list->n; i++)
        if (list->v[i].left_out && !strcmp(list->v[i].framework, framework) && !strcmp(list->v[i].name, name))
            return ST_WANT_LOADED;
    return ST_WANT_LATER;
}

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

static void mca_add_item(struct st_mca *mca, const struct st_plugin *p)
{
    struct st_item *item = &mca->items[mca->n_items];
    item->plugin = p;
    item->fate = p->component ? ST_INFO_LOADED : ST_INFO_NOT_LOADED;
    mca->n_items++;
}

static int mca_make_items(struct st_mca *mca)
{
    size_t n_core = sizeof(core_frameworks) / sizeof(core_frameworks[0]);
    mca->n_frameworks = 0;
    mca->items = calloc(mca->plugins.n + mca->plugins.n_left + 1, sizeof(*mca->items));
    mca->frameworks = calloc(mca->plugins.n + n_core, sizeof(*mca->frameworks));
    if (!mca->items || !mca->frameworks)
        return STRATA_ERR_NOMEM;
    int rc = STRATA_OK;
    for (size_t i = 0; i < n_core && !rc; i++)
        rc = mca_add_framework(mca, core_frameworks[i]);
    for (size_t i = 0; i < mca->plugins.n && !rc; i++) {
        mca_add_item(mca, &mca->plugins.v[i]);
        rc = mca_add_framework(mca, mca->plugins.v[i].framework);
    }
    return rc;
}

static int mca_load_one(struct st_mca *mca, struct st_framework *f, char *err, size_t err_size)
{
    struct st_wanted one = {mca_wants_one, f->name};
    size_t from = mca->n_items;
    f->waits = false;
    int rc = st_repository_add(mca->folders, &one, &mca->plugins);
    if (rc)
        return st_mca_fail(rc, err, err_size, "out of memory while searching for components of %s", f->name);
    for (size_t i = from; i < mca->plugins.n; i++)
        mca_add_item(mca, &mca->plugins.v[i]);
    rc = st_params_extend(mca, err, err_size);
    for (size_t i = from; i < mca->n_items && !rc; i++)
        st_selection_apply_to(&mca->items[i], f);
    return rc;
}

/* What the lists exclude stays excluded. */
static int mca_load_left_out(struct st_mca *mca, char *err, size_t err_size)
{
    struct st_wanted left_out = {mca_wants_left_out, &mca->plugins};
    int rc = st_repository_add(mca->folders, &left_out, &mca->plugins);
    return rc ? st_mca_fail(rc, err, err_size, "out of memory while loading components")
              : st_params_extend(mca, err, err_size);
}

int st_mca_load(struct st_mca *mca, const char *framework, char *err, size_t err_size)
{
    int rc = STRATA_OK;
    pthread_mutex_lock(&mca->loading);
    for (size_t i = 0; i < mca->n_frameworks && !rc; i++) {
        struct st_framework *f = &mca->frameworks[i];
        if (f->waits && (!framework || !strcmp(f->name, framework)))
            rc = mca_load_one(mca, f, err, err_size);
    }
    if (!rc && !framework)
        rc = mca_load_left_out(mca, err, err_size);
    pthread_mutex_unlock(&mca->loading);
    return rc;
}

bool st_mca_waits(const struct st_mca *mca, const char *framework)
{
    for (size_t i = 0; i < mca->n_frameworks; i++)
        if (!strcmp(mca->frameworks[i].name, framework))
            return mca->frameworks[i].waits;
    return false;
}

bool st_mca_configured(const struct st_mca *mca, const struct st_component *c)
{
    return st_settings_configure(&mca->settings, c->framework, c->name);
}

int st_mca_create(const strata_config_t *config, enum st_mca_load load, struct st_mca **out, char *err, size_t err_size)
{
    if (err && err_size)
        err[0] = '\0';
    struct st_mca *mca = calloc(1, sizeof(*mca));
    if (!mca)
        return st_mca_fail(STRATA_ERR_NOMEM, err, err_size, "out of memory");
    pthread_mutex_init(&mca->loading, NULL);
    int rc = st_settings_collect(&mca->settings, config, err, err_size);
    if (rc)
        goto free_settings;
    mca->folders = st_component_folders(&mca->settings);
    if (!mca->folders) {
        rc = st_mca_fail(STRATA_ERR_NOMEM, err, err_size, "out of memory");
        goto free_settings;
    }
    struct st_wanted wanted = {load == ST_MCA_ALL ? mca_wants_any : mca_wants_needed, &mca->settings};
    rc = st_repository_open(mca->folders, &wanted, &mca->plugins, err, err_size);
    if (rc)
        goto free_settings;
    rc = mca_make_items(mca);
    if (rc)
        st_mca_fail(rc, err, err_size, "out of memory");
    for (size_t i = 0; i < mca->n_frameworks; i++)
        mca->frameworks[i].waits = wanted.want(&wanted, mca->frameworks[i].name, "") == ST_WANT_LATER;
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
    char err[512];
    int rc = st_mca_load(mca, framework, err, sizeof(err));
    if (rc) {
        st_log(NULL, ST_LOG_ERROR, "mca", "%s", err);
        return rc;
    }
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
