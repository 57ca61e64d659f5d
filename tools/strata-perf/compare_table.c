/* The results of `compare`: targets, ratios, the table and JSON. */
#include <stdio.h>
#include <string.h>

#include "compare.h"
#include "report.h"

/* What Strata is to reach on a line. Ratios are Strata over the better peer, or, for `own`, over Strata's own time with
 * one message queued; `absolute` is in the line's unit. */
struct target {
    enum { TARGET_NONE, TARGET_AT_MOST, TARGET_AT_LEAST, TARGET_OWN_AT_MOST, TARGET_ABSOLUTE } kind;
    double value;
};

/* Under Open MPI: against ob1 in the same Open MPI. */
static struct target embed_target(const struct line *l)
{
    switch (l->test) {
    case PERF_LATENCY:
        if (l->bytes >= 262144)
            return (struct target){TARGET_AT_MOST, 0.65};
        return (struct target){TARGET_AT_MOST, l->bytes <= 512 || (l->bytes > 4096 && l->bytes <= 32768) ? 0.9 : 0.85};
    case PERF_BW:
    case PERF_BIBW:
    case PERF_MBW:
        return (struct target){TARGET_AT_LEAST, l->bytes == 8 ? 1.0 : 1.1};
    case PERF_MATCH:
        return (struct target){l->depth > 1 ? TARGET_AT_MOST : TARGET_NONE, 0.05};
    case PERF_RING:
        return (struct target){TARGET_AT_MOST, 1.0};
    case PERF_MEMORY:
        return (struct target){strcmp(l->kind, "after talking to all") == 0 ? TARGET_AT_MOST : TARGET_NONE, 1.1};
    default:
        return (struct target){TARGET_NONE, 0};
    }
}

/* Between machines: faster than both peers, and short messages at most 1.1 times as slow as bare sockets. */
static struct target cluster_target(const struct line *l)
{
    if (l->kind[0])
        return (struct target){TARGET_NONE, 0};
    return (struct target){l->test == PERF_LATENCY ? TARGET_AT_MOST : TARGET_AT_LEAST, 1.0};
}

#define OTHER_RATIO 0.02 /* as much slower than another build, beyond what that differs from itself by */

static bool more_is_better(const struct line *l)
{
    return (l->test == PERF_BW || l->test == PERF_BIBW || l->test == PERF_MBW) && !l->kind[0];
}

/* Against another build, which was measured twice as often. */
static struct target other_target(const struct compare *c, const struct line *l)
{
    double one = summary_of(c, l, IMPL_OTHER).median;
    double two = summary_of(c, l, IMPL_OTHER_AGAIN).median;
    if (one <= 0 || two <= 0)
        return (struct target){TARGET_NONE, 0};
    double most = (one > two ? one / two : two / one) + OTHER_RATIO;
    return more_is_better(l) ? (struct target){TARGET_AT_LEAST, 1 / most} : (struct target){TARGET_AT_MOST, most};
}

static struct target target_of(const struct line *l)
{
    switch (l->test) {
    case PERF_LATENCY:
        if (l->bytes <= 512)
            return (struct target){TARGET_AT_MOST, 0.9};
        if (l->bytes <= 4096)
            return (struct target){TARGET_AT_MOST, 0.8};
        if (l->bytes <= 32768)
            return (struct target){TARGET_AT_MOST, 0.9};
        return (struct target){TARGET_AT_MOST, l->bytes < 262144 ? 0.8 : 0.6};
    case PERF_BW:
    case PERF_BIBW:
    case PERF_MBW:
        return (struct target){TARGET_AT_LEAST, l->bytes == 8 && l->test != PERF_BIBW ? 1.3 : 1.1};
    case PERF_MATCH:
        return l->depth > 1 ? (struct target){TARGET_OWN_AT_MOST, 1.5} : (struct target){TARGET_NONE, 0};
    case PERF_RING:
        return (struct target){TARGET_AT_MOST, 1.0};
    case PERF_START:
        return (struct target){TARGET_ABSOLUTE, 0.5};
    case PERF_MEMORY:
        return strcmp(l->kind, "after talking to all") == 0 ? (struct target){TARGET_ABSOLUTE, 2000}
                                                            : (struct target){TARGET_NONE, 0};
    case PERF_COLL:
    case PERF_WORLD:
    case PERF_COMPARE:
    case PERF_CHANNEL:
    case PERF_N_TESTS:
        break;
    }
    return (struct target){TARGET_NONE, 0};
}

struct judged {
    struct perf_summary of[N_IMPLS];
    struct target target;
    double ratio; /* to the better peer; 0: no peer */
    double floor; /* to bare sockets or copies; 0: not measured */
    double own;   /* match: to the same at depth 1; 0: unknown */
    int best;     /* the better peer, or -1 */
    int verdict;  /* 1 met, 0 missed, -1 nothing to judge */
};

static const struct line *shallow(const struct compare *c, const struct line *l)
{
    for (size_t i = 0; i < c->n_lines; i++)
        if (c->lines[i].test == PERF_MATCH && c->lines[i].depth == 1 && strcmp(c->lines[i].kind, l->kind) == 0)
            return &c->lines[i];
    return NULL;
}

/* Times of the lower bound that a latency may take at most; 0: any. Between machines, bare sockets; on one, the
 * exchange of a cache line, or copies through a ring, without a launcher of others. */
static double floor_ratio(const struct compare *c, const struct line *l)
{
    if (l->test != PERF_LATENCY || c->o->embed || c->o->against)
        return 0;
    if (c->o->cluster)
        return l->bytes <= 8 ? 1.1 : 0;
    return l->bytes <= 8 ? 2.2 : l->bytes >= 1024 && l->bytes <= 4096 ? 1.2 : 0;
}

/* Whether memory is the limit: Strata and the better peer are both within 5 % of what both processors can copy. */
static bool by_memory(const struct line *l, const struct judged *j)
{
    double limit = 0.95 * j->of[IMPL_BARE].median;
    return more_is_better(l) && j->target.kind == TARGET_AT_LEAST && j->best >= 0 && limit > 0 &&
           j->of[IMPL_STRATA].median >= limit && j->of[j->best].median >= limit;
}

static struct judged judge(const struct compare *c, const struct line *l)
{
    struct judged j = {.target = c->o->against   ? other_target(c, l)
                                 : c->o->embed   ? embed_target(l)
                                 : c->o->cluster ? cluster_target(l)
                                                 : target_of(l),
                       .best = -1,
                       .verdict = -1};
    for (int i = 0; i < N_IMPLS; i++) {
        j.of[i] = summary_of(c, l, (enum impl)i);
        if (i == IMPL_STRATA || i == IMPL_SOCKETS || i == IMPL_BARE || i == IMPL_OTHER_AGAIN || j.of[i].n == 0 ||
            (c->o->embed && i != IMPL_OPENMPI))
            continue;
        double mine = j.of[i].median, best = j.best < 0 ? 0 : j.of[j.best].median;
        if (j.best < 0 || (more_is_better(l) ? mine > best : mine < best))
            j.best = i;
    }
    double strata = j.of[IMPL_STRATA].median;
    if (j.of[IMPL_STRATA].n == 0)
        return j;
    if (j.best >= 0 && j.of[j.best].median > 0)
        j.ratio = strata / j.of[j.best].median;
    double floor = j.of[c->o->cluster ? IMPL_SOCKETS : IMPL_BARE].median;
    j.floor = floor > 0 ? strata / floor : 0;
    if (!c->o->cluster && by_memory(l, &j))
        j.target.value = 1;
    if (l->test == PERF_MATCH && l->depth > 1) {
        const struct line *one = shallow(c, l);
        double t = one ? summary_of(c, one, IMPL_STRATA).median : 0;
        j.own = t > 0 ? strata / t : 0;
    }
    if (j.target.kind == TARGET_AT_MOST && j.ratio > 0)
        j.verdict = j.ratio <= j.target.value;
    else if (j.target.kind == TARGET_AT_LEAST && j.ratio > 0)
        j.verdict = j.ratio >= j.target.value;
    else if (j.target.kind == TARGET_OWN_AT_MOST && j.own > 0)
        j.verdict = j.own <= j.target.value;
    else if (j.target.kind == TARGET_ABSOLUTE)
        j.verdict = strata <= j.target.value;
    if (j.verdict == 1 && floor_ratio(c, l) > 0 && j.floor > floor_ratio(c, l))
        j.verdict = 0;
    return j;
}

/* Processor time (--cost), which is no figure of its own test. */
static bool is_cost(const struct line *l)
{
    return strcmp(l->unit, "s/GB") == 0;
}

/* Whether the tables have a column for it. */
static bool has_column(const struct compare *c, int impl)
{
    if (impl == IMPL_STRATA)
        return true;
    if (c->o->against)
        return impl >= IMPL_OTHER;
    return impl < IMPL_SOCKETS || impl == (c->o->cluster ? IMPL_SOCKETS : IMPL_BARE);
}

static void title(const struct compare *c, const struct line *l)
{
    static const char *const what[PERF_N_TESTS] = {[PERF_LATENCY] = "one-way time",
                                                   [PERF_BW] = "bandwidth",
                                                   [PERF_BIBW] = "bidirectional bandwidth",
                                                   [PERF_MBW] = "bandwidth of all pairs",
                                                   [PERF_MATCH] = "time of an exchange with others queued",
                                                   [PERF_RING] = "time of a step on two cores",
                                                   [PERF_START] = "slowest start",
                                                   [PERF_MEMORY] = "private memory per rank"};
    printf("\n%s: %s, %s, %d ranks\n", perf_test_name(l->test),
           is_cost(l) ? "processor time of both ranks" : what[l->test], l->unit, l->ranks);
    printf("%-22s", l->test == PERF_MATCH ? "queued" : l->kind[0] && l->bytes == 0 ? "" : "bytes");
    for (int i = 0; i < N_IMPLS; i++)
        if (has_column(c, i))
            printf("%12s", impl_name((enum impl)i));
    printf("%10s%12s%16s  %s\n", "ratio",
           c->o->against   ? ""
           : c->o->cluster ? "to sockets"
                           : "to copies",
           "target", "verdict");
}

static void label(const struct line *l, char out[64])
{
    char b[24];
    if (l->test == PERF_MATCH)
        snprintf(out, 64, "%s, depth %zu", l->kind, l->depth);
    else if (l->kind[0] && !l->bytes)
        snprintf(out, 64, "%s", l->kind);
    else
        snprintf(out, 64, "%s", perf_size_text(l->bytes, b));
}

static void target_text(const struct judged *j, const char *unit, char out[40])
{
    switch (j->target.kind) {
    case TARGET_NONE:
        out[0] = 0;
        break;
    case TARGET_AT_MOST:
        snprintf(out, 40, "<= %.2fx", j->target.value);
        break;
    case TARGET_AT_LEAST:
        snprintf(out, 40, ">= %.2fx", j->target.value);
        break;
    case TARGET_OWN_AT_MOST:
        snprintf(out, 40, "own <= %.2fx", j->target.value);
        break;
    case TARGET_ABSOLUTE:
        snprintf(out, 40, "<= %.1f %s", j->target.value, unit);
        break;
    }
}

static void print_line(const struct compare *c, const struct line *l, size_t *met, size_t *judged)
{
    char name[64], target[40];
    struct judged j = judge(c, l);
    label(l, name);
    printf("%-22s", name);
    for (int i = 0; i < N_IMPLS; i++) {
        if (has_column(c, i) && j.of[i].n)
            printf("%12.*f", j.of[i].median >= 1000 ? 0 : 3, j.of[i].median);
        else if (has_column(c, i))
            printf("%12s", "-");
    }
    if (j.ratio > 0)
        printf("%9.2fx", j.ratio);
    else
        printf("%10s", "-");
    if (j.floor > 0)
        printf("%11.2fx", j.floor);
    else if (!c->o->against)
        printf("%12s", "-");
    target_text(&j, l->unit, target);
    printf("%16s  %s", target, j.verdict < 0 ? "" : j.verdict ? "met" : "missed");
    if (j.own > 0)
        printf(" (%.2fx)", j.own);
    if (l->of[IMPL_STRATA].n && l->of[IMPL_STRATA].v[0].exchange != 0 && !has_usual(c, l))
        printf(" (all samples)");
    printf("\n");
    *judged += j.verdict >= 0;
    *met += j.verdict == 1;
}

static const char *ratio_of(const struct compare *c)
{
    if (c->o->against)
        return " to the other build; target: what that differs from itself by, and 2 %";
    if (c->o->embed)
        return " under Open MPI to Open MPI's ob1 and vader";
    if (c->o->cluster)
        return ", one rank on each of two machines, to the better of Open MPI's btl tcp and MPICH over UCX";
    return " to the better peer";
}

void print_tables(const struct compare *c)
{
    size_t met = 0, judged = 0;
    printf("# medians of batches, %zu rounds of %zu in turn%s; ratio: Strata%s; processors", c->done, c->o->batches,
           c->processes.signo ? " and a part of the next" : "", ratio_of(c));
    for (size_t i = 0; i < c->n_cpus; i++)
        printf("%s%d", i ? "," : " ", c->cpus[i]);
    printf("%s\n", c->o->check ? "; payload verified" : "");
    if (c->usual > 0)
        printf(
            "# bare exchange of a cache line, one way: %.3f us; samples left out because it was another: %zu of %zu\n",
            c->usual, c->unlike, c->read);
    const struct line *last = NULL;
    for (int pass = 0; pass < 2; pass++) /* what bw has cost comes after all of its bandwidths */
        for (size_t i = 0; i < c->n_lines; i++) {
            const struct line *l = &c->lines[i];
            if (pass != is_cost(l))
                continue;
            if (!last || last->test != l->test || last->ranks != l->ranks || pass != is_cost(last))
                title(c, l);
            print_line(c, l, &met, &judged);
            last = l;
        }
    printf("\n%zu of %zu targets met\n", met, judged);
}

void print_json(const struct compare *c)
{
    static const char *const keys[N_IMPLS] = {"strata", "openmpi", "mpich", "sockets", "bare", "other", "other_again"};
    json_t *root = json_object(), *rows = json_array(), *cpus = json_array();
    for (size_t i = 0; i < c->n_cpus; i++)
        json_array_append_new(cpus, json_integer(c->cpus[i]));
    json_object_set_new(root, "rounds", json_integer((json_int_t)c->done));
    json_object_set_new(root, "rounds_wanted", json_integer((json_int_t)c->o->rounds));
    json_object_set_new(root, "batches_per_round", json_integer((json_int_t)c->o->batches));
    json_object_set_new(root, "processors", cpus);
    json_object_set_new(root, "exchange_us", json_real(c->usual));
    json_object_set_new(root, "samples_read", json_integer((json_int_t)c->read));
    json_object_set_new(root, "samples_unlike", json_integer((json_int_t)c->unlike));
    for (size_t i = 0; i < c->n_lines; i++) {
        const struct line *l = &c->lines[i];
        struct judged j = judge(c, l);
        char target[40];
        json_t *row = json_object();
        json_object_set_new(row, "test", json_string(perf_test_name(l->test)));
        json_object_set_new(row, "ranks", json_integer(l->ranks));
        if (l->kind[0])
            json_object_set_new(row, "kind", json_string(l->kind));
        json_object_set_new(row, "bytes", json_integer((json_int_t)l->bytes));
        if (l->test == PERF_MATCH)
            json_object_set_new(row, "depth", json_integer((json_int_t)l->depth));
        json_object_set_new(row, "unit", json_string(l->unit));
        for (int k = 0; k < N_IMPLS; k++)
            if (j.of[k].n)
                json_object_set_new(row, keys[k],
                                    json_pack("{s:f,s:f,s:f,s:I}", "median", j.of[k].median, "low", j.of[k].low, "high",
                                              j.of[k].high, "samples", (json_int_t)j.of[k].n));
        if (j.ratio > 0)
            json_object_set_new(row, "ratio", json_real(j.ratio));
        if (j.floor > 0)
            json_object_set_new(row, c->o->cluster ? "ratio_to_sockets" : "ratio_to_bare", json_real(j.floor));
        if (j.own > 0)
            json_object_set_new(row, "ratio_to_depth_1", json_real(j.own));
        target_text(&j, l->unit, target);
        if (target[0])
            json_object_set_new(row, "target", json_string(target));
        if (j.verdict >= 0)
            json_object_set_new(row, "met", json_boolean(j.verdict));
        json_object_set_new(row, "all_samples", json_boolean(!has_usual(c, l)));
        json_array_append_new(rows, row);
    }
    json_object_set_new(root, "rows", rows);
    json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    printf("\n");
    json_decref(root);
}
