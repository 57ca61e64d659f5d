/* The paper's Figures 2 to 13, and what is beyond it, as plots (plots.c, plots_table.c). */
#ifndef MIBA_PLOTS_H
#define MIBA_PLOTS_H

#include "results.h"

enum plot_x {
    BY_VALUE, /* the test's parameter */
    BY_SIZE,  /* bytes of a message: a panel for each operation over RC, a line for each value of the parameter */
    BY_FIGURE /* another figure of the same case */
};

struct panel {
    const char *title; /* "(a) latency" */
    const char *test;
    const char *variant; /* NULL: all, or there are none */
    const char *figure;  /* NULL: all of the test */
    enum plot_x x;
    const char *by;     /* BY_FIGURE: the figure, */
    const char *x_name; /* and its axis */
    bool rate;          /* nanoseconds of a message are plotted as MB/s */
    bool first_size;    /* only messages of the size that comes first */
};

#define MOST_PANELS 6u

struct plot {
    const char *name, *title;        /* of its files; "Figure 2: ..." */
    struct panel panel[MOST_PANELS]; /* up to the first one without a test */
};

extern const struct plot miba_plots[];
unsigned miba_plots_count(void);

/* Writes NAME.dat and NAME.gp into the folder, and NAME.svg and NAME.png where gnuplot is there. *any, *drawn: there
 * are results, and pictures. False: something could not be written, which is said. */
bool plot_write(const char *folder, const struct plot *p, const struct results *r, bool *any, bool *drawn);

/* The paper's Table 1: rows of Markdown to `f` unless none of it was measured, and table1.dat, .gp and pictures. */
bool table1_write(FILE *f, const char *folder, const struct results *r);

/* Files of a folder, and gnuplot there (gnuplot.c). Failures to write are said. */
FILE *plot_open(const char *folder, const char *name, const char *end);
bool plot_close(FILE *f, const char *name);
/* Runs NAME.gp. False: there is no gnuplot, or it failed. */
bool plot_draw(const char *folder, const char *name);

#endif
