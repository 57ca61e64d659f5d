/* Results of a run: kept, and written as text, JSON lines or CSV as they come. */
#ifndef MIBA_RESULTS_H
#define MIBA_RESULTS_H

#include <stdbool.h>
#include <stdio.h>
#include <jansson.h>
#include "case.h"
#include "stats.h"
#include "status.h"

enum unit { UNIT_NS, UNIT_MB_S /* 10^6 bytes a second */, UNIT_FRACTION, UNIT_COUNT };

struct result {
    struct miba_case c;
    const char *figure; /* "qp_create"; the test's name when it has one figure */
    enum unit unit;
    enum miba_status status;
    bool marked;         /* measured, but `why` says what this machine cannot show */
    struct summary sum;  /* of MIBA_OK */
    struct miba_why why; /* of all others */
};

enum results_form { FORM_TEXT, FORM_JSON, FORM_CSV };

struct results {
    struct result *all;
    size_t n, room;
    size_t n_resumed;  /* the first ones are of a run before (resume.c) */
    char (*names)[48]; /* of figures of that run */
    size_t n_names;
    FILE *out;
    const char *path; /* NULL: stdout */
    char *beside;     /* where the file is written until it has what was kept; NULL: it is in its place */
    enum results_form form;
    const char *mark; /* why this machine shows no figure of moved data as it should; NULL: it does */
    bool broken;      /* writing has failed: said */
};

const char *unit_name(enum unit u);

/* Keeps a result, and a name of a figure, without writing. */
enum miba_status results_keep(struct results *r, const struct result *result, struct miba_why *why);
const char *results_keep_name(struct results *r, const char *name);
void results_free(struct results *r);

/* Opens `path` (NULL: stdout) before anything is measured. With results that are kept already, those of an earlier run,
 * it opens a file beside it, which takes its place in results_begin: a full disk leaves the earlier one as it is. */
enum miba_status results_open(struct results *r, const char *path, enum results_form form, struct miba_why *why);
/* The first line: device and settings, and the results that are kept already. `about` is an object. */
enum miba_status results_begin(struct results *r, const json_t *about, struct miba_why *why);
/* Keeps a result and writes it. MIBA_BROKEN: it could not be written. */
enum miba_status results_add(struct results *r, const struct result *result, struct miba_why *why);
/* The usual result of a case: the figure's samples. */
enum miba_status results_samples(struct results *r, const struct miba_case *c, const char *figure, enum unit unit,
                                 const struct samples *s, struct miba_why *why);
/* The last line; `error` is NULL unless the run ended early. What could not be written is printed as text on stdout, or
 * on stderr when stdout is what failed. False: something could not be written. */
bool results_end(struct results *r, int exit_status, const char *error);

/* One result in each form (print.c). */
void print_text(FILE *f, const struct result *r);
void print_csv_header(FILE *f);
void print_csv(FILE *f, const struct result *r);
json_t *result_json(const struct result *r);
/* "1.25 us", "830 MB/s" */
void print_value(double value, enum unit unit, char *text, size_t size);

#endif
