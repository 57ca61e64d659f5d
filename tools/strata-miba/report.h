/* The report of a run: Markdown with all figures, gnuplot scripts, and their pictures where gnuplot is there. */
#ifndef MIBA_REPORT_H
#define MIBA_REPORT_H

#include "results.h"

/* Writes folder/report.md and the plots. `error` is why the run ended early, or NULL. False: something could not be
 * written, which is said. */
bool report_write(const char *folder, const struct results *r, const json_t *about, const char *error);

#endif
