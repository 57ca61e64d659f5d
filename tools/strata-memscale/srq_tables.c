/* Tables 1 to 3 on standard output and as FOLDER/srq.csv; medians of the rounds. */
#define _GNU_SOURCE 1
#include "kernel.h"
#include "memscale.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static long long number(const json_t *one, const char *name)
{
    return (long long)json_integer_value(json_object_get(one, name));
}

static const char *text(const json_t *one, const char *name)
{
    const char *t = json_string_value(json_object_get(one, name));

    return t ? t : "";
}

/* Of the same cell: all but the round. */
static bool same_cell(const json_t *a, const json_t *b)
{
    static const char *const names[] = {"table", "config", "count", "kernel", "class", "ranks", "posted"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!json_equal(json_object_get(a, names[i]), json_object_get(b, names[i])) &&
            (json_object_get(a, names[i]) || json_object_get(b, names[i])))
            return false;
    return true;
}

static double value_of(const json_t *one)
{
    if (number(one, "table") == 1)
        return json_number_value(json_object_get(json_object_get(one, "latency_us"), "median"));
    return json_number_value(json_object_get(one, "seconds"));
}

/* Median over the rounds; a wrong result is no figure: -1. */
static double median(const json_t *all, const json_t *cell, int *rounds)
{
    double v[1024];
    size_t n = 0, i;
    const json_t *one;

    json_array_foreach(all, i, one) if (n < 1024 && same_cell(one, cell) &&
                                        !json_is_false(json_object_get(one, "right"))) v[n++] = value_of(one);
    *rounds = (int)n;
    if (n == 0)
        return -1;
    qsort(v, n, sizeof *v, by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static bool is_first(const json_t *all, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (same_cell(json_array_get(all, i), json_array_get(all, at)))
            return false;
    return true;
}

static void print_posted(const json_t *all)
{
    const json_t *one;
    size_t i;
    int rounds;

    puts("Table 1: zero-byte latency of two ranks by receives that are posted, us one way");
    json_array_foreach(all, i, one) if (number(one, "table") == 1 && is_first(all, i))
        printf("%8lld %8.3f\n", number(one, "posted"), median(all, one, &rounds));
}

/* The cell without a shared queue, of the same kernel, class and ranks. */
static double without(const json_t *all, const json_t *cell)
{
    const json_t *one;
    size_t i;
    int rounds;

    json_array_foreach(all, i, one)
    {
        json_t *want = json_copy((json_t *)cell);
        json_object_set(want, "config", json_object_get(one, "config"));
        json_object_set(want, "count", json_object_get(one, "count"));
        bool found = strcmp(text(one, "config"), "no SRQ") == 0 && same_cell(one, want);
        json_decref(want);
        if (found)
            return median(all, one, &rounds);
    }
    return -1;
}

static void print_kernels(const json_t *all, int table)
{
    const json_t *one;
    size_t i;
    int rounds;

    printf("Table %d: seconds%s; x: beside no SRQ\n", table, table == 3 ? ", collectives aware of arrival" : "");
    printf("%-10s %-5s %5s %-18s %7s %10s %7s %6s\n", "kernel", "class", "ranks", "queues", "buffers", "s", "x",
           "rounds");
    for (size_t k = 0; k < kernel_n_rows; k++) {
        json_array_foreach(all, i, one)
        {
            if (number(one, "table") != table || strcmp(text(one, "kernel"), kernel_rows[k].name) != 0 ||
                !is_first(all, i))
                continue;
            const double v = median(all, one, &rounds), base = without(all, one);
            printf("%-10s %-5s %5lld %-18s %7lld ", text(one, "kernel"), text(one, "class"), number(one, "ranks"),
                   text(one, "config"), number(one, "count"));
            if (v < 0)
                puts("     wrong");
            else
                printf("%10.4f %7.2f %6d\n", v, base > 0 ? v / base : 0, rounds);
        }
    }
}

bool srq_tables(const json_t *all, const char *folder)
{
    char path[4200];
    const json_t *one;
    size_t i;

    print_posted(all);
    print_kernels(all, 2);
    print_kernels(all, 3);
    snprintf(path, sizeof path, "%s/srq.csv", folder);
    FILE *f = fopen(path, "we");
    if (f) {
        fputs("table,config,count,kernel,class,ranks,posted,round,value,right\n", f);
        json_array_foreach(all, i, one) fprintf(
            f, "%lld,\"%s\",%lld,%s,%s,%lld,%lld,%lld,%.6g,%d\n", number(one, "table"), text(one, "config"),
            number(one, "count"), text(one, "kernel"), text(one, "class"), number(one, "ranks"), number(one, "posted"),
            number(one, "round"), value_of(one), !json_is_false(json_object_get(one, "right")));
    }
    if (f && fclose(f) == 0)
        return true;
    fprintf(stderr, "strata-memscale: %s: %s\n", path, strerror(errno));
    return false;
}
