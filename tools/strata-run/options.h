/* What the user asked strata-run for. */
#ifndef RUN_OPTIONS_H
#define RUN_OPTIONS_H

#include <stdbool.h>
#include <strata/strata.h>

/* Exit statuses of strata-run itself; otherwise the first failing rank's. */
enum {
    RUN_FAILED = 1,
    RUN_USAGE = 2,
    RUN_TIMEOUT = 124,
    RUN_NOT_EXECUTABLE = 126,
    RUN_NOT_FOUND = 127,
    RUN_SIGNAL_BASE = 128
};

/* Processors that a rank may use, and the order in which ranks take them. The words for them are in option_values.c. */
enum run_bind { RUN_BIND_AUTO, RUN_BIND_NONE, RUN_BIND_HWTHREAD, RUN_BIND_CORE, RUN_BIND_NUMA, RUN_BIND_SOCKET };
/* Form of a report that strata-run makes of the whole job. */
enum run_report { RUN_REPORT_OFF, RUN_REPORT_TEXT, RUN_REPORT_JSON };
enum run_map { RUN_MAP_SLOT, RUN_MAP_CORE, RUN_MAP_NUMA, RUN_MAP_SOCKET };

struct run_options {
    int n; /* ranks */
    enum run_bind bind;
    enum run_map map;
    bool show_map;      /* --display-map, --report-bindings */
    const char *folder; /* --wdir; NULL: ours */
    bool tag_output;
    bool keep_going;
    bool softhca;
    bool mpi; /* --mpi: a program of Open MPI 5.0, over Strata */
    bool no_pty;
    char *output_folder; /* --output-filename, absolute; NULL: none */
    bool output_nocopy;  /* and nothing to our own output */
    enum run_report report_counters, report_memory;
    bool report_matrix, report_dot; /* --report-transports=matrix, =dot */
    char *report_file;              /* --report-file, absolute; NULL: standard error */
    double timeout_s;               /* 0: none */
    strata_setting_t *settings;     /* --mca, in order; the texts are the command line's */
    size_t n_settings;
    char **exports; /* -x, in order */
    size_t n_exports;
    char **program; /* argv of the ranks, NULL-terminated */
};

#define RUN_MAX_RANKS 65536

/* Parses the command line. Prints and exits for --help, --version (0) and usage errors (RUN_USAGE). */
void run_options_parse(int argc, char **argv, struct run_options *out);
void run_options_free(struct run_options *options);

#endif
