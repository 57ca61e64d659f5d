/* The results of `channel`, as tables and as JSON. */
#include "channel.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "report.h"

static const char *title(enum channel_table table)
{
    static const char *const titles[N_TABLES] = {
        [TABLE_STREAM] = "Stream, Mbit/s (Table I)",
        [TABLE_PING_PONG] = "Ping-pong, one way, microseconds (Table II)",
        [TABLE_FROM_ANY] = "From any of so many channels, of which one talks: a round trip, microseconds",
        [TABLE_FARM] = "Farm of 192 stochastic simulations, seconds elapsed (Table III)",
        [TABLE_FARM_CPU] = "The same farm, processor seconds of the master",
        [TABLE_TASKS] = "Farm on demand, 20,000 tasks of 10 us, seconds elapsed",
        [TABLE_TASKS_CPU] = "The same farm, processor seconds of the master",
        [TABLE_SLEEP] = "Farm on demand, 2,875 tasks that sleep 5 ms, 50 at one worker: seconds elapsed (ideal: 2.025)",
        [TABLE_SLEEP_CPU] = "The same farm, processor seconds of the master",
    };
    return titles[table];
}

static bool is_farm(enum channel_table table)
{
    return table >= TABLE_FARM;
}

static const char *number_name(enum channel_table table)
{
    return is_farm(table) ? "workers" : table == TABLE_FROM_ANY ? "channels" : "bytes";
}

/* As the table shows it: Mbit/s of a stream. */
static double shown(const struct channel_line *l, double value)
{
    return l->table == TABLE_STREAM ? (double)l->number * 8 / value : value;
}

/* Whether a way has a value in any row of the table. */
static bool measured(const struct channel_bench *b, enum channel_table table, enum channel_wire wire, unsigned way)
{
    for (size_t i = 0; i < b->n_lines; i++)
        if (b->lines[i].table == table && b->lines[i].wire == wire && b->lines[i].of[way].n)
            return true;
    return false;
}

static void print_line(const struct channel_bench *b, const struct channel_line *l)
{
    char text[256];
    bool asked = channel_judge(b, l, text, sizeof text);
    printf("| %zu |", l->number);
    for (unsigned way = 0; way < N_WAYS; way++) {
        double value = channel_median(l, (enum channel_way)way);
        if (!measured(b, l->table, l->wire, way))
            continue;
        if (value > 0)
            printf(" %.*f |", shown(l, value) >= 100 ? 0 : 3, shown(l, value));
        else
            printf(" - |");
    }
    printf(" %s%s |\n", !asked ? "" : text[0] ? "missed: " : "met", asked ? text : "");
}

static void print_table(const struct channel_bench *b, enum channel_table table, enum channel_wire wire)
{
    bool headed = false;
    for (size_t i = 0; i < b->n_lines; i++) {
        if (b->lines[i].table != table || b->lines[i].wire != wire)
            continue;
        if (!headed) {
            printf("\n## %s: %s\n\n| %s |", channel_wire_name(wire), title(table), number_name(table));
            for (unsigned way = 0; way < N_WAYS; way++)
                if (measured(b, table, wire, way))
                    printf(" %s |", channel_way_name((enum channel_way)way));
            printf(" bars |\n|---|");
            for (unsigned way = 0; way < N_WAYS; way++)
                if (measured(b, table, wire, way))
                    printf("---|");
            printf("---|\n");
            headed = true;
        }
        print_line(b, &b->lines[i]);
    }
}

void channel_print(const struct channel_bench *b)
{
    size_t met = 0, asked = 0;
    char text[256];
    printf("Medians of %zu round%s in turn. Processors", b->n_rounds, b->n_rounds == 1 ? "" : "s");
    for (size_t i = 0; i < b->n_cpus; i++)
        printf("%s%d", i ? "," : " ", b->cpus[i]);
    printf(". ZeroMQ and NNG: ipc beside sm, tcp beside tcp. openib is on softhca.\n"
           "A missed bar says how many times as long the other takes, and how many it should.\n");
    for (unsigned wire = 0; wire < N_WIRES; wire++)
        for (unsigned table = 0; table < N_TABLES; table++)
            print_table(b, (enum channel_table)table, (enum channel_wire)wire);
    for (size_t i = 0; i < b->n_lines; i++)
        if (channel_judge(b, &b->lines[i], text, sizeof text)) {
            asked++;
            met += text[0] == 0;
        }
    printf("\n%zu of %zu rows meet their bars.\n", met, asked);
}

void channel_print_json(const struct channel_bench *b)
{
    json_t *root = json_object(), *rows = json_array();
    json_object_set_new(root, "rounds", json_integer((json_int_t)b->n_rounds));
    for (size_t i = 0; i < b->n_lines; i++) {
        const struct channel_line *l = &b->lines[i];
        json_t *row = json_object(), *ways = json_object();
        char text[256];
        json_object_set_new(row, "table", json_string(channel_table_name(l->table)));
        json_object_set_new(row, "wire", json_string(channel_wire_name(l->wire)));
        json_object_set_new(row, number_name(l->table), json_integer((json_int_t)l->number));
        json_object_set_new(row, "unit", json_string(is_farm(l->table) ? "s" : "us"));
        for (unsigned way = 0; way < N_WAYS; way++) {
            struct perf_summary s = perf_summarise(l->of[way].v, l->of[way].n);
            if (l->of[way].n)
                json_object_set_new(ways, channel_way_name((enum channel_way)way),
                                    json_pack("{s:f,s:f,s:f,s:I}", "median", s.median, "low", s.low, "high", s.high,
                                              "samples", (json_int_t)l->of[way].n));
        }
        json_object_set_new(row, "ways", ways);
        if (channel_judge(b, l, text, sizeof text)) {
            json_object_set_new(row, "met", json_boolean(text[0] == 0));
            json_object_set_new(row, "missed", json_string(text));
        }
        json_array_append_new(rows, row);
    }
    json_object_set_new(root, "rows", rows);
    json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    printf("\n");
    json_decref(root);
}
