/* The command `compare`: the plan of jobs, their turns, and samples taken from what they print. */
#include "compare.h"

#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "report.h"

const char *impl_name(enum impl i)
{
    static const char *const names[N_IMPLS] = {"Strata",      "Open MPI", "MPICH",      "sockets",
                                               "bare copies", "other",    "other again"};
    return names[i];
}

void choose_cpus(struct compare *c)
{
    hwloc_topology_t t;
    if (c->o->n_cpus) {
        memcpy(c->cpus, c->o->cpus, sizeof c->cpus);
        c->n_cpus = c->o->n_cpus;
        return;
    }
    if (hwloc_topology_init(&t) != 0)
        return;
    hwloc_bitmap_t mine = hwloc_bitmap_alloc();
    if (mine && hwloc_topology_load(t) == 0 && hwloc_get_cpubind(t, mine, HWLOC_CPUBIND_PROCESS) == 0) {
        for (hwloc_obj_t core = NULL; (core = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_CORE, core));) {
            hwloc_bitmap_t here = hwloc_bitmap_dup(core->cpuset);
            hwloc_bitmap_and(here, here, mine);
            if (!hwloc_bitmap_iszero(here) && c->n_cpus < PERF_MAX_CPUS)
                c->cpus[c->n_cpus++] = hwloc_bitmap_first(here);
            hwloc_bitmap_free(here);
        }
    }
    hwloc_bitmap_free(mine);
    hwloc_topology_destroy(t);
}

static struct line *find_line(struct compare *c, const struct job *job, const char *kind, const char *unit,
                              size_t bytes, size_t depth)
{
    for (size_t i = 0; i < c->n_lines; i++) {
        struct line *l = &c->lines[i];
        if (l->test == job->test && l->ranks == job->ranks && l->bytes == bytes && l->depth == depth &&
            strcmp(l->kind, kind) == 0 && strcmp(l->unit, unit) == 0)
            return l;
    }
    struct line *more = realloc(c->lines, (c->n_lines + 1) * sizeof *more);
    if (!more)
        return NULL;
    c->lines = more;
    struct line *l = &c->lines[c->n_lines++];
    *l = (struct line){.test = job->test, .ranks = job->ranks, .bytes = bytes, .depth = depth};
    snprintf(l->kind, sizeof l->kind, "%s", kind);
    snprintf(l->unit, sizeof l->unit, "%s", unit);
    return l;
}

/* Whether a row is compared: of a start the whole, of memory all but the lines of Strata's own report. */
static bool wanted(enum perf_test test, const char *kind)
{
    if (test == PERF_START)
        return strcmp(kind, "start") == 0;
    return test != PERF_MEMORY || strncmp(kind, "after", 5) == 0 || strncmp(kind, "of this", 7) == 0;
}

/* A job's rows into the lines. Of a start the slowest rank counts, of memory the mean. */
static void take_rows(struct compare *c, const struct job *job, enum impl impl, json_t *result)
{
    size_t i, k;
    json_t *row, *v, *readings;
    json_array_foreach(json_object_get(result, "rows"), i, row)
    {
        json_t *kind_j = json_object_get(row, "kind");
        const char *kind = kind_j ? json_string_value(kind_j) : "";
        const char *unit = json_string_value(json_object_get(row, "unit"));
        bool start = job->test == PERF_START, memory = job->test == PERF_MEMORY;
        if (!wanted(job->test, kind))
            continue;
        struct line *l =
            find_line(c, job, kind, unit ? unit : "", (size_t)json_integer_value(json_object_get(row, "bytes")),
                      (size_t)json_integer_value(json_object_get(row, "depth")));
        if (!l)
            return;
        if (start || memory) {
            add_sample(&l->of[impl], json_real_value(json_object_get(row, start ? "max" : "mean")), 0, 0);
            continue;
        }
        readings = json_object_get(row, "exchange");
        json_array_foreach(json_object_get(row, "samples"), k, v)
        {
            add_sample(&l->of[impl], json_real_value(v), json_real_value(json_array_get(readings, k)),
                       json_real_value(json_array_get(readings, k + 1)));
        }
    }
}

/* What to run: ring against Open MPI only, since MPICH spins for milliseconds a step when cores are shared. */
static size_t plan(const struct compare *c, struct job *jobs)
{
    const unsigned all = (1u << N_IMPLS) - 1, ring = all & ~(1u << IMPL_MPICH);
    size_t n = 0;
    int pairs_ranks = c->n_cpus >= 4 && !c->o->cluster ? 4 : 2;
    for (unsigned t = 0; t < PERF_N_TESTS; t++) {
        enum perf_test test = (enum perf_test)t;
        if (!(c->o->only & 1u << t))
            continue;
        if (test == PERF_RING) {
            jobs[n++] = (struct job){test, 8, ring, 2, false};
            jobs[n++] = (struct job){test, 16, ring, 2, false};
        } else if (test == PERF_START || test == PERF_MEMORY) {
            jobs[n++] = (struct job){test, (int)c->o->ranks, all, 0, false};
        } else if (test == PERF_MBW) {
            jobs[n++] = (struct job){test, pairs_ranks, all, (unsigned)pairs_ranks, true};
        } else {
            jobs[n++] = (struct job){test, 2, all, 2, true};
        }
    }
    return n;
}

static void note(struct compare *c, const struct job *job, enum impl impl)
{
    double now = perf_now();
    if (now - c->last_note < 2)
        return;
    c->last_note = now;
    fprintf(stderr, "strata-perf compare: round %zu of %zu, %s with %d ranks, %s; %.0f s so far\n", c->done + 1,
            c->o->rounds, perf_test_name(job->test), job->ranks, impl_name(impl), now - c->started);
}

/* Each job once; false when a signal has ended it. */
static bool run_round(struct compare *c, struct job *jobs, size_t n_jobs)
{
    for (size_t j = 0; j < n_jobs; j++)
        for (unsigned i = 0; i < N_IMPLS; i++) {
            if (!c->have[i] || !(jobs[j].impls & 1u << i))
                continue;
            note(c, &jobs[j], (enum impl)i);
            json_t *result = run_job(c, &jobs[j], (enum impl)i);
            if (c->processes.signo) {
                json_decref(result);
                return false;
            }
            if (result)
                take_rows(c, &jobs[j], (enum impl)i, result);
            else if (i == IMPL_STRATA || i >= IMPL_OTHER)
                c->failed = true;
            json_decref(result);
        }
    measure_bare(c);
    return true;
}

int perf_compare(const struct perf_options *o, char **argv)
{
    struct compare c = {.o = o};
    struct job jobs[2 * PERF_N_TESTS];
    c.started = c.last_note = perf_now();
    choose_cpus(&c);
    find_implementations(&c);
    if (!c.have[IMPL_STRATA] || (o->against && !c.have[IMPL_OTHER]) || (o->cluster && cluster_enter(&c, argv) != 0))
        return 1;
    if (c.n_cpus < 2)
        fprintf(stderr, "strata-perf compare: only one core may be used; times with two ranks on it mean little\n");
    processes_begin(&c.processes);
    size_t n_jobs = plan(&c, jobs);
    while (c.done < o->rounds && run_round(&c, jobs, n_jobs))
        c.done++;
    if (c.processes.signo)
        fprintf(stderr, "strata-perf compare: ended by signal %d in round %zu of %zu; what was measured follows\n",
                c.processes.signo, c.done + 1, o->rounds);
    find_usual(&c);
    if (o->json)
        print_json(&c);
    else
        print_tables(&c);
    for (size_t i = 0; i < c.n_lines; i++)
        for (unsigned k = 0; k < N_IMPLS; k++)
            free(c.lines[i].of[k].v);
    free(c.lines);
    return c.processes.signo ? 128 + c.processes.signo : c.failed ? 1 : 0;
}
