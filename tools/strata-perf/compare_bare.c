/* The lower bounds that the bare machine sets: the column of `compare` beside the libraries. */
#include "bare.h"
#include "compare.h"
#include "exchange.h"

enum { SERIES = 4 };                    /* of an exchange, as around a batch of ranks */
enum { SMALLEST_COPY = 1024 };          /* bytes; below, a call of memcpy costs more than its copy */
#define WINDOW_BYTES ((size_t)64 << 20) /* as loops_support.h: the memory of a window */

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
    size_t window = c->o->one_buffer ? 1 : c->o->window;
    if (window > WINDOW_BYTES / l->bytes)
        window = WINDOW_BYTES / l->bytes > 1 ? WINDOW_BYTES / l->bytes : 1;
    return perf_bare_copies(c->cpus, l->bytes, l->test == PERF_BIBW || window == 1 ? window : window / 2);
}

void measure_bare(struct compare *c)
{
    for (size_t i = 0; i < c->n_lines; i++) {
        struct line *l = &c->lines[i];
        if (!has_bare(c, l))
            continue;
        double before = perf_exchange(c->cpus, SERIES);
        double v = l->test != PERF_LATENCY ? copies(c, l) : l->bytes <= 8 ? before : perf_bare_ring(c->cpus, l->bytes);
        if (v > 0)
            add_sample(&l->of[IMPL_BARE], v, before, perf_exchange(c->cpus, SERIES));
    }
}
