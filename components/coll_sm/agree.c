/* The first operation of a communicator: members tell each other where their areas are, by an allgather of the next
 * component. Who cannot map the area of another says so in its own, where those look that have mapped it; who has not
 * cannot go on this way either. So all come to the same result without a further message. */
#define _GNU_SOURCE 1
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <strata/sdk/clock.h>
#include <strata/sdk/worker.h>
#include "slot.h"

/* An own area as large as the parameters allow; none leaves a card without a name. */
static void agree_make_card(struct slot *s, struct card *card)
{
    struct sm *sm = s->sm;
    size_t half = sm->config.half, bytes = AREA_HEAD + 2 * half;
    *card = (struct card){.pid = (uint32_t)getpid()};
    st_worker_lock(sm->w);
    bool room = sm->area_bytes <= sm->config.memory && bytes <= sm->config.memory - sm->area_bytes;
    sm->area_bytes += room ? bytes : 0;
    st_worker_unlock(sm->w);
    if (!room)
        return;
    if (cs_area_make(half, &s->own) != STRATA_OK ||
        st_shared_name_make(s->own.fd, 0, s->own.bytes, &card->name) != STRATA_OK) {
        cs_area_drop(&s->own);
        st_worker_lock(sm->w);
        sm->area_bytes -= bytes;
        st_worker_unlock(sm->w);
        return;
    }
    card->half = half;
    card->key = s->own.at->key = st_now_ns() ^ (uint64_t)(uintptr_t)s << 20;
    card->address = (uint64_t)(uintptr_t)&s->own.at->key;
}

int cs_agree_begin(struct slot *s, strata_coll_request_t **req)
{
    strata_coll_t c = STRATA_COLL_INIT(STRATA_ALLGATHER);
    if (!s->cards) { /* else it could not begin before */
        s->cards = calloc((size_t)s->n, sizeof(*s->cards));
        if (!s->cards)
            return STRATA_ERR_NOMEM;
        agree_make_card(s, &s->cards[s->me]);
    }
    c.send = STRATA_IN_PLACE;
    c.recv = s->cards;
    c.count = sizeof(*s->cards);
    return st_coll_start_below(&s->base, &c, req);
}

static bool agree_can_read(const struct card *card)
{
    uint64_t found = 0;
    struct iovec here = {&found, sizeof(found)}, there = {(void *)(uintptr_t)card->address, sizeof(found)};
    return process_vm_readv((pid_t)card->pid, &here, 1, &there, 1, 0) == sizeof(found) && found == card->key;
}

/* Maps all areas; the result is what this member can do with them. */
static enum area_state agree_map(struct slot *s)
{
    bool reads = true;
    s->half = s->cards[s->me].half;
    for (int m = 0; m < s->n; m++) {
        const struct card *card = &s->cards[m];
        s->half = card->half < s->half ? (size_t)card->half : s->half;
        if (card->name.length != AREA_HEAD + 2 * card->half || card->half == 0)
            return AREA_REFUSED;
    }
    for (int m = 0; m < s->n; m++) {
        struct member *p = &s->member[m];
        p->pid = s->cards[m].pid;
        if (m == s->me)
            p->at = s->own.at;
        else if (st_shared_map(p->pid, &s->cards[m].name, &p->mapping) == STRATA_OK)
            p->at = (struct area *)(void *)p->mapping.memory;
        else
            return AREA_REFUSED;
        reads = reads && agree_can_read(&s->cards[m]);
    }
    return reads ? AREA_READS : AREA_COPIES;
}

void cs_agree_outside(struct slot *s)
{
    strata_coll_request_t *req = s->cards_req;
    int rc = req->error;
    enum area_state can = rc == STRATA_OK ? agree_map(s) : AREA_REFUSED;
    if (s->own.at)
        atomic_store_explicit(&s->own.at->state, can, memory_order_release);
    st_worker_lock(s->sm->w);
    s->cards_req = NULL;
    s->stage = can == AREA_REFUSED ? SLOT_REFUSED : SLOT_STATES;
    s->sm->counted[COUNT_REFUSED] += can == AREA_REFUSED && rc == STRATA_OK;
    st_worker_unlock(s->sm->w);
    req->free(req); /* others look at it under the lock until it is forgotten */
}

void cs_agree_look(struct slot *s)
{
    bool reads = true;
    if (s->stage != SLOT_STATES)
        return;
    for (int m = 0; m < s->n; m++) {
        uint32_t state = atomic_load_explicit(&s->member[m].at->state, memory_order_acquire);
        if (state == AREA_UNKNOWN)
            return;
        if (state != AREA_COPIES && state != AREA_READS) {
            s->stage = SLOT_REFUSED;
            s->sm->counted[COUNT_REFUSED]++;
            return;
        }
        reads = reads && state == AREA_READS;
    }
    s->reads = reads;
    s->stage = SLOT_READY;
}
