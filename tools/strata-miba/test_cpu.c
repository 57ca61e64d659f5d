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

static enum miba_status lead(struct miba *m, const struct miba_case *c, struct endpoint *e)
{
    const struct measure what = {
        .run = batch, .arg = e, .step = pattern_step(&e->t), .figures = 2, .most = 1u << 20, .scale = 1};
    struct samples s[MOST_FIGURES];
    enum miba_status status = measure(m, &what, s);
    unsigned n = 0;

    for (unsigned i = 0; i < s[0].n; i++)
        if (s[0].value[i] > 0) {
            s[1].value[n] = s[1].value[i] / s[0].value[i];
            s[0].value[n++] = 2e3 * e->t.size / s[0].value[i];
        }
    s[0].n = s[1].n = n;
    if (!status && n == 0)
        status = miba_fail(&m->why, MIBA_FAILED, "more messages took no more time");
    if (!status)
        status = results_samples(m->results, c, "cpu_bandwidth", UNIT_MB_S, &s[0], &m->why);
    return status ? status : results_samples(m->results, c, "cpu_computing", UNIT_FRACTION, &s[1], &m->why);
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
