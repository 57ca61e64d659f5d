/* What a measurement says: rows of samples, printed as they come as a table, or all at the end as JSON. */
#ifndef PERF_REPORT_H
#define PERF_REPORT_H

#include <jansson.h>
#include "options.h"

struct perf_report {
    const struct perf_options *o;
    json_t *root, *rows; /* the JSON, rank 0 only */
    bool headed;
    double started, last_note; /* seconds, for progress lines */
};

struct perf_row {
    const char *kind; /* "posted", "init", ... or NULL */
    const char *unit; /* of the samples */
    size_t bytes;     /* message size or 0 */
    size_t depth;     /* match: messages queued */
    const double *samples;
    const double *exchange; /* us: before the first sample and after each; or NULL */
    size_t n;
};

double perf_now(void); /* seconds, monotonic */

/* Median and quartiles; sorts a copy. */
struct perf_summary {
    double median, low, high, mean, max;
    size_t n; /* samples */
};
struct perf_summary perf_summarise(const double *samples, size_t n);

void perf_report_begin(struct perf_report *r, const struct perf_options *o, const char *implementation, int ranks);
void perf_report_row(struct perf_report *r, const struct perf_row *row);
struct coll_cell;
/* A row of coll: three figures and what the delays made. */
void perf_report_coll(struct perf_report *r, const char *op, size_t bytes, unsigned factor,
                      const struct coll_cell *cell);
/* A free-form value for the JSON's top level. Takes the reference. */
void perf_report_set(struct perf_report *r, const char *key, json_t *value);
/* One line on stderr when two seconds have gone by since the last: what is being done. */
void perf_report_progress(struct perf_report *r, const char *what);
void perf_report_end(struct perf_report *r);

#endif
