/* Counters and memory of all ranks, row by row. */
#define _GNU_SOURCE
#include "merge.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN_RANKS = 16, MEMORY_TOTAL_WIDTH = 40 }; /* of larger jobs the text has no values of single ranks */

int merge_create(struct merge *m, int n, bool asked)
{
    size_t count = (size_t)n;
    *m = (struct merge){.n = n,
                        .asked = asked,
                        .present = calloc(count, sizeof(bool)),
                        .sent = calloc(count, sizeof(*m->sent)),
                        .heard = calloc(count, sizeof(*m->heard)),
                        .rows = {json_object(), json_object()}};
    if (m->present && m->sent && m->heard && m->rows[0] && m->rows[1])
        return 0;
    merge_destroy(m);
    return -1;
}

void merge_destroy(struct merge *m)
{
    for (int i = 0; i < m->n; i++) {
        if (m->sent)
            free(m->sent[i]);
        if (m->heard)
            free(m->heard[i]);
    }
    free(m->sent);
    free(m->heard);
    free(m->present);
    for (int i = 0; i < MERGE_TABLES; i++)
        json_decref(m->rows[i]);
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* The row of this name with a value of null for each rank, made if need be. */
static json_t *row_of(const struct merge *m, enum merge_table table, const char *name, const char *unit,
                      const char *kind)
{
    json_t *row = json_object_get(m->rows[table], name);
    if (row)
        return row;
    json_t *values = json_array();
    for (int i = 0; i < m->n; i++)
        json_array_append_new(values, json_null());
    row = json_pack("{s:s, s:s, s:s, s:o}", "name", name, "unit", unit, "kind", kind, "by_rank", values);
    if (row)
        json_object_set_new(m->rows[table], name, row);
    return row;
}

static void add_value(json_t *row, int rank, json_int_t value)
{
    json_t *values = json_object_get(row, "by_rank");
    json_int_t before = json_integer_value(json_array_get(values, (size_t)rank));
    json_array_set_new(values, (size_t)rank, json_integer(before + value));
}

static void add_counters(const struct merge *m, int rank, const json_t *list)
{
    const json_t *c;
    size_t i;
    json_array_foreach(list, i, c)
    {
        json_t *row = row_of(m, MERGE_COUNTERS, text_of(c, "name"), text_of(c, "unit"), text_of(c, "kind"));
        add_value(row, rank, json_integer_value(json_object_get(c, "value")));
    }
}

static const char *memory_kind(const json_t *line)
{
    if (strcmp(text_of(line, "component"), "process") == 0)
        return "of the process";
    if (json_is_true(json_object_get(line, "user")))
        return "the program's";
    return json_is_true(json_object_get(line, "shared")) ? "shared" : "private";
}

/* What all of it is for each peer with which there was contact. */
static void add_memory_per_peer(const struct merge *m, int rank, json_int_t total, size_t peers)
{
    add_value(row_of(m, MERGE_MEMORY, "peers with contact", "peers", "peers"), rank, (json_int_t)peers);
    if (peers)
        add_value(row_of(m, MERGE_MEMORY, "all of Strata's for each of them", "bytes", "by peer"), rank,
                  total / (json_int_t)peers);
}

/* The program's own memory is not Strata's and not in the sum. */
static void add_memory(const struct merge *m, int rank, const json_t *list, size_t peers)
{
    json_t *total = row_of(m, MERGE_MEMORY, "all of Strata's", "bytes", "sum");
    json_int_t sum = 0;
    const json_t *line;
    size_t i;
    json_array_foreach(list, i, line)
    {
        char name[256];
        bool user = json_is_true(json_object_get(line, "user"));
        json_int_t bytes = json_integer_value(json_object_get(line, "bytes"));
        snprintf(name, sizeof(name), "%s: %s", text_of(line, "component"), text_of(line, "category"));
        json_t *row = row_of(m, MERGE_MEMORY, name, "bytes", memory_kind(line));
        json_int_t most = json_integer_value(json_object_get(line, "most"));
        add_value(row, rank, bytes);
        if (most >= json_integer_value(json_object_get(row, "most")))
            json_object_set_new(row, "most", json_integer(most));
        if (!user) {
            add_value(total, rank, bytes);
            sum += bytes;
        }
    }
    if (list)
        add_memory_per_peer(m, rank, sum, peers);
}

void merge_add(struct merge *m, int rank, const json_t *record)
{
    m->present[rank] = true;
    add_counters(m, rank, json_object_get(record, "counters"));
    add_memory(m, rank, json_object_get(record, "memory"), json_array_size(json_object_get(record, "peers")));
    merge_add_peers(m, rank, json_object_get(record, "peers"));
}

void merge_print_missing(const struct merge *m, FILE *out)
{
    int n = 0;
    for (int i = 0; i < m->n; i++)
        n += !m->present[i];
    if (n == 0)
        return;
    fprintf(out, "strata-run: no report from rank%s", n == 1 ? "" : "s");
    for (int i = 0, k = 0; i < m->n; i++)
        if (!m->present[i])
            fprintf(out, "%s %d", k++ ? "," : "", i);
    fprintf(out, m->asked ? ": no call into Strata that makes progress within 2 s\n"
                          : ": it was left without strata_finalize\n");
}

/* Sum, least and most of those ranks that have the row. */
struct extent {
    json_int_t sum, min, max;
    int min_rank, max_rank, n;
};

static struct extent extent_of(const json_t *row)
{
    struct extent e = {0};
    const json_t *value;
    size_t i;
    json_array_foreach(json_object_get(row, "by_rank"), i, value)
    {
        json_int_t v = json_integer_value(value);
        if (!json_is_integer(value))
            continue;
        if (e.n == 0 || v < e.min) {
            e.min = v;
            e.min_rank = (int)i;
        }
        if (e.n == 0 || v > e.max) {
            e.max = v;
            e.max_rank = (int)i;
        }
        e.sum += v;
        e.n++;
    }
    return e;
}

static const char *const table_names[MERGE_TABLES] = {"counters", "memory"};

static void print_rows_json(const struct merge *m, enum merge_table table, FILE *out)
{
    json_t *list = json_array(), *missing = json_array(), *row;
    const char *name;
    json_object_foreach(m->rows[table], name, row)
    {
        struct extent e = extent_of(row);
        json_t *all = json_pack("{s:I, s:I, s:i, s:I, s:i}", "sum", e.sum, "min", e.min, "min_rank", e.min_rank, "max",
                                e.max, "max_rank", e.max_rank);
        json_object_update(all, row);
        json_array_append_new(list, all);
    }
    for (int i = 0; i < m->n; i++)
        if (!m->present[i])
            json_array_append_new(missing, json_integer(i));
    json_t *report = json_pack("{s:s, s:s, s:i, s:o, s:o}", "report", table_names[table], "when",
                               m->asked ? "asked" : "end", "ranks", m->n, "missing", missing, "rows", list);
    json_dumpf(report, out, JSON_COMPACT);
    fputc('\n', out);
    json_decref(report);
}

static void print_extent(json_int_t value, int rank, FILE *out)
{
    char text[48];
    snprintf(text, sizeof(text), "%lld (%d)", (long long)value, rank);
    fprintf(out, " %16s", text);
}

static void print_row(const struct merge *m, enum merge_table table, const json_t *row, const struct extent *e,
                      int width, FILE *out)
{
    const json_t *value;
    char name[256];
    size_t i;
    snprintf(name, sizeof(name), "%s, %s", text_of(row, "name"), text_of(row, table == MERGE_MEMORY ? "kind" : "unit"));
    fprintf(out, "  %-*s %14lld", width, name, (long long)e->sum);
    print_extent(e->min, e->min_rank, out);
    print_extent(e->max, e->max_rank, out);
    if (m->n <= SHOWN_RANKS) {
        fprintf(out, "  ");
        json_array_foreach(json_object_get(row, "by_rank"), i, value)
        {
            if (json_is_integer(value))
                fprintf(out, " %lld", (long long)json_integer_value(value));
            else
                fprintf(out, " -");
        }
    }
    fputc('\n', out);
}

static void print_rows_text(const struct merge *m, enum merge_table table, FILE *out)
{
    const char *name;
    json_t *row;
    int width = MEMORY_TOTAL_WIDTH, n_zero = 0;
    json_object_foreach(m->rows[table], name, row)
    {
        int n = (int)(strlen(name) + strlen(text_of(row, "unit")) + 2);
        struct extent e = extent_of(row);
        width = (e.min || e.max) && n > width ? n : width;
    }
    fprintf(out, "strata-run: %s of %d rank%s, %s\n", table == MERGE_MEMORY ? "memory in bytes" : "counters", m->n,
            m->n == 1 ? "" : "s", m->asked ? "while the job runs" : "at the end");
    fprintf(out, "  %-*s %14s %16s %16s%s\n", width, "", "sum", "min (rank)", "max (rank)",
            m->n <= SHOWN_RANKS ? "   by rank" : "");
    json_object_foreach(m->rows[table], name, row)
    {
        struct extent e = extent_of(row);
        if (e.min || e.max)
            print_row(m, table, row, &e, width, out);
        else
            n_zero++;
    }
    if (n_zero)
        fprintf(out, "  and %d more that %s 0 on every rank\n", n_zero, n_zero == 1 ? "is" : "are");
}

void merge_print_rows(const struct merge *m, enum merge_table table, bool json, FILE *out)
{
    if (json)
        print_rows_json(m, table, out);
    else
        print_rows_text(m, table, out);
}
