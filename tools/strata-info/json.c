/* Output for programs: one JSON object. */
#define _GNU_SOURCE 1
#include "info.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* A path may hold any bytes; JSON text may not. */
static json_t *text(const char *s)
{
    json_t *j = json_string(s);
    if (j)
        return j;
    char *copy = strdup(s);
    for (char *p = copy; p && *p; p++)
        if ((unsigned char)*p >= 0x80)
            *p = '?';
    j = copy ? json_string(copy) : NULL;
    free(copy);
    return j;
}

static json_t *component(const struct st_info_component *c)
{
    json_t *j = json_object();
    json_object_set_new(j, "framework", text(c->framework));
    json_object_set_new(j, "name", text(c->name));
    json_object_set_new(j, "path", text(c->path));
    json_object_set_new(j, "fate", text(st_info_fate_text(c->fate)));
    json_object_set_new(j, "reason", text(c->reason));
    json_object_set_new(j, "by_name", json_boolean(c->by_name));
    if (c->fate == ST_INFO_NOT_LOADED)
        return j;
    json_object_set_new(j, "version", text(c->version));
    json_object_set_new(j, "summary", text(c->summary));
    json_object_set_new(j, "priority", json_integer(c->priority));
    json_object_set_new(j, "default_priority", json_integer(atoi(c->default_priority)));
    return j;
}

static json_t *param(const struct st_info_param *p)
{
    json_t *j = json_object();
    json_object_set_new(j, "name", text(p->name));
    json_object_set_new(j, "framework", text(p->framework));
    json_object_set_new(j, "component", text(p->component));
    json_object_set_new(j, "type", text(p->type));
    json_object_set_new(j, "value", text(p->value));
    json_object_set_new(j, "default", text(p->dflt));
    json_object_set_new(j, "source", text(p->source));
    json_object_set_new(j, "where", text(p->where));
    json_object_set_new(j, "allowed", text(p->allowed));
    json_object_set_new(j, "unit", text(p->unit));
    json_object_set_new(j, "help", text(p->help));
    json_object_set_new(j, "level", json_integer(p->level));
    return j;
}

static json_t *counter(const struct counter *c)
{
    json_t *j = json_object();
    char *name;
    if (asprintf(&name, "%s_%s_%s", c->row.framework, c->row.component, c->row.name) >= 0) {
        json_object_set_new(j, "name", text(name));
        free(name);
    }
    json_object_set_new(j, "framework", text(c->row.framework));
    json_object_set_new(j, "component", text(c->row.component));
    json_object_set_new(j, "kind", text(counter_kind(c)));
    json_object_set_new(j, "unit", text(c->row.unit));
    json_object_set_new(j, "help", text(c->row.help));
    json_object_set_new(j, "value", c->known ? json_integer((json_int_t)c->value) : json_null());
    return j;
}

int print_json(const struct report *r, const struct options *o)
{
    json_t *root = json_object();
    json_object_set_new(root, "version", text(build_facts[0].text));
    json_object_set_new(root, "component_path", text(st_info_folders(r->mca)));
    if (o->components || o->explain) {
        json_t *list = json_array();
        for (size_t i = 0; i < r->n_components; i++)
            json_array_append_new(list, component(&r->components[i]));
        json_object_set_new(root, "components", list);
    }
    if (r->tried) {
        json_object_set_new(root, "usable", json_boolean(r->rc == STRATA_OK));
        json_object_set_new(root, "error", text(r->rc ? r->error : ""));
    }
    if (o->build) {
        json_t *facts = json_object();
        for (const struct build_fact *f = build_facts; f->name; f++)
            json_object_set_new(facts, f->name, text(f->text));
        json_object_set_new(root, "build", facts);
    }
    if (r->devices)
        devices_print_json(r->devices, root);
    if (o->counters) {
        json_t *list = json_array();
        for (size_t i = 0; i < r->n_counters; i++)
            json_array_append_new(list, counter(&r->counters[i]));
        json_object_set_new(root, "counters", list);
    }
    if (o->param_framework) {
        json_t *list = json_array();
        for (size_t i = 0; i < r->n_params; i++)
            if (report_wants(o, &r->params[i]))
                json_array_append_new(list, param(&r->params[i]));
        json_object_set_new(root, "parameters", list);
    }
    int rc = json_dumpf(root, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    putchar('\n');
    json_decref(root);
    if (rc)
        fprintf(stderr, "strata-info: the JSON output could not be written\n");
    return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
