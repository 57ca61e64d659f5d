/* See table.h. */
#include "table.h"

#include <stdlib.h>
#include "ob1.h"
#include "peer.h"
#include "request.h"
#include "wire.h"

/* The shortest and the longest message of a range. */
static uint64_t table_from(uint32_t size)
{
    uint32_t power = OB1_TABLE_FIRST + (size - 1) / 4;

    return size ? ((uint64_t)1 << power) + ((uint64_t)((size - 1) % 4) << (power - 2)) + 1 : 0;
}

static uint64_t table_to(uint32_t size)
{
    return size + 1 < OB1_TABLE_SIZES ? table_from(size + 1) - 1 : UINT64_MAX;
}

/* The byte of a range: what holds from its shortest message on, unless a threshold within changes it. */
static uint8_t table_start(const struct ob1_ways_of *of, enum ob1_class traffic, uint32_t size,
                           const struct ob1_way_edge edge[OB1_WAYS_MOST])
{
    uint64_t from = table_from(size), to = table_to(size);
    uint8_t way = ob1_way_start(of, traffic, from);

    for (int i = 0; i < OB1_WAYS_MOST; i++)
        if (edge[i].from > from && edge[i].from <= to && ob1_way_start(of, traffic, edge[i].from) != way)
            return OB1_WAY_CUT;
    return way;
}

static uint8_t table_answer(const struct ob1_ways_of *of, bool at_once, uint32_t size,
                            const struct ob1_way_edge edge[OB1_WAYS_MOST])
{
    uint64_t from = table_from(size), to = table_to(size);
    enum ob1_protocol way = ob1_way_answer(of, at_once, from);

    if (size == 0)
        return OB1_WAY_CUT; /* of no byte, and of one, the answer is another than of two */
    for (int i = 0; i < OB1_WAYS_MOST; i++)
        if (edge[i].from > from && edge[i].from <= to && ob1_way_answer(of, at_once, edge[i].from) != way)
            return OB1_WAY_CUT;
    return (uint8_t)way;
}

void ob1_table_fill(struct ob1_table *table, const struct ob1_ways_of *of)
{
    struct ob1_way_edge edge[OB1_WAYS_MOST];

    ob1_way_edges(of, edge);
    table->of = *of;
    table->announced = (uint8_t)ob1_way_announced(of);
    for (uint32_t size = 0; size < OB1_TABLE_SIZES; size++) {
        for (int traffic = 0; traffic < OB1_CLASSES; traffic++)
            table->start[traffic][size] = table_start(of, (enum ob1_class)traffic, size, edge);
        for (int at_once = 0; at_once < 2; at_once++)
            table->answer[at_once][size] = table_answer(of, at_once, size, edge);
    }
}

static bool table_same(const struct ob1_ways_of *a, const struct ob1_ways_of *b)
{
    const struct st_thresholds *s = &a->limits, *t = &b->limits;

    return a->wanted == b->wanted && a->caps == b->caps && a->bandwidth_mbs == b->bandwidth_mbs &&
           a->rdma_cost == b->rdma_cost && a->learns == b->learns && a->tuned == b->tuned &&
           s->eager_limit == t->eager_limit && s->stream_limit == t->stream_limit && s->zcopy_min == t->zcopy_min &&
           s->rdma_min == t->rdma_min && s->split_min == t->split_min && s->alone_min == t->alone_min &&
           s->alone_split_min == t->alone_split_min;
}

const struct ob1_table *ob1_table_of(struct ob1 *pml, const struct ob1_ways_of *of, struct ob1_tune *tune)
{
    struct ob1_table *t = pml->tables;

    while (t && (t->tune != tune || !table_same(&t->of, of)))
        t = t->next;
    if (t || pml->n_tables == OB1_TABLES_MOST || (t = malloc(sizeof(*t))) == NULL)
        return t;
    ob1_table_fill(t, of);
    t->tune = tune;
    t->next = pml->tables;
    pml->tables = t;
    pml->n_tables++;
    return t;
}

void ob1_tables_destroy(struct ob1 *pml)
{
    while (pml->tables) {
        struct ob1_table *next = pml->tables->next;
        free(pml->tables);
        pml->tables = next;
    }
    pml->n_tables = 0;
}

/* Within a range that a threshold cuts, without a table, or by a lane, whose paths may differ in what they can do. */
static __attribute__((noinline)) uint8_t table_ask(const struct ob1 *pml, const struct ob1_peer *peer,
                                                   enum ob1_class traffic, uint64_t length)
{
    const struct st_btl_endpoint *ep = st_peer_path(peer->shared, st_peer_path_up(peer->shared, 0));
    struct ob1_ways_of of = {
        .wanted = (enum ob1_rndv)pml->config.rndv,
        .limits = {.eager_limit = peer->eager_limit, .stream_limit = peer->stream_limit, .alone_min = UINT32_MAX}};

    if (peer->table)
        of = peer->table->of;
    of.caps = ep->caps & ~(uint32_t)peer->lost_caps;
    return ob1_way_start(&of, traffic, length);
}

uint8_t ob1_table_start(const struct ob1 *pml, const struct ob1_peer *peer, enum ob1_class traffic, uint64_t length)
{
    uint8_t way = OB1_WAY_CUT;

    if (ST_LIKELY(peer->table && !peer->shared->by_lane))
        way = peer->table->start[traffic][ob1_table_size(length)];
    return ST_LIKELY(way != OB1_WAY_CUT) ? way : table_ask(pml, peer, traffic, length);
}

uint8_t ob1_table_answer(struct ob1 *pml, const struct ob1_req *req, const struct st_btl_endpoint *ep, uint64_t length)
{
    const struct ob1_table *t = req->peer->table;
    uint8_t offer = req->offer & (OB1_F_EXPOSED | OB1_F_KEY), usual = 0;

    if (!t || req->peer->shared->by_lane || req->data.kind != STRATA_CONTIGUOUS)
        return OB1_WAY_CUT;
    if (ST_UNLIKELY(st_btl_facts_of(ep).rdma_cost != t->of.rdma_cost)) {
        ob1_peer_limits(pml, req->peer);
        ob1_peer_fast(req->peer);
        t = req->peer->table;
        if (!t || st_btl_facts_of(ep).rdma_cost != t->of.rdma_cost)
            return OB1_WAY_CUT;
    }
    if (t->announced != OB1_P_RNDV)
        usual = t->announced == OB1_P_RNDV_KEY ? OB1_F_EXPOSED | OB1_F_KEY : OB1_F_EXPOSED;
    if (offer != usual || ((offer & OB1_F_KEY) && ep->btl != req->key_btl))
        return OB1_WAY_CUT;
    return t->answer[(req->offer & OB1_F_AT_ONCE) != 0][ob1_table_size(length)];
}
