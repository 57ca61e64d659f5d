/* A rank's view of Strata beside tools/strata-perf/port_strata.h: start, end, and what only Strata can say. */
#ifndef MEMSCALE_RANK_STRATA_H
#define MEMSCALE_RANK_STRATA_H

#include <jansson.h>

#include "config.h"
#include "tools/strata-perf/port_strata.h"
#include "virtual_world.h"

/* In a virtual world, p->n is the number of real ranks. */
static bool port_begin(struct port *p, const char *folder, struct meeting *m, int world, int n_real)
{
    strata_config_t config = STRATA_CONFIG_INIT;
    struct virtual_world *w = world ? virtual_world_make(folder, m, world, n_real) : NULL;

    if (world && !w)
        return false;
    config.host = w ? virtual_world_host(w) : NULL;
    if (strata_init(&config, &p->s) != STRATA_OK)
        return false;
    if (w)
        virtual_world_started(w);
    p->world = strata_world(p->s);
    p->rank = strata_rank(p->s);
    p->n = w ? n_real : strata_size(p->s);
    return true;
}

static bool port_end(struct port *p)
{
    return strata_finalize(p->s) == STRATA_OK;
}

/* A barrier by the launcher, which connects nobody; makes progress meanwhile. */
static void port_fence(struct port *p)
{
    port_ok(p, "strata_fence", strata_fence(p->s));
}

static void port_poll(struct port *p)
{
    strata_progress(p->s);
}

static void port_take_line(void *arg, const strata_mem_line_t *line)
{
    char name[160];

    snprintf(name, sizeof name, "%s: %s", line->component, line->category);
    if (line->user || !line->bytes)
        return;
    json_int_t before = json_integer_value(json_object_get(arg, name));
    json_object_set_new(arg, name, json_integer(before + (json_int_t)line->bytes));
}

/* Bytes by component and category. */
static json_t *port_ours(struct port *p)
{
    json_t *ours = json_object();

    port_ok(p, "strata_mem_report", strata_mem_report(p->s, port_take_line, ours));
    return ours;
}

static void port_take_parameter(void *arg, const strata_param_t *p)
{
    json_object_set_new(arg, p->name, json_string(p->value));
}

/* Every parameter of Strata's with its value. */
static json_t *port_parameters(struct port *p)
{
    json_t *all = json_object();

    port_ok(p, "strata_params", strata_params(NULL, port_take_parameter, all));
    return all;
}

static void port_version(char *text, size_t size)
{
    snprintf(text, size, "Strata %s", PACKAGE_VERSION);
}

#endif
