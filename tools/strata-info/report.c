/* Gathers what there is to print. */
#define _GNU_SOURCE 1
#include "info.h"

#include <stdlib.h>
#include <string.h>

struct gather {
    struct report *r;
    bool failed;
};

static void take_component(void *arg, const struct st_info_component *c)
{
    struct gather *g = arg;
    struct st_info_component *v = realloc(g->r->components, (g->r->n_components + 1) * sizeof(*v));
    if (!v) {
        g->failed = true;
        return;
    }
    g->r->components = v;
    v[g->r->n_components++] = *c;
}

static void take_param(void *arg, const struct st_info_param *p)
{
    struct gather *g = arg;
    struct st_info_param *v = realloc(g->r->params, (g->r->n_params + 1) * sizeof(*v));
    if (!v) {
        g->failed = true;
        return;
    }
    g->r->params = v;
    v[g->r->n_params] = *p;
    v[g->r->n_params].allowed = strdup(p->allowed);
    if (!v[g->r->n_params].allowed)
        g->failed = true;
    else
        g->r->n_params++;
}

static void take_counter(void *arg, const struct st_info_counter *c)
{
    struct gather *g = arg;
    struct counter *v = realloc(g->r->counters, (g->r->n_counters + 1) * sizeof(*v));
    if (!v) {
        g->failed = true;
        return;
    }
    g->r->counters = v;
    v[g->r->n_counters++] = (struct counter){.row = *c};
}

/* Values in the context, whose strings go with it. */
struct reading {
    struct value {
        char *name; /* in full */
        uint64_t value;
    } * v;
    size_t n;
};

static char *full_name(const char *framework, const char *component, const char *name)
{
    char *text;
    return asprintf(&text, "%s_%s_%s", framework, component, name) < 0 ? NULL : text;
}

static void take_value(void *arg, const strata_counter_t *c)
{
    struct reading *read = arg;
    struct value *v = realloc(read->v, (read->n + 1) * sizeof(*v));
    if (!v)
        return; /* it is then shown without a value */
    read->v = v;
    v[read->n].value = c->value;
    v[read->n].name = full_name(c->framework, c->component, c->name);
    if (v[read->n].name)
        read->n++;
}

static void look(void *arg, strata_t *s)
{
    (void)strata_counters(s, take_value, arg);
}

static void fill_in(struct report *r, struct reading *read)
{
    for (size_t i = 0; i < r->n_counters; i++) {
        struct counter *c = &r->counters[i];
        char *name = full_name(c->row.framework, c->row.component, c->row.name);
        for (size_t k = 0; name && k < read->n && !c->known; k++) {
            c->known = strcmp(name, read->v[k].name) == 0;
            c->value = read->v[k].value;
        }
        free(name);
    }
    for (size_t k = 0; k < read->n; k++)
        free(read->v[k].name);
    free(read->v);
}

const char *counter_kind(const struct counter *c)
{
    return c->row.kind == STRATA_COUNT ? "count" : c->row.kind == STRATA_LEVEL ? "level" : "peak";
}

int report_make(struct report *r, const struct options *o)
{
    strata_config_t config = STRATA_CONFIG_INIT;
    config.command_line = o->settings;
    config.n_command_line = o->n_settings;
    struct reading read = {NULL, 0};
    int rc;
    if (o->explain || o->counters) {
        rc = st_info_try(&config, look, &read, &r->mca, r->error, sizeof(r->error));
        if (!r->mca)
            return rc;
        r->tried = true;
        r->rc = rc;
    } else {
        rc = st_info_create(&config, &r->mca, r->error, sizeof(r->error));
        if (rc)
            return rc;
    }
    if (o->devices) {
        rc = devices_make(o, &r->devices, r->error, sizeof(r->error));
        if (!r->devices) {
            char why[sizeof(r->error)];
            memcpy(why, r->error, sizeof(why));
            report_free(r);
            memcpy(r->error, why, sizeof(why));
            return rc;
        }
        r->tried = true;
        r->rc = r->rc ? r->rc : rc;
    }
    struct gather g = {r, false};
    st_info_components(r->mca, take_component, &g);
    st_info_params(r->mca, take_param, &g);
    st_info_counters(r->mca, take_counter, &g);
    fill_in(r, &read);
    if (!g.failed)
        return STRATA_OK;
    report_free(r);
    snprintf(r->error, sizeof(r->error), "out of memory");
    return STRATA_ERR_NOMEM;
}

void report_free(struct report *r)
{
    for (size_t i = 0; i < r->n_params; i++)
        free((char *)r->params[i].allowed);
    free(r->params);
    free(r->components);
    free(r->counters);
    devices_free(r->devices);
    st_info_destroy(r->mca);
    *r = (struct report){0};
}

bool report_wants(const struct options *o, const struct st_info_param *p)
{
    if (!o->param_framework || p->level > o->level)
        return false;
    if (strcmp(o->param_framework, "all") != 0 && strcmp(o->param_framework, p->framework) != 0)
        return false;
    return !strcmp(o->param_component, "all") || !strcmp(o->param_component, p->component);
}

static void no_such(const char *kind, const char *wanted, const char *const *names, size_t n)
{
    const char *near = st_info_nearest(wanted, names, n);
    fprintf(stderr, "strata-info: there is no %s \"%s\"", kind, wanted);
    if (near) {
        fprintf(stderr, "; did you mean \"%s\"?\n", near);
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0)
            fprintf(stderr, "%s%s", i ? ", " : "; there are: ", names[i]);
    fputc('\n', stderr);
}

static bool out_of_memory(void)
{
    fprintf(stderr, "strata-info: out of memory\n");
    return false;
}

static bool check_component(const struct report *r, const char *framework, const char *wanted)
{
    if (!strcmp(framework, "mca") && !strcmp(wanted, "base"))
        return true;
    const char **names = calloc(r->n_components + 1, sizeof(*names));
    size_t n = 0;
    if (!names)
        return out_of_memory();
    if (!strcmp(framework, "mca"))
        names[n++] = "base";
    for (size_t i = 0; i < r->n_components; i++) {
        const struct st_info_component *c = &r->components[i];
        if (strcmp(framework, "all") != 0 && strcmp(framework, c->framework) != 0)
            continue;
        names[n++] = c->name;
        if (strcmp(wanted, c->name) != 0)
            continue;
        free(names);
        if (c->fate != ST_INFO_NOT_LOADED)
            return true;
        fprintf(stderr, "strata-info: component %s_%s cannot be used: %s: %s\n", c->framework, c->name, c->path,
                c->reason);
        return false;
    }
    char kind[96];
    snprintf(kind, sizeof(kind), "%.60s component", strcmp(framework, "all") ? framework : "Strata");
    no_such(kind, wanted, names, n);
    free(names);
    return false;
}

bool report_check_names(const struct report *r, const struct options *o)
{
    if (!o->param_framework)
        return true;
    const char **names = calloc(r->n_params + 1, sizeof(*names));
    if (!names)
        return out_of_memory();
    bool known = !strcmp(o->param_framework, "all");
    for (size_t i = 0; i < r->n_params; i++) {
        names[i] = r->params[i].framework;
        known = known || !strcmp(o->param_framework, names[i]);
    }
    if (!known)
        no_such("framework", o->param_framework, names, r->n_params);
    free(names);
    if (!known)
        return false;
    return !strcmp(o->param_component, "all") || check_component(r, o->param_framework, o->param_component);
}
