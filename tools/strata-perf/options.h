/* The command line of strata-perf and of its MPI twin: one parser, so that both run exactly the same work. */
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include "coll_options.h"

enum perf_test {
    PERF_LATENCY,
    PERF_BW,
    PERF_BIBW,
    PERF_MBW,
    PERF_MATCH,
    PERF_RING,
    PERF_START,
    PERF_MEMORY,
    PERF_COLL,
    PERF_WORLD,
    PERF_COMPARE,
    PERF_CHANNEL,
    PERF_N_TESTS
};

enum { PERF_MAX_CPUS = 64, PERF_MAX_MCA = 64 };

struct perf_mca {
    const char *name, *value;
};

struct perf_options {
    enum perf_test test;
    size_t size_min, size_max; /* message sizes, doubling from the first to the last, bytes */
    size_t bytes;              /* ring: message size, in compare */
    size_t iters;              /* per batch; 0: by size */
    size_t batches;            /* timed batches per size */
    size_t window;             /* messages under way in bw, bibw, mbw */
    bool one_buffer;           /* of which all are in the same memory */
    bool cold;                 /* each message in memory that no cache holds */
    size_t offset;             /* of message buffers from the beginning of a page, bytes */
    size_t depth;              /* match: other messages queued */
    size_t ranks;              /* world: simulated size; compare: ranks of start and memory */
    size_t rounds;             /* compare: how often the implementations take turns */
    bool embed;                /* compare: Strata under Open MPI against Open MPI's own ob1 */
    bool cluster;              /* compare: between two network namespaces */
    const char *against;       /* compare: where another build has its tools, or NULL */
    bool exchange;             /* latency, bw, bibw, mbw, match: the exchange of a cache line around each batch */
    bool cost;                 /* bw, bibw, mbw: processor time as well */
    bool unexpected;           /* bw, bibw, mbw: receives are posted when all of a window has been sent */
    size_t timeout;            /* compare: seconds for one job */
    size_t minutes;            /* channel: no round ends later, but the first; 0: no limit */
    unsigned only;             /* compare: bit per enum perf_test */
    const char *wires;         /* channel: comma list */
    const char *tables;        /* channel: comma list */
    const char *ways;          /* channel: comma list */
    const char *device;        /* channel: of verbs, instead of softhca's; or NULL */
    const char *preload;       /* channel: by the MPI libraries, for that device; or NULL */
    struct perf_coll_options coll;
    bool json, check, all;
    int cpus[PERF_MAX_CPUS]; /* rank r runs on cpus[r % n_cpus] */
    size_t n_cpus;
    struct perf_mca mca[PERF_MAX_MCA];
    size_t n_mca;
};

/* The name as given on the command line: "latency". */
const char *perf_test_name(enum perf_test test);
/* Bit per test that `name` (a comma list) says; 0 when one is unknown. */
unsigned perf_test_list(const char *list);

/* Parses; a mistake is reported on stderr and ends the process with status 2. `twin`: only what an MPI program can do.
 */
void perf_options_parse(int argc, char **argv, bool twin, struct perf_options *out);

/* "8", "64k", "4m": bytes as the command line takes them. False when it is not a size. */
bool perf_parse_size(const char *text, size_t *out);
/* The reverse, as tables show it: "512", "1 KiB". Returns buf. */
const char *perf_size_text(size_t bytes, char buf[24]);

/* Every message of a window has memory of its own, as messages of a program have: 64 copies of one cached buffer would
 * measure the cache, which --one-buffer is for. At most this much is under way, so that windows of the longest messages
 * are smaller. */
#define PERF_WINDOW_BYTES ((size_t)64 << 20)

/* Bytes from one message of a window to the next. */
static inline size_t perf_slot_size(size_t bytes)
{
    return bytes ? (bytes + 63) / 64 * 64 : 64;
}

/* Messages of a window. */
static inline size_t perf_window(const struct perf_options *o, size_t bytes)
{
    size_t most = o->one_buffer ? o->window : PERF_WINDOW_BYTES / perf_slot_size(bytes);
    return most < 1 ? 1 : most < o->window ? most : o->window;
}

#endif
