/* The command line of strata-miba. */
#ifndef MIBA_OPTIONS_H
#define MIBA_OPTIONS_H

#include "sides.h"
#include "thresholds.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USER = 2, EXIT_BEYOND = 3 };

#define MOST_THRESHOLDS 64u
#define MOST_TESTS      64u

struct options {
    struct settings set;
    struct session session;
    const struct miba_test *tests[MOST_TESTS];
    unsigned n_tests;
    bool list;
    const struct miba_test *help_test;
    const char *report;       /* folder; NULL: none */
    char report_output[4096]; /* its file of results */
    bool resume, progress;
    bool draw; /* the report of results that are there: nothing is measured */
    const char *output;
    enum results_form form;
    struct threshold thresholds[MOST_THRESHOLDS];
    unsigned n_thresholds;
};

/* Ends the process with EXIT_USER when something is wrong, and after --help and --version. */
void options_read(struct options *o, int argc, char **argv);

#endif
