/* Matching contexts: the table of them, and messages that arrive before theirs exists.
 *
 * A message for an unknown context is held and replayed, in order of arrival, when the context is added: its creator
 * may be ahead of us. Messages that nobody received when a context is freed are dropped and counted; those that arrive
 * afterwards are for the next context of that id, which may only come into use when every member has freed the old one.
 */
#include <stdlib.h>
#include "ob1_inl.h"

static struct ob1_comm **slot(struct ob1 *pml, uint32_t id)
{
    return &pml->comms[id & pml->comms_mask];
}

struct ob1_comm *ob1_comm_find(struct ob1 *pml, uint32_t id)
{
    struct ob1_comm *c = pml->comms ? *slot(pml, id) : NULL;

    while (c && c->head.id != id)
        c = c->next;
    if (c)
        pml->by_id[id % OB1_COMM_CACHE] = c;
    return c;
}

static int grow(struct ob1 *pml)
{
    uint32_t n = pml->comms ? (pml->comms_mask + 1) * 2 : 16, old = pml->comms ? pml->comms_mask + 1 : 0;
    struct ob1_comm **from = pml->comms, **to = calloc(n, sizeof(struct ob1_comm *));

    if (!to)
        return old ? STRATA_OK : STRATA_ERR_NOMEM;
    pml->comms = to;
    pml->comms_mask = n - 1;
    for (uint32_t i = 0; i < old; i++) {
        for (struct ob1_comm *c = from[i], *next; c; c = next) {
            next = c->next;
            c->next = *slot(pml, c->head.id);
            *slot(pml, c->head.id) = c;
        }
    }
    free(from);
    return STRATA_OK;
}

/* Delivers what came for this context before it existed. */
static void replay(struct ob1 *pml, struct ob1_comm *c)
{
    struct ob1_msg **at = &pml->early, *msg;

    while ((msg = *at) != NULL) {
        if (msg->a.context != c->head.id) {
            at = &msg->next;
            continue;
        }
        *at = msg->next;
        pml->n_early--;
        ob1_deliver_msg(pml, c, msg);
    }
    pml->early_last = at;
}

int ob1_comm_add(strata_comm_t *comm)
{
    struct ob1_comm *c = (struct ob1_comm *)comm;
    struct ob1 *pml = ob1_of(comm);
    int rc = STRATA_OK;

    ob1_lock(pml);
    if (ob1_comm_find(pml, comm->id))
        rc = STRATA_ERR_STATE;
    else if (!pml->comms || pml->n_comms > pml->comms_mask)
        rc = grow(pml);
    if (rc == STRATA_OK)
        rc = ob1_match_init(&c->match);
    if (rc == STRATA_OK)
        rc = st_rank_table_init(&c->peers, (uint32_t)comm->size);
    if (rc == STRATA_OK) {
        c->to = c->from = &pml->nobody;
        c->next = *slot(pml, comm->id);
        *slot(pml, comm->id) = c;
        pml->by_id[comm->id % OB1_COMM_CACHE] = c;
        pml->n_comms++;
        if (pml->early)
            replay(pml, c);
    }
    ob1_leave(pml);
    return rc;
}

static void drop_messages(struct ob1 *pml, struct ob1_comm *c)
{
    struct ob1_unexp *u;
    uint64_t n = 0;

    for (; (u = ob1_match_any_unexpected(&c->match)) != NULL; n++) {
        ob1_match_remove(&c->match, u);
        ob1_msg_free(pml, ST_CONTAINER(u, struct ob1_msg, unexp));
    }
    pml->n_dropped += n;
    if (n)
        st_log(pml->head.context, ST_LOG_INFO, "pml_ob1", "context %u freed with %lu messages that were not received",
               c->head.id, (unsigned long)n);
}

static void forget_cpeers(struct ob1 *pml, struct ob1_comm *c)
{
    for (int64_t i = 0; (i = st_rank_table_next(&c->peers, (uint32_t)i)) >= 0; i++) {
        struct ob1_cpeer *p = st_rank_table_get(&c->peers, (uint32_t)i);
        struct ob1_cpeer **at = &p->peer->cpeers;
        while (*at != p)
            at = &(*at)->next_of_peer;
        *at = p->next_of_peer;
        ob1_held_drop(pml, p);
        pml->n_sent += p->send_seq;
        pml->n_received += p->recv_seq;
        st_slab_put(&pml->cpeers, p);
        pml->n_cpeers--;
    }
}

void ob1_comm_del(strata_comm_t *comm)
{
    struct ob1_comm *c = (struct ob1_comm *)comm, **at;
    struct ob1 *pml = ob1_of(comm);

    ob1_lock(pml);
    at = slot(pml, comm->id);
    while (*at && *at != c)
        at = &(*at)->next;
    if (*at) {
        *at = c->next;
        pml->n_comms--;
    }
    if (pml->by_id[comm->id % OB1_COMM_CACHE] == c)
        pml->by_id[comm->id % OB1_COMM_CACHE] = NULL;
    ob1_send_orphan(pml, c);
    drop_messages(pml, c);
    forget_cpeers(pml, c);
    st_rank_table_destroy(&c->peers);
    ob1_match_destroy(&c->match);
    ob1_leave(pml);
}

int ob1_comm_rank_of(const struct ob1_comm *c, int job_rank)
{
    if (!c->head.world)
        return job_rank < c->head.size ? job_rank : -1;
    for (int i = 0; i < c->head.size; i++)
        if (c->head.world[i] == job_rank)
            return i;
    return -1;
}

void ob1_comms_destroy(struct ob1 *pml)
{
    struct ob1_msg *msg;

    while ((msg = pml->early) != NULL) {
        pml->early = msg->next;
        pml->n_dropped++;
        ob1_msg_free(pml, msg);
    }
    free(pml->comms);
    pml->comms = NULL;
}
