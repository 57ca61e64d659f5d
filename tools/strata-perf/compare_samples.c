/* Samples of `compare`, and which of them are compared. On a virtual machine the two processors are now neighbours, now
 * far apart, and messages then take up to five times as long, for a tenth of a second or for minutes. Each sample
 * therefore comes with the bare exchange of a cache line before and after it; those whose exchange was the commonest of
 * the whole comparison are used. */
#include <stdlib.h>

#include "compare.h"

#define UNLIKE 1.4 /* times as long, or as short */

enum { MIXED = -1 }; /* the exchange changed during the sample */

static bool like(double a, double b)
{
    return a < UNLIKE * b && b < UNLIKE * a;
}

void add_sample(struct samples *s, double v, double before, double after)
{
    if (s->n == s->room) {
        size_t room = s->room ? 2 * s->room : 32;
        struct sample *more = realloc(s->v, room * sizeof *more);
        if (!more)
            return;
        s->v = more;
        s->room = room;
    }
    double exchange = before <= 0 || after <= 0 ? 0 : like(before, after) ? (before + after) / 2 : MIXED;
    s->v[s->n++] = (struct sample){v, exchange};
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value that most of n are like; sorts them. */
static double commonest(double *values, size_t n)
{
    double best = 0;
    qsort(values, n, sizeof *values, by_value);
    for (size_t i = 0, low = 0, high = 0, most = 0; i < n; i++) {
        while (!like(values[low], values[i]))
            low++;
        while (high < n && like(values[high], values[i]))
            high++;
        if (high - low > most) {
            most = high - low;
            best = values[i];
        }
    }
    return best;
}

void find_usual(struct compare *c)
{
    size_t n = 0, used = 0;
    for (size_t i = 0; i < c->n_lines; i++)
        for (unsigned k = 0; k < N_IMPLS; k++)
            n += c->lines[i].of[k].n;
    double *readings = malloc((n + 1) * sizeof *readings);
    if (!readings)
        return;
    c->unlike = 0;
    for (size_t i = 0; i < c->n_lines; i++)
        for (unsigned k = 0; k < N_IMPLS; k++) {
            const struct samples *s = &c->lines[i].of[k];
            for (size_t j = 0; j < s->n; j++) {
                if (s->v[j].exchange > 0)
                    readings[used++] = s->v[j].exchange;
                c->unlike += s->v[j].exchange < 0;
            }
        }
    c->usual = commonest(readings, used);
    for (size_t i = 0; i < used; i++)
        c->unlike += !like(readings[i], c->usual);
    c->read = used + c->unlike;
    free(readings);
}

static bool is_usual(const struct compare *c, const struct sample *s)
{
    return s->exchange > 0 && like(s->exchange, c->usual);
}

bool has_usual(const struct compare *c, const struct line *l)
{
    for (unsigned k = 0; k < N_IMPLS; k++) {
        const struct samples *s = &l->of[k];
        size_t i = 0;
        if (k == IMPL_BARE || k == IMPL_SOCKETS)
            continue;
        while (i < s->n && !is_usual(c, &s->v[i]))
            i++;
        if (s->n && i == s->n)
            return false;
    }
    return true;
}

struct perf_summary summary_of(const struct compare *c, const struct line *l, enum impl impl)
{
    const struct samples *s = &l->of[impl];
    double *used = malloc((s->n + 1) * sizeof *used);
    bool choose = has_usual(c, l);
    size_t n = 0;
    if (!used)
        return (struct perf_summary){0};
    for (size_t i = 0; i < s->n; i++)
        if (!choose || is_usual(c, &s->v[i]))
            used[n++] = s->v[i].value;
    struct perf_summary summary = perf_summarise(used, n);
    free(used);
    return summary;
}
