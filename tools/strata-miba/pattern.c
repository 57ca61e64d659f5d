/* Patterns of messages: batches of both sides, and the figures of each pattern. */
#include "config.h"
#include "pattern.h"

#include <stdio.h>
#include <string.h>

#define MOST_STEP_BYTES (4u << 20)

unsigned pattern_step(const struct traffic *t)
{
    if (t->pattern == PATTERN_PING_PONG)
        return 0;
    const uint32_t fit = t->size ? MOST_STEP_BYTES / t->size : t->window;
    return fit < 1 ? 1 : fit < t->window ? fit : t->window;
}

bool pattern_is_paired(const struct traffic *t)
{
    return t->pattern == PATTERN_BOTH_WAYS || t->loaders || miba_op_takes_receive(t->op) ||
           (t->pattern == PATTERN_PING_PONG && !miba_op_fetches(t->op));
}

static enum miba_status run_own_part(struct endpoint *e, unsigned n, uint64_t *ns)
{
    const bool receives = miba_op_takes_receive(e->t.op);
    uint32_t arrived;

    switch (e->t.pattern) {
    case PATTERN_PING_PONG:
        return miba_op_fetches(e->t.op) ? round_trips(e, n, ns) : pingpong(e, true, n, ns);
    case PATTERN_BOTH_WAYS:
        return stream(e, n, receives ? n : 0, ns, &arrived);
    case PATTERN_INCAST:
        return stream(e, 0, n, ns, &arrived);
    default:
        return stream(e, n, 0, ns, &arrived);
    }
}

enum miba_status pattern_follow(struct endpoint *e, unsigned n, uint64_t *ns, uint32_t *arrived)
{
    const bool receives = miba_op_takes_receive(e->t.op);

    *ns = 0;
    *arrived = 0;
    e->over = OVER_NOT;
    if (e->t.loaders)
        return loaders_follow(e, n, arrived);
    switch (e->t.pattern) {
    case PATTERN_PING_PONG:
        return pingpong(e, false, n, ns);
    case PATTERN_BOTH_WAYS:
        return stream(e, n, receives ? n : 0, ns, arrived);
    default:
        return stream(e, 0, n, ns, arrived);
    }
}

/* What the other side says after a batch: "done NS ARRIVED", or "failed REASON". */
static enum miba_status hear_done(struct endpoint *e, unsigned long long *ns, unsigned *arrived)
{
    struct miba *m = e->m;
    char line[LINE_MOST];
    const enum miba_status status = link_hear(m->link, line, false, &m->why);

    if (status)
        return status;
    if (strncmp(line, "failed ", 7) == 0)
        return miba_fail(&m->why, MIBA_FAILED, "the other side: %s", line + 7);
    if (sscanf(line, "done %llu %u", ns, arrived) != 2)
        return miba_fail(&m->why, MIBA_BROKEN, "the other side says \"%.80s\" after a batch", line);
    return MIBA_OK;
}

static enum miba_status paired_batch(struct endpoint *e, own_part part, unsigned n, uint64_t *ns)
{
    struct miba *m = e->m;
    char line[LINE_MOST];
    unsigned long long their_ns = 0;
    unsigned their_arrived = 0;
    enum miba_status status = link_say(m->link, &m->why, "batch %u", n);

    if (!status)
        status = link_hear(m->link, line, false, &m->why);
    if (!status && strcmp(line, "ready") != 0)
        status = miba_fail(&m->why, MIBA_BROKEN, "the other side says \"%.80s\" before a batch", line);
    if (status)
        return status;
    status = part(e, n, ns);
    if (!status && e->over == OVER_STIRRED) {
        /* It says that it failed, or it is gone. */
        status = hear_done(e, &their_ns, &their_arrived);
        if (status >= MIBA_LOST)
            return status;
        const struct miba_why theirs = m->why;
        if (link_say(m->link, &m->why, "stop"))
            return MIBA_LOST;
        m->why = theirs;
        return status ? status : miba_fail(&m->why, MIBA_BROKEN, "the other side ends a batch by itself");
    }
    if (!status && e->over)
        status = endpoint_over(e);
    if (status >= MIBA_LOST)
        return status;
    const struct miba_why own = m->why;
    enum miba_status said = link_say(m->link, &m->why, "stop");
    if (!said)
        said = hear_done(e, &their_ns, &their_arrived);
    if (status && said < MIBA_LOST) {
        m->why = own;
        return status;
    }
    if (said)
        return said;
    if (e->t.pattern == PATTERN_BOTH_WAYS && their_ns > *ns)
        *ns = their_ns;
    if (miba_op_takes_receive(e->t.op) && e->t.pattern == PATTERN_STREAM && their_arrived < n)
        e->lost_all += n - their_arrived;
    e->posted_all += n;
    return MIBA_OK;
}

enum miba_status pattern_batch_of(struct endpoint *e, own_part part, unsigned n, double *ns)
{
    uint64_t took = 0;
    enum miba_status status;

    e->over = OVER_NOT;
    if (pattern_is_paired(&e->t)) {
        status = paired_batch(e, part, n, &took);
    } else {
        status = part(e, n, &took);
        if (!status && e->over)
            status = endpoint_over(e);
    }
    *ns = (double)took;
    return status;
}

enum miba_status pattern_batch(void *arg, unsigned n, double ns[MOST_FIGURES])
{
    return pattern_batch_of(arg, run_own_part, n, ns);
}

/* Marks the result when its median has no rate. */
static enum miba_status to_rate(struct miba *m, const struct traffic *t, struct samples *s, struct result *r)
{
    r->marked = !samples_to_rate(s, (double)t->size * (t->pattern == PATTERN_BOTH_WAYS ? 2 : 1));
    if (s->n == 0)
        return miba_fail(&m->why, MIBA_FAILED,
                         "more messages took no more time: the machine is too busy, or --time too short");
    if (r->marked)
        miba_fail(&r->why, MIBA_OK, "in half of the samples more messages took no more time");
    return MIBA_OK;
}

static enum miba_status report_stream(struct miba *m, const struct miba_case *c, const struct endpoint *e,
                                      struct samples *s)
{
    struct result r = {.c = *c, .figure = c->test->name, .unit = e->t.per_message ? UNIT_NS : UNIT_MB_S};
    const enum miba_status status = e->t.per_message ? MIBA_OK : to_rate(m, &e->t, s, &r);

    if (status)
        return status;
    if (e->t.per_message && !e->lost_all)
        return results_samples(m->results, c, c->test->name, UNIT_NS, s, &m->why);
    r.sum = samples_summary(s);
    if (e->lost_all) {
        r.marked = true;
        miba_fail(&r.why, MIBA_OK, "%llu of %llu messages were lost: the time is the sender's",
                  (unsigned long long)e->lost_all, (unsigned long long)e->posted_all);
    }
    return results_add(m->results, &r, &m->why);
}

enum miba_status pattern_lead(struct miba *m, const struct miba_case *c, struct endpoint *e)
{
    const bool half = e->t.pattern == PATTERN_PING_PONG && !miba_op_fetches(e->t.op);
    const struct measure what = {.run = pattern_batch,
                                 .arg = e,
                                 .step = pattern_step(&e->t),
                                 .figures = 1,
                                 .most = 1u << 20,
                                 .scale = half ? 0.5 : 1};
    struct samples s[MOST_FIGURES];
    const enum miba_status status = measure(m, &what, s);

    if (status)
        return status;
    if (e->t.pattern == PATTERN_PING_PONG)
        return results_samples(m->results, c, c->test->name, UNIT_NS, &s[0], &m->why);
    return report_stream(m, c, e, &s[0]);
}
