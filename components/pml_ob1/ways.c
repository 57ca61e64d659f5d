/* Ways of messages by length and traffic: see ways.h. */
#include "ways.h"

#include <strata/sdk/btl.h>

struct ways_edge {
    uint64_t from;
    const char *limit;
};

/* The sender asks first. As in ob1_send_class: what is not long enough, or cannot be got, goes as in a window. */
static bool ways_asked(const struct ob1_ways_of *of, enum ob1_class traffic, uint64_t length)
{
    uint32_t least = of->limits.alone_min;

    if (traffic == OB1_WINDOW || least == UINT32_MAX || length < least || !(of->caps & ST_BTL_GET))
        return false;
    return traffic == OB1_ALONE || length > of->limits.eager_limit;
}

static struct ob1_way_step ways_at(const struct ob1_ways_of *of, enum ob1_class traffic, const struct ways_edge *edge)
{
    bool asked = ways_asked(of, traffic, edge->from);
    struct ob1_choice c = {.contiguous = true,
                           .mode = STRATA_STANDARD,
                           .wanted = of->wanted,
                           .caps = of->caps,
                           .length = edge->from,
                           .eager_limit = of->limits.eager_limit,
                           .stream_limit = of->limits.stream_limit,
                           .announce = asked};
    struct ob1_way_step step = {.from = edge->from, .limit = edge->limit, .answer = OB1_P_NOTHING};

    step.start = ob1_choose(&c);
    if (step.start < OB1_P_RNDV)
        return step;
    c.matched = true;
    c.peer_exposed = step.start != OB1_P_RNDV;
    c.peer_key = step.start == OB1_P_RNDV_KEY;
    c.rdma_min = asked ? 0 : of->limits.rdma_min;
    c.split_min = asked ? of->limits.alone_split_min : of->limits.split_min;
    step.answer = ob1_choose(&c);
    return step;
}

/* By `from`, the number of which is small. */
static void ways_sort(struct ways_edge *edge, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct ways_edge e = edge[i];
        size_t k = i;
        for (; k > 0 && edge[k - 1].from > e.from; k--)
            edge[k] = edge[k - 1];
        edge[k] = e;
    }
}

size_t ob1_ways(const struct ob1_ways_of *of, enum ob1_class traffic, struct ob1_way_step out[OB1_WAYS_MOST])
{
    const struct st_thresholds *t = &of->limits;
    struct ways_edge edge[OB1_WAYS_MOST] = {{0, NULL},
                                            {(uint64_t)t->eager_limit + 1, "eager_limit"},
                                            {(uint64_t)t->stream_limit + 1, "stream_limit"},
                                            {t->rdma_min, "rdma_min"},
                                            {t->split_min, "split_min"},
                                            {t->alone_min < UINT32_MAX ? t->alone_min : ST_BTL_RDMA_NEVER, "alone_min"},
                                            {t->alone_split_min, "alone_split_min"},
                                            {0, NULL}};
    size_t n = 0;

    ways_sort(edge, OB1_WAYS_MOST);
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
        [OB1_WINDOW] = "window", [OB1_ALONE] = "alone", [OB1_CROSSES] = "crosses"};

    return names[traffic];
}
