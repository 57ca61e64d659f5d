/* Events against polling, atomic operations, and the order in which a write becomes visible. */
#include "config.h"
#include "tests.h"

#include "pattern.h"

static enum miba_status shape_events(struct miba *m, const struct miba_case *c, struct traffic *t)
{
    traffic_of_variant(m, c, t);
    if (c->x > 2)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "0 is polling, 1 is events, 2 is events of both queues");
    if (c->x == 2 && (t->pattern != PATTERN_PING_PONG || !miba_op_takes_receive(c->op)))
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "a side waits on one queue only");
    t->events = c->x > 0;
    t->send_events = c->x == 2;
    t->per_message = true;
    return MIBA_OK;
}

static enum miba_status shape_atomics(struct miba *m, const struct miba_case *c, struct traffic *t)
{
    traffic_base(m, c, c->x == 1 ? PATTERN_PING_PONG : PATTERN_STREAM, t);
    if (c->x == 0 || c->x > 8192)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "windows have 1 to 8192 operations");
    t->window = (uint32_t)c->x;
    t->per_message = true;
    return MIBA_OK;
}

static enum miba_status shape_visibility(struct miba *m, const struct miba_case *c, struct traffic *t)
{
    traffic_base(m, c, PATTERN_PING_PONG, t);
    if (c->x < 2 || c->x > 1u << 26)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "this test has 2 bytes to 64 MiB");
    t->size = (uint32_t)c->x;
    t->buffers = 1; /* the one that all marks are written to */
    t->check_order = true;
    return MIBA_OK;
}

/* The fraction of writes that were not whole when their last byte was there, out of the batches of a figure that is not
 * reported. */
static enum miba_status lead_visibility(struct miba *m, const struct miba_case *c, struct endpoint *e)
{
    const struct measure what = {.run = pattern_batch, .arg = e, .figures = 1, .most = 1u << 16, .scale = 1};
    struct samples s[MOST_FIGURES];
    const enum miba_status status = measure(m, &what, s);

    if (status)
        return status;
    const double torn = e->checked ? (double)e->torn / (double)e->checked : 0;
    struct result r = {
        .c = *c,
        .figure = c->test->name,
        .unit = UNIT_FRACTION,
        .sum = {.median = torn, .q1 = torn, .q3 = torn, .min = torn, .max = torn, .n = (unsigned)e->checked}};
    return results_add(m->results, &r, &m->why);
}

static const uint64_t ways[] = {0, 1, 2};
static const uint64_t event_sizes[] = {8, 256, 4096, 65536};
static const uint64_t windows[] = {1, 16, 64};
static const uint64_t sizes[] = {64, 256, 4096, 65536, 1 << 20};

const struct miba_test test_events = {
    .name = "events",
    .paper = "Figure 12",
    .isolates =
        "Waiting for completions by polling (0), by events of the queue that a side waits for (1), or by events "
        "of the queue of its own sends as well (2): arming the queue, sleeping, being woken. Writes without "
        "immediate data have no completion at the other side, so they are not here. Times are of one message.",
    .x_name = "events",
    VALUES(ways),
    SIZES(event_sizes),
    .variants = traffic_variants,
    .ops = BIT(OP_SEND) | BIT(OP_READ) | BIT(OP_WRITE_IMM),
    .transports = EVERY_TRANSPORT,
    .values_fixed = true,
    .shape = shape_events,
};

const struct miba_test test_atomics = {
    .name = "atomics",
    .paper = "beyond the paper",
    .isolates = "Atomic operations on one word of the other side, with so many in flight: with 1 it is a round trip "
                "each. Times are "
                "of one operation.",
    .x_name = "window",
    VALUES(windows),
    .ops = BIT(OP_FETCH_ADD) | BIT(OP_COMPARE_SWAP),
    .transports = BIT(RC),
    .values_fixed = true,
    .shape = shape_atomics,
};

const struct miba_test test_visibility = {
    .name = "visibility",
    .paper = "beyond the paper",
    .isolates = "Whether the last byte of an RDMA write becomes visible last: the fraction of writes of which other "
                "bytes were still missing when "
                "the reader saw the last one. 0 is no proof, more than 0 is one against it.",
    .x_name = "size",
    VALUES(sizes),
    .ops = BIT(OP_WRITE),
    .transports = BIT(RC),
    .shape = shape_visibility,
    .lead = lead_visibility,
};
