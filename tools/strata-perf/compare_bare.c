/* The lower bounds that the bare machine sets: the column of `compare` beside the libraries. */
#include "bare.h"
#include "compare.h"
#include "exchange.h"

enum { SMALLEST_COPY = 1024 }; /* bytes; below, a call of memcpy costs more than its copy */

static bool has_bare(const struct compare *c, const struct line *l)
{
    if (c->n_cpus < 2 || c->o->cluster || c->o->against || l->ranks != 2 || l->kind[0])
        return false;
    if (l->test == PERF_LATENCY)
        return l->bytes <= PERF_BARE_RING_MOST;
    return (l->test == PERF_BW || l->test == PERF_BIBW) && l->bytes >= SMALLEST_COPY;
}

/* One way, half of a window each; both ways, a window each. */
static double copies(const struct compare *c, const struct line *l)
{
    size_t window = c->o->one_buffer ? 1 : perf_window(c->o, l->bytes);
    return perf_bare_copies(c->cpus, l->bytes, l->test == PERF_BIBW || window == 1 ? window : window / 2);
}

void measure_bare(struct compare *c)
{
    for (size_t i = 0; i < c->n_lines; i++) {
        struct line *l = &c->lines[i];
        if (!has_bare(c, l))
            continue;
        double before = perf_exchange(c->cpus, EXCHANGE_SERIES);
        double v = l->test != PERF_LATENCY ? copies(c, l) : l->bytes <= 8 ? before : perf_bare_ring(c->cpus, l->bytes);
        if (v > 0)
            add_sample(&l->of[IMPL_BARE], v, before, perf_exchange(c->cpus, EXCHANGE_SERIES));
    }
}
