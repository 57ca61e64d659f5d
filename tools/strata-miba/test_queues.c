/* Attributes of queue pairs: how many there are, segments of a message, entries of a list at most, shared receive
 * queues. */
#include "config.h"
#include "tests.h"

static enum miba_status shape_qps(struct miba *m, const struct miba_case *c, struct traffic *t)
{
    traffic_of_variant(m, c, t);
    if (c->x == 0 || c->x > MOST_QPS)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "this test has 1 to %u queue pairs", MOST_QPS);
    t->qps = (uint32_t)c->x;
    t->per_message = true;
    return MIBA_OK;
}

static enum miba_status entries(struct miba *m, const struct miba_case *c)
{
    const int device = m->dev.attr.max_sge;

    if (c->x == 0 || c->x > MOST_SEGMENTS || (int)c->x > device)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "%llu entries: lists of the device have %d at most, this test's %u",
                         (unsigned long long)c->x, device, MOST_SEGMENTS);
    return MIBA_OK;
}

static enum miba_status shape_segments(struct miba *m, const struct miba_case *c, struct traffic *t)
{
    const int device = m->dev.attr.max_sge;

    traffic_of_variant(m, c, t);
    const enum miba_status status = entries(m, c);
    if (status)
        return status;
    if (t->size < c->x)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "%u bytes are fewer than the segments", t->size);
    t->segments = (uint32_t)c->x;
    t->max_sge = device < (int)MOST_SEGMENTS ? (uint32_t)device : MOST_SEGMENTS;
    t->per_message = true;
    return MIBA_OK;
}

static enum miba_status shape_scatter(struct miba *m, const struct miba_case *c, struct traffic *t)
{
    const int device = m->dev.attr.max_sge;
    const enum miba_status status = entries(m, c);

    traffic_of_variant(m, c, t);
    if (status)
        return status;
    if (t->size < c->x)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "%u bytes are fewer than the segments", t->size);
    t->scatter = (uint32_t)c->x;
    t->max_recv_sge = device < (int)MOST_SEGMENTS ? (uint32_t)device : MOST_SEGMENTS;
    t->per_message = true;
    return MIBA_OK;
}

static enum miba_status shape_max_sge(struct miba *m, const struct miba_case *c, struct traffic *t)
{
    traffic_of_variant(m, c, t);
    t->max_sge = (uint32_t)c->x;
    t->per_message = true;
    return entries(m, c);
}

static enum miba_status shape_srq(struct miba *m, const struct miba_case *c, struct traffic *t)
{
    traffic_base(m, c, PATTERN_PING_PONG, t);
    if (c->x == 0 || c->x > MOST_QPS)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "this test has 1 to %u queue pairs", MOST_QPS);
    if (m->dev.attr.max_srq == 0 && c->variant == 1)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "the device has no shared receive queues");
    t->qps = (uint32_t)c->x;
    t->srq = c->variant == 1;
    return MIBA_OK;
}

static const uint64_t sizes[] = {8, 256, 4096, 65536};
static const uint64_t segment_sizes[] = {1024, 64, 16384, 65536};
static const uint64_t short_sizes[] = {8};
static const uint64_t pairs[] = {1, 2, 4, 8, 16, 32, 64};
static const uint64_t lists[] = {1, 2, 4, 8, 16, 30};
static const uint64_t few[] = {1, 16};
static const char *const kinds[] = {"own", "shared", NULL};

const struct miba_test test_qps = {
    .name = "qps",
    .paper = "Figure 7, 8",
    .isolates = "Messages go by so many connections in turn: what the device spends on going from one queue pair to "
                "another. With one there "
                "is no change. Times are of one message, in both variants.",
    .x_name = "qps",
    OF_ATTRIBUTE(pairs, sizes),
    .transports = EVERY_TRANSPORT,
    .shape = shape_qps,
};

const struct miba_test test_segments = {
    .name = "segments",
    .paper = "Figure 9",
    .isolates = "A message out of so many segments of equal length. The queue pair's max_send_sge is the same in all "
                "cases. Times are of one message.",
    .x_name = "segments",
    OF_ATTRIBUTE(lists, segment_sizes),
    .transports = EVERY_TRANSPORT,
    .shape = shape_segments,
};

const struct miba_test test_scatter = {
    .name = "scatter",
    .paper = "Figure 9",
    .isolates = "A message into so many segments of equal length at the receiver: the other half of section 5.2.4. The "
                "queue pair's max_recv_sge is the same in all cases. Times are of one message.",
    .x_name = "segments",
    VALUES(lists),
    SIZES(segment_sizes),
    .variants = traffic_variants,
    .ops = BIT(OP_SEND),
    .transports = BIT(RC) | BIT(UC),
    .values_fixed = true,
    .shape = shape_scatter,
};

const struct miba_test test_max_sge = {
    .name = "max_sge",
    .paper = "Figure 11",
    .isolates = "One segment on queue pairs that were made for so many: longer work requests cost their reading. Times "
                "are of one message.",
    .x_name = "max_sge",
    OF_ATTRIBUTE(lists, sizes),
    .transports = EVERY_TRANSPORT,
    .shape = shape_max_sge,
};

const struct miba_test test_srq = {
    .name = "srq",
    .paper = "beyond the paper",
    .isolates = "Latency of sends whose receives come from the queue pair's own queue (own), or from a shared receive "
                "queue (shared), with so "
                "many connections.",
    .x_name = "qps",
    VALUES(few),
    SIZES(short_sizes),
    .variants = kinds,
    .ops = BIT(OP_SEND),
    .transports = BIT(RC) | BIT(UD),
    .values_fixed = true,
    .shape = shape_srq,
};
