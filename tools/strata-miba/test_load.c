/* Load: other traffic at the adapter beside that of the test, and many senders to one receiver. */
#include "config.h"
#include "tests.h"

#include <sched.h>
#include "pattern.h"

static enum miba_status shape_load(struct miba *m, const struct miba_case *c, struct traffic *t)
{
    traffic_base(m, c, PATTERN_STREAM, t);
    if (c->x > MOST_LOADERS)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "this test has %u loaders at most", MOST_LOADERS);
    t->loaders = (uint32_t)c->x;
    t->per_message = true;
    return MIBA_OK;
}

static enum miba_status shape_incast(struct miba *m, const struct miba_case *c, struct traffic *t)
{
    traffic_base(m, c, PATTERN_INCAST, t);
    if (c->x == 0 || c->x > MOST_LOADERS)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "this test has 1 to %u senders", MOST_LOADERS);
    t->qps = (uint32_t)c->x;
    t->loaders = (uint32_t)c->x;
    t->per_message = true;
    return MIBA_OK;
}

/* Each side and each loader wants a processor, loaders one of the other side's machine. With fewer it is the scheduler
 * that is measured. In an incast the other side's own thread sleeps. */
static void mark(const struct miba *m, const struct endpoint *e, struct result *r)
{
    const bool here = link_is_here(m->link);
    const unsigned others = e->t.loaders + (e->t.pattern == PATTERN_INCAST ? 0 : 1);
    const unsigned wanted = here ? 1 + others : others, has = here ? m->processors : e->remote.processors;

    if (e->t.loaders == 0 || has >= wanted)
        return;
    r->marked = true;
    miba_fail(&r->why, MIBA_OK, "scheduler, not adapter: %u threads want a processor each, %s has %u", wanted,
              here ? "the machine" : "the other side", has);
}

static enum miba_status lead(struct miba *m, const struct miba_case *c, struct endpoint *e)
{
    const struct measure what = {
        .run = pattern_batch, .arg = e, .step = pattern_step(&e->t), .figures = 1, .most = 1u << 20, .scale = 1};
    struct result r = {.c = *c, .figure = c->test->name, .unit = UNIT_NS};
    struct samples s[MOST_FIGURES];
    const enum miba_status status = measure(m, &what, s);

    if (status)
        return status;
    r.sum = samples_summary(&s[0]);
    mark(m, e, &r);
    return results_add(m->results, &r, &m->why);
}

static const uint64_t loaders[] = {0, 1, 2, 4};
static const uint64_t load_sizes[] = {8, 4096, 65536};
static const uint64_t short_sizes[] = {8};
static const uint64_t senders[] = {1, 2, 4, 8};

const struct miba_test test_load = {
    .name = "load",
    .paper = "Figure 13",
    .isolates = "The time of a message in a stream while so many threads of the other side write words of 4 bytes into "
                "the sender's memory: what the "
                "sender's adapter spends on them. Its processor takes no part.",
    .x_name = "loaders",
    VALUES(loaders),
    SIZES(load_sizes),
    .ops = BIT(OP_SEND) | BIT(OP_WRITE),
    .transports = BIT(RC) | BIT(UC),
    .values_fixed = true,
    .shape = shape_load,
    .lead = lead,
};

const struct miba_test test_incast = {
    .name = "incast",
    .paper = "beyond the paper",
    .isolates = "The time of a message at a receiver to which threads of the other side send, each by a connection of "
                "its own.",
    .x_name = "senders",
    VALUES(senders),
    SIZES(short_sizes),
    .ops = BIT(OP_SEND),
    .transports = BIT(RC),
    .values_fixed = true,
    .shape = shape_incast,
    .lead = lead,
};
