/* The report of a run, in Markdown. */
#include "config.h"
#include "report.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include "plots.h"
#include "test.h"

static void settings_rows(FILE *f, const json_t *about)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)json_object_get(about, "settings"), key, value)
    {
        const char *text = json_string_value(value);
        if (text && *text)
            fprintf(f, " `--%s %s`", key, text);
    }
    fprintf(f, "\n\n");
}

static void table_of(FILE *f, const struct miba_test *t, const struct results *r)
{
    char median[32], q1[32], q3[32], size[16];
    bool begun = false;

    for (size_t i = 0; i < r->n; i++) {
        const struct result *one = &r->all[i];
        if (one->c.test != t)
            continue;
        if (!begun)
            fprintf(f,
                    "## %s: %s\n\n%s\n\n| figure | operation | kind | bytes | %s | median | quartiles | samples | "
                    "|\n|---|---|---|---|---|---|---|---|---|\n",
                    t->name, t->paper, t->isolates, t->x_name);
        begun = true;
        size[0] = 0;
        if (one->c.size)
            snprintf(size, sizeof size, "%u", one->c.size);
        fprintf(f, "| %s | %s%s%s | %s | %s | %llu |", one->figure, one->c.op ? miba_op_name(one->c.op) : "",
                one->c.op ? " " : "", one->c.op ? miba_transport_name(one->c.transport) : "", case_variant(&one->c),
                size, (unsigned long long)one->c.x);
        if (one->status) {
            fprintf(f, " | | | %s: %s |\n", miba_status_name(one->status), one->why.text);
            continue;
        }
        print_value(one->sum.median, one->unit, median, sizeof median);
        print_value(one->sum.q1, one->unit, q1, sizeof q1);
        print_value(one->sum.q3, one->unit, q3, sizeof q3);
        fprintf(f, " %s | %s to %s | %u | %s |\n", median, q1, q3, one->sum.n, one->marked ? one->why.text : "");
    }
    if (begun)
        fprintf(f, "\n");
}

bool report_write(const char *folder, const struct results *r, const json_t *about, const char *error)
{
    char path[PATH_MAX];
    bool well = true, any, drawn, some_drawn = false;

    snprintf(path, sizeof path, "%s/report.md", folder);
    FILE *f = fopen(path, "we");
    if (!f) {
        fprintf(stderr, "strata-miba: %s: cannot be written: %s\n", path, strerror(errno));
        return false;
    }
    fprintf(f, "# strata-miba %s on %s\n\nPort %lld, %s, MTU %lld, firmware %s, %lld processors. Settings:",
            json_string_value(json_object_get(about, "version")), json_string_value(json_object_get(about, "device")),
            (long long)json_integer_value(json_object_get(about, "port")),
            json_string_value(json_object_get(about, "link")),
            (long long)json_integer_value(json_object_get(about, "mtu")),
            json_string_value(json_object_get(about, "firmware")),
            (long long)json_integer_value(json_object_get(about, "processors")));
    settings_rows(f, about);
    if (error)
        fprintf(f, "The run ended early: %s. `--resume` goes on with it.\n\n", error);
    well &= table1_write(f, folder, r);
    for (unsigned i = 0; i < miba_plots_count(); i++) {
        well &= plot_write(folder, &miba_plots[i], r, &any, &drawn);
        if (any && drawn)
            fprintf(f, "![%s](%s.svg)\n", miba_plots[i].title, miba_plots[i].name);
        else if (any)
            fprintf(f, "- %s: [%s.gp](%s.gp), `gnuplot %s.gp`\n", miba_plots[i].title, miba_plots[i].name,
                    miba_plots[i].name, miba_plots[i].name);
        some_drawn |= drawn;
    }
    fprintf(f, "\n");
    for (unsigned i = 0; i < miba_tests_count(); i++)
        table_of(f, miba_tests[i], r);
    const bool failed = ferror(f) != 0, unflushed = fclose(f) != 0;
    if (failed || unflushed)
        fprintf(stderr, "strata-miba: %s: cannot be written: %s\n", path, strerror(errno));
    else
        fprintf(stderr, "strata-miba: report: %s%s\n", path,
                some_drawn ? "" : " (no gnuplot: scripts without pictures)");
    return well && !failed && !unflushed;
}
