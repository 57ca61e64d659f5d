/* See tuned.h. */
#include "tuned.h"

#include <stdlib.h>
#include <strata/sdk/clock.h>
#include "ob1.h"
#include "ob1_inl.h"
#include "peer.h"
#include "thresholds.h"
#include "ways.h"

static bool tuned_is_wanted(const struct ob1 *pml, const struct st_btl_endpoint *ep)
{
    const struct ob1_config *c = &pml->config;

    return st_tuning(pml->head.context) == ST_TUNE_ONLINE && !c->eager_limit && c->stream_limit < 0 && !c->rdma_min &&
           !c->split_min && !c->alone_min && c->rndv == OB1_RNDV_AUTO && (ep->caps & ST_BTL_GET) &&
           !st_btl_facts_of(ep).fixed;
}

struct ob1_tune *ob1_tune_of(struct ob1 *pml, const struct st_btl_endpoint *ep)
{
    struct ob1_tune *t = pml->tunes;

    if (!tuned_is_wanted(pml, ep))
        return NULL;
    while (t && t->module != ep->btl)
        t = t->next;
    if (!t && (t = calloc(1, sizeof(*t))) != NULL) {
        t->module = ep->btl;
        t->next = pml->tunes;
        pml->tunes = t;
    }
    return t;
}

void ob1_tunes_destroy(struct ob1 *pml)
{
    while (pml->tunes) {
        struct ob1_tune *next = pml->tunes->next;
        free(pml->tunes);
        pml->tunes = next;
    }
}

/* The way by the facts, as an untuned message of this class would go. */
static enum ob1_tune_way tuned_first(const struct ob1 *pml, const struct ob1_peer *peer, enum ob1_class found,
                                     uint64_t length)
{
    struct st_thresholds t;

    ob1_thresholds(pml, st_peer_way(peer->shared, 0), &t);
    if (found == OB1_WINDOW || length < t.alone_min || (found == OB1_CROSSES && length > t.stream_limit))
        return OB1_TUNE_LIMITS;
    return OB1_TUNE_ASKED;
}

/* ns since the last message of this cell to the same peer, 0: not known. A window may begin with a message alone: the
 * next one's interval contains that one, and the wait for the window before. */
static uint64_t tuned_interval(struct ob1_flow *flow, bool alone, uint8_t index)
{
    uint32_t now = (uint32_t)(st_now_ns() / OB1_FLOW_TICK) | 1, before = flow->since[alone];
    bool known = before && (alone ? flow->alone == index % OB1_TUNE_SIZES : flow->cell == index);

    if (alone) {
        flow->alone = index % OB1_TUNE_SIZES & 7u;
    } else {
        flow->cell = index;
        flow->since[true] = 0;
    }
    flow->since[alone] = now;
    return known ? (uint64_t)(now - before) * OB1_FLOW_TICK : 0;
}

/* Messages to the peer that are queued or under way; a queue counts as two, more than there are at rest (tune.c). */
static uint32_t tuned_backlog(const struct ob1_peer *peer)
{
    return peer->flow.long_sends + (st_list_empty(&peer->first) ? 0 : 2);
}

enum ob1_class ob1_tuned_class(struct ob1 *pml, struct ob1_peer *peer, enum ob1_class found, uint64_t length)
{
    struct ob1_flow *flow = &peer->flow;
    struct ob1_tune_pace pace = ob1_tune_pace(found);
    uint8_t index = ob1_tune_index(found, length);
    struct ob1_tune_cell *cell;
    uint64_t since;

    if (index == OB1_TUNE_NONE) {
        flow->since[false] = flow->since[true] = 0;
        return tuned_first(pml, peer, found, length) == OB1_TUNE_ASKED ? found : OB1_WINDOW;
    }
    since = tuned_interval(flow, found == OB1_ALONE, index);
    cell = &ob1_peer_tune(peer)->cell[index];
    if (cell->pause == 0)
        ob1_tune_begin(cell, tuned_first(pml, peer, found, length), pace);
    if (ob1_tune_step(cell, since, tuned_backlog(peer), pace) == OB1_TUNE_LIMITS)
        return OB1_WINDOW;
    return found == OB1_WINDOW ? OB1_CROSSES : found; /* got at once, as those that cross */
}

void ob1_tuned_describe(FILE *f, const struct ob1_tune *tune)
{
    const char *comma = "";

    fputs(",\"tuned\":[", f);
    for (uint32_t i = 0; i < OB1_TUNE_KINDS * OB1_TUNE_SIZES; i++) {
        const struct ob1_tune_cell *c = &tune->cell[i];
        if (c->pause == 0)
            continue;
        fprintf(f,
                "%s{\"traffic\":\"%s\",\"from\":%u,\"way\":\"%s\",\"by_limits_ns\":%.0f,\"asked_ns\":%.0f,\"tries\":%u,"
                "\"changes\":%u}",
                comma, ob1_class_name((enum ob1_class)(i / OB1_TUNE_SIZES)), OB1_TUNE_LEAST << i % OB1_TUNE_SIZES,
                c->way == OB1_TUNE_ASKED ? "asked" : "limits", (double)c->least[OB1_TUNE_LIMITS],
                (double)c->least[OB1_TUNE_ASKED], c->tries, c->changes);
        comma = ",";
    }
    fputc(']', f);
}
