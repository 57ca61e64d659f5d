/* See send_way.h. */
#include "send_way.h"

#include "ob1.h"
#include "peer.h"
#include "request.h"
#include "tuned.h"
#include "wire.h"

/* The class that a message belongs to, of those that its length may have announced. */
static enum ob1_class way_class(struct ob1 *pml, const struct ob1_cpeer *to, uint64_t length)
{
    struct ob1_peer *peer = to->peer;
    enum ob1_class found = OB1_WINDOW;
    bool alone;

    ob1_flow_enter(&peer->flow, to, to->recv_seq, to->bytes_received);
    alone = st_list_empty(&peer->first) && ob1_flow_alone(&peer->flow, to->recv_seq);
    if (length > peer->eager_limit && ob1_flow_crosses(&peer->flow, to->bytes_received, length) && !alone)
        found = OB1_CROSSES;
    else if (alone)
        found = OB1_ALONE;
    return ST_UNLIKELY(ob1_peer_tune(peer) != NULL) ? ob1_tuned_class(pml, peer, found, length) : found;
}

/* Whether a message that would go unannounced is announced to hear of its receive. Of a late receiver those that travel
 * alone and are waited for tell; else streams that nobody waits for. */
static bool way_tries(struct ob1_peer *peer, const struct ob1_way *way, enum ob1_class found)
{
    bool late = peer->flow.answers.habit == OB1_HABIT_LATE;

    if (way->waits ? !late || found == OB1_WINDOW : way->protocol != OB1_P_STREAM)
        return false;
    return ob1_answers_try(&peer->flow.answers);
}

/* Contiguous, of standard mode, and long enough. */
static void way_by_class(struct ob1 *pml, const struct ob1_cpeer *to, uint64_t length, struct ob1_way *way)
{
    struct ob1_peer *peer = to->peer;
    enum ob1_class found = way_class(pml, to, length), row = found;
    bool learns = peer->table && peer->table->of.learns;
    uint8_t start;

    /* A call that waits goes on at once when its message is a stream, however late the receiver. */
    if (learns && peer->flow.answers.habit == OB1_HABIT_LATE)
        row = way->waits ? OB1_WINDOW : found == OB1_WINDOW ? OB1_LATE : found;
    start = ob1_table_start(pml, peer, row, length);
    way->protocol = (uint8_t)(start & ~OB1_WAY_ASKED);
    if (start & OB1_WAY_ASKED) {
        way->flow = (uint8_t)row;
    } else if (learns && way_tries(peer, way, found)) {
        way->flow = (uint8_t)(found == OB1_WINDOW ? OB1_LATE : found);
        way->protocol = peer->table->announced;
    }
}

/* By the limits: shorter, in pieces, or of a mode that is answered. */
static enum ob1_protocol way_by_limits(const struct ob1 *pml, const struct ob1_peer *peer, const strata_data_t *data,
                                       strata_mode_t mode)
{
    struct ob1_choice c = {.contiguous = data->kind == STRATA_CONTIGUOUS,
                           .mode = mode,
                           .wanted = (enum ob1_rndv)pml->config.rndv,
                           .caps = st_peer_path(peer->shared, st_peer_path_up(peer->shared, 0))->caps &
                                   ~(uint32_t)peer->lost_caps,
                           .length = data->length,
                           .eager_limit = peer->eager_limit,
                           .stream_limit = peer->stream_limit};
    return ob1_choose(&c);
}

struct ob1_way ob1_send_way(struct ob1 *pml, const struct ob1_cpeer *to, const strata_data_t *data, strata_mode_t mode,
                            bool waits)
{
    struct ob1_way way = {.waits = waits, .flow = OB1_WINDOW};

    if (data->kind != STRATA_CONTIGUOUS || (mode != STRATA_STANDARD && mode != STRATA_READY))
        way.protocol = (uint8_t)way_by_limits(pml, to->peer, data, mode);
    else if (data->length < to->peer->alone_min)
        way.protocol = (uint8_t)(ob1_table_start(pml, to->peer, OB1_WINDOW, data->length) & ~OB1_WAY_ASKED);
    else
        way_by_class(pml, to, data->length, &way);
    return way;
}

void ob1_send_heard(struct ob1_req *req, uint8_t found)
{
    const struct ob1_table *t = req->peer->table;
    struct ob1_answers *answers = &req->peer->flow.answers;
    bool late;

    if (found == OB1_FOUND_NOTHING || found > OB1_FOUND_MOST || req->heard || req->protocol < OB1_P_RNDV || !t ||
        !t->of.learns)
        return;
    req->heard = true;
    /* Announcements arrive sooner than the streams in whose place they are, so that they wait for less; they cost no
     * more than those as long as they wait at all. */
    late = answers->habit == OB1_HABIT_LATE && req->flow == OB1_LATE
               ? found >= OB1_FOUND_WAITED
               : ob1_found_late(found, req->data.length, t->of.bandwidth_mbs);
    ob1_answers_add(answers, late);
}
