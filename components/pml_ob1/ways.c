/* Ways of messages by length and traffic: see ways.h. */
#include "ways.h"

#include <strata/sdk/btl.h>

/* The sender asks first: what is long enough, and can be got. */
static bool ways_asked(const struct ob1_ways_of *of, enum ob1_class traffic, uint64_t length)
{
    uint32_t least = of->limits.alone_min;

    if (traffic == OB1_WINDOW || least == UINT32_MAX || !(of->caps & ST_BTL_GET))
        return false;
    if (of->tuned)
        return traffic != OB1_LATE;
    if (length < least)
        return false;
    /* A stream to a receiver that is late is copied once more, from memory that it is kept in. */
    if (traffic == OB1_LATE)
        return of->learns && length > of->limits.eager_limit && length <= of->limits.stream_limit;
    /* Crossing: those of several fragments. A longer one is announced anyway, and the receiver decides. */
    return traffic == OB1_ALONE || (length > of->limits.eager_limit && length <= of->limits.stream_limit);
}

static struct ob1_choice ways_choice(const struct ob1_ways_of *of, uint64_t length)
{
    return (struct ob1_choice){.contiguous = true,
                               .mode = STRATA_STANDARD,
                               .wanted = of->wanted,
                               .caps = of->caps,
                               .length = length,
                               .eager_limit = of->limits.eager_limit,
                               .stream_limit = of->limits.stream_limit};
}

uint8_t ob1_way_start(const struct ob1_ways_of *of, enum ob1_class traffic, uint64_t length)
{
    struct ob1_choice c = ways_choice(of, length);

    c.announce = ways_asked(of, traffic, length);
    return (uint8_t)((unsigned)ob1_choose(&c) | (c.announce ? OB1_WAY_ASKED : 0));
}

enum ob1_protocol ob1_way_announced(const struct ob1_ways_of *of)
{
    struct ob1_choice c = ways_choice(of, 0);

    c.announce = true;
    return ob1_choose(&c);
}

enum ob1_protocol ob1_way_answer(const struct ob1_ways_of *of, bool at_once, uint64_t length)
{
    enum ob1_protocol announced = ob1_way_announced(of);
    struct ob1_choice c = ways_choice(of, length);

    c.matched = true;
    c.peer_exposed = announced != OB1_P_RNDV;
    c.peer_key = announced == OB1_P_RNDV_KEY;
    c.rdma_min = at_once ? 0 : of->limits.rdma_min;
    c.split_min = at_once ? of->limits.alone_split_min : of->limits.split_min;
    return ob1_choose(&c);
}

static struct ob1_way_step ways_at(const struct ob1_ways_of *of, enum ob1_class traffic,
                                   const struct ob1_way_edge *edge)
{
    uint8_t start = ob1_way_start(of, traffic, edge->from);
    struct ob1_way_step step = {.from = edge->from,
                                .limit = edge->limit,
                                .start = (enum ob1_protocol)(start & ~OB1_WAY_ASKED),
                                .answer = OB1_P_NOTHING};

    if (step.start >= OB1_P_RNDV)
        step.answer = ob1_way_answer(of, start & OB1_WAY_ASKED, edge->from);
    return step;
}

/* By `from`, the number of which is small. */
static void ways_sort(struct ob1_way_edge *edge, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct ob1_way_edge e = edge[i];
        size_t k = i;
        for (; k > 0 && edge[k - 1].from > e.from; k--)
            edge[k] = edge[k - 1];
        edge[k] = e;
    }
}

void ob1_way_edges(const struct ob1_ways_of *of, struct ob1_way_edge edge[OB1_WAYS_MOST])
{
    const struct st_thresholds *t = &of->limits;
    const struct ob1_way_edge all[OB1_WAYS_MOST] = {
        {0, NULL},
        {(uint64_t)t->eager_limit + 1, "eager_limit"},
        {(uint64_t)t->stream_limit + 1, "stream_limit"},
        {t->rdma_min, "rdma_min"},
        {t->split_min, "split_min"},
        {t->alone_min < UINT32_MAX ? t->alone_min : ST_BTL_RDMA_NEVER, "alone_min"},
        {t->alone_split_min, "alone_split_min"},
        {0, NULL}};

    for (size_t i = 0; i < OB1_WAYS_MOST; i++)
        edge[i] = all[i];
    ways_sort(edge, OB1_WAYS_MOST);
}

size_t ob1_ways(const struct ob1_ways_of *of, enum ob1_class traffic, struct ob1_way_step out[OB1_WAYS_MOST])
{
    struct ob1_way_edge edge[OB1_WAYS_MOST];
    size_t n = 0;

    ob1_way_edges(of, edge);
    for (size_t i = 0; i < OB1_WAYS_MOST && edge[i].from < ST_BTL_RDMA_NEVER; i++) {
        struct ob1_way_step step = ways_at(of, traffic, &edge[i]);
        if (n == 0 || step.start != out[n - 1].start || step.answer != out[n - 1].answer)
            out[n++] = step;
    }
    return n;
}

const char *ob1_class_name(enum ob1_class traffic)
{
    static const char *const names[OB1_CLASSES] = {
        [OB1_WINDOW] = "window", [OB1_ALONE] = "alone", [OB1_CROSSES] = "crosses", [OB1_LATE] = "late"};

    return names[traffic];
}
