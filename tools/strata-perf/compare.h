/* strata-perf compare: jobs of Strata and of MPI libraries in turn, and what their samples say side by side. */
#ifndef PERF_COMPARE_H
#define PERF_COMPARE_H

#include <jansson.h>
#include <limits.h>
#include "options.h"
#include "report.h"
#include "tools/shared/processes.h"

/* Two are no peers but lower bounds: IMPL_SOCKETS with --cluster only, IMPL_BARE on one machine, copies without any
 * library. The last two are the same, with --against only: the difference of another build from itself. */
enum impl { IMPL_STRATA, IMPL_OPENMPI, IMPL_MPICH, IMPL_SOCKETS, IMPL_BARE, IMPL_OTHER, IMPL_OTHER_AGAIN, N_IMPLS };

struct sample {
    double value;
    double exchange; /* us, of a cache line, bare, before and after it; 0: unknown; below 0: it changed */
};

struct samples {
    struct sample *v;
    size_t n, room;
};

/* One line of a table: the samples of all rounds for one measurement. */
struct line {
    enum perf_test test;
    int ranks;
    char kind[40], unit[8];
    size_t bytes, depth;
    struct samples of[N_IMPLS];
};

struct compare {
    const struct perf_options *o;
    char self[PATH_MAX];                  /* this binary */
    char launcher[PATH_MAX];              /* strata-run */
    char other[2][PATH_MAX];              /* --against: strata-run and strata-perf of the other build */
    bool other_exchanges;                 /* it has --exchange */
    char other_env[2][2 * PATH_MAX + 64]; /* where its libraries and plugins are, as variables */
    char machines[PATH_MAX];              /* --cluster: strata-machines */
    char plugin[2 * PATH_MAX];            /* --embed: where Open MPI looks for plugins */
    char twin[N_IMPLS][PATH_MAX];
    bool have[N_IMPLS];
    int cpus[PERF_MAX_CPUS]; /* one per core, at least two unless the machine has fewer */
    size_t n_cpus;
    struct line *lines;
    size_t n_lines;
    double usual;               /* us: the commonest exchange of a cache line */
    size_t read, unlike;        /* samples with an exchange, and those whose exchange is another */
    bool failed;                /* a job of Strata did not end well */
    struct processes processes; /* their signal ends the comparison early */
    size_t done;                /* rounds that were measured as a whole */
    double started, last_note;
};

/* A job to run once per round and implementation. */
struct job {
    enum perf_test test;
    int ranks;
    unsigned impls;  /* bit per enum impl; a peer whose job took too long is taken out */
    unsigned n_cpus; /* the whole job on the first so many of compare.cpus; 0: anywhere */
    bool pinned;     /* rank r on the r-th of them */
};

const char *impl_name(enum impl i);
/* Fills cpus with those of --cpus, or the first processor of each core that this process may use: two ranks on one core
 * would share it. */
void choose_cpus(struct compare *c);

/* compare_samples.c */
/* before, after: the exchange of a cache line, us, or 0. */
void add_sample(struct samples *s, double v, double before, double after);
/* Finds the commonest exchange of all samples. */
void find_usual(struct compare *c);
/* Whether each library of a line has samples at the commonest exchange. */
bool has_usual(const struct compare *c, const struct line *l);
/* The summary of these samples; of all samples where a library has none of these, so that a line is never without one.
 */
struct perf_summary summary_of(const struct compare *c, const struct line *l, enum impl impl);

/* compare_bare.c */
/* Adds a sample of the lower bound to each line that has one: on one machine, latencies of up to 16 KiB and the
 * bandwidths of two ranks. */
void measure_bare(struct compare *c);

/* compare_jobs.c */
/* Whether DIR/NAME can be run; its path in any case. */
bool runnable(const char *dir, const char *name, char out[PATH_MAX]);
/* Whether a folder of $PATH has it. */
bool on_path(const char *name);
void find_implementations(struct compare *c); /* says in a line what is missing */
/* Runs it and returns its JSON, or NULL having said why. A signal ends the job. */
json_t *run_job(struct compare *c, struct job *job, enum impl impl);

/* A job's command line. */
enum { COMMAND_WORDS = 64 + 3 * PERF_MAX_MCA };
struct command {
    char *argv[COMMAND_WORDS];
    size_t n;
    char text[4 * PATH_MAX]; /* numbers and lists that argv points to */
    size_t used;
};
void command_word(struct command *cmd, const char *w);
void command_words(struct command *cmd, const char *const *list); /* up to a NULL */
/* A word that is put together as by printf. */
__attribute__((format(printf, 2, 3))) void command_format(struct command *cmd, const char *format, ...);
void command_options(const struct compare *c, struct command *cmd, const struct job *job, bool exchange);

/* compare_cluster.c */
#define CLUSTER_ENV "STRATA_MACHINES" /* the folder of strata-machines, when running beside its machines */
/* Runs this program again beside two machines, unless it does already; returns only an error. */
int cluster_enter(const struct compare *c, char **argv);
/* The command of a job with a rank on each of the two machines. */
void cluster_command(const struct compare *c, struct command *cmd, const struct job *job, enum impl impl);

/* compare_table.c */
void print_tables(const struct compare *c);
void print_json(const struct compare *c);

#endif
