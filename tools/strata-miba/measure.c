/* Costs by difference. The counts are chosen so that all samples of a case fit into its time. */
#include "config.h"
#include "measure.h"

/* Fewer samples than asked for are taken when their time is over, but no fewer than these. */
#define LEAST_SAMPLES 5u
/* The smaller count is this part of the larger one. */
#define PART 4u

static enum miba_status timed_batch(const struct measure *what, unsigned n, double ns[MOST_FIGURES], uint64_t *took)
{
    const uint64_t begin = miba_now();

    for (unsigned i = 0; i < MOST_FIGURES; i++)
        ns[i] = 0;
    const enum miba_status status = what->run(what->arg, n, ns);
    *took = miba_now() - begin;
    return status;
}

static enum miba_status between(const struct miba *m)
{
    return m->between_samples ? m->between_samples(m->between_arg) : MIBA_OK;
}

/* The larger count next to `n` that is allowed: the smaller one, a part of it, is a multiple of the step as well. */
static unsigned allowed(const struct measure *what, uint64_t n)
{
    const unsigned unit = what->step ? what->step * PART : 1;

    if (n > what->most && what->most >= unit)
        n = what->most;
    return n < unit ? unit : (unsigned)(n / unit * unit);
}

/* The larger count: as many as take the time of one sample, less what the smaller one takes. */
static enum miba_status choose_count(const struct miba *m, const struct measure *what, unsigned *count)
{
    const uint64_t room = (uint64_t)m->set.time_ms * 1000000u / (unsigned)m->set.samples * PART / (PART + 1);
    double ns[MOST_FIGURES];
    unsigned n = allowed(what, m->set.count ? (uint64_t)m->set.count : PART);
    uint64_t took = 0;

    *count = n;
    if (m->set.count)
        return MIBA_OK;
    for (;;) {
        enum miba_status status = timed_batch(what, n, ns, &took);
        if (!status)
            status = between(m);
        if (status)
            return status;
        const uint64_t more = took ? room / took : 8;
        const unsigned next = allowed(what, (uint64_t)n * (more < 2 ? 2 : more > 8 ? 8 : more));
        if (next <= n || took * 2 > room)
            break;
        n = next;
    }
    /* Too many for the time: fewer, as long as there is a difference. */
    if (took > room)
        n = allowed(what, (uint64_t)((double)n * (double)room / (double)took));
    *count = n < 1 ? 1 : n;
    return MIBA_OK;
}

enum miba_status measure(struct miba *m, const struct measure *what, struct samples samples[MOST_FIGURES])
{
    double few[MOST_FIGURES], many[MOST_FIGURES];
    uint64_t took_few, took_many, spent = 0;
    unsigned n = 1;
    enum miba_status status = choose_count(m, what, &n);

    for (unsigned f = 0; f < what->figures; f++)
        samples[f].n = 0;
    if (status)
        return status;
    const unsigned less = n / PART;
    for (unsigned i = 0; i < (unsigned)m->set.samples; i++) {
        if (i >= LEAST_SAMPLES && spent > (uint64_t)m->set.time_ms * 1000000u)
            break;
        status = timed_batch(what, less, few, &took_few);
        if (!status)
            status = timed_batch(what, n, many, &took_many);
        if (status)
            return status;
        spent += took_few + took_many;
        for (unsigned f = 0; f < what->figures; f++)
            samples_add(&samples[f], what->scale * (many[f] - few[f]) / (double)(n - less));
        status = between(m);
        if (status)
            return status;
    }
    return MIBA_OK;
}

enum miba_status measure_and_report(struct miba *m, const struct miba_case *c, const struct measure *what,
                                    const char *const figures[])
{
    struct samples samples[MOST_FIGURES];
    enum miba_status status = measure(m, what, samples);

    for (unsigned f = 0; !status && f < what->figures; f++)
        status = results_samples(m->results, c, figures[f], UNIT_NS, &samples[f], &m->why);
    return status;
}
