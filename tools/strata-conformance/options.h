/* The command line of strata-conformance. */
#ifndef CONFORMANCE_OPTIONS_H
#define CONFORMANCE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <strata/strata.h>

/* Exit statuses of the program. */
enum { EXIT_PASSED = 0, EXIT_CASE_FAILED = 1, EXIT_USER = 2, EXIT_NONE_RAN = 77 };

enum { MOST_ONLY = 32, MOST_SETTINGS = 32 };

struct options {
    const char *only[MOST_ONLY]; /* parts of names of cases; none: all cases */
    size_t n_only;
    strata_setting_t settings[MOST_SETTINGS]; /* --mca */
    size_t n_settings;
    bool list, json, threads;
    int timeout_s; /* of a case */
};

/* Fills *o or ends the program: 0 after --help and --version, EXIT_USER after a mistake. */
void options_read(struct options *o, int argc, char **argv);
/* Whether --only lets the case run. */
bool options_select(const struct options *o, const char *name);

#endif
