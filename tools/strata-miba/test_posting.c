/* How messages are posted: inline, in lists, with completions now and then, with immediate data. */
#include "config.h"
#include "tests.h"

#include "endpoint.h"

static enum miba_status shape_inline(struct miba *m, const struct miba_case *c, struct traffic *t)
{
    traffic_base(m, c, PATTERN_PING_PONG, t);
    if (c->x == 0 || c->x > 4096)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "this test has 1 to 4096 bytes");
    t->size = (uint32_t)c->x;
    /* The queue pair is the same in both variants. */
    t->inline_bytes = (uint32_t)c->x;
    t->copied = c->variant == 1;
    return MIBA_OK;
}

static enum miba_status shape_signalling(struct miba *m, const struct miba_case *c, struct traffic *t)
{
    traffic_base(m, c, PATTERN_STREAM, t);
    if (c->x == 0 || c->x > t->window)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "1 to %u messages, the window, may share a completion", t->window);
    t->signal_every = (uint32_t)c->x;
    t->per_message = true;
    return MIBA_OK;
}

static enum miba_status shape_lists(struct miba *m, const struct miba_case *c, struct traffic *t)
{
    traffic_base(m, c, PATTERN_STREAM, t);
    if (c->x == 0 || c->x > MOST_LIST || c->x > t->window)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "lists of this test have 1 to %u requests", MOST_LIST);
    t->list = (uint32_t)c->x;
    t->per_message = true;
    return MIBA_OK;
}

static enum miba_status shape_immediate(struct miba *m, const struct miba_case *c, struct traffic *t)
{
    traffic_of_variant(m, c, t);
    if (c->x == 0 || c->x > 1u << 30)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "this test has 1 byte to 1 GiB");
    t->size = (uint32_t)c->x;
    return MIBA_OK;
}

static const uint64_t short_sizes[] = {1, 8, 64, 128, 256, 512, 1024};
static const uint64_t counts[] = {1, 2, 4, 8, 16, 32};
static const uint64_t sizes[] = {8, 1024, 65536};
static const uint64_t one_size[] = {8};
static const char *const kinds[] = {"inline", "copied", NULL};

const struct miba_test test_inline = {
    .name = "inline",
    .paper = "beyond the paper",
    .isolates = "Latency of short messages whose data is in the work request (inline) or is read by the device "
                "(copied), on the same queue pairs.",
    .x_name = "size",
    VALUES(short_sizes),
    .variants = kinds,
    .ops = BIT(OP_SEND) | BIT(OP_WRITE),
    .transports = EVERY_TRANSPORT,
    .shape = shape_inline,
};

const struct miba_test test_signalling = {
    .name = "signalling",
    .paper = "beyond the paper",
    .isolates = "The time of a message in a stream when every so many messages make one completion: what making and "
                "polling a completion costs.",
    .x_name = "interval",
    VALUES(counts),
    SIZES(one_size),
    .ops = BIT(OP_SEND) | BIT(OP_WRITE) | BIT(OP_READ),
    .transports = EVERY_TRANSPORT,
    .values_fixed = true,
    .shape = shape_signalling,
};

const struct miba_test test_lists = {
    .name = "lists",
    .paper = "beyond the paper",
    .isolates = "The time of a message in a stream when so many requests are posted by one call: what the call and its "
                "doorbell cost.",
    .x_name = "requests",
    VALUES(counts),
    SIZES(one_size),
    .ops = BIT(OP_SEND) | BIT(OP_WRITE) | BIT(OP_READ),
    .transports = EVERY_TRANSPORT,
    .values_fixed = true,
    .shape = shape_lists,
};

const struct miba_test test_immediate = {
    .name = "immediate",
    .paper = "beyond the paper",
    .isolates =
        "RDMA writes with immediate data beside sends: both take a receive and make a completion at the other side.",
    .x_name = "size",
    VALUES(sizes),
    .variants = traffic_variants,
    .ops = BIT(OP_WRITE_IMM) | BIT(OP_SEND),
    .transports = BIT(RC) | BIT(UC),
    .shape = shape_immediate,
};
