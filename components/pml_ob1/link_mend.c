/* Links: paths that fail and come back. */
#include "link.h"
#include <stdio.h>
#include <time.h>
#include "ob1_inl.h"

#define TRY_MASK 63u /* calls between two looks at the clock */

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void ob1_link_wake(struct ob1_link *link)
{
    struct ob1_peer *peer = link->peer;

    if (peer->is_blocked || peer->failed)
        return;
    peer->is_blocked = true;
    st_list_append(&link->pml->blocked, &peer->blocked);
    st_worker_attend(link->pml->head.worker, OB1_WORK);
}

bool ob1_link_pending(const struct ob1_link *link)
{
    return !link->peer->failed && (link->failed_ways || link->tell_ways || link->answer_ways || link->ack_due ||
                                   link->ask || link->again != link->again_end);
}

void ob1_link_way_down(struct ob1_link *link, uint32_t way, const char *reason)
{
    if (link->way[way].state == OB1_WAY_DOWN)
        return;
    link->way[way].state = OB1_WAY_DOWN;
    link->way[way].heard = false;
    link->failed_ways |= (uint8_t)(1u << way);
    snprintf(link->reason, sizeof(link->reason), "%s", reason);
    ob1_link_wake(link);
}

uint32_t ob1_link_name_of(const struct ob1_link *link, uint32_t way)
{
    const struct st_bml *bml = link->pml->head.worker->bml;
    const struct st_btl *btl = link->peer->bml->paths[way].ep->btl;
    uint32_t name = 2166136261u; /* FNV-1a */

    for (const char *p = btl->component ? btl->component->name : ""; *p; p++)
        name = (name ^ (uint8_t)*p) * 16777619u;
    for (size_t i = 0; i < bml->n_btls && bml->btls[i] != btl; i++)
        name += bml->btls[i]->component == btl->component;
    return name ? name : 1;
}

/* Our end may look well, and be of no use: without credits nothing can be sent, so nothing can fail either. It may be
 * the last way that is up: each end has left another one, and they meet when one of these is connected anew. The peer
 * is not told of it in turn: each word would call for another, for ever. */
void ob1_link_peer_lost(struct ob1_link *link, uint32_t name, uint8_t word)
{
    for (uint32_t i = 0; link->peer->by_link && i < link->n_ways; i++) {
        if (ob1_link_name_of(link, i) != name)
            continue;
        link->way[i].heard_word = word;
        link->answer_ways |= (uint8_t)(1u << i);
        if (link->way[i].state == OB1_WAY_UP) {
            ob1_link_way_down(link, i, "the peer says so");
            link->way[i].heard = true;
        }
    }
}

void ob1_link_peer_heard(struct ob1_link *link, uint32_t name, uint8_t word)
{
    for (uint32_t i = 0; link->peer->by_link && i < link->n_ways; i++)
        if (ob1_link_name_of(link, i) == name && link->way[i].word == word)
            link->unheard_ways &= (uint8_t) ~(1u << i);
}

/* From inside a BTL: only recorded, progress does the rest. False: the path was all that there is to the peer. */
bool ob1_path_failed(void *arg, struct st_btl_endpoint *ep, int rc, const char *reason)
{
    struct ob1 *pml = arg;
    struct ob1_peer *peer = st_rank_table_get(&pml->peers, (uint32_t)ep->rank);
    struct ob1_link *link = peer ? peer->link : NULL;

    (void)rc;
    if (!link)
        return false;
    for (uint32_t i = 0; i < link->n_ways; i++) {
        if (peer->bml->paths[i].ep != ep)
            continue;
        if (!peer->by_link) /* what we send by it has no numbers */
            return false;
        ob1_link_way_down(link, i, reason);
        return true;
    }
    /* By this path we only hear from the peer, who has others. */
    link->ask = true;
    ob1_link_wake(link);
    return true;
}

static void mend(struct ob1_link *link)
{
    if (!st_list_empty(&link->mended))
        return;
    st_list_append(&link->pml->mending, &link->mended);
    st_worker_attend(link->pml->head.worker, OB1_LOOK);
}

/* Everything that the peer has not acknowledged goes again, whatever path it went by: that is not remembered, and what
 * comes twice is dropped. The peer is asked for the same: it may not know of the failure, and what it sent may have
 * been lost between its device's word and ours. */
static void deal_with_failed(struct ob1_link *link)
{
    struct st_bml *bml = link->pml->head.worker->bml;
    struct st_bml_peer *peer = link->peer->bml;
    uint64_t at = now_ns() + (uint64_t)link->pml->config.path_retry_ms * 1000000u;

    for (uint32_t i = 0; i < link->n_ways; i++) {
        if (!(link->failed_ways & 1u << i))
            continue;
        link->way[i].retry_ns = at;
        if (!link->way[i].heard) {
            link->way[i].word++;
            link->unheard_ways |= (uint8_t)(1u << i);
        }
        (void)bml->ops->path_failed(bml, peer, peer->paths[i].ep);
        st_log(link->pml->head.context, ST_LOG_INFO, "pml_ob1",
               "path %u of %u to rank %d by %s failed: %s; %u messages go again", i, link->n_ways, link->peer->rank,
               peer->paths[i].ep->btl->component ? peer->paths[i].ep->btl->component->name : "?", link->reason,
               link->next - link->oldest);
    }
    link->failed_ways = 0;
    /* The word about others may have gone with it, also about those that work again: at the other end they may not. */
    link->tell_ways = link->unheard_ways;
    link->pml->n_paths_failed++;
    link->again = link->oldest;
    link->again_end = link->next;
    mend(link);
    ob1_peer_fast(link->peer);
}

/* By whichever way takes it. One that looks well and takes nothing may be one that the peer has left, whose word about
 * it may wait for one that we have left. */
static int tell_by_any(struct ob1_link *link, uint8_t flags, uint32_t lost, uint8_t word)
{
    int rc = STRATA_ERR_AGAIN;

    for (uint32_t i = 0; i < link->n_ways && rc == STRATA_ERR_AGAIN; i++)
        if (link->way[i].state == OB1_WAY_UP)
            rc = ob1_link_tell(link, i, flags, lost, word);
    return rc;
}

/* Words about the ways in *ways; STRATA_ERR_AGAIN: those that are left there wait. */
static int tell_about(struct ob1_link *link, uint8_t *ways, uint8_t flags, int *n)
{
    for (; *ways; *ways &= (uint8_t)(*ways - 1), ++*n) {
        uint32_t i = (uint32_t)__builtin_ctz(*ways);
        uint8_t word = flags & OB1_F_HEARD ? link->way[i].heard_word : link->way[i].word;
        if (tell_by_any(link, flags, ob1_link_name_of(link, i), word) == STRATA_ERR_AGAIN)
            return STRATA_ERR_AGAIN;
    }
    return STRATA_OK;
}

int ob1_link_pump(struct ob1_link *link)
{
    uint32_t way;
    int n = 0, rc;

    if (link->peer->failed)
        return 0;
    if (link->failed_ways)
        deal_with_failed(link);
    way = ob1_link_way(link, 0);
    if (way == OB1_LINK_NO_WAY)
        return 0; /* ob1_links_mend has it */
    if (tell_about(link, &link->answer_ways, OB1_F_HEARD, &n) != STRATA_OK ||
        tell_about(link, &link->tell_ways, OB1_F_AGAIN, &n) != STRATA_OK)
        return n;
    while (link->again != link->again_end) {
        rc = ob1_link_put_on(link, way, link->kept[link->again % OB1_LINK_WINDOW], OB1_F_DIVERTED);
        if (rc != STRATA_OK)
            return n;
        link->again++;
        n++;
    }
    if (link->ack_due || link->ask) {
        rc = tell_by_any(link, link->ask ? OB1_F_AGAIN : 0, 0, 0);
        if (rc == STRATA_ERR_AGAIN)
            return n;
        /* A peer that has left needs no word. */
        link->ack_due = link->ask = false;
        n++;
    }
    return n;
}

static void try_way(struct ob1_link *link, uint32_t i, uint64_t now)
{
    struct st_bml *bml = link->pml->head.worker->bml;
    struct ob1_way *w = &link->way[i];
    int rc;

    if (w->state == OB1_WAY_DOWN && now >= w->retry_ns && !(link->failed_ways & 1u << i)) {
        rc = bml->ops->path_retry(bml, link->peer->bml, i);
        if (rc == STRATA_OK)
            w->state = OB1_WAY_TRIED;
        else if (rc != STRATA_ERR_AGAIN)
            w->retry_ns = now + (uint64_t)link->pml->config.path_retry_ms * 1000000u;
        w->gone = rc == STRATA_ERR_PEER;
    }
    /* Nothing that matters goes by it before the connection stands. */
    if (w->state != OB1_WAY_TRIED)
        return;
    rc = ob1_link_tell(link, i, 0, 0, 0);
    if (rc == STRATA_OK) {
        w->state = OB1_WAY_UP;
        w->ep.caps = ob1_link_caps(link->peer->bml->paths[i].ep);
        bml->ops->path_works(bml, link->peer->bml, i);
        st_log(link->pml->head.context, ST_LOG_INFO, "pml_ob1", "path %u of %u to rank %d works again", i, link->n_ways,
               link->peer->rank);
    } else if (rc != STRATA_ERR_AGAIN) {
        ob1_link_way_down(link, i, "it could not be connected again");
    }
}

/* No way is up. All that was not acknowledged is kept, so a way that comes back loses nothing; but the peer may be
 * dead, so there is an end to waiting. At once where no way will ever come back. */
static void stranded(struct ob1_link *link, uint64_t now)
{
    uint64_t most = (uint64_t)link->pml->config.path_wait_ms * 1000000u;
    char reason[sizeof(link->reason) + 64];
    bool gone = true;

    if (link->stranded_ns == 0) {
        link->stranded_ns = now;
        for (uint32_t i = 0; i < link->n_ways; i++)
            link->way[i].retry_ns = now;
    }
    for (uint32_t i = 0; i < link->n_ways; i++)
        gone &= link->way[i].gone;
    if (!gone && now - link->stranded_ns < most)
        return;
    snprintf(reason, sizeof(reason), "%s; %s", link->reason,
             gone ? "it has left" : "none of its paths has come back within pml_ob1_path_wait_ms");
    ob1_peer_fails(link->pml, link->peer->rank, STRATA_ERR_PEER, reason);
    st_list_remove(&link->mended);
}

void ob1_links_mend(struct ob1 *pml)
{
    uint64_t now;

    if ((++pml->mend_round & TRY_MASK) != 0)
        return;
    now = now_ns();
    for (struct st_node *n = pml->mending.next, *next; n != &pml->mending; n = next) {
        struct ob1_link *link = ST_CONTAINER(n, struct ob1_link, mended);
        bool all = true;
        next = n->next;
        if (link->peer->failed) {
            if (!ob1_link_refuse(link, now))
                st_list_remove(n);
            continue;
        }
        for (uint32_t i = 0; i < link->n_ways; i++) {
            try_way(link, i, now);
            all &= link->way[i].state == OB1_WAY_UP;
        }
        if (all)
            st_list_remove(n);
        if (ob1_link_way(link, 0) != OB1_LINK_NO_WAY)
            link->stranded_ns = 0;
        else if (!link->failed_ways)
            stranded(link, now);
    }
    if (st_list_empty(&pml->mending))
        st_worker_calm(pml->head.worker, OB1_LOOK);
}

void ob1_link_peer_failed(struct ob1_link *link)
{
    link->failed_ways = link->tell_ways = link->unheard_ways = link->answer_ways = 0;
    link->ack_due = link->ask = false;
    link->again = link->again_end;
    if (link->peer->by_link) { /* else the transport of the one path knows as much */
        ob1_link_refuse_begin(link, now_ns());
        mend(link);
    }
}

bool ob1_path_lost(struct ob1_peer *peer, uint8_t path)
{
    if (peer->failed || !peer->by_link)
        return false;
    ob1_link_way_down(peer->link, path < peer->link->n_ways ? path : 0, "an operation failed");
    return true;
}
