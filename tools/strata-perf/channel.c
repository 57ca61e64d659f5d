/* The command `channel`: what is compared over which wire, its options, and the rounds. */
#include "channel.h"

#include <stdio.h>
#include <stdlib.h>
#include <strata/sdk/clock.h>
#include <string.h>

#include "commands.h"
#include "compare.h"
#include "report.h"

static const char *const table_names[N_TABLES] = {
    [TABLE_STREAM] = "stream",       [TABLE_PING_PONG] = "ping-pong", [TABLE_FROM_ANY] = "from-any",
    [TABLE_FARM] = "farm",           [TABLE_FARM_CPU] = "farm-cpu",   [TABLE_TASKS] = "tasks",
    [TABLE_TASKS_CPU] = "tasks-cpu", [TABLE_SLEEP] = "sleep",         [TABLE_SLEEP_CPU] = "sleep-cpu"};
static const char *const wire_names[N_WIRES] = {"sm", "openib", "tcp"};

static const char *const way_words[N_WAYS] = {"channel", "send", "openmpi", "mpich", "zmq", "nng", "verbs"};

const char *channel_way_name(enum channel_way way)
{
    static const char *const names[N_WAYS] = {"channel", "strata_send", "Open MPI",   "MPICH",
                                              "ZeroMQ",  "NNG",         "ib_write_bw"};
    return names[way];
}

const char *channel_wire_name(enum channel_wire wire)
{
    return wire_names[wire];
}

const char *channel_table_name(enum channel_table table)
{
    return table_names[table];
}

static struct channel_line *line_of(struct channel_bench *b, enum channel_table table, enum channel_wire wire,
                                    size_t number)
{
    struct channel_line *l = b->lines;
    for (; l < b->lines + b->n_lines; l++)
        if (l->table == table && l->wire == wire && l->number == number)
            return l;
    if (b->n_lines == CHANNEL_LINES)
        return NULL;
    b->n_lines++;
    *l = (struct channel_line){.table = table, .wire = wire, .number = number};
    return l;
}

void channel_take(struct channel_bench *b, enum channel_wire wire, enum channel_way way, const char *text)
{
    char name[16], *end;
    size_t number;
    int at = 0;
    if (sscanf(text, "%15s %zu %n", name, &number, &at) != 2 || at == 0)
        return;
    double value = strtod(text + at, &end);
    for (unsigned t = 0; end != text + at && t < N_TABLES; t++) {
        if (strcmp(name, table_names[t]) != 0)
            continue;
        struct channel_line *l = line_of(b, (enum channel_table)t, wire, number);
        double *more = l ? realloc(l->of[way].v, (l->of[way].n + 1) * sizeof *more) : NULL;
        if (!more)
            return;
        l->of[way].v = more;
        more[l->of[way].n++] = value;
    }
}

/* Whether a comma list has the word. */
static bool listed(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',')
        if (strcspn(p, ",") == n && strncmp(p, word, n) == 0)
            return true;
    return false;
}

/* Whether each word of a comma list is among `n` known ones; says which one is not. */
static bool all_known(const char *option, const char *list, const char *const *known, size_t n)
{
    for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',') {
        bool found = false;
        for (size_t i = 0; i < n; i++)
            found |= strlen(known[i]) == strcspn(p, ",") && strncmp(known[i], p, strlen(known[i])) == 0;
        if (!found) {
            fprintf(stderr, "strata-perf channel: %s: there is no `%.*s'\n", option, (int)strcspn(p, ","), p);
            return false;
        }
    }
    return true;
}

/* False: a signal has ended it. */
static bool run_wire(struct channel_bench *b, enum channel_wire wire, size_t round)
{
    static const struct {
        const char *what;
        int ranks;
    } jobs[] = {{"pair", 2}, {"farm", 3}, {"farm", 9}, {"tasks", 9}, {"sleep", 9}};
    for (size_t j = 0; j < sizeof jobs / sizeof jobs[0]; j++)
        for (unsigned way = 0; listed(b->o->tables, jobs[j].what) && way < N_WAYS; way++) {
            if (!channel_fits(b, wire, (enum channel_way)way) || (way == WAY_VERBS && j > 0) ||
                b->given_up[wire][way] & 1u << j)
                continue;
            if (processes_asked(&b->processes))
                return false;
            fprintf(stderr, "strata-perf channel: round %zu of %zu, %s, %s with %d ranks, %s\n", round + 1,
                    b->o->rounds, wire_names[wire], jobs[j].what, jobs[j].ranks,
                    channel_way_name((enum channel_way)way));
            int status = channel_job(b, wire, (enum channel_way)way, jobs[j].what, jobs[j].ranks);
            if (b->processes.signo)
                return false;
            if (status == CHANNEL_LATE)
                b->given_up[wire][way] |= 1u << j;
            b->failed |= status != 0 && (way == WAY_CHANNEL || way == WAY_SEND);
        }
    return true;
}

static bool run_round(struct channel_bench *b)
{
    for (unsigned wire = 0; wire < N_WIRES; wire++)
        if (listed(b->o->wires, wire_names[wire]) && !run_wire(b, (enum channel_wire)wire, b->n_rounds))
            return false;
    return true;
}

/* Whether one more round ends in time, if it takes as long as those before. */
static bool channel_has_time(const struct channel_bench *b, int64_t elapsed_ms)
{
    return b->o->minutes == 0 || b->n_rounds == 0 ||
           elapsed_ms / (int64_t)b->n_rounds * (int64_t)(b->n_rounds + 1) <= (int64_t)b->o->minutes * 60000;
}

int perf_channel(const struct perf_options *o)
{
    static const char *const whats[] = {"pair", "farm", "tasks", "sleep"};
    struct channel_bench *b = calloc(1, sizeof *b);
    if (!all_known("--wires", o->wires, wire_names, N_WIRES) || !all_known("--tables", o->tables, whats, 4) ||
        !all_known("--ways", o->ways, way_words, N_WAYS)) {
        free(b);
        return 2;
    }
    if (!b)
        return 1;
    b->o = o;
    struct compare c = {.o = o};
    choose_cpus(&c);
    memcpy(b->cpus, c.cpus, sizeof b->cpus);
    b->n_cpus = c.n_cpus;
    bool ok = channel_find(b);
    for (unsigned way = 0; way < N_WAYS; way++)
        b->have[way] = b->have[way] && listed(o->ways, way_words[way]);
    int64_t started = st_now_ms();
    processes_begin(&b->processes);
    while (ok && b->n_rounds < o->rounds && channel_has_time(b, st_now_ms() - started) && run_round(b))
        b->n_rounds++;
    const int signo = b->processes.signo;
    if (signo)
        fprintf(stderr, "strata-perf channel: ended by signal %d in round %zu of %zu; what was measured follows\n",
                signo, b->n_rounds + 1, o->rounds);
    if (ok && o->json)
        channel_print_json(b);
    else if (ok)
        channel_print(b);
    ok = ok && !b->failed;
    for (size_t i = 0; i < b->n_lines; i++)
        for (unsigned way = 0; way < N_WAYS; way++)
            free(b->lines[i].of[way].v);
    free(b);
    return signo ? 128 + signo : ok ? 0 : 1;
}
