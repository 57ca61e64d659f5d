/* Address translation, schemes 1 and 2 of section 5.2.2: many buffers in turn, and one buffer between many. */
#include "config.h"
#include "tests.h"

#define MOST_BUFFERS 65536u
#define MOST_BYTES   (UINT64_C(64) << 20)
#define OTHERS       2048u

/* Each side has as much for sending and for receiving. */
static enum miba_status fits(struct miba *m, const struct traffic *t)
{
    if ((uint64_t)t->buffers * (t->size < 4096 ? 4096 : t->size) > MOST_BYTES)
        return miba_fail(&m->why, MIBA_SKIPPED, "%u buffers of %u bytes: this test takes 64 MiB of them at most",
                         t->buffers, t->size);
    return MIBA_OK;
}

static enum miba_status shape_1(struct miba *m, const struct miba_case *c, struct traffic *t)
{
    traffic_of_variant(m, c, t);
    if (c->x == 0 || c->x > MOST_BUFFERS)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "this test has 1 to %u buffers", MOST_BUFFERS);
    t->buffers = (uint32_t)c->x;
    t->per_message = true;
    return fits(m, t);
}

static enum miba_status shape_2(struct miba *m, const struct miba_case *c, struct traffic *t)
{
    traffic_of_variant(m, c, t);
    if (c->x > 100 || (c->x && 100 % c->x))
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "percentages that divide 100, and 0");
    const uint32_t all = m->set.buffers ? (uint32_t)m->set.buffers : OTHERS;
    const uint64_t stride = t->size < 4096 ? 4096 : t->size;
    t->buffers = c->x == 100 ? 1 : MOST_BYTES / stride < all ? (uint32_t)(MOST_BYTES / stride) : all;
    t->buffers = t->buffers < 2 && c->x < 100 ? 2 : t->buffers;
    t->per_message = true;
    t->reuse_period = c->x ? (uint32_t)(100 / c->x) : 0;
    return MIBA_OK;
}

static const uint64_t buffers[] = {1, 2, 4, 10, 64, 256, 1024, 2048, 4096};
static const uint64_t sizes[] = {8, 256, 4096, 65536};
static const uint64_t percent[] = {100, 50, 25, 10, 0};

const struct miba_test test_translation_1 = {
    .name = "translation_1",
    .paper = "Figure 6(a), 6(b)",
    .isolates = "Scheme 1: messages use 1/P buffers in turn, each on pages of its own, and in other "
                "sets of the processor's caches than its neighbours. While the device's cache of translations holds "
                "all of them nothing changes; the step is the size of the cache. Times are of one message.",
    .x_name = "buffers",
    OF_ATTRIBUTE(buffers, sizes),
    .transports = EVERY_TRANSPORT,
    .shape = shape_1,
};

const struct miba_test test_translation_2 = {
    .name = "translation_2",
    .paper = "Figure 6(c), 6(d)",
    .isolates = "Scheme 2: so many percent of the messages use one buffer, the others 2047 others in turn, or one less "
                "than --buffers, which no cache of fewer pages holds. What 0 % takes more than 100 % is the cost of a "
                "translation that is not cached. "
                "Times are of one message.",
    .x_name = "reuse",
    OF_ATTRIBUTE(percent, sizes),
    .transports = EVERY_TRANSPORT,
    .shape = shape_2,
};
