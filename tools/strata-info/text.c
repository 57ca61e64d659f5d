/* Output for people. */
#include "info.h"

#include <inttypes.h>
#include <string.h>

enum { WIDTH = 100, INDENT = 6 };

/* Prints text in lines of up to WIDTH columns, each indented. */
static void print_wrapped(const char *text)
{
    while (*text) {
        size_t n = strlen(text), room = WIDTH - INDENT;
        if (n > room) {
            n = room;
            while (n > 0 && text[n] != ' ')
                n--;
            if (n == 0)
                n = strcspn(text, " ");
        }
        printf("%*s%.*s\n", INDENT, "", (int)n, text);
        text += n;
        while (*text == ' ')
            text++;
    }
}

/* "btl   sm      ", wide enough for the longest names. Returns the columns used. */
static int print_name(const struct report *r, const struct st_info_component *c)
{
    size_t framework = 0, name = 0;
    for (size_t i = 0; i < r->n_components; i++) {
        size_t f = strlen(r->components[i].framework), n = strlen(r->components[i].name);
        framework = f > framework ? f : framework;
        name = n > name ? n : name;
    }
    return printf("  %-*s %-*s ", (int)framework, c->framework, (int)name, c->name);
}

static void print_component(const struct report *r, const struct st_info_component *c)
{
    int column = print_name(r, c);
    if (c->fate == ST_INFO_NOT_LOADED)
        printf("cannot be used: %s\n", c->reason);
    else
        printf("%s (version %s, priority %d%s)\n", c->summary, c->version, c->priority,
               c->fate == ST_INFO_EXCLUDED ? ", excluded" : "");
    printf("%*s%s\n", column, "", c->path);
}

static void print_param(const struct st_info_param *p)
{
    printf("  %s = %s", p->name, *p->value ? p->value : "\"\"");
    if (strcmp(p->source, "default") != 0)
        printf("  (set by %s; default %s)", p->where, *p->dflt ? p->dflt : "\"\"");
    printf("\n%*s%s%s%s%s, level %d\n", INDENT, "", p->type, *p->allowed ? ", " : "", p->allowed, "", p->level);
    print_wrapped(p->help);
}

static void print_explanation(const struct report *r)
{
    for (size_t i = 0; i < r->n_components; i++) {
        const struct st_info_component *c = &r->components[i];
        int column = print_name(r, c);
        column += printf("%-10s ", st_info_fate_text(c->fate));
        printf("%s\n", *c->reason ? c->reason : c->summary);
        if (c->fate == ST_INFO_NOT_LOADED)
            printf("%*s%s\n", column, "", c->path);
    }
}

static void print_counter(const struct counter *c)
{
    printf("  %s_%s_%s = ", c->row.framework, c->row.component, c->row.name);
    if (c->known)
        printf("%" PRIu64, c->value);
    else
        printf("-");
    printf(" %s%s\n", c->row.unit,
           c->row.kind == STRATA_COUNT   ? ""
           : c->row.kind == STRATA_LEVEL ? " now"
                                         : " at most");
    print_wrapped(c->row.help);
}

static void print_counters(const struct report *r)
{
    printf("Counters, with their values in a context that was made here (-: of a component that it did not use):\n");
    for (size_t i = 0; i < r->n_counters; i++)
        print_counter(&r->counters[i]);
}

void print_text(const struct report *r, const struct options *o)
{
    const char *gap = "";
    if (o->components) {
        printf("Strata %s; components found in %s:\n", build_facts[0].text, st_info_folders(r->mca));
        for (size_t i = 0; i < r->n_components; i++)
            print_component(r, &r->components[i]);
        if (!r->n_components)
            printf("  none; is mca_component_path right?\n");
        gap = "\n";
    }
    if (o->build) {
        printf("%sThis Strata was built with:\n", gap);
        for (const struct build_fact *f = build_facts; f->name; f++)
            printf("  %-12s %s\n", f->name, f->text);
        gap = "\n";
    }
    if (o->explain) {
        printf("%sWhat became of the components found in %s:\n", gap, st_info_folders(r->mca));
        print_explanation(r);
        gap = "\n";
    }
    if (r->devices) {
        printf("%s", gap);
        devices_print_text(r->devices);
        gap = "\n";
    }
    if (o->counters) {
        printf("%s", gap);
        print_counters(r);
        gap = "\n";
    }
    if (!o->param_framework)
        return;
    size_t shown = 0;
    printf("%sParameters up to level %d:\n", gap, o->level);
    for (size_t i = 0; i < r->n_params; i++) {
        if (!report_wants(o, &r->params[i]))
            continue;
        print_param(&r->params[i]);
        shown++;
    }
    if (!shown)
        printf("  none; --level 9 shows all\n");
}
