#define _GNU_SOURCE 1
#include "model_terms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const model_part_names[N_PARTS] = {"private", "shared", "page tables", "device", "of these Strata\'s"};

/* components/btl_openib/queues/queue_size.c: a queue is made for CREDITS and 2 more of each peer, and takes half of a
 * completion queue at most. */
enum { MOST_ENTRIES = 8192, SPARE_CREDITS = 2 };

static double parameter(const json_t *one, const char *name, double otherwise)
{
    const char *text = json_string_value(json_object_get(json_object_get(one, "parameters"), name));

    return text ? strtod(text, NULL) : otherwise;
}

static bool parameter_is(const json_t *one, const char *name, const char *value)
{
    const char *text = json_string_value(json_object_get(json_object_get(one, "parameters"), name));

    return text && strcmp(text, value) == 0;
}

/* A comma, and a number with k or m behind it (components/btl_openib/queues/queue_spec.c); *at moves on. */
static double queue_number(const char **at)
{
    char *end;
    double v = strtod(*at + (**at == ','), &end);

    if (*end == 'k' || *end == 'K')
        v *= 1 << 10;
    else if (*end == 'm' || *end == 'M')
        v *= 1 << 20;
    *at = end + strspn(end, "kKmM");
    return v;
}

/* The queue of high priority: S,SIZE,COUNT,LOW,CREDITS, or P. */
static void limits_of_queue(struct model_limits *l, const json_t *one)
{
    const char *text =
        json_string_value(json_object_get(json_object_get(one, "parameters"), "btl_openib_receive_queues"));
    double number[] = {8448, 16384, 4, 64};

    if (text && *text != 'S')
        return;
    if (text)
        text++;
    for (size_t i = 0; text && i < sizeof number / sizeof *number; i++)
        number[i] = queue_number(&text);
    l->per_peer = number[3] + SPARE_CREDITS;
    l->entries = fmin(number[1], MOST_ENTRIES);
}

void model_limits_of(struct model_limits *l, const json_t *one)
{
    const char *pattern = json_string_value(json_object_get(one, "pattern"));
    const char *transport = json_string_value(json_object_get(one, "transport"));
    const struct transport *t = transport_named(transport ? transport : "");
    double own = parameter(one, "btl_openib_max_connected_peers", 0);

    *l = (struct model_limits){.pattern = HELLO, .strata = t && t->library == LIB_STRATA, .peers = INFINITY};
    for (int i = 0; i < N_PATTERNS; i++)
        if (pattern && strcmp(pattern, pattern_names[i]) == 0)
            l->pattern = (enum pattern)i;
    if (!t || !l->strata || strcmp(t->btl, "openib,self") != 0)
        return;
    if (own > 0)
        l->peers = own + floor(own / 2) + 1;
    if (parameter_is(one, "btl_openib_eager_rdma", "on"))
        l->rings = parameter(one, "btl_openib_eager_rdma_peers", 16);
    limits_of_queue(l, one);
}

void model_terms(const struct model_limits *l, double ranks, double x[MODEL_TERMS])
{
    const double peers = fmin(l->pattern == HELLO ? 0 : l->pattern == PAIRWISE ? 1 : ranks - 1, l->peers);

    x[MODEL_BASE] = 1;
    x[MODEL_RANK] = ranks;
    x[MODEL_PEER] = peers;
    x[MODEL_LOG] = log2(1 + peers);
    x[MODEL_RING] = fmin(peers, l->rings);
    x[MODEL_EACH] = 1 / ranks;
    x[MODEL_QUEUE] = fmin(fmin(ranks - 1, l->peers) * l->per_peer, l->entries);
}

/* A line by N and one by P are the same where all are connected, and what one run has by chance would be continued to a
 * million of ranks: N is left to what is counted to the byte, to limited connections, and to other libraries. */
unsigned model_allowed(const struct model_limits *l, enum model_part part)
{
    const bool all = l->pattern == ALL_TO_ALL && isinf(l->peers);
    const bool made = part == PART_OURS || part == PART_PRIVATE; /* of what Strata makes */
    unsigned set = 1u << MODEL_BASE;

    if (l->pattern == ALL_TO_ALL)
        set |= 1u << MODEL_PEER;
    if (!all && (part == PART_OURS || l->pattern == ALL_TO_ALL || (!l->strata && part == PART_PRIVATE)))
        set |= 1u << MODEL_RANK;
    if (made && l->pattern == ALL_TO_ALL) /* elsewhere the number of peers is the same for all N, as the base is */
        set |= 1u << MODEL_LOG;
    if (part != PART_TABLES && l->pattern == ALL_TO_ALL)
        set |= 1u << MODEL_RING;
    if (part == PART_PRIVATE)
        set |= 1u << MODEL_QUEUE;
    if (part == PART_SHARED)
        set |= 1u << MODEL_EACH;
    return set;
}

static double mean(const json_t *one, const char *name)
{
    return json_number_value(json_object_get(json_object_get(one, "mean"), name));
}

double ours_bytes(const json_t *one)
{
    const char *name;
    json_t *value;
    double sum = 0;

    json_object_foreach(json_object_get(one, "ours"), name, value) sum += json_number_value(value);
    return sum;
}

double model_part_bytes(const json_t *one, enum model_part part)
{
    switch (part) {
    case PART_PRIVATE:
        return mean(one, "private");
    case PART_SHARED:
        return fmax(mean(one, "proportional") - mean(one, "private"), 0);
    case PART_TABLES:
        return mean(one, "page_tables");
    case PART_DEVICE:
        return mean(one, "device_share");
    default:
        return ours_bytes(one);
    }
}
