/* Lanes: paths that fail and come back. */
#include <stdio.h>
#include <string.h>

#include <strata/sdk/clock.h>
#include <strata/sdk/hash.h>
#include "framework/worker/lane.h"

#define TRY_MASK 63u          /* calls between two looks at the clock */
#define ABSENT   500000000ull /* ns between two looks: this process did something else, or had no processor */

void lane_wake(struct st_lane *lane)
{
    if (!lane->peer->failed)
        worker_pending_add(lane->w, lane->peer);
}

bool lane_pending(const struct st_lane *lane)
{
    return !lane->peer->failed && (lane->failed_ways || lane->tell_ways || lane->answer_ways || lane->ack_due ||
                                   lane->ask || lane->again != lane->again_end);
}

void lane_way_down(struct st_lane *lane, uint32_t way, const char *reason)
{
    if (lane->way[way].state == LANE_WAY_DOWN)
        return;
    lane->way[way].state = LANE_WAY_DOWN;
    lane->way[way].heard = false;
    lane->failed_ways |= (uint8_t)(1u << way);
    snprintf(lane->reason, sizeof(lane->reason), "%s", reason);
    lane_wake(lane);
}

uint32_t lane_name_of(const struct st_lane *lane, uint32_t way)
{
    const struct st_bml *bml = lane->w->head.bml;
    const struct st_btl *btl = lane->peer->bml->paths[way].ep->btl;
    const char *text = btl->component ? btl->component->name : "";
    uint32_t name = (uint32_t)st_hash_bytes(text, strlen(text));

    for (size_t i = 0; i < bml->n_btls && bml->btls[i] != btl; i++)
        name += bml->btls[i]->component == btl->component;
    return name ? name : 1;
}

/* Our end may look well, and be of no use: without credits nothing can be sent, so nothing can fail either. It may be
 * the last way that is up: each end has left another one, and they meet when one of these is connected anew. The peer
 * is not told of it in turn: each word would call for another, for ever. */
static void lane_way_left(struct st_lane *lane, uint32_t way)
{
    lane_way_down(lane, way, "the peer says so");
    lane->way[way].heard = true;
}

/* Whether the peer's word is about the connection that this end has now. One that comes by the way itself may be about
 * the former, of which this end has been told as well. A connection that is being made may have been cut by the failure
 * that the word is about, if it is the first word of that failure and was brought by another way. */
static bool lane_word_counts(const struct st_lane *lane, uint32_t way, const struct st_btl *by, bool fresh)
{
    const struct st_btl *own = lane->peer->bml->paths[way].ep->btl;
    bool told = (by->caps & ST_BTL_BOTH_TOLD) && own == by;

    if (lane->way[way].state == LANE_WAY_TRIED)
        return fresh && own != by;
    return lane->way[way].state == LANE_WAY_UP && !told;
}

void lane_peer_lost(struct st_lane *lane, const struct st_btl *by, uint32_t name, uint8_t word)
{
    for (uint32_t i = 0; lane->peer->by_lane && i < lane->n_ways; i++) {
        if (lane_name_of(lane, i) != name)
            continue;
        bool fresh = lane->way[i].heard_word != word;
        lane->way[i].heard_word = word;
        lane->answer_ways |= (uint8_t)(1u << i);
        if (lane_word_counts(lane, i, by, fresh))
            lane_way_left(lane, i);
    }
}

void lane_peer_heard(struct st_lane *lane, uint32_t name, uint8_t word)
{
    for (uint32_t i = 0; lane->peer->by_lane && i < lane->n_ways; i++)
        if (lane_name_of(lane, i) == name && lane->way[i].word == word)
            lane->unheard_ways &= (uint8_t) ~(1u << i);
}

/* A connection that the peer made broke before anything came by it. Nothing is lost that the peer does not have, but
 * it may be dead: progress connects it from here, and asks it. */
static struct st_lane *lane_begin(struct worker *w, const struct st_btl_endpoint *ep)
{
    struct st_peer *peer;

    if (!lane_keeps(w, ep->btl) || st_worker_peer(&w->head, ep->rank, &peer) != STRATA_OK)
        return NULL;
    return lane_get(w, peer);
}

/* From inside a BTL: only recorded, progress does the rest. */
bool lane_path_failed(struct worker *w, struct st_btl_endpoint *ep, const char *reason)
{
    struct st_peer *peer = st_worker_peer_known(&w->head, ep->rank);
    struct st_lane *lane = peer && peer->lane ? peer->lane : lane_begin(w, ep);

    if (!lane)
        return false;
    peer = lane->peer;
    for (uint32_t i = 0; i < lane->n_ways; i++) {
        if (peer->bml->paths[i].ep != ep)
            continue;
        if (!peer->by_lane) /* what we send by it has no numbers */
            return false;
        lane_way_down(lane, i, reason);
        return true;
    }
    /* By this path we only hear from the peer, who has others. */
    lane->ask = true;
    lane_wake(lane);
    return true;
}

static void lane_mend(struct st_lane *lane)
{
    if (!st_list_empty(&lane->mended))
        return;
    st_list_append(&lane->w->mending, &lane->mended);
    st_worker_attend(&lane->w->head, WORKER_MENDING);
}

/* Everything that the peer has not acknowledged goes again, whatever path it went by: that is not remembered, and what
 * comes twice is dropped. It waits until the peer has said what has arrived: connections that break more often than a
 * window of messages goes by them would otherwise carry the same ones for ever. The peer is asked for the same: it may
 * not know of the failure, and what it sent may have been lost between its device's word and ours. */
static void lane_deal_with_failed(struct st_lane *lane)
{
    struct st_bml *bml = lane->w->head.bml;
    struct st_bml_peer *peer = lane->peer->bml;
    uint64_t at = st_now_ns() + (uint64_t)lane->w->head.paths.retry_ms * 1000000u;

    for (uint32_t i = 0; i < lane->n_ways; i++) {
        if (!(lane->failed_ways & 1u << i))
            continue;
        lane->way[i].retry_ns = at;
        if (!lane->way[i].heard) {
            lane->way[i].word++;
            lane->unheard_ways |= (uint8_t)(1u << i);
        }
        (void)bml->ops->path_failed(bml, peer, peer->paths[i].ep);
        st_log(lane->w->head.context, ST_LOG_INFO, "worker",
               "path %u of %u to rank %d by %s failed: %s; %u messages go again", i, lane->n_ways, lane->peer->rank,
               peer->paths[i].ep->btl->component ? peer->paths[i].ep->btl->component->name : "?", lane->reason,
               lane->next - lane->oldest);
    }
    lane->failed_ways = 0;
    /* The word about others may have gone with it, also about those that work again: at the other end they may not. */
    lane->tell_ways = lane->unheard_ways;
    lane->await_word = lane->tell_ways != 0;
    lane->w->head.n_paths_failed++;
    lane->n_failed++;
    lane->again = lane->oldest;
    lane->again_end = lane->next;
    lane_mend(lane);
    worker_peer_changed(lane->w, lane->peer);
}

/* By whichever way takes it. One that looks well and takes nothing may be one that the peer has left, whose word about
 * it may wait for one that we have left. */
static int lane_tell_by_any(struct st_lane *lane, uint8_t flags, uint32_t lost, uint8_t word)
{
    int rc = STRATA_ERR_AGAIN;

    for (uint32_t i = 0; i < lane->n_ways && rc == STRATA_ERR_AGAIN; i++)
        if (lane->way[i].state == LANE_WAY_UP)
            rc = lane_tell(lane, i, flags, lost, word);
    return rc;
}

/* Words about the ways in *ways; STRATA_ERR_AGAIN: those that are left there wait. */
static int lane_tell_about(struct st_lane *lane, uint8_t *ways, uint8_t flags, int *n)
{
    for (; *ways; *ways &= (uint8_t)(*ways - 1), ++*n) {
        uint32_t i = (uint32_t)__builtin_ctz(*ways);
        uint8_t word = flags & LANE_F_HEARD ? lane->way[i].heard_word : lane->way[i].word;
        if (lane_tell_by_any(lane, flags, lane_name_of(lane, i), word) == STRATA_ERR_AGAIN)
            return STRATA_ERR_AGAIN;
    }
    return STRATA_OK;
}

int lane_pump(struct st_lane *lane)
{
    uint32_t way;
    int n = 0, rc;

    if (lane->peer->failed)
        return 0;
    if (lane->failed_ways) {
        worker_take_what_came(lane->w);
        lane_deal_with_failed(lane);
    }
    way = lane_up(lane, 0);
    if (way == ST_NO_PATH)
        return 0; /* lanes_mend has it */
    if (lane_tell_about(lane, &lane->answer_ways, LANE_F_HEARD, &n) != STRATA_OK ||
        lane_tell_about(lane, &lane->tell_ways, LANE_F_AGAIN, &n) != STRATA_OK)
        return n;
    while (lane->again != lane->again_end && !lane->await_word) {
        rc = lane_put_on(lane, way, lane->kept[lane->again % LANE_WINDOW], LANE_F_DIVERTED);
        if (rc != STRATA_OK)
            return n;
        lane->again++;
        n++;
    }
    if (lane->ack_due || lane->ask) {
        rc = lane_tell_by_any(lane, lane->ask ? LANE_F_AGAIN : 0, 0, 0);
        if (rc == STRATA_ERR_AGAIN)
            return n;
        /* A peer that has left needs no word. */
        lane->ack_due = lane->ask = false;
        n++;
    }
    return n;
}

static void lane_try_way(struct st_lane *lane, uint32_t i, uint64_t now)
{
    struct st_bml *bml = lane->w->head.bml;
    struct lane_way *w = &lane->way[i];
    int rc;

    if (w->state == LANE_WAY_DOWN && now >= w->retry_ns && !(lane->failed_ways & 1u << i)) {
        rc = bml->ops->path_retry(bml, lane->peer->bml, i);
        if (rc == STRATA_OK)
            w->state = LANE_WAY_TRIED;
        else if (rc != STRATA_ERR_AGAIN)
            w->retry_ns = now + (uint64_t)lane->w->head.paths.retry_ms * 1000000u;
        w->gone = rc == STRATA_ERR_PEER;
    }
    /* Nothing that matters goes by it before the connection stands. */
    if (w->state != LANE_WAY_TRIED)
        return;
    rc = lane->tell_ways & 1u << i ? lane_tell(lane, i, LANE_F_AGAIN, lane_name_of(lane, i), w->word)
                                   : lane_tell(lane, i, 0, 0, 0);
    if (rc == STRATA_OK) {
        lane->tell_ways &= (uint8_t) ~(1u << i);
        w->state = LANE_WAY_UP;
        w->ep.caps = lane_caps(lane->peer->bml->paths[i].ep);
        bml->ops->path_works(bml, lane->peer->bml, i);
        st_log(lane->w->head.context, ST_LOG_INFO, "worker", "path %u of %u to rank %d works again", i, lane->n_ways,
               lane->peer->rank);
    } else if (rc != STRATA_ERR_AGAIN) {
        lane_way_down(lane, i, "it could not be connected again");
    }
}

/* No way is up. All that was not acknowledged is kept, so a way that comes back loses nothing; but the peer may be
 * dead, so there is an end to waiting. At once where no way will ever come back. */
static void lane_stranded(struct st_lane *lane, uint64_t now)
{
    uint64_t most = (uint64_t)lane->w->head.paths.wait_ms * 1000000u;
    char reason[sizeof(lane->reason) + 64];
    bool gone = true;

    if (lane->stranded_ns == 0) {
        lane->stranded_ns = now;
        for (uint32_t i = 0; i < lane->n_ways; i++)
            lane->way[i].retry_ns = now;
    }
    for (uint32_t i = 0; i < lane->n_ways; i++)
        gone &= lane->way[i].gone;
    if (!gone && now - lane->stranded_ns < most)
        return;
    snprintf(reason, sizeof(reason), "%s%s", lane->reason, gone ? "" : "; none of its paths has come back in time");
    st_worker_peer_failed(&lane->w->head, lane->peer->rank, STRATA_ERR_PEER, reason);
    st_list_remove(&lane->mended);
}

void lanes_mend_soon(struct worker *w)
{
    w->mend_round |= TRY_MASK;
}

/* Time since the last look that does not count: the peers may have waited for a processor as long. */
static uint64_t lanes_absent(struct worker *w, uint64_t now)
{
    uint64_t ns = w->mended_ns ? now - w->mended_ns : 0;

    w->mended_ns = now;
    return ns > ABSENT ? ns - ABSENT : 0;
}

void lanes_mend(struct worker *w)
{
    uint64_t now, absent;

    if ((++w->mend_round & TRY_MASK) != 0)
        return;
    now = st_now_ns();
    absent = lanes_absent(w, now);
    for (struct st_node *n = w->mending.next, *next; n != &w->mending; n = next) {
        struct st_lane *lane = ST_CONTAINER(n, struct st_lane, mended);
        bool all = true;
        next = n->next;
        if (lane->peer->failed) {
            if (!lane_refuse(lane, now))
                st_list_remove(n);
            continue;
        }
        for (uint32_t i = 0; i < lane->n_ways; i++) {
            lane_try_way(lane, i, now);
            all &= lane->way[i].state == LANE_WAY_UP;
        }
        if (all)
            st_list_remove(n);
        lane->stranded_ns += lane->stranded_ns ? absent : 0;
        if (lane_up(lane, 0) != ST_NO_PATH)
            lane->stranded_ns = 0;
        else if (!lane->failed_ways)
            lane_stranded(lane, now);
    }
    if (st_list_empty(&w->mending)) {
        w->mended_ns = 0;
        st_worker_calm(&w->head, WORKER_MENDING);
    }
}

void lane_peer_failed(struct st_lane *lane)
{
    lane->failed_ways = lane->tell_ways = lane->unheard_ways = lane->answer_ways = 0;
    lane->ack_due = lane->ask = lane->await_word = false;
    lane_acked(lane, lane->next); /* nothing is kept for it any more */
    lane->again = lane->again_end = lane->next;
    if (lane->peer->by_lane) { /* else the transport of the one path knows as much */
        lane_refuse_begin(lane, st_now_ns());
        lane_mend(lane);
    }
}

bool st_worker_path_lost(struct st_peer *peer, uint8_t path)
{
    if (peer->failed || !peer->by_lane)
        return false;
    lane_way_down(peer->lane, path < peer->lane->n_ways ? path : 0, "an operation failed");
    return true;
}
