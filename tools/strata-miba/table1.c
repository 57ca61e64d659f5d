/* The paper's Table 1: connections, posting and polling. */
#include "config.h"
#include "plots.h"

#include <string.h>
#include "test.h"

#define PARTS 3u
/* Entries of the queues, where they were measured. */
#define ENTRIES 16u

static const struct row {
    const char *name, *test, *figure[PARTS];
} rows[] = {
    {"Creating a connection (modify QP)", "qp_connected", {"qp_to_init", "qp_to_rtr", "qp_to_rts"}},
    {"Tearing down a connection (destroy QP)", "qp_connected", {"qp_destroy"}},
    {"Posting a receive work request", "post_recv", {"post_recv"}},
    {"Posting a send work request", "post_send", {"post_send"}},
    {"Polling a completion queue", "poll_full", {"poll_full"}},
    {"Polling an empty queue", "poll_empty", {"poll_empty"}},
};
#define ROWS (sizeof rows / sizeof *rows)

/* The figure of queues of 16 entries, or else of the test's first value. */
static const struct result *find(const struct results *r, const char *test, const char *figure)
{
    const struct result *found = NULL;

    for (size_t i = 0; i < r->n; i++) {
        const struct result *one = &r->all[i];
        if (one->status || strcmp(one->c.test->name, test) != 0 || strcmp(one->figure, figure) != 0)
            continue;
        if (!found || (one->c.x == ENTRIES && strcmp(test, "qp_connected") == 0))
            found = one;
    }
    return found;
}

/* The sum of a row's medians, in nanoseconds. False: not all were measured. */
static bool row_of(const struct results *r, const struct row *row, double *ns)
{
    *ns = 0;
    for (unsigned i = 0; i < PARTS && row->figure[i]; i++) {
        const struct result *one = find(r, row->test, row->figure[i]);
        if (!one)
            return false;
        *ns += one->sum.median;
    }
    return true;
}

bool table1_write(FILE *f, const char *folder, const struct results *r)
{
    static const char *const terminals[] = {"svg", "png"};
    char text[32];
    double ns;
    unsigned n = 0;

    for (unsigned i = 0; i < ROWS; i++)
        n += row_of(r, &rows[i], &ns);
    if (n == 0)
        return true;
    FILE *data = plot_open(folder, "table1", "dat"), *script = plot_open(folder, "table1", "gp");
    fprintf(f, "## Table 1\n\nMedians; the first row is the sum of three.\n\n| operation | time |\n|---|---|\n");
    for (unsigned i = 0; i < ROWS; i++) {
        if (!row_of(r, &rows[i], &ns))
            continue;
        print_value(ns, UNIT_NS, text, sizeof text);
        fprintf(f, "| %s | %s |\n", rows[i].name, text);
        if (data)
            fprintf(data, "\"%s\" %.9g\n", rows[i].name, ns);
    }
    fprintf(f, "\n");
    for (unsigned t = 0; t < 2 && script; t++)
        fprintf(script,
                "set terminal %s size 760,420 background 'white' noenhanced\nset output 'table1.%s'\n"
                "set title 'Table 1'\nset ylabel 'ns'\nset logscale y\nset style fill solid 0.4\nset boxwidth 0.6\n"
                "set xtics rotate by -20\nset rmargin 12\nunset key\n"
                "plot 'table1.dat' using 0:($2 > 0 ? $2 : 1/0):xtic(1) with boxes\n",
                terminals[t], terminals[t]);
    bool well = data && script;
    well &= !data || plot_close(data, "table1");
    well &= !script || plot_close(script, "table1");
    if (well && plot_draw(folder, "table1"))
        fprintf(f, "![Table 1](table1.svg)\n\n");
    return well;
}
