/* The leading side's way through all cases: what is done already, progress, the end. */
#ifndef MIBA_RUN_H
#define MIBA_RUN_H

#include "options.h"

/* Runs the tests of the options and writes results, thresholds and, with --report, the report. The exit status. */
int run_tests(struct miba *m, const struct options *o);

#endif
