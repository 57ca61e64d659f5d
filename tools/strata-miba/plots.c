/* Plots as gnuplot scripts: which results are in a panel, in which line, and where. */
#include "config.h"
#include "plots.h"

#include <stdlib.h>
#include <string.h>
#include "test.h"

#define PANEL_WIDTH  560u
#define PANEL_HEIGHT 360u
/* Of values that are further apart the axis is logarithmic. */
#define LOG_FACTOR 16

struct point {
    double x, y, low, high;
};

/* One panel on the page. A row of the table with BY_SIZE has several, one for each operation. */
struct view {
    const struct panel *panel;
    const struct results *r;
    enum miba_op op; /* OP_NONE: all */
    uint32_t size;   /* 0: all */
};

static bool is_of(const char *wanted, const char *name)
{
    return !wanted || strcmp(wanted, name) == 0;
}

static bool belongs(const struct view *v, const struct result *one)
{
    const struct panel *p = v->panel;

    return !one->status && strcmp(p->test, one->c.test->name) == 0 && is_of(p->figure, one->figure) &&
           is_of(p->variant, case_variant(&one->c)) && (p->x != BY_SIZE || one->c.transport == RC) &&
           (!v->op || v->op == one->c.op) && (!v->size || v->size == one->c.size);
}

static bool same_line(const struct view *v, const struct result *a, const struct result *b)
{
    if (v->panel->x == BY_SIZE)
        return a->c.x == b->c.x;
    return a->c.op == b->c.op && a->c.transport == b->c.transport && a->c.variant == b->c.variant &&
           a->c.size == b->c.size && strcmp(a->figure, b->figure) == 0;
}

/* The name of a line, from what differs among lines. */
static void line_name(const struct view *v, const struct result *r, char *text, size_t size)
{
    const bool data = r->c.op != OP_NONE, variant = !v->panel->variant && *case_variant(&r->c);
    char of[24] = "";

    if (v->panel->x == BY_SIZE) {
        snprintf(text, size, "%s %llu", r->c.test->x_name, (unsigned long long)r->c.x);
        return;
    }
    if (r->c.size && !v->size)
        snprintf(of, sizeof of, " %u B", r->c.size);
    snprintf(text, size, "%s%s%s%s%s%s", data ? miba_op_name(r->c.op) : r->figure, data ? " " : "",
             data ? miba_transport_name(r->c.transport) : "", variant ? " " : "", variant ? case_variant(&r->c) : "",
             of);
}

static bool same_case(const struct miba_case *a, const struct miba_case *b)
{
    return a->test == b->test && a->op == b->op && a->transport == b->transport && a->variant == b->variant &&
           a->x == b->x && a->size == b->size;
}

/* False: its place on the axis was not measured, or the figure is less than the noise. */
static bool point_of(const struct view *v, const struct result *one, struct point *at)
{
    const struct summary *s = &one->sum;
    const bool turn = v->panel->rate && one->unit == UNIT_NS;
    const double bytes = 1e3 * one->c.size;

    if (one->unit == UNIT_NS && s->median <= 0)
        return false;
    *at = turn ? (struct point){.y = bytes / s->median,
                                .low = bytes / s->q3,
                                .high = bytes / (s->q1 > 0 ? s->q1 : s->median)}
               : (struct point){.y = s->median, .low = s->q1, .high = s->q3};
    at->x = v->panel->x == BY_SIZE ? one->c.size : (double)one->c.x;
    if (v->panel->x != BY_FIGURE)
        return true;
    for (size_t i = 0; i < v->r->n; i++)
        if (same_case(&v->r->all[i].c, &one->c) && strcmp(v->r->all[i].figure, v->panel->by) == 0) {
            at->x = v->r->all[i].sum.median;
            return !v->r->all[i].status;
        }
    return false;
}

static int by_x(const void *a, const void *b)
{
    const double x = ((const struct point *)a)->x, y = ((const struct point *)b)->x;

    return (x > y) - (x < y);
}

/* The points of a line that begins with result `first`, by x. */
static unsigned points_of(const struct view *v, size_t first, struct point *points)
{
    unsigned n = 0;

    for (size_t i = first; i < v->r->n; i++)
        if (belongs(v, &v->r->all[i]) && same_line(v, &v->r->all[i], &v->r->all[first]) &&
            point_of(v, &v->r->all[i], &points[n]))
            n++;
    qsort(points, n, sizeof *points, by_x);
    return n;
}

static bool begins_line(const struct view *v, size_t i)
{
    if (!belongs(v, &v->r->all[i]))
        return false;
    for (size_t k = 0; k < i; k++)
        if (belongs(v, &v->r->all[k]) && same_line(v, &v->r->all[k], &v->r->all[i]))
            return false;
    return true;
}

/* Whether an axis is logarithmic: all its values are positive and far apart. */
struct axis {
    double least, most;
    bool any;
};

static void axis_add(struct axis *a, double value)
{
    a->least = a->any && a->least < value ? a->least : value;
    a->most = a->any && a->most > value ? a->most : value;
    a->any = true;
}

static void write_scale(FILE *script, char name, const struct axis *a)
{
    /* Labels that do not touch: some four of an axis of powers of two. */
    const unsigned step = a->least > 0 && a->most / a->least > 4096 ? 16 : 4;

    if (a->least <= 0 || a->most / a->least < LOG_FACTOR)
        fprintf(script, "unset logscale %c\nset %ctics autofreq\n", name, name);
    else if (name == 'x')
        fprintf(script, "set logscale x 2\nset xtics %u\n", step);
    else
        fprintf(script, "set logscale y\nset ytics autofreq\n");
}

static const struct result *first_of(const struct view *v)
{
    for (size_t i = 0; i < v->r->n; i++)
        if (belongs(v, &v->r->all[i]))
            return &v->r->all[i];
    return NULL;
}

static bool is_bytes(const char *axis)
{
    return strcmp(axis, "bytes") == 0 || strcmp(axis, "size") == 0 || strcmp(axis, "region") == 0;
}

/* The panel's part of the script; its blocks of data, with two empty lines between, as gnuplot's `index` has them, go
 * to `data` unless that is NULL. */
static void write_panel(FILE *script, FILE *data, const char *name, const struct view *v, struct point *points,
                        unsigned *blocks)
{
    const struct result *first = first_of(v);
    const bool rate = v->panel->rate && first->unit == UNIT_NS;
    const char *unit = rate ? "MB/s" : unit_name(first->unit);
    const char *x_name = v->panel->x == BY_SIZE ? "bytes" : v->panel->x_name ? v->panel->x_name : first->c.test->x_name;
    struct axis x = {0}, y = {0};
    char line[128];
    bool begun = false;

    for (size_t i = 0; i < v->r->n; i++)
        for (unsigned n = begins_line(v, i) ? points_of(v, i, points) : 0; n-- > 0;) {
            axis_add(&x, points[n].x);
            axis_add(&y, points[n].y);
        }
    fprintf(script, "set title '%s%s%s'\nset xlabel '%s'\nset ylabel '%s'\n", v->panel->title, v->op ? ", " : "",
            v->op ? miba_op_name(v->op) : "", x_name, unit);
    write_scale(script, 'x', &x);
    write_scale(script, 'y', &y);
    fprintf(script, "set format x '%s'\n", is_bytes(x_name) ? "%.0b%B" : "%g");
    for (size_t i = 0; i < v->r->n; i++) {
        const unsigned n = begins_line(v, i) ? points_of(v, i, points) : 0;
        if (n == 0)
            continue;
        line_name(v, &v->r->all[i], line, sizeof line);
        fprintf(script, "%s'%s.dat' index %u using 1:2:3:4 with yerrorlines title '%s'",
                begun ? ", \\\n     " : "plot ", name, *blocks, line);
        begun = true;
        if (data)
            fprintf(data, "%s# %s, %s: %s, median, quartiles in %s\n", *blocks ? "\n\n" : "", v->panel->title, line,
                    x_name, unit);
        for (unsigned k = 0; k < n && data; k++)
            fprintf(data, "%.9g %.9g %.9g %.9g\n", points[k].x, points[k].y, points[k].low, points[k].high);
        ++*blocks;
    }
    fprintf(script, "%s\n", begun ? "" : "set multiplot next");
}

/* The panels of one row of the table. How many. */
static unsigned views_of(const struct panel *p, const struct results *r, struct view views[OPS])
{
    unsigned n = 0;

    for (int op = p->x == BY_SIZE ? OP_NONE + 1 : OP_NONE; op < (p->x == BY_SIZE ? (int)OPS : OP_NONE + 1); op++) {
        struct view v = {.panel = p, .r = r, .op = (enum miba_op)op};
        const struct result *first = first_of(&v);
        if (!first)
            continue;
        v.size = p->first_size ? first->c.size : 0;
        views[n++] = v;
    }
    return n;
}

/* All panels, in rows of `columns`: those of one row of the table, or two. */
static void write_page(FILE *script, FILE *data, const struct plot *p, const struct results *r, struct point *points,
                       unsigned columns)
{
    unsigned blocks = 0;

    for (unsigned i = 0; i < MOST_PANELS && p->panel[i].test; i++) {
        struct view views[OPS];
        const unsigned n = views_of(&p->panel[i], r, views);
        for (unsigned k = 0; k < n; k++)
            write_panel(script, data, p->name, &views[k], points, &blocks);
        for (unsigned k = n; n > 0 && p->panel[i].x == BY_SIZE && k < columns; k++)
            fprintf(script, "set multiplot next\n");
    }
}

/* Rows and columns of the page; 0 rows: there are no results. */
static unsigned rows_of(const struct plot *p, const struct results *r, unsigned *columns)
{
    unsigned single = 0, rows = 0, most = 0;

    for (unsigned i = 0; i < MOST_PANELS && p->panel[i].test; i++) {
        struct view views[OPS];
        const unsigned n = views_of(&p->panel[i], r, views);
        if (p->panel[i].x != BY_SIZE)
            single += n;
        else if (n > 0)
            rows++;
        most = n > most ? n : most;
    }
    *columns = single > 1 ? 2 : most;
    return rows + (single ? (single + *columns - 1) / *columns : 0);
}

/* Whether a result of the page does not show what it should. */
static bool any_marked(const struct plot *p, const struct results *r)
{
    for (unsigned i = 0; i < MOST_PANELS && p->panel[i].test; i++) {
        const struct view v = {.panel = &p->panel[i], .r = r};
        for (size_t k = 0; k < r->n; k++)
            if (r->all[k].marked && belongs(&v, &r->all[k]))
                return true;
    }
    return false;
}

bool plot_write(const char *folder, const struct plot *p, const struct results *r, bool *any, bool *drawn)
{
    static const char *const terminals[] = {"svg", "png"};
    unsigned columns;
    const unsigned rows = rows_of(p, r, &columns);

    *any = rows > 0;
    *drawn = false;
    if (rows == 0)
        return true;
    struct point *points = calloc(r->n, sizeof *points);
    FILE *data = plot_open(folder, p->name, "dat"), *script = plot_open(folder, p->name, "gp");
    for (unsigned t = 0; t < 2 && points && data && script; t++) {
        fprintf(script,
                "set terminal %s size %u,%u background 'white' noenhanced\nset output '%s.%s'\n"
                "set key outside right top samplen 1 spacing 0.9 font ',9'\nset tics font ',9'\nset multiplot layout "
                "%u,%u title '%s%s'\n",
                terminals[t], columns * PANEL_WIDTH, rows * PANEL_HEIGHT + 30, p->name, terminals[t], rows, columns,
                p->title, any_marked(p, r) ? " (some are marked in report.md)" : "");
        write_page(script, t == 0 ? data : NULL, p, r, points, columns);
        fprintf(script, "unset multiplot\n");
    }
    bool well = points && data && script;
    free(points);
    well &= !data || plot_close(data, p->name);
    well &= !script || plot_close(script, p->name);
    *drawn = well && plot_draw(folder, p->name);
    return well;
}
