/* --model: what the measurements say of larger jobs, as a table, FOLDER/model.json and a figure's data. */
#define _GNU_SOURCE 1
#include "memscale.h"
#include "model_terms.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With three points AICc allows one term only, and what begins and grows has two. */
enum { LEAST_POINTS = 4 };
static const double far_ranks[] = {1e3, 1e4, 1e5, 1e6};
enum { N_FAR = sizeof far_ranks / sizeof *far_ranks };
#define WITHIN 0.10

struct series {
    const char *config, *pattern;
    struct model_limits limits;
    struct model_point *points[N_PARTS]; /* one block, at points[0]; free it */
    size_t n;
    struct model models[N_PARTS];
    size_t fitted; /* points up to half the largest number of ranks */
};

static double ranks_at(const struct series *s, size_t i)
{
    return s->points[0][i].x[MODEL_RANK];
}

static int by_ranks(const void *a, const void *b)
{
    const struct model_point *x = a, *y = b;

    return (x->x[MODEL_RANK] > y->x[MODEL_RANK]) - (x->x[MODEL_RANK] < y->x[MODEL_RANK]);
}

static bool same_series(const json_t *a, const json_t *b)
{
    return results_match(a, b) && json_equal(json_object_get(a, "pattern"), json_object_get(b, "pattern"));
}

/* False: no memory. */
static bool gather(struct series *s, const json_t *all, const json_t *first)
{
    const size_t room = json_array_size(all);
    const json_t *one;
    size_t i;

    *s = (struct series){.config = json_string_value(json_object_get(first, "config")),
                         .pattern = json_string_value(json_object_get(first, "pattern"))};
    s->points[0] = calloc(N_PARTS * room, sizeof *s->points[0]);
    if (!s->points[0])
        return false;
    for (int part = 1; part < N_PARTS; part++)
        s->points[part] = s->points[part - 1] + room;
    model_limits_of(&s->limits, first);
    json_array_foreach(all, i, one)
    {
        if (!same_series(one, first))
            continue;
        for (int part = 0; part < N_PARTS; part++) {
            struct model_point *p = &s->points[part][s->n];
            model_terms(&s->limits, json_number_value(json_object_get(one, "ranks")), p->x);
            p->bytes = model_part_bytes(one, (enum model_part)part);
        }
        s->n++;
    }
    for (int part = 0; part < N_PARTS; part++)
        qsort(s->points[part], s->n, sizeof *s->points[part], by_ranks);
    return true;
}

static bool fit(struct series *s)
{
    double largest = s->n ? ranks_at(s, s->n - 1) : 0;

    while (s->fitted < s->n && ranks_at(s, s->fitted) <= largest / 2)
        s->fitted++;
    for (int part = 0; part < N_PARTS; part++)
        if (s->fitted < LEAST_POINTS ||
            !model_fit(&s->models[part], model_allowed(&s->limits, (enum model_part)part), s->points[part], s->fitted))
            return false;
    return true;
}

static double predicted(const struct series *s, double ranks)
{
    double sum = 0, x[MODEL_TERMS];

    model_terms(&s->limits, ranks, x);
    for (int part = 0; part < N_SUMMED; part++)
        sum += model_bytes(&s->models[part], x);
    return sum;
}

static double measured(const struct series *s, size_t i)
{
    double sum = 0;

    for (int part = 0; part < N_SUMMED; part++)
        sum += s->points[part][i].bytes;
    return sum;
}

/* "1.2 MB + 31.0 kB P", or "0" */
static void formula(const struct model *m, char *text, size_t size)
{
    static const char *const names[MODEL_TERMS] = {"", " N", " P", " log2(1+P)", " R", " / N", " Q"};
    size_t at = 0;

    snprintf(text, size, "0");
    for (int t = 0; t < MODEL_TERMS && at < size; t++) {
        double v = m->size[t];
        if (v > 0)
            at += (size_t)snprintf(text + at, size - at, "%s%.4g %s%s", at ? " + " : "",
                                   v >= 1e6   ? v / 1e6
                                   : v >= 1e3 ? v / 1e3
                                              : v,
                                   v >= 1e6   ? "MB"
                                   : v >= 1e3 ? "kB"
                                              : "B",
                                   names[t]);
    }
}

static json_t *series_json(const struct series *s, double wrong)
{
    json_t *j = json_pack("{s:s, s:s, s:i, s:f, s:f, s:f, s:f}", "config", s->config, "pattern", s->pattern,
                          "fitted_points", (int)s->fitted, "fitted_up_to", ranks_at(s, s->fitted - 1), "largest",
                          ranks_at(s, s->n - 1), "measured", measured(s, s->n - 1), "error", wrong);
    json_t *sizes = json_object(), *far = json_object();

    for (int part = 0; part < N_PARTS; part++) {
        const double *v = s->models[part].size;
        json_object_set_new(sizes, model_part_names[part],
                            json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "base", v[MODEL_BASE], "rank",
                                      v[MODEL_RANK], "peer", v[MODEL_PEER], "log2_peers", v[MODEL_LOG], "ring",
                                      v[MODEL_RING], "queue_entry", v[MODEL_QUEUE], "by_ranks", v[MODEL_EACH]));
    }
    for (int i = 0; i < N_FAR; i++) {
        char name[16];
        snprintf(name, sizeof name, "%.0f", far_ranks[i]);
        json_object_set_new(far, name, json_real(predicted(s, far_ranks[i])));
    }
    json_object_set_new(j, "bytes", sizes);
    json_object_set_new(j, "predicted", far);
    if (isfinite(s->limits.peers))
        json_object_set_new(j, "most_peers", json_real(s->limits.peers));
    return j;
}

/* What the letters of the formula are, where they are not N - 1. */
static void print_limits(const struct series *s)
{
    double rings = 0, queue = 0;

    for (int part = 0; part < N_PARTS; part++) {
        rings += s->models[part].size[MODEL_RING];
        queue += s->models[part].size[MODEL_QUEUE];
    }
    if (isfinite(s->limits.peers))
        printf("    P = min(N - 1, %.0f)\n", s->limits.peers);
    if (rings > 0)
        printf("    R = min(P, %.0f)\n", s->limits.rings);
    if (queue > 0)
        printf("    Q = min(%.0f (N - 1), %.0f)\n", s->limits.per_peer, s->limits.entries);
}

static bool print_series(const struct series *s, json_t *out)
{
    const double at = ranks_at(s, s->n - 1), wrong = predicted(s, at) / measured(s, s->n - 1) - 1;
    char text[200];

    printf("%-16s %-9s fitted on N = %.0f to %.0f; at %.0f: %.2f MB, measured %.2f, %+.1f %%%s\n", s->config,
           s->pattern, ranks_at(s, 0), ranks_at(s, s->fitted - 1), at, predicted(s, at) / 1e6,
           measured(s, s->n - 1) / 1e6, wrong * 100, fabs(wrong) <= WITHIN ? "" : ": not within 10 %");
    for (int part = 0; part < N_PARTS; part++) {
        formula(&s->models[part], text, sizeof text);
        printf("    %-22s %s\n", model_part_names[part], text);
    }
    print_limits(s);
    printf("    MB at N =");
    for (int i = 0; i < N_FAR; i++)
        printf(" %.0e: %.1f%s", far_ranks[i], predicted(s, far_ranks[i]) / 1e6, i + 1 < N_FAR ? "," : "\n");
    json_array_append_new(out, series_json(s, wrong));
    return fabs(wrong) <= WITHIN;
}

/* Points of the line, and those that were measured. */
static void write_series(FILE *f, const struct series *s, bool first)
{
    fprintf(f, "%s# %s, %s\n", first ? "" : "\n\n", s->config, s->pattern);
    for (unsigned n = 2; n < 1500000; n *= 2)
        fprintf(f, "%u %.6g\n", n, predicted(s, n) / 1e6);
    fprintf(f, "\n\n# measured\n");
    for (size_t i = 0; i < s->n; i++)
        fprintf(f, "%.0f %.6g\n", ranks_at(s, i), measured(s, i) / 1e6);
}

static void write_plot(FILE *f, const json_t *models)
{
    const json_t *one;
    size_t i;

    fputs(
        "set title 'Memory of a process: model and measurements'\nset xlabel 'ranks'\nset ylabel 'MB'\n"
        "set logscale xy\nset key outside\nset terminal svg size 1000,600 background 'white'\nset output 'model.svg'\n",
        f);
    json_array_foreach(models, i, one)
    {
        fprintf(f, "%s'model.dat' index %zu with lines lc %zu title '%s, %s' noenhanced, \\\n", i ? "     " : "plot ",
                2 * i, i + 1, json_string_value(json_object_get(one, "config")),
                json_string_value(json_object_get(one, "pattern")));
        fprintf(f, "     'model.dat' index %zu with points lc %zu pt 7 notitle%s\n", 2 * i + 1, i + 1,
                i + 1 < json_array_size(models) ? ", \\" : "");
    }
    fputs("set terminal png size 1000,600\nset output 'model.png'\nreplot\n", f);
}

static bool write_figure(const json_t *models, const char *folder, FILE *data)
{
    char path[4200];

    snprintf(path, sizeof path, "%s/model.gp", folder);
    FILE *script = fopen(path, "we");
    if (script)
        write_plot(script, models);
    bool well = script && fclose(script) == 0;
    if (fclose(data) != 0 || !well) {
        fprintf(stderr, "strata-memscale: %s: %s\n", path, strerror(errno));
        return false;
    }
    (void)figure_draw(folder, "model");
    return true;
}

static bool is_first(const json_t *all, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (same_series(json_array_get(all, k), json_array_get(all, i)))
            return false;
    return true;
}

static bool model_series(const json_t *all, const json_t *first, FILE *data, json_t *models)
{
    struct series s;
    bool well = true;

    if (!gather(&s, all, first)) {
        fprintf(stderr, "strata-memscale: %s\n", strerror(ENOMEM));
        return false;
    }
    if (fit(&s)) {
        write_series(data, &s, json_array_size(models) == 0);
        well = print_series(&s, models);
    } else {
        printf("%-16s %-9s no model: it takes four numbers of ranks up to half the largest\n", s.config, s.pattern);
    }
    free(s.points[0]);
    return well;
}

bool model_write(const json_t *all, const char *folder)
{
    char path[4200];
    json_t *models = json_array();
    bool well = true;

    snprintf(path, sizeof path, "%s/model.dat", folder);
    FILE *data = fopen(path, "we");
    if (!data)
        fprintf(stderr, "strata-memscale: %s: %s\n", path, strerror(errno));
    puts("Model: bytes of a process of N ranks, P of them connected to it");
    for (size_t i = 0; data && i < json_array_size(all); i++)
        if (is_first(all, i))
            well &= model_series(all, json_array_get(all, i), data, models);
    snprintf(path, sizeof path, "%s/model.json", folder);
    if (!data || json_dump_file(models, path, JSON_INDENT(1) | JSON_SORT_KEYS) != 0)
        well = false;
    if (data && json_array_size(models))
        well &= write_figure(models, folder, data);
    else if (data)
        fclose(data);
    json_decref(models);
    return well;
}
