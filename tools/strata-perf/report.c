#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double perf_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double at_fraction(const double *sorted, size_t n, double f)
{
    double pos = f * (double)(n - 1);
    size_t i = (size_t)pos;
    double rest = pos - (double)i;
    return i + 1 < n ? sorted[i] * (1 - rest) + sorted[i + 1] * rest : sorted[i];
}

struct perf_summary perf_summarise(const double *samples, size_t n)
{
    struct perf_summary s = {.n = n};
    double *copy = n ? malloc(n * sizeof *copy) : NULL;
    if (!copy)
        return s;
    memcpy(copy, samples, n * sizeof *copy);
    qsort(copy, n, sizeof *copy, by_value);
    s.median = at_fraction(copy, n, 0.5);
    s.low = at_fraction(copy, n, 0.25);
    s.high = at_fraction(copy, n, 0.75);
    s.max = copy[n - 1];
    for (size_t i = 0; i < n; i++)
        s.mean += copy[i] / (double)n;
    free(copy);
    return s;
}

/* Measured once in the life of a job. */
static bool once(enum perf_test test)
{
    return test == PERF_START || test == PERF_MEMORY;
}

void perf_report_begin(struct perf_report *r, const struct perf_options *o, const char *implementation, int ranks)
{
    *r = (struct perf_report){.o = o, .root = json_object(), .rows = json_array()};
    r->started = r->last_note = perf_now();
    json_object_set_new(r->root, "test", json_string(perf_test_name(o->test)));
    json_object_set_new(r->root, "implementation", json_string(implementation));
    json_object_set_new(r->root, "ranks", json_integer(ranks));
    if (o->json)
        return;
    printf("# %s %s, %d rank%s; ", implementation, perf_test_name(o->test), ranks, ranks == 1 ? "" : "s");
    if (once(o->test))
        printf("one value of each rank\n");
    else
        printf("medians and quartiles of %zu batches%s\n", o->batches, o->check ? ", payload verified" : "");
}

static void head(struct perf_report *r)
{
    switch (r->o->test) {
    case PERF_LATENCY:
        printf("%10s %12s %12s %12s %12s\n", "bytes", "one-way us", "25 % us", "75 % us", "MB/s");
        break;
    case PERF_BW:
    case PERF_BIBW:
    case PERF_MBW:
        printf("%10s %12s %12s %12s %12s\n", "bytes", "MB/s", "25 % MB/s", "75 % MB/s", "messages M/s");
        break;
    case PERF_MATCH:
        printf("%-12s %10s %14s %12s %12s\n", "queued", "depth", "exchange us", "25 % us", "75 % us");
        break;
    case PERF_RING:
        printf("%10s %12s %12s %12s\n", "bytes", "step us", "25 % us", "75 % us");
        break;
    case PERF_START:
    case PERF_MEMORY:
        printf("%-32s %12s %12s %6s\n", r->o->test == PERF_START ? "phase" : "private memory", "mean", "largest",
               "unit");
        break;
    case PERF_COLL: /* report_coll.c */
    case PERF_WORLD:
    case PERF_COMPARE:
    case PERF_CHANNEL:
    case PERF_N_TESTS:
        break;
    }
}

static void text_row(const struct perf_options *o, const struct perf_row *row, const struct perf_summary *s)
{
    char b[24];
    int digits = o->test == PERF_MEMORY ? 1 : 4; /* kB, s */
    perf_size_text(row->bytes, b);
    switch (o->test) {
    case PERF_LATENCY:
        printf("%10s %12.3f %12.3f %12.3f %12.1f\n", b, s->median, s->low, s->high,
               s->median > 0 ? (double)row->bytes / s->median : 0);
        break;
    case PERF_BW:
    case PERF_BIBW:
    case PERF_MBW:
        if (row->kind) {
            printf("%10s %12.4f %12.4f %12.4f %s of processors\n", b, s->median, s->low, s->high, row->unit);
            break;
        }
        printf("%10s %12.1f %12.1f %12.1f %12.3f\n", b, s->median, s->low, s->high,
               row->bytes ? s->median / (double)row->bytes : 0);
        break;
    case PERF_MATCH:
        printf("%-12s %10zu %14.3f %12.3f %12.3f\n", row->kind, row->depth, s->median, s->low, s->high);
        break;
    case PERF_RING:
        printf("%10s %12.3f %12.3f %12.3f\n", b, s->median, s->low, s->high);
        break;
    case PERF_START:
    case PERF_MEMORY:
        printf("%-32s %12.*f %12.*f %6s\n", row->kind, digits, s->mean, digits, s->max, row->unit);
        if (o->all)
            for (size_t i = 0; i < row->n; i++)
                printf("%28s %3zu %12.*f\n", "rank", i, digits, row->samples[i]);
        break;
    case PERF_COLL: /* report_coll.c */
    case PERF_WORLD:
    case PERF_COMPARE:
    case PERF_CHANNEL:
    case PERF_N_TESTS:
        break;
    }
}

void perf_report_row(struct perf_report *r, const struct perf_row *row)
{
    struct perf_summary s = perf_summarise(row->samples, row->n);
    if (!r->o->json) {
        if (!r->headed)
            head(r);
        r->headed = true;
        text_row(r->o, row, &s);
        fflush(stdout);
        return;
    }
    json_t *j = json_object(), *samples = json_array();
    if (row->kind)
        json_object_set_new(j, "kind", json_string(row->kind));
    json_object_set_new(j, "bytes", json_integer((json_int_t)row->bytes));
    if (r->o->test == PERF_MATCH)
        json_object_set_new(j, "depth", json_integer((json_int_t)row->depth));
    json_object_set_new(j, "unit", json_string(row->unit));
    json_object_set_new(j, "median", json_real(s.median));
    json_object_set_new(j, "low", json_real(s.low));
    json_object_set_new(j, "high", json_real(s.high));
    json_object_set_new(j, "mean", json_real(s.mean));
    json_object_set_new(j, "max", json_real(s.max));
    for (size_t i = 0; i < row->n; i++)
        json_array_append_new(samples, json_real(row->samples[i]));
    json_object_set_new(j, "samples", samples);
    if (row->exchange) {
        json_t *readings = json_array();
        for (size_t i = 0; i <= row->n; i++)
            json_array_append_new(readings, json_real(row->exchange[i]));
        json_object_set_new(j, "exchange", readings);
    }
    json_array_append_new(r->rows, j);
}

void perf_report_set(struct perf_report *r, const char *key, json_t *value)
{
    json_object_set_new(r->root, key, value);
}

void perf_report_progress(struct perf_report *r, const char *what)
{
    double now = perf_now();
    if (now - r->last_note < 2)
        return;
    r->last_note = now;
    fprintf(stderr, "strata-perf: %s, %.0f s so far\n", what, now - r->started);
}

void perf_report_end(struct perf_report *r)
{
    json_object_set_new(r->root, "rows", r->rows);
    if (r->o->json) {
        json_dumpf(r->root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
        printf("\n");
    }
    fflush(stdout);
    json_decref(r->root);
    r->root = r->rows = NULL;
}
