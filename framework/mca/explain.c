/* The record of what became of each component, and the walk over components and parameters that tools print. */
#include "framework/base/context.h"
#include "framework/base/counters.h"
#include "framework/mca/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct st_item *st_item_of(const struct st_mca *mca, const struct st_component *c)
{
    for (size_t i = 0; i < mca->n_items; i++)
        if (mca->items[i].plugin->component == c && c)
            return &mca->items[i];
    return NULL;
}

void st_item_set(struct st_item *item, enum st_info_fate fate, const char *reason)
{
    item->fate = fate;
    if (!reason)
        return;
    char *copy = strdup(reason); /* without memory the fate is recorded and the reason lost */
    for (char *p = copy; p && *p; p++)
        if (*p == '\n' || *p == '\r')
            *p = ' ';
    free(item->reason);
    item->reason = copy;
}

void st_mca_fate(struct st_mca *mca, const struct st_component *c, enum st_fate fate, const char *reason)
{
    struct st_item *item = st_item_of(mca, c);
    if (!item)
        return;
    static const enum st_info_fate as[] = {
        [ST_FATE_CHOSEN] = ST_INFO_CHOSEN, [ST_FATE_UNUSED] = ST_INFO_UNUSED, [ST_FATE_REJECTED] = ST_INFO_REJECTED};
    st_item_set(item, as[fate], reason);
}

void st_mca_broken(struct st_mca *mca, const struct st_component *c)
{
    struct st_item *item = st_item_of(mca, c);
    if (item)
        item->broken = true;
}

void st_mca_say_skipped(const strata_t *s, const struct st_mca *mca)
{
    for (size_t i = 0; i < mca->n_items; i++) {
        const struct st_item *item = &mca->items[i];
        const struct st_plugin *p = item->plugin;
        bool loaded = p->component != NULL;
        if (!item->admitted || (loaded && item->fate != ST_INFO_REJECTED))
            continue;
        bool warn = strata_rank(s) == 0 && item->by_name && (!loaded || item->broken);
        const char *why = loaded ? item->reason : p->reason;
        st_log(s, warn ? ST_LOG_WARN : ST_LOG_INFO, "mca", "component %s_%s skipped: %s%s%s", p->framework, p->name,
               loaded ? "" : p->path, loaded ? "" : ": ", why ? why : "?");
    }
}

const char *st_mca_reject_reason(const struct st_mca *mca, const struct st_component *c)
{
    const struct st_item *item = st_item_of(mca, c);
    return item && item->reason ? item->reason : "";
}

const char *st_mca_unloaded(const struct st_mca *mca, const char *framework, const char **why)
{
    for (size_t i = 0; i < mca->n_items; i++) {
        const struct st_plugin *p = mca->items[i].plugin;
        if (p->component || !mca->items[i].admitted || strcmp(p->framework, framework) != 0)
            continue;
        *why = p->reason ? p->reason : "?";
        return p->name;
    }
    return NULL;
}

bool st_asked_by_name(const strata_t *s, const struct st_component *c)
{
    const struct st_item *item = s && s->mca && c ? st_item_of(s->mca, c) : NULL;
    return item && item->by_name;
}

void st_rejected(const strata_t *s, const char *framework, char *text, size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; s->mca && i < s->mca->n_items && at < size; i++) {
        const struct st_item *item = &s->mca->items[i];
        const struct st_component *c = item->plugin->component;
        if (!c || item->fate != ST_INFO_REJECTED || strcmp(c->framework, framework) != 0)
            continue;
        int n = snprintf(text + at, size - at, "%s%s: %s", at ? "; " : "", c->name, item->reason ? item->reason : "?");
        at += n > 0 ? (size_t)n : 0;
    }
}

const char *st_info_fate_text(enum st_info_fate fate)
{
    switch (fate) {
    case ST_INFO_LOADED:
        return "loaded";
    case ST_INFO_NOT_LOADED:
        return "not loaded";
    case ST_INFO_EXCLUDED:
        return "excluded";
    case ST_INFO_CHOSEN:
        return "chosen";
    case ST_INFO_UNUSED:
        return "unused";
    case ST_INFO_REJECTED:
        return "rejected";
    }
    return "?";
}

static const char *explain_source_text(enum st_param_source source)
{
    switch (source) {
    case ST_SOURCE_DEFAULT:
        return "default";
    case ST_SOURCE_FILE:
        return "file";
    case ST_SOURCE_ENVIRONMENT:
        return "environment";
    case ST_SOURCE_COMMAND_LINE:
        return "command line";
    case ST_SOURCE_API:
        return "api";
    }
    return "?";
}

int st_info_create(const strata_config_t *config, struct st_mca **out, char *err, size_t err_size)
{
    return st_mca_create(config, ST_MCA_ALL, out, err, err_size);
}

int st_info_create_needed(const strata_config_t *config, struct st_mca **out, char *err, size_t err_size)
{
    return st_mca_create(config, ST_MCA_NEEDED, out, err, err_size);
}

int st_info_try(const strata_config_t *config, void (*look)(void *arg, strata_t *s), void *arg, struct st_mca **out,
                char *err, size_t err_size)
{
    *out = NULL;
    int rc = st_mca_create(config, ST_MCA_ALL, out, err, err_size);
    return rc ? rc : st_context_try(config, *out, look, arg, err, err_size);
}

void st_info_destroy(struct st_mca *mca)
{
    st_mca_destroy(mca);
}

const char *st_info_folders(const struct st_mca *mca)
{
    return mca->folders;
}

void st_info_components(const struct st_mca *mca, void (*fn)(void *arg, const struct st_info_component *c), void *arg)
{
    for (size_t i = 0; i < mca->n_items; i++) {
        const struct st_item *item = &mca->items[i];
        const struct st_plugin *p = item->plugin;
        const struct st_component *c = p->component;
        struct st_info_component info = {.framework = p->framework,
                                         .name = p->name,
                                         .path = p->path,
                                         .version = c ? c->version : "",
                                         .summary = c ? c->summary : "",
                                         .default_priority = c ? item->priority_text : "",
                                         .priority = (int)item->priority,
                                         .fate = item->fate,
                                         .reason = c || p->left_out ? (item->reason ? item->reason : "") : p->reason,
                                         .by_name = item->by_name};
        fn(arg, &info);
    }
}

void st_info_params(const struct st_mca *mca, void (*fn)(void *arg, const struct st_info_param *p), void *arg)
{
    for (size_t i = 0; i < mca->n_vars; i++) {
        const struct st_var *v = &mca->vars[i];
        char allowed[512];
        struct st_info_param info = {.name = v->name,
                                     .framework = v->framework,
                                     .component = v->component,
                                     .type = st_param_type_name(v->row->type),
                                     .value = v->text,
                                     .dflt = v->row->dflt,
                                     .source = explain_source_text(v->source),
                                     .where = v->where,
                                     .allowed = st_param_allowed(v->row, allowed, sizeof(allowed)),
                                     .unit = v->row->unit ? v->row->unit : "",
                                     .help = v->row->help,
                                     .level = v->row->level};
        fn(arg, &info);
    }
}

struct shower {
    void (*fn)(void *arg, const struct st_info_counter *c);
    void *arg;
};

static void explain_show_rows(const struct shower *to, const struct st_component *c, const struct st_counter *rows,
                              size_t n, bool common)
{
    for (size_t i = 0; i < n; i++) {
        struct st_info_counter info = {.framework = c->framework,
                                       .component = c->name,
                                       .name = rows[i].name,
                                       .unit = rows[i].unit,
                                       .help = rows[i].help,
                                       .kind = rows[i].kind,
                                       .common = common};
        to->fn(to->arg, &info);
    }
}

void st_info_counters(const struct st_mca *mca, void (*fn)(void *arg, const struct st_info_counter *c), void *arg)
{
    const struct shower to = {fn, arg};

    for (size_t i = 0; i < mca->n_items; i++) {
        const struct st_component *c = mca->items[i].plugin->component;
        size_t n;
        if (!c)
            continue;
        const struct st_counter *rows = st_counters_common(c->framework, &n);
        explain_show_rows(&to, c, rows, n, true);
        explain_show_rows(&to, c, c->counters, c->n_counters, false);
    }
    for (size_t i = 0; i < mca->n_frameworks; i++) {
        const struct st_component none = {.framework = mca->frameworks[i].name, .name = ""};
        size_t n = 0;
        const struct st_counter *rows = mca->frameworks[i].waits ? st_counters_common(none.framework, &n) : NULL;
        explain_show_rows(&to, &none, rows, n, true);
    }
}
