/* The basic tests of section 5.2.1: latency, bandwidth, both directions. */
#include "config.h"
#include "tests.h"

static enum miba_status by_size(struct miba *m, const struct miba_case *c, enum pattern pattern, struct traffic *t)
{
    traffic_base(m, c, pattern, t);
    if (miba_op_is_atomic(c->op) && c->x != 8)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "atomic operations have 8 bytes");
    if (c->x > 1u << 30)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "messages have 1 GiB at most");
    if (c->x == 0 && c->op == OP_WRITE && pattern == PATTERN_PING_PONG)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "a write of no byte is not seen at the other side");
    t->size = (uint32_t)c->x;
    t->qps = (uint32_t)m->set.qps;
    return MIBA_OK;
}

static enum miba_status shape_latency(struct miba *m, const struct miba_case *c, struct traffic *t)
{
    const enum miba_status status = by_size(m, c, PATTERN_PING_PONG, t);

    t->one_cq = m->set.one_cq && miba_op_takes_receive(c->op);
    return status;
}

static enum miba_status shape_bandwidth(struct miba *m, const struct miba_case *c, struct traffic *t)
{
    return by_size(m, c, PATTERN_STREAM, t);
}

static enum miba_status shape_both_ways(struct miba *m, const struct miba_case *c, struct traffic *t)
{
    return by_size(m, c, PATTERN_BOTH_WAYS, t);
}

static enum miba_status shape_window(struct miba *m, const struct miba_case *c, struct traffic *t)
{
    traffic_base(m, c, PATTERN_STREAM, t);
    if (c->x == 0 || c->x > 8192)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "windows have 1 to 8192 messages");
    t->window = (uint32_t)c->x;
    return MIBA_OK;
}

static const uint64_t sizes[] = {1, 8, 64, 256, 1024, 4096, 16384, 65536, 262144, 1 << 20};
static const uint64_t window_sizes[] = {8, 65536};
static const uint64_t windows[] = {1, 2, 4, 8, 16, 32, 64, 128};

const struct miba_test test_latency = {
    .name = "latency",
    .paper = "Figure 5(a)",
    .isolates = "One message at a time in the base configuration (one buffer, one segment, polling, one connection): "
                "half of a round "
                "trip of sends or writes, a whole one of a read. The other tests change one thing of it.",
    .x_name = "size",
    VALUES(sizes),
    .ops = DATA,
    .transports = EVERY_TRANSPORT,
    .shape = shape_latency,
};

const struct miba_test test_bandwidth = {
    .name = "bandwidth",
    .paper = "Figure 5(b)",
    .isolates = "A window of messages one way in the base configuration, by their size: bytes a second of the sender.",
    .x_name = "size",
    VALUES(sizes),
    .ops = DATA,
    .transports = EVERY_TRANSPORT,
    .shape = shape_bandwidth,
};

const struct miba_test test_window = {
    .name = "window",
    .paper = "Figure 5(b)",
    .isolates = "Bandwidth by the number of messages in flight: how many it takes to keep the device busy.",
    .x_name = "window",
    VALUES(windows),
    SIZES(window_sizes),
    .ops = DATA,
    .transports = EVERY_TRANSPORT,
    .values_fixed = true,
    .shape = shape_window,
};

const struct miba_test test_both_ways = {
    .name = "both_ways",
    .paper = "Figure 5(c)",
    .isolates = "A window of messages each way at once: what both directions share, on the device and the bus.",
    .x_name = "size",
    VALUES(sizes),
    .ops = DATA,
    .transports = EVERY_TRANSPORT,
    .shape = shape_both_ways,
};
