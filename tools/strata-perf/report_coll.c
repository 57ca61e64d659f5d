/* Rows of coll. */
#include <stdio.h>

#include "coll_arrivals.h"
#include "report.h"

static json_t *coll_samples(const double *v, size_t n)
{
    struct perf_summary s = perf_summarise(v, n);
    json_t *all = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(all, json_real(v[i]));
    return json_pack("{s:f,s:f,s:f,s:o}", "median", s.median, "low", s.low, "high", s.high, "samples", all);
}

/* With random delays the skew of a cell that the machine can make is at least that without delays. */
static bool coll_resolved(const struct coll_cell *cell)
{
    return cell->planned == 0 || cell->planned >= cell->resolution;
}

static void coll_text(struct perf_report *r, const char *op, size_t bytes, unsigned factor,
                      const struct coll_cell *cell)
{
    char b[24];
    if (!r->headed)
        printf("%-10s %8s %5s %12s %12s %12s %12s %12s %12s %12s\n", "", "bytes", "MIF", "in call us", "after us",
               "75 % us", "last's us", "skew us", "planned us", "message us");
    r->headed = true;
    struct perf_summary after = perf_summarise(cell->after, cell->n);
    printf("%-10s %8s %5u %12.2f %12.2f %12.2f %12.2f %12.2f %12.2f %12.2f%s\n", op, perf_size_text(bytes, b), factor,
           perf_summarise(cell->in_call, cell->n).median, after.median, after.high,
           perf_summarise(cell->last_call, cell->n).median, coll_cell_skew(cell), cell->planned, cell->base,
           coll_resolved(cell) ? "" : "  below the machine's resolution");
    fflush(stdout);
}

void perf_report_coll(struct perf_report *r, const char *op, size_t bytes, unsigned factor,
                      const struct coll_cell *cell)
{
    if (!r->o->json) {
        coll_text(r, op, bytes, factor, cell);
        return;
    }
    json_t *row =
        json_pack("{s:s,s:I,s:I,s:I,s:s,s:f,s:f,s:f,s:b}", "op", op, "bytes", (json_int_t)bytes, "mif",
                  (json_int_t)factor, "late", (json_int_t)r->o->coll.late, "unit", "us", "message", cell->base,
                  "planned_skew", cell->planned, "resolution", cell->resolution, "resolved", coll_resolved(cell));
    json_object_set_new(row, "in_call", coll_samples(cell->in_call, cell->n));
    json_object_set_new(row, "after_last", coll_samples(cell->after, cell->n));
    json_object_set_new(row, "skew", coll_samples(cell->skew, cell->n));
    json_object_set_new(row, "exit_skew", coll_samples(cell->exit_skew, cell->n));
    json_object_set_new(row, "last_call", coll_samples(cell->last_call, cell->n));
    json_array_append_new(r->rows, row);
}
