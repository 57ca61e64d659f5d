/* The report of a run: Markdown with all figures, gnuplot scripts, and their pictures where gnuplot is there. */
#ifndef MIBA_REPORT_H
#define MIBA_REPORT_H

#include "results.h"

/* Writes folder/report.md and the plots. `error` is why the run ended early, or NULL. False: something could not be
 * written, which is said. */
bool report_write(const char *folder, const struct results *r, const json_t *about, const char *error);

/* A figure of the paper, or one beyond it, as a plot (plots.c). */
struct plot {
    const char *name, *title; /* name of its files; "Figure 2: ..." */
    const char *test;
    const char *figure;  /* NULL: all of the test */
    const char *variant; /* NULL: all */
    bool log_x;
};
extern const struct plot miba_plots[];
unsigned miba_plots_count(void);
/* Writes NAME.dat and NAME.gp, and NAME.png and NAME.svg where gnuplot is there. *drawn: there are results, and
 * pictures. */
bool plot_write(const char *folder, const struct plot *p, const struct results *r, bool *any, bool *drawn);

#endif
