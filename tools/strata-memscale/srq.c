/* strata-memscale srq: Tables 1 to 3 of the paper: what a shared receive queue costs in time, with and without flow
 * control, beside queues per peer. */
#define _GNU_SOURCE 1
#include "kernel.h"
#include "memscale.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct srq_plan {
    int ranks, rounds, timeout;
    int table; /* 0: all */
    int counts[MOST_LIST];
    size_t n_counts;
    char size;
    bool quick;
    const char *folder;
    json_t *all;
    bool well;
    bool full; /* a result could not be recorded */
};

static const struct argp_option table[] = {
    {"ranks", 'n', "N", 0, "Ranks of a job (default: 8); the 3-D FFT takes powers of two", 0},
    {"class", 'C', "S|W|A", 0, "Size of the kernels (default: S)", 0},
    {"count", 'k', "COUNT,...", 0, "Most buffers of the shared queue (default: 16,64,256,1024,4096)", 0},
    {"rounds", 'r', "R", 0, "Each job so many times, in turn (default: 3)", 0},
    {"table", 'T', "1|2|3", 0, "This table only", 0},
    {"quick", 'q', NULL, 0, "One round, 4 ranks, two counts", 0},
    {"output", 'o', "DIR", 0, "Where the results are; a run that was ended goes on there (default: memscale)", 0},
    {"timeout", 't', "SECONDS", 0, "For one job (default: 600)", 0},
    {0}};

static int number(struct argp_state *state, const char *what, const char *text, int most)
{
    char *end;
    long n = strtol(text, &end, 10);

    if (*end || end == text || n < 1 || n > most)
        argp_error(state, "%s takes a number from 1 to %d, not \"%s\"", what, most, text);
    return (int)n;
}

static void take_counts(struct argp_state *state, const char *list)
{
    struct srq_plan *p = state->input;
    char copy[512], *rest = copy;

    if (strlen(list) >= sizeof copy)
        argp_error(state, "--count: a list of more than %zu characters", sizeof copy - 1);
    strcpy(copy, list);
    p->n_counts = 0;
    for (const char *item; (item = strsep(&rest, ",")) != NULL && p->n_counts < MOST_LIST;)
        p->counts[p->n_counts++] = number(state, "--count", item, 65536);
}

static void defaults(struct argp_state *state)
{
    struct srq_plan *p = state->input;

    if (!p->n_counts)
        take_counts(state, p->quick ? "16,4096" : "16,64,256,1024,4096");
    p->ranks = p->ranks ? p->ranks : p->quick ? 4 : 8;
    p->rounds = p->rounds ? p->rounds : p->quick ? 1 : 3;
    if (!folder_make(p->folder))
        argp_failure(state, EXIT_USER, errno, "%s", p->folder);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct srq_plan *p = state->input;

    switch (key) {
    case 'n':
        p->ranks = number(state, "--ranks", arg, SOFTHCA_RANKS);
        return 0;
    case 'C':
        if (strlen(arg) != 1 || !strchr("SWA", *arg))
            argp_error(state, "--class takes S, W or A, not \"%s\"", arg);
        p->size = *arg;
        return 0;
    case 'k':
        take_counts(state, arg);
        return 0;
    case 'r':
        p->rounds = number(state, "--rounds", arg, 1000);
        return 0;
    case 'T':
        p->table = number(state, "--table", arg, 3);
        return 0;
    case 'q':
        p->quick = true;
        return 0;
    case 'o':
        p->folder = arg;
        return 0;
    case 't':
        p->timeout = number(state, "--timeout", arg, 1000000);
        return 0;
    case ARGP_KEY_END:
        defaults(state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* A wrong result is measured again. */
static bool done(const struct srq_plan *p, const json_t *about)
{
    const json_t *one;
    size_t i;

    json_array_foreach(p->all, i, one)
    {
        const char *name;
        json_t *value;
        bool same = !json_is_false(json_object_get(one, "right"));
        json_object_foreach((json_t *)about, name, value) same &= json_equal(value, json_object_get(one, name));
        if (same)
            return true;
    }
    return false;
}

/* Takes both references. */
static void keep(struct srq_plan *p, json_t *about, json_t *result)
{
    char path[4200];

    snprintf(path, sizeof path, "%s/srq.jsonl", p->folder);
    json_object_update(about, result);
    json_array_append(p->all, about);
    p->full = !lines_add(path, about);
    json_decref(result);
    json_decref(about);
}

static void failed(struct srq_plan *p, const struct config *c, const char *what, const char *why)
{
    if (launch_ended())
        return;
    fprintf(stderr, "strata-memscale: %s, %s: %s\n", c->name, what, why);
    p->well = false;
}

/* Nothing more is to be measured. */
static bool over(const struct srq_plan *p)
{
    return p->full || launch_ended();
}

/* Whether the machine holds a job whose ranks all speak to all; says why not. */
static bool holds(struct srq_plan *p, const struct config *c, const char *kernel)
{
    const double need = estimate_bytes(NULL, c, ALL_TO_ALL, p->ranks), room = estimate_room();
    char why[200];

    if (need <= room)
        return true;
    snprintf(why, sizeof why,
             "refused: %d ranks need about %.1f GiB, and %.1f GiB of the available memory may be used, enough for %d",
             p->ranks, need / (1 << 30), room / (1 << 30), estimate_most(NULL, c, ALL_TO_ALL));
    failed(p, c, kernel, why);
    return false;
}

/* The kernel's result in a folder of its own, or NULL: said why. */
static json_t *run_kernel(struct srq_plan *p, const struct config *c, const char *kernel)
{
    char folder[4096], path[4200], why[4300], size[2] = {p->size};
    json_t *result = NULL;
    const struct plan run = {.folder = p->folder, .timeout = p->timeout};

    if (!launch_folder(&run, folder, sizeof folder)) {
        snprintf(why, sizeof why, "%s: %s", folder, strerror(errno));
        failed(p, c, kernel, why);
        return NULL;
    }
    const char *const what[] = {"kernel", kernel, size, folder, NULL};
    int status = launch_job(c, p->ranks, &run, what);
    snprintf(path, sizeof path, "%s/kernel.json", folder);
    if (status == 0)
        result = json_load_file(path, 0, NULL);
    snprintf(why, sizeof why, "strata-run ended with status %d", status);
    if (!result)
        failed(p, c, kernel, status ? why : "rank 0 left no figures");
    else if (!json_is_true(json_object_get(result, "right")))
        failed(p, c, kernel, "the result is wrong");
    (void)unlink(path);
    (void)rmdir(folder);
    return result;
}

static struct config config_of(const char *text)
{
    static struct plan plan; /* config_add adds to one */
    char why[1400];

    plan.n_configs = 0;
    if (!config_add(&plan, text, why, sizeof why))
        fprintf(stderr, "strata-memscale: %s\n", why);
    return plan.configs[0];
}

static void kernels(struct srq_plan *p, int table_no, const struct config *c, int count, int round)
{
    for (size_t i = 0; i < kernel_n_rows && !over(p); i++) {
        const char *name = kernel_rows[i].name;
        char size[2] = {p->size};
        json_t *about = json_pack("{s:i, s:s, s:i, s:s, s:s, s:i, s:i}", "table", table_no, "config", c->name, "count",
                                  count, "kernel", name, "class", size, "ranks", p->ranks, "round", round);
        if (done(p, about)) {
            json_decref(about);
            continue;
        }
        fprintf(stderr, "strata-memscale: table %d, round %d: %s, %d buffers, %s\n", table_no, round + 1, c->name,
                count, name);
        json_t *result = holds(p, c, name) ? run_kernel(p, c, name) : NULL;
        if (result)
            keep(p, about, result);
        else
            json_decref(about);
    }
}

/* `others`: parameters of other collectives. */
static void measure_queues(struct srq_plan *p, int table_no, const char *others, int round)
{
    char text[400];

    snprintf(text, sizeof text, "no SRQ:softhca;btl_openib_receive_queues=P,8448,72,1,64:P,33024,7,1,6%s", others);
    struct config c = config_of(text);
    kernels(p, table_no, &c, 72, round);
    for (size_t i = 0; i < p->n_counts; i++) {
        const int n = p->counts[i], low = n / 16 > 7 ? n / 16 : 7;
        snprintf(text, sizeof text, "SRQ:softhca;btl_openib_receive_queues=S,8448,%d,4,4096:S,33024,%d,1,512%s", n, low,
                 others);
        c = config_of(text);
        kernels(p, table_no, &c, n, round);
        snprintf(text, sizeof text,
                 "SRQ, flow control:softhca;btl_openib_receive_queues=S,8448,%d,4,64:S,33024,%d,1,6%s", n, low, others);
        c = config_of(text);
        kernels(p, table_no, &c, n, round);
    }
}

/* Table 1: how many receives are posted, b of x = log2(n) k + b. */
static void measure_posted(struct srq_plan *p, int round)
{
    static const int posted[] = {4, 16, 32, 64, 256, 1024, 4096};
    const struct plan plan = {.folder = p->folder, .timeout = p->timeout};

    for (size_t i = 0; i < sizeof posted / sizeof *posted && !over(p); i += p->quick ? 3 : 1) {
        char text[160], why[4300];
        snprintf(text, sizeof text, "posted:softhca;btl_openib_srq_b=%d", posted[i]);
        const struct config c = config_of(text);
        json_t *about = json_pack("{s:i, s:i, s:i}", "table", 1, "posted", posted[i], "round", round);
        if (done(p, about)) {
            json_decref(about);
            continue;
        }
        fprintf(stderr, "strata-memscale: table 1, round %d: %d receives posted\n", round + 1, posted[i]);
        json_t *one = job_run(&plan, &c, PAIRWISE, 2, why, sizeof why);
        if (one) {
            keep(p, about, json_pack("{s:O}", "latency_us", json_object_get(one, "latency_us")));
        } else {
            failed(p, &c, "pairwise", why);
            json_decref(about);
        }
        json_decref(one);
    }
}

static bool wanted(const struct srq_plan *p, int table_no)
{
    return p->table == 0 || p->table == table_no;
}

int srq_run(int argc, char **argv)
{
    static const struct argp argp = {
        .options = table,
        .parser = parse,
        .doc =
            "Latency by number of posted receives (Table 1), and times of kernels without shared receive queues, with "
            "them, and with flow control (Table 2), again with other collectives (Table 3), on softhca.\v"
            "Exit status: 0; 1 when a job failed, was wrong or could not be recorded; 2 for wrong usage."};
    struct srq_plan p = {.size = 'S', .timeout = 600, .folder = "memscale", .well = true};
    char path[4200];

    argp_err_exit_status = EXIT_USER;
    argp_parse(&argp, argc, argv, 0, NULL, &p);
    snprintf(path, sizeof path, "%s/srq.jsonl", p.folder);
    p.all = lines_load(path);
    for (int round = 0; round < p.rounds && !over(&p); round++) {
        if (wanted(&p, 1))
            measure_posted(&p, round);
        if (wanted(&p, 2))
            measure_queues(&p, 2, ";coll_arrival_ranks=0", round);
        if (wanted(&p, 3))
            measure_queues(&p, 3, ";coll_arrival_ranks=1048576;coll_arrival_form=pap_direct", round);
    }
    if (!launch_ended())
        p.well &= srq_tables(p.all, p.folder);
    json_decref(p.all);
    return launch_exit(p.well && !p.full);
}
