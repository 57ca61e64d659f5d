/* What the files of strata-memscale share. */
#ifndef MEMSCALE_H
#define MEMSCALE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    EXIT_USER = 2,
    MOST_LIST = 32,
    MOST_SETTINGS = 16,
    MOST_CONFIGS = 32,
    MOST_RANKS = 1000000,
    SOFTHCA_RANKS = 1023
};

/* The paper's patterns (Shipman et al., section 6.1): nobody speaks; neighbours do; everybody does with everybody. */
enum pattern { HELLO, PAIRWISE, ALL_TO_ALL, N_PATTERNS };
extern const char *const pattern_names[N_PATTERNS];

enum library { LIB_STRATA, LIB_OPENMPI, LIB_MPICH, N_LIBRARIES };
extern const char *const launcher_names[N_LIBRARIES];

/* What carries the messages, and who is measured over it. */
struct transport {
    const char *name;
    enum library library;
    const char *btl; /* Strata's and Open MPI's; MPICH: UCX_TLS */
    bool softhca;
};

/* A named set of parameters. */
struct config {
    char name[64];
    const struct transport *transport;
    int world;            /* ranks of the virtual world that a job is part of; 0: its own */
    const char *launcher; /* --launcher; NULL: the library's own */
    size_t n;
    struct {
        char name[64], value[160];
    } set[MOST_SETTINGS];
};

struct plan {
    int ranks[MOST_LIST];
    size_t n_ranks;
    enum pattern patterns[N_PATTERNS];
    size_t n_patterns;
    struct config configs[MOST_CONFIGS];
    size_t n_configs;
    const char *folder;
    int timeout;          /* seconds for one job */
    bool peers;           /* other libraries are measured, too */
    bool model;           /* predictions are made of the measurements */
    int world;            /* --simulate-world; 0: none */
    const char *launcher; /* words that start N ranks, "%n" in them; NULL: strata-run, on this machine */
    bool estimate;        /* prints the estimates and measures nothing */
    bool force;           /* an N that the machine does not seem to hold is tried */
};

/* options.c: fills *p or ends the program. */
void options_read(struct plan *p, int argc, char **argv);
/* configs.c: adds the preset or "NAME:TRANSPORT[;PARAMETER=VALUE]...". False: `why` says what is wrong. */
bool config_add(struct plan *p, const char *text, char *why, size_t why_size);
void configs_print(void);
/* configs.c: by name; NULL: there is none. */
const struct transport *transport_named(const char *name);
/* configs.c: all configurations that are there become those of a world of `ranks`, by name as well. False: `why` says
 * what is wrong. */
bool config_simulate(struct plan *p, int ranks, char *why, size_t why_size);
/* configs.c: all configurations that are there become those of the launcher, by name as well: NAME@PROGRAM. False:
 * `why` says what is wrong. */
bool config_launch(struct plan *p, const char *launcher, char *why, size_t why_size);
/* configs.c: what starts the jobs of the configuration, as measurements name it. */
const char *config_launcher(const struct config *c);
/* configs.c: adds the presets of MPIs that peers.c finds here; says which it leaves out. */
void config_add_peers(struct plan *p);
/* peers.c: the program of an MPI's ranks; false: `why` says what is missing. */
bool peer_rank_program(enum library l, char *path, size_t size, char *why, size_t why_size);
/* launch.c: runs `n` ranks of this program with the words `what`, a NULL at the end: "rank", pattern, folder, and the
 * world's ranks and the job's if it is virtual; or "kernel", name, class, folder. Exit status, 128 and the signal, or
 * -1: said why, in errno, too. */
int launch_job(const struct config *c, int n, const struct plan *p, const char *const *what);
/* launch.c: whether launch_job has room for the words of --launcher. False: `why` names the limit. */
bool launcher_fits(const char *launcher, char *why, size_t why_size);
/* launch.c: puts the folder of this program last in PATH if strata-run is there. Before any job. From here on a signal
 * that ends this program ends the job first, and waits for launch_ended. */
void launch_prepare(void);
/* launch.c: whether such a signal has come: no more is to be measured. */
bool launch_ended(void);
/* launch.c: the exit status of this program, which has ended well or not; says so if a signal has ended it. */
int launch_exit(bool well);
/* launch.c: makes the folder where a job's ranks meet and leave their figures, in TMPDIR or /tmp: where results go may
 * be a file system that cannot be mapped, as a guest's. With a launcher of the user's it is where the results go, which
 * all machines have to see. False: `path` says where it should have been, errno why not. */
bool launch_folder(const struct plan *p, char *path, size_t size);
/* srq.c, kernel_rank.c: the other modes of the program. */
int srq_run(int argc, char **argv);
int kernel_run(int argc, char **argv);
/* srq_tables.c: Tables 1 to 3 of the measurements; false: said why. */
bool srq_tables(const json_t *all, const char *folder);
/* results.c: makes the folder of the results, if there is none. False: errno says why none can be put there. */
bool folder_make(const char *folder);
/* results.c: the objects of a file of lines, cut off ones left out; appends one. */
json_t *lines_load(const char *path);
bool lines_add(const char *path, const json_t *one);
/* rank.c: one rank of a job: `rank PATTERN FOLDER [WORLD RANKS]`. The exit status. */
int rank_run(int argc, char **argv);
/* job.c: runs one job; its measurement, or NULL and `why`. */
json_t *job_run(const struct plan *p, const struct config *c, enum pattern pattern, int n, char *why, size_t why_size);
/* results.c: measurements so far in FOLDER/results.jsonl, one a line; each has a configuration, a transport, a pattern
 * and ranks. */
json_t *results_load(const char *folder);
bool results_has(const json_t *all, const struct config *c, enum pattern pattern, int n);
/* results.c: whether the measurement is of the configuration, with its parameters and its launcher, and the pattern. */
bool result_is(const json_t *one, const struct config *c, enum pattern pattern);
/* results.c: whether two measurements are of one configuration: name, transport, parameters and launcher. */
bool results_match(const json_t *a, const json_t *b);
bool results_add(json_t *all, const char *folder, json_t *one); /* false: said why; it is in `all` only */
/* estimate.c: bytes that the job will need, from smaller ones that were measured or from what the transport is known
 * to need. `all` may be NULL. */
double estimate_bytes(const json_t *all, const struct config *c, enum pattern pattern, int n);
/* estimate.c: bytes of the available memory that a job may take. */
double estimate_room(void);
/* estimate.c: the most ranks that the machine holds, as far as can be told. */
int estimate_most(const json_t *all, const struct config *c, enum pattern pattern);
/* A line for each configuration and pattern: the most ranks, and what limits them. */
void estimates_print(const struct plan *p, const json_t *all);
/* model_terms.c: Strata's own bytes in a measurement. */
double ours_bytes(const json_t *one);
/* tables.c, figures.c: what is made of the measurements. False: said why. */
bool tables_write(const json_t *all, const char *folder);
bool figures_write(const json_t *all, const char *folder);
/* Draws FOLDER/NAME.gp and names the files; false: said why. */
bool figure_draw(const char *folder, const char *name);
/* model_report.c: predictions for larger jobs. False: one was more than 10 % wrong at the largest job that ran. */
bool model_write(const json_t *all, const char *folder);

#endif
