/* The measurements as a table on standard output, as FOLDER/results.csv and as FOLDER/results.json. */
#define _GNU_SOURCE 1
#include "memscale.h"

#include <stdio.h>

static double of(const json_t *one, const char *group, const char *name)
{
    return json_number_value(json_object_get(json_object_get(one, group), name));
}

static const char *text(const json_t *one, const char *name)
{
    return json_string_value(json_object_get(one, name));
}

static void print_table(const json_t *all)
{
    const json_t *one;
    size_t i;

    printf("%-16s %-9s %5s %9s %9s %9s %9s %9s %9s %9s %9s %17s\n", "kB a process", "", "ranks", "private", "largest",
           "PSS", "tables", "device", "ours", "init ms", "first us", "latency us (q1-q3)");
    json_array_foreach(all, i, one)
    {
        printf("%-16s %-9s %5lld %9.0f %9.0f %9.0f %9.0f %9.0f %9.0f %9.1f", text(one, "config"), text(one, "pattern"),
               (long long)json_integer_value(json_object_get(one, "ranks")), of(one, "mean", "private") / 1e3,
               of(one, "largest", "private") / 1e3, of(one, "mean", "proportional") / 1e3,
               of(one, "mean", "page_tables") / 1e3, of(one, "mean", "device_share") / 1e3, ours_bytes(one) / 1e3,
               of(one, "mean", "init_us") / 1e3);
        if (of(one, "mean", "first_us") >= 0)
            printf(" %9.1f", of(one, "mean", "first_us"));
        else
            printf(" %9s", "-");
        if (json_object_get(one, "latency_us"))
            printf(" %7.2f (%.2f-%.2f)", of(one, "latency_us", "median"), of(one, "latency_us", "q1"),
                   of(one, "latency_us", "q3"));
        putchar('\n');
    }
}

/* Median and quartiles; empty where nothing was timed. */
static void csv_times(FILE *f, const json_t *one, const char *group)
{
    if (json_object_get(one, group))
        fprintf(f, ",%.3f,%.3f,%.3f", of(one, group, "median"), of(one, group, "q1"), of(one, group, "q3"));
    else
        fputs(",,,", f);
}

/* A figure and a comma before it; empty where there is none, as the time of a first message that nobody sent. */
static void csv_figure(FILE *f, double v)
{
    if (v < 0)
        fputc(',', f);
    else
        fprintf(f, ",%.1f", v);
}

/* In quotes, with those inside doubled (RFC 4180). */
static void csv_text(FILE *f, const char *t)
{
    fputc('"', f);
    for (; t && *t; t++) {
        if (*t == '"')
            fputc('"', f);
        fputc(*t, f);
    }
    fputc('"', f);
}

bool tables_write(const json_t *all, const char *folder)
{
    static const char *const columns[] = {"private",      "proportional", "page_tables", "device",
                                          "device_share", "init_us",      "first_us"};
    char path[4200];
    const json_t *one;
    size_t i;

    print_table(all);
    snprintf(path, sizeof path, "%s/results.csv", folder);
    FILE *f = fopen(path, "we");
    bool well = f != NULL;
    if (f) {
        fprintf(f, "config,transport,pattern,ranks");
        for (size_t k = 0; k < sizeof columns / sizeof *columns; k++)
            fprintf(f, ",%s,%s_largest", columns[k], columns[k]);
        fprintf(f,
                ",ours,latency_us,latency_us_q1,latency_us_q3,all_pairs_us,all_pairs_us_q1,all_pairs_us_q3,library\n");
        json_array_foreach(all, i, one)
        {
            csv_text(f, text(one, "config"));
            fprintf(f, ",%s,%s,%lld", text(one, "transport"), text(one, "pattern"),
                    (long long)json_integer_value(json_object_get(one, "ranks")));
            for (size_t k = 0; k < sizeof columns / sizeof *columns; k++) {
                csv_figure(f, of(one, "mean", columns[k]));
                csv_figure(f, of(one, "largest", columns[k]));
            }
            fprintf(f, ",%.1f", ours_bytes(one));
            csv_times(f, one, "latency_us");
            csv_times(f, one, "all_pairs_us");
            fputc(',', f);
            csv_text(f, text(one, "library"));
            fputc('\n', f);
        }
        well = !ferror(f);
        well = fclose(f) == 0 && well;
    }
    snprintf(path, sizeof path, "%s/results.json", folder);
    well = json_dump_file(all, path, JSON_INDENT(1) | JSON_SORT_KEYS) == 0 && well;
    if (!well)
        fprintf(stderr, "strata-memscale: the tables in %s cannot be written\n", folder);
    return well;
}
