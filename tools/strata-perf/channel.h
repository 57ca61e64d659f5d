/* strata-perf channel: channels beside other ways to pass messages, in turn, and what they have to reach. */
#ifndef PERF_CHANNEL_H
#define PERF_CHANNEL_H

#include <limits.h>
#include "options.h"
#include "tools/shared/processes.h"

enum channel_way { WAY_CHANNEL, WAY_SEND, WAY_OPENMPI, WAY_MPICH, WAY_ZMQ, WAY_NNG, WAY_VERBS, N_WAYS };
enum channel_wire { WIRE_SM, WIRE_OPENIB, WIRE_TCP, N_WIRES };
enum channel_table {
    TABLE_STREAM,
    TABLE_PING_PONG,
    TABLE_FROM_ANY,
    TABLE_FARM,
    TABLE_FARM_CPU,
    TABLE_TASKS,
    TABLE_TASKS_CPU,
    TABLE_SLEEP,
    TABLE_SLEEP_CPU,
    N_TABLES
};

enum { CHANNEL_LINES = 96 };

/* A row: one table, wire, and size or number of workers. */
struct channel_line {
    enum channel_table table;
    enum channel_wire wire;
    size_t number;
    struct {
        double *v; /* a value of each round: us for a message, s of a farm */
        size_t n;
    } of[N_WAYS];
};

struct channel_bench {
    const struct perf_options *o;
    size_t n_rounds;       /* that were run */
    char folder[PATH_MAX]; /* of this program */
    char launcher[PATH_MAX];
    char device[64];        /* of verbs; empty: there is none */
    char preload[PATH_MAX]; /* what the programs of others need for it, or empty: softhca's library, for one */
    bool softhca;           /* it is softhca's */
    char twin[N_WAYS][PATH_MAX];
    bool have[N_WAYS];
    int cpus[PERF_MAX_CPUS];
    size_t n_cpus;
    struct channel_line lines[CHANNEL_LINES];
    size_t n_lines;
    unsigned given_up[N_WIRES][N_WAYS]; /* bit per job that took too long: not tried again */
    bool failed;                        /* a job of Strata did not end well */
    struct processes processes;         /* their signal ends the comparison early */
};

/* channel.c */
const char *channel_way_name(enum channel_way way);
const char *channel_wire_name(enum channel_wire wire);
const char *channel_table_name(enum channel_table table);
/* Adds a value, as one line of a twin says it. */
void channel_take(struct channel_bench *b, enum channel_wire wire, enum channel_way way, const char *text);

/* channel_jobs.c */
enum { CHANNEL_LATE = 124 }; /* the status of timeout(1) */
/* Looks for the libraries; says in a line what is missing. False: there is no Strata. */
bool channel_find(struct channel_bench *b);
/* Whether a library can use a wire. */
bool channel_fits(const struct channel_bench *b, enum channel_wire wire, enum channel_way way);
/* Runs a job and takes its lines; else the status of the shell, which was said, unless a signal has ended the job.
 * `what`: pair, farm, tasks or sleep. */
int channel_job(struct channel_bench *b, enum channel_wire wire, enum channel_way way, const char *what, int ranks);

/* channel_bars.c */
/* Median of the rounds, 0: there is none. */
double channel_median(const struct channel_line *line, enum channel_way way);
/* What channels have to reach in that row and do not, in words, with how far off; empty: all is met. False: nothing is
 * asked, or nothing of it was measured. */
bool channel_judge(const struct channel_bench *b, const struct channel_line *line, char *text, size_t size);

/* channel_table.c */
void channel_print(const struct channel_bench *b);
void channel_print_json(const struct channel_bench *b);

#endif
