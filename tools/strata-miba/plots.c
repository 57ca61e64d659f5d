/* Plots: the paper's Figures 2 to 13, and those beyond it, as gnuplot scripts. */
#include "config.h"
#include "report.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include "test.h"

extern char **environ;

const struct plot miba_plots[] = {
    {"figure02", "Figure 2: registration and deregistration", "registration", NULL, NULL, true},
    {"figure03", "Figure 3: completion queues", "cq", NULL, "plain", true},
    {"figure04", "Figure 4: queue pairs", "qp", NULL, NULL, true},
    {"figure05a", "Figure 5(a): latency", "latency", NULL, NULL, true},
    {"figure05b", "Figure 5(b): bandwidth", "bandwidth", NULL, NULL, true},
    {"figure05b_window", "Figure 5(b): bandwidth by window", "window", NULL, NULL, true},
    {"figure05c", "Figure 5(c): bandwidth both ways", "both_ways", NULL, NULL, true},
    {"figure05d", "Figure 5(d): bandwidth beside computation", "cpu", "cpu_bandwidth", NULL, false},
    {"figure06a", "Figure 6(a): latency, translation scheme 1", "translation_1", NULL, "latency", true},
    {"figure06b", "Figure 6(b): time of a message in a stream, translation scheme 1", "translation_1", NULL,
     "bandwidth", true},
    {"figure06c", "Figure 6(c): latency, translation scheme 2", "translation_2", NULL, "latency", false},
    {"figure06d", "Figure 6(d): time of a message in a stream, translation scheme 2", "translation_2", NULL,
     "bandwidth", false},
    {"figure07", "Figure 7: latency by queue pairs", "qps", NULL, "latency", true},
    {"figure08", "Figure 8: time of a message in a stream by queue pairs", "qps", NULL, "bandwidth", true},
    {"figure09", "Figure 9: segments", "segments", NULL, "latency", false},
    {"figure10", "Figure 10: MTU", "mtu", NULL, NULL, true},
    {"figure11", "Figure 11: entries of a list at most", "max_sge", NULL, "latency", false},
    {"figure12", "Figure 12: events against polling", "events", NULL, "latency", false},
    {"figure13", "Figure 13: load at the adapter", "load", NULL, NULL, false},
    {"inline", "Inline and copied", "inline", NULL, NULL, true},
    {"signalling", "Interval of completions", "signalling", NULL, NULL, true},
    {"lists", "Requests of one call", "lists", NULL, NULL, true},
    {"incast", "Incast", "incast", NULL, NULL, true},
};

unsigned miba_plots_count(void)
{
    return sizeof miba_plots / sizeof *miba_plots;
}

static bool belongs(const struct plot *p, const struct result *r)
{
    return !r->status && strcmp(p->test, r->c.test->name) == 0 && (!p->figure || strcmp(p->figure, r->figure) == 0) &&
           (!p->variant || strcmp(p->variant, case_variant(&r->c)) == 0);
}

static bool same_line(const struct result *a, const struct result *b)
{
    return a->c.op == b->c.op && a->c.transport == b->c.transport && a->c.variant == b->c.variant &&
           strcmp(a->figure, b->figure) == 0;
}

/* The name of a line of the plot, from what differs among lines. */
static void line_name(const struct result *r, char *text, size_t size)
{
    const bool data = r->c.op != OP_NONE;

    snprintf(text, size, "%s%s%s %s", data ? miba_op_name(r->c.op) : r->figure, data ? " " : "",
             data ? miba_transport_name(r->c.transport) : "", case_variant(&r->c));
}

static FILE *open_file(const char *folder, const char *name, const char *end)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s.%s", folder, name, end);
    FILE *f = fopen(path, "we");
    if (!f)
        fprintf(stderr, "strata-miba: %s: cannot be written: %s\n", path, strerror(errno));
    return f;
}

static bool close_file(FILE *f, const char *what)
{
    const bool failed = ferror(f) != 0, unflushed = fclose(f) != 0;

    if (failed || unflushed)
        fprintf(stderr, "strata-miba: %s of the report cannot be written: %s\n", what, strerror(errno));
    return !failed && !unflushed;
}

/* Blocks of points, one for each line, with two empty lines between, as gnuplot's `index` has them. How many blocks. */
static unsigned write_data(FILE *data, FILE *script, const struct plot *p, const struct results *r)
{
    unsigned lines = 0;
    char name[128];

    for (size_t i = 0; i < r->n; i++) {
        bool known = !belongs(p, &r->all[i]);
        for (size_t k = 0; k < i && !known; k++)
            known = belongs(p, &r->all[k]) && same_line(&r->all[k], &r->all[i]);
        if (known)
            continue;
        line_name(&r->all[i], name, sizeof name);
        fprintf(data, "%s# %s: %s, median, quartiles in %s\n", lines ? "\n\n" : "", name, r->all[i].c.test->x_name,
                unit_name(r->all[i].unit));
        for (size_t k = i; k < r->n; k++)
            if (belongs(p, &r->all[k]) && same_line(&r->all[k], &r->all[i]))
                fprintf(data, "%llu %.9g %.9g %.9g\n", (unsigned long long)r->all[k].c.x, r->all[k].sum.median,
                        r->all[k].sum.q1, r->all[k].sum.q3);
        fprintf(script, "%s'%s.dat' index %u using 1:2:3:4 with yerrorlines title '%s'",
                lines ? ", \\\n     " : "plot ", p->name, lines, name);
        lines++;
    }
    fprintf(script, "\n");
    return lines;
}

/* gnuplot in the folder, with its words thrown away. False: there is none, or it failed. */
static bool draw(const char *folder, const char *name)
{
    char script[128];
    snprintf(script, sizeof script, "%s.gp", name);
    char *const argv[] = {(char *)"gnuplot", script, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int how = 0;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, folder);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", 1, 0);
    const int error = posix_spawnp(&child, "gnuplot", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error)
        return false;
    while (waitpid(child, &how, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(how) && WEXITSTATUS(how) == 0;
}

bool plot_write(const char *folder, const struct plot *p, const struct results *r, bool *any, bool *drawn)
{
    const struct result *first = NULL;

    *any = *drawn = false;
    for (size_t i = 0; i < r->n && !first; i++)
        first = belongs(p, &r->all[i]) ? &r->all[i] : NULL;
    if (!first)
        return true;
    *any = true;
    FILE *data = open_file(folder, p->name, "dat"), *script = open_file(folder, p->name, "gp");
    if (data && script) {
        fprintf(script, "set title '%s'\nset xlabel '%s'\nset ylabel '%s'\nset key outside\n", p->title,
                first->c.test->x_name, unit_name(first->unit));
        if (p->log_x)
            fprintf(script, "set logscale x 2\n");
        if (first->unit == UNIT_NS)
            fprintf(script, "set logscale y\n");
        fprintf(script, "set terminal svg size 900,600 background 'white'\nset output '%s.svg'\n", p->name);
        write_data(data, script, p, r);
        fprintf(script, "set terminal png size 900,600\nset output '%s.png'\nreplot\n", p->name);
    }
    bool well = data && script;
    well &= !data || close_file(data, p->name);
    well &= !script || close_file(script, p->name);
    *drawn = well && draw(folder, p->name);
    return well;
}
