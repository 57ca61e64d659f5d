/* CPU utilisation: how much computation fits beside communication. */
#include "config.h"
#include "tests.h"

#include "pattern.h"

static enum miba_status shape(struct miba *m, const struct miba_case *c, struct traffic *t)
{
    traffic_base(m, c, PATTERN_BOTH_WAYS, t);
    if (c->x > 100000000)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "computations take 100 ms at most");
    t->compute_ns = (uint32_t)c->x;
    return MIBA_OK;
}

/* Figure 0: the batch; figure 1: computation in it. */
static enum miba_status batch(void *arg, unsigned n, double ns[MOST_FIGURES])
{
    struct endpoint *e = arg;
    const uint64_t before = e->computed_ns;
    const enum miba_status status = pattern_batch(e, n, ns);

    ns[1] = (double)(e->computed_ns - before);
    return status;
}

static enum miba_status report(struct miba *m, const struct miba_case *c, const char *figure, enum unit unit,
                               const struct samples *s, bool well)
{
    struct result r = {.c = *c, .figure = figure, .unit = unit, .sum = samples_summary(s), .marked = !well};

    if (!well)
        miba_fail(&r.why, MIBA_OK, "in half of the samples more messages took no more time");
    return results_add(m->results, &r, &m->why);
}

static enum miba_status lead(struct miba *m, const struct miba_case *c, struct endpoint *e)
{
    const struct measure what = {
        .run = batch, .arg = e, .step = pattern_step(&e->t), .figures = 2, .most = 1u << 20, .scale = 1};
    struct samples s[MOST_FIGURES];
    enum miba_status status = measure(m, &what, s);

    if (status)
        return status;
    const bool well = samples_positive(&s[0]);
    if (s[0].n == 0)
        return miba_fail(&m->why, MIBA_FAILED, "more messages took no more time");
    for (unsigned i = 0; i < s[0].n; i++)
        s[1].value[i] /= s[0].value[i];
    samples_to_rate(&s[0], 2.0 * e->t.size);
    status = report(m, c, "cpu_bandwidth", UNIT_MB_S, &s[0], well);
    return status ? status : report(m, c, "cpu_computing", UNIT_FRACTION, &s[1], well);
}

static const uint64_t times[] = {0, 1000, 10000, 100000, 1000000};
static const uint64_t sizes[] = {65536};

const struct miba_test test_cpu = {
    .name = "cpu",
    .paper = "Figure 5(d)",
    .isolates =
        "The test both_ways with so many nanoseconds of computation after each posting: the bandwidth that is left, "
        "and the fraction of "
        "the time that goes into computation. An adapter that works by itself keeps its bandwidth until nearly all "
        "time is computation; one in software does not.",
    .x_name = "compute",
    VALUES(times),
    SIZES(sizes),
    .ops = BIT(OP_SEND) | BIT(OP_WRITE),
    .transports = BIT(RC) | BIT(UC),
    .values_fixed = true,
    .shape = shape,
    .lead = lead,
};
