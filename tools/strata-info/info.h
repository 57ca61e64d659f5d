/* What the files of strata-info share. */
#ifndef STRATA_INFO_H
#define STRATA_INFO_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <strata/sdk/info.h>

enum { EXIT_USER = 2 }; /* the caller asked for something that does not exist */

struct options {
    bool components, explain, counters, devices, build, tuning, json;
    int level;
    int live;                                      /* process id; 0: no --live */
    const char *param_framework, *param_component; /* NULL: no --param */
    strata_setting_t *settings;                    /* of --mca */
    size_t n_settings;
};

/* Fills *o or ends the program: 0 after --help and --version, EXIT_USER after a mistake. */
void options_read(struct options *o, int argc, char **argv);

/* live.c: --live. The exit status. */
int live_run(const struct options *o);

/* A counter, and its value where its component is in use. */
struct counter {
    struct st_info_counter row; /* its strings are the component system's */
    bool known;
    uint64_t value;
};

/* devices.c: what can be opened here, tried in a context for two ranks that joins no job. */
struct devices;
int devices_make(const struct options *o, struct devices **out, char *err, size_t err_size);
void devices_free(struct devices *d);
void devices_print_text(const struct devices *d);
/* "devices" and "unusable" of the JSON output. */
void devices_print_json(const struct devices *d, json_t *root);

/* How this Strata was built; a row without a name ends it. */
struct build_fact {
    const char *name, *text;
};
extern const struct build_fact build_facts[];

/* Everything to print, copied out of the component system. */
struct report {
    struct st_mca *mca;
    struct st_info_component *components;
    size_t n_components;
    struct st_info_param *params; /* all of them; `allowed` is a copy */
    size_t n_params;
    struct counter *counters;
    size_t n_counters;
    struct devices *devices; /* NULL without --devices */
    bool tried;              /* a context was made: fates are known */
    int rc;                  /* of that attempt */
    char error[1280];        /* why it failed */
};

int report_make(struct report *r, const struct options *o);
void report_free(struct report *r);
/* Whether --param asks for p, and its level is low enough. */
bool report_wants(const struct options *o, const struct st_info_param *p);
/* "count", "level", "peak". */
const char *counter_kind(const struct counter *c);
/* Checks the names given to --param: true, or a message has been printed. */
bool report_check_names(const struct report *r, const struct options *o);

void print_text(const struct report *r, const struct options *o);
int print_json(const struct report *r, const struct options *o);

#endif
