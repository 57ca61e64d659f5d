/* Each option has a function that puts its value into the options, or ends the program with a usage error. */
#ifndef RUN_OPTION_VALUES_H
#define RUN_OPTION_VALUES_H

#include <argp.h>
#include "options.h"

void option_count(struct argp_state *state, const char *text);    /* -n */
void option_parameter(struct argp_state *state, char *name);      /* --mca */
void option_report(struct argp_state *state, const char *format); /* --report-transports; NULL: text */
/* --report-counters, --report-memory; NULL: text */
enum run_report option_report_form(const struct argp_state *state, const char *option, const char *format);
void option_export(struct argp_state *state, char *text);     /* -x */
void option_bind(struct argp_state *state, const char *text); /* --bind-to */
void option_map(struct argp_state *state, const char *text);  /* --map-by */
void option_files(struct argp_state *state, char *text);      /* --output-filename */
void option_report_file(struct argp_state *state, const char *text);
void option_timeout(struct argp_state *state, const char *text);     /* --timeout */
void option_program(struct argp_state *state);                       /* the words from PROGRAM on */
void option_hosts(const struct argp_state *state, const char *what); /* several programs: an error */
/* --host and --hostfile: an error that says which launcher takes these machines, and how. */
void option_machines(const struct argp_state *state, const char *option, const char *srun_option, const char *machines);

const char *option_bind_name(enum run_bind kind); /* the word of --bind-to; "" for RUN_BIND_AUTO */

#endif
