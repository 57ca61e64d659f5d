#include "config.h"
#include "options.h"

#include <argp.h>
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BIT(test) (1u << (test))

enum {
    OPT_SIZES = 256,
    OPT_BYTES,
    OPT_ITERS,
    OPT_BATCHES,
    OPT_WINDOW,
    OPT_ONE_BUFFER,
    OPT_COLD,
    OPT_OFFSET,
    OPT_DEPTH,
    OPT_RANKS,
    OPT_ROUNDS,
    OPT_EMBED,
    OPT_CLUSTER,
    OPT_AGAINST,
    OPT_EXCHANGE,
    OPT_COST,
    OPT_UNEXPECTED,
    OPT_TIMEOUT,
    OPT_MINUTES,
    OPT_ONLY,
    OPT_WIRES,
    OPT_TABLES,
    OPT_WAYS,
    OPT_DEVICE,
    OPT_PRELOAD,
    OPT_JSON,
    OPT_CHECK,
    OPT_ALL,
    OPT_OP,
    OPT_MIF,
    OPT_LATE,
    OPT_BASE,
    OPT_CPUS,
    OPT_MCA
};

static const char *const test_names[PERF_N_TESTS] = {
    [PERF_LATENCY] = "latency", [PERF_BW] = "bw",       [PERF_BIBW] = "bibw",       [PERF_MBW] = "mbw",
    [PERF_MATCH] = "match",     [PERF_RING] = "ring",   [PERF_START] = "start",     [PERF_MEMORY] = "memory",
    [PERF_COLL] = "coll",       [PERF_WORLD] = "world", [PERF_COMPARE] = "compare", [PERF_CHANNEL] = "channel"};

#define SIZED    (BIT(PERF_LATENCY) | BIT(PERF_BW) | BIT(PERF_BIBW) | BIT(PERF_MBW))
#define WINDOWED (BIT(PERF_BW) | BIT(PERF_BIBW) | BIT(PERF_MBW))
#define TIMED    (SIZED | BIT(PERF_MATCH) | BIT(PERF_RING))
#define ONCE     (BIT(PERF_START) | BIT(PERF_MEMORY))
#define JOBS     (TIMED | ONCE | BIT(PERF_COLL))
#define EVERY    (BIT(PERF_N_TESTS) - 1u)

/* Which tests an option means something to. */
static const struct {
    int key;
    unsigned tests;
} applies[] = {
    {OPT_SIZES, SIZED | BIT(PERF_RING) | BIT(PERF_COLL) | BIT(PERF_COMPARE)},
    {OPT_BYTES, BIT(PERF_RING) | BIT(PERF_COMPARE)},
    {OPT_ITERS, TIMED | BIT(PERF_COLL) | BIT(PERF_COMPARE)},
    {OPT_BATCHES, TIMED | BIT(PERF_COLL) | BIT(PERF_WORLD) | BIT(PERF_COMPARE)},
    {OPT_WINDOW, WINDOWED | BIT(PERF_COMPARE)},
    {OPT_ONE_BUFFER, WINDOWED | BIT(PERF_COMPARE)},
    {OPT_COLD, SIZED},
    {OPT_OFFSET, SIZED | BIT(PERF_RING) | BIT(PERF_COLL) | BIT(PERF_COMPARE)},
    {OPT_DEPTH, BIT(PERF_MATCH) | BIT(PERF_COMPARE)},
    {OPT_RANKS, BIT(PERF_WORLD) | BIT(PERF_COMPARE)},
    {OPT_ROUNDS, BIT(PERF_COMPARE) | BIT(PERF_CHANNEL)},
    {OPT_EMBED, BIT(PERF_COMPARE)},
    {OPT_CLUSTER, BIT(PERF_COMPARE)},
    {OPT_AGAINST, BIT(PERF_COMPARE)},
    {OPT_EXCHANGE, SIZED | BIT(PERF_MATCH)},
    {OPT_COST, WINDOWED},
    {OPT_UNEXPECTED, WINDOWED},
    {OPT_TIMEOUT, BIT(PERF_COMPARE) | BIT(PERF_CHANNEL)},
    {OPT_MINUTES, BIT(PERF_CHANNEL)},
    {OPT_ONLY, BIT(PERF_COMPARE)},
    {OPT_WIRES, BIT(PERF_CHANNEL)},
    {OPT_TABLES, BIT(PERF_CHANNEL)},
    {OPT_WAYS, BIT(PERF_CHANNEL)},
    {OPT_DEVICE, BIT(PERF_CHANNEL)},
    {OPT_PRELOAD, BIT(PERF_CHANNEL)},
    {OPT_JSON, EVERY},
    {OPT_CHECK, SIZED | BIT(PERF_RING) | BIT(PERF_COLL) | BIT(PERF_COMPARE)},
    {OPT_ALL, BIT(PERF_MEMORY) | BIT(PERF_START)},
    {OPT_CPUS, JOBS | BIT(PERF_COMPARE) | BIT(PERF_CHANNEL)},
    {OPT_MCA, EVERY & ~BIT(PERF_CHANNEL)},
    {OPT_OP, BIT(PERF_COLL)},
    {OPT_MIF, BIT(PERF_COLL)},
    {OPT_LATE, BIT(PERF_COLL)},
    {OPT_BASE, BIT(PERF_COLL)},
};

static const struct argp_option rows[] = {
    {"sizes", OPT_SIZES, "A:B", 0, "Message sizes from A to B, doubling; k and m are 1024 and 1024 x 1024 (8:4m)", 0},
    {"bytes", OPT_BYTES, "N", 0, "ring: message size, unless --sizes is given (1k)", 0},
    {"iters", OPT_ITERS, "N", 0, "Exchanges, windows or steps per batch (by message size)", 0},
    {"batches", OPT_BATCHES, "N", 0, "Timed batches; the figure shown is their median (11; in each job of compare 5)",
     0},
    {"window", OPT_WINDOW, "N", 0, "bw, bibw, mbw: messages under way at a time (64)", 0},
    {"one-buffer", OPT_ONE_BUFFER, NULL, 0,
     "bw, bibw, mbw: all messages of a window in the same memory, as ucx_perftest and ib_write_bw have them", 0},
    {"cold", OPT_COLD, NULL, 0,
     "Each message in memory that no cache holds any more: buffers take turns in an area of twice the largest cache",
     0},
    {"exchange", OPT_EXCHANGE, NULL, 0,
     "In the JSON, the bare exchange of a cache line between the first two ranks, us, before the first batch and after "
     "each",
     0},
    {"cost", OPT_COST, NULL, 0, "bw, bibw, mbw: processor seconds of all ranks for each GB as well", 0},
    {"unexpected", OPT_UNEXPECTED, NULL, 0,
     "bw, bibw, mbw: the receives of a window are posted late, when all of its messages have been sent", 0},
    {"offset", OPT_OFFSET, "N", 0, "Bytes from the beginning of a page to the message buffers; malloc has 16 (0)", 0},
    {"depth", OPT_DEPTH, "D", 0, "match: other messages queued (10000)", 0},
    {"ranks", OPT_RANKS, "N", 0, "world: ranks of the simulated job (1000000); compare: ranks for start, memory (64)",
     0},
    {"json", OPT_JSON, NULL, 0, "JSON on standard output instead of a table", 0},
    {"check", OPT_CHECK, NULL, 0, "Verify every byte that arrives; times then include the verifying", 0},
    {"all", OPT_ALL, NULL, 0, "memory, start: each rank too, not only mean and largest", 0},
    {"op", OPT_OP, "LIST", 0, "coll: of alltoall,allgather,allreduce,bcast,barrier (alltoall)", 0},
    {"mif", OPT_MIF, "LIST", 0, "coll: longest delays, in times of one message; 0: none (0,1,32,128,512)", 0},
    {"late", OPT_LATE, "P", 0, "coll: P per cent of the ranks come late by MIF, instead of random delays up to MIF", 0},
    {"base", OPT_BASE, "LIST", 0, "coll: the time of one message, us, for each size (measured)", 0},
    {"cpus", OPT_CPUS, "LIST", 0, "Run rank r on the r-th processor of this comma list (over again from the first)", 0},
    {"mca", OPT_MCA, "NAME VALUE", 0, "Set a Strata parameter (two words)", 0},
    {NULL, 0, NULL, 0, "For compare and channel:", 1},
    {"only", OPT_ONLY, "LIST", 0, "Tests to run, e.g. latency,ring (all but start and memory)", 1},
    {"embed", OPT_EMBED, NULL, 0, "Strata under Open MPI against Open MPI's own ob1 and vader", 1},
    {"cluster", OPT_CLUSTER, NULL, 0,
     "Two machines (network namespaces): Strata, Open MPI's btl tcp, MPICH over UCX and bare sockets; needs root", 1},
    {"against", OPT_AGAINST, "FOLDER", 0, "This build against the one that has its tools in FOLDER, instead of MPI", 1},
    {"rounds", OPT_ROUNDS, "R", 0, "How often the implementations take turns (7)", 1},
    {"timeout", OPT_TIMEOUT, "S", 0, "Seconds after which a job is given up (300)", 1},
    {"minutes", OPT_MINUTES, "M", 0, "channel: begin no round that would end later; the first is always run (none)", 1},
    {"wires", OPT_WIRES, "LIST", 0, "channel: of sm, openib and tcp (all)", 1},
    {"tables", OPT_TABLES, "LIST", 0, "channel: of pair, farm, tasks and sleep (all)", 1},
    {"ways", OPT_WAYS, "LIST", 0, "channel: of channel, send, openmpi, mpich, zmq, nng and verbs (all)", 1},
    {"device", OPT_DEVICE, "NAME", 0, "channel: the verbs device of openib (soft0, by softhca)", 1},
    {"preload", OPT_PRELOAD, "FILE", 0, "channel: with --device, a library that Open MPI preloads (none)", 1},
    {NULL, 0, NULL, 0, NULL, 0}};

const char *perf_test_name(enum perf_test test)
{
    return test_names[test];
}

unsigned perf_test_list(const char *list)
{
    unsigned mask = 0;
    while (*list) {
        size_t n = strcspn(list, ",");
        unsigned found = 0;
        for (unsigned t = 0; t < PERF_N_TESTS; t++)
            if (strlen(test_names[t]) == n && strncmp(list, test_names[t], n) == 0)
                found = BIT(t);
        if (!found)
            return 0;
        mask |= found;
        list += n;
        if (*list == ',')
            list++;
    }
    return mask;
}

bool perf_parse_size(const char *text, size_t *out)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    int shift = 0;
    switch (*end) {
    case 'k':
    case 'K':
        shift = 10;
        break;
    case 'm':
    case 'M':
        shift = 20;
        break;
    case 'g':
    case 'G':
        shift = 30;
        break;
    default:
        break;
    }
    if (shift)
        end++;
    if (errno || *end || v > (SIZE_MAX >> 1 >> shift))
        return false;
    *out = (size_t)v << shift;
    return true;
}

const char *perf_size_text(size_t bytes, char buf[24])
{
    if (bytes >= 1u << 20 && bytes % (1u << 20) == 0)
        snprintf(buf, 24, "%zu MiB", bytes >> 20);
    else if (bytes >= 1024 && bytes % 1024 == 0)
        snprintf(buf, 24, "%zu KiB", bytes >> 10);
    else
        snprintf(buf, 24, "%zu", bytes);
    return buf;
}

struct parse {
    struct perf_options *o;
    bool twin, have_test;
    unsigned given[sizeof rows / sizeof rows[0]]; /* keys seen, to check them once the test is known */
    size_t n_given;
};

static void fail(const struct argp_state *state, const char *what, const char *arg)
{
    argp_error(state, "%s: `%s'", what, arg);
}

static size_t number(const struct argp_state *state, const char *name, const char *arg, size_t min, size_t max)
{
    size_t v = 0;
    if (!perf_parse_size(arg, &v) || v < min || v > max)
        argp_error(state, "--%s takes a number from %zu to %zu, not `%s'", name, min, max, arg);
    return v;
}

static void sizes(const struct argp_state *state, struct perf_options *o, char *arg)
{
    char text[64];
    snprintf(text, sizeof text, "%s", arg);
    char *colon = strchr(text, ':');
    if (colon)
        *colon = 0;
    if (!perf_parse_size(text, &o->size_min) || !perf_parse_size(colon ? colon + 1 : text, &o->size_max))
        fail(state, "--sizes takes A:B, for example 8:4m, not", arg);
    else if (o->size_min > o->size_max)
        fail(state, "--sizes: the first size is larger than the last", arg);
    else if (o->size_max > (size_t)1 << 30)
        fail(state, "--sizes: at most 1g", arg);
    else if (o->size_min != o->size_max && (o->size_min & (o->size_min - 1)))
        fail(state, "--sizes: a range starts at a power of two", arg);
}

/* Which processors there are for us: the kernel reduces a mask of all of them. */
static void check_cpus(const struct argp_state *state, const struct perf_options *o)
{
    cpu_set_t before, all;
    char list[256] = "";
    memset(&all, 0xff, sizeof all);
    if (sched_getaffinity(0, sizeof before, &before) != 0 || sched_setaffinity(0, sizeof all, &all) != 0)
        return;
    bool known = sched_getaffinity(0, sizeof all, &all) == 0;
    (void)sched_setaffinity(0, sizeof before, &before);
    for (size_t i = 0; known && i < CPU_SETSIZE; i++) {
        size_t last = i, n = strlen(list);
        if (!CPU_ISSET(i, &all))
            continue;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &all))
            last++;
        if (last > i)
            snprintf(list + n, sizeof list - n, "%s%zu-%zu", n ? "," : "", i, last);
        else
            snprintf(list + n, sizeof list - n, "%s%zu", n ? "," : "", i);
        i = last;
    }
    for (size_t i = 0; known && i < o->n_cpus; i++)
        if (o->cpus[i] >= CPU_SETSIZE || !CPU_ISSET((size_t)o->cpus[i], &all))
            argp_error(state, "--cpus: there is no processor %d here; there are %s", o->cpus[i], list);
}

static void cpus(const struct argp_state *state, struct perf_options *o, char *arg)
{
    o->n_cpus = 0;
    for (const char *p = arg; *p;) {
        char *end;
        long v = strtol(p, &end, 10);
        if (end == p || v < 0 || v > 4095 || (*end && *end != ',') || o->n_cpus == PERF_MAX_CPUS) {
            fail(state, "--cpus takes processor numbers with commas between, not", arg);
            return;
        }
        o->cpus[o->n_cpus++] = (int)v;
        p = *end ? end + 1 : end;
    }
    check_cpus(state, o);
    if (o->n_cpus == 0)
        fail(state, "--cpus takes processor numbers with commas between, not", arg);
}

static void test_name(struct argp_state *state, struct parse *p, char *arg)
{
    if (p->have_test)
        fail(state, "one command at a time; what is", arg);
    for (unsigned t = 0; t < PERF_N_TESTS; t++)
        if (strcmp(arg, test_names[t]) == 0 && (!p->twin || (JOBS & BIT(t)))) {
            p->o->test = (enum perf_test)t;
            p->have_test = true;
            return;
        }
    fail(state, "unknown command", arg);
}

static void mca(struct argp_state *state, struct perf_options *o, char *arg)
{
    if (state->next >= state->argc)
        fail(state, "--mca takes a name and a value; the value is missing after", arg);
    else if (o->n_mca == PERF_MAX_MCA)
        fail(state, "--mca: too many, at", arg);
    else
        o->mca[o->n_mca++] = (struct perf_mca){arg, state->argv[state->next++]};
}

static void coll(const struct argp_state *state, struct perf_options *o, int key, char *arg)
{
    if (key == OPT_OP && (o->coll.ops = perf_coll_ops(arg)) == 0)
        fail(state, "--op takes operations from alltoall,allgather,allreduce,bcast,barrier, not", arg);
    if (key == OPT_MIF && !perf_coll_factors(arg, &o->coll))
        fail(state, "--mif takes at most 16 whole numbers with commas between, not", arg);
    if (key == OPT_BASE && !perf_coll_bases(arg, &o->coll))
        fail(state, "--base takes at most 32 times in us with commas between, not", arg);
    if (key == OPT_LATE)
        o->coll.late = (unsigned)number(state, "late", arg, 0, 99);
}

static bool parse_given(const struct parse *p, int key)
{
    for (size_t i = 0; i < p->n_given; i++)
        if (p->given[i] == (unsigned)key)
            return true;
    return false;
}

static const char *option_name(int key)
{
    const struct argp_option *row = rows;
    while (row->key != key)
        row++;
    return row->name;
}

/* After the last argument: the test is known, so see whether it takes what was given. */
static void finish(struct argp_state *state, struct parse *p)
{
    struct perf_options *o = p->o;
    if (!p->have_test) {
        argp_error(state, "which test? One of latency, bw, bibw, mbw, match, ring, start, memory, coll%s",
                   p->twin ? "" : ", world, compare, channel");
        return;
    }
    for (size_t i = 0; i < p->n_given; i++)
        for (size_t j = 0; j < sizeof applies / sizeof applies[0]; j++)
            if (p->given[i] == (unsigned)applies[j].key && !(applies[j].tests & BIT(o->test)))
                argp_error(state, "--%s means nothing to %s", option_name(applies[j].key), test_names[o->test]);
    if (o->one_buffer && o->check)
        argp_error(state,
                   "--one-buffer: what arrives overwrites what arrived before, so that --check has nothing to verify");
    if (o->one_buffer && o->cold)
        argp_error(state, "--cold: the one buffer of --one-buffer stays in the cache");
    if (o->preload && !o->device)
        argp_error(state, "--preload means nothing without --device");
    if (o->cluster + o->embed + (o->against != NULL) > 1)
        argp_error(state, "--cluster, --embed and --against: one of them at a time");
    if (o->cluster && !parse_given(p, OPT_ONLY))
        o->only = BIT(PERF_LATENCY) | BIT(PERF_BW) | BIT(PERF_BIBW);
    if (o->cluster && (o->only & ~SIZED))
        argp_error(state, "--cluster: --only takes tests from latency,bw,bibw,mbw");
    if (o->test == PERF_RING && !parse_given(p, OPT_SIZES))
        o->size_min = o->size_max = o->bytes;
    if (o->test == PERF_COLL && !parse_given(p, OPT_SIZES)) {
        o->size_min = 1;
        o->size_max = (size_t)1 << 20;
    }
    if (o->batches == 0)
        o->batches = o->test == PERF_COMPARE ? 5 : 11;
    if (o->ranks == 0)
        o->ranks = o->test == PERF_WORLD ? 1000000 : 64;
}

static error_t parse_one(int key, char *arg, struct argp_state *state)
{
    struct parse *p = state->input;
    struct perf_options *o = p->o;
    if (key >= OPT_SIZES && key <= OPT_MCA && p->n_given < sizeof p->given / sizeof p->given[0])
        p->given[p->n_given++] = (unsigned)key;
    switch (key) {
    case OPT_SIZES:
        sizes(state, o, arg);
        break;
    case OPT_BYTES:
        o->bytes = number(state, "bytes", arg, 0, (size_t)1 << 30);
        break;
    case OPT_ITERS:
        o->iters = number(state, "iters", arg, 1, 1000000000);
        break;
    case OPT_BATCHES:
        o->batches = number(state, "batches", arg, 1, 100000);
        break;
    case OPT_WINDOW:
        o->window = number(state, "window", arg, 1, 65536);
        break;
    case OPT_OFFSET:
        o->offset = number(state, "offset", arg, 0, 4095);
        break;
    case OPT_DEPTH:
        o->depth = number(state, "depth", arg, 1, 10000000);
        break;
    case OPT_RANKS:
        o->ranks = number(state, "ranks", arg, 2, 100000000);
        break;
    case OPT_EMBED:
        o->embed = true;
        break;
    case OPT_CLUSTER:
        o->cluster = true;
        break;
    case OPT_AGAINST:
        o->against = arg;
        break;
    case OPT_UNEXPECTED:
        o->unexpected = true;
        break;
    case OPT_COST:
        o->cost = true;
        break;
    case OPT_EXCHANGE:
        o->exchange = true;
        break;
    case OPT_ROUNDS:
        o->rounds = number(state, "rounds", arg, 1, 1000);
        break;
    case OPT_TIMEOUT:
        o->timeout = number(state, "timeout", arg, 1, 86400);
        break;
    case OPT_MINUTES:
        o->minutes = number(state, "minutes", arg, 1, 10000);
        break;
    case OPT_ONLY:
        o->only = perf_test_list(arg);
        if (o->only == 0 || (o->only & ~(TIMED | ONCE)))
            fail(state, "--only takes tests from latency,bw,bibw,mbw,match,ring,start,memory, not", arg);
        break;
    case OPT_WIRES:
        o->wires = arg;
        break;
    case OPT_TABLES:
        o->tables = arg;
        break;
    case OPT_WAYS:
        o->ways = arg;
        break;
    case OPT_DEVICE:
        o->device = arg;
        break;
    case OPT_PRELOAD:
        o->preload = arg;
        break;
    case OPT_JSON:
        o->json = true;
        break;
    case OPT_CHECK:
        o->check = true;
        break;
    case OPT_OP:
    case OPT_MIF:
    case OPT_LATE:
    case OPT_BASE:
        coll(state, o, key, arg);
        break;
    case OPT_ONE_BUFFER:
        o->one_buffer = true;
        break;
    case OPT_COLD:
        o->cold = true;
        break;
    case OPT_ALL:
        o->all = true;
        break;
    case OPT_CPUS:
        cpus(state, o, arg);
        break;
    case OPT_MCA:
        mca(state, o, arg);
        break;
    case ARGP_KEY_ARG:
        test_name(state, p, arg);
        break;
    case ARGP_KEY_END:
        finish(state, p);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static void print_version(FILE *f, struct argp_state *state)
{
    fprintf(f, "%s (Strata) %s\n", state->name, PACKAGE_VERSION);
}

void perf_options_parse(int argc, char **argv, bool twin, struct perf_options *out)
{
    static const char doc[] =
        "Times messages between the ranks of a job, and what a job costs to start and to hold.\v"
        "Commands, under any launcher (strata-run -n 2 strata-perf latency):\n"
        "  latency  one-way time of a ping-pong, ranks 0 and 1\n"
        "  bw       bandwidth and message rate from rank 0 to rank 1\n"
        "  bibw     both directions at once\n"
        "  mbw      every rank of the first half to one of the second half at once\n"
        "  match    a matched exchange with 1 and with D other receives posted, and messages unexpected\n"
        "  ring     every rank to its right neighbour, from its left\n"
        "  start    from strata_init until all ranks have talked to all\n"
        "  memory   private memory per rank, and who holds it\n"
        "  coll     collectives whose members arrive at different times\n"
        "  world    (alone) a context in a simulated world of many ranks: time and memory\n"
        "  compare  (alone) Strata and MPI libraries in turn, with ratios\n"
        "  channel  (alone) channels beside strata_send, MPI libraries, ZeroMQ and NNG in turn";
    static const char twin_doc[] = "The same measurements as strata-perf, over MPI.";
    struct parse p = {.o = out, .twin = twin};
    const struct argp argp = {rows, parse_one, "COMMAND", twin ? twin_doc : doc, NULL, NULL, NULL};
    argp_program_version_hook = print_version;
    *out = (struct perf_options){
        .size_min = 8,
        .size_max = (size_t)4 << 20,
        .bytes = 1024,
        .window = 64,
        .depth = 10000,
        .rounds = 7,
        .timeout = 300,
        .wires = "sm,openib,tcp",
        .tables = "pair,farm,tasks,sleep",
        .ways = "channel,send,openmpi,mpich,zmq,nng,verbs",
        .only = TIMED,
        .coll = {.ops = 1u << PERF_COLL_ALLTOALL, .factor = {0, 1, 32, 128, 512}, .n_factors = 5}};
    argp_err_exit_status = 2;
    error_t rc = argp_parse(&argp, argc, argv, 0, NULL, &p);
    if (rc) {
        fprintf(stderr, "%s: %s\n", argv[0], strerror(rc));
        exit(2);
    }
}
