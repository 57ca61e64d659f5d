/* Matching contexts: made and freed, and messages that arrive before theirs exists.
 *
 * A message for an unknown context is held and replayed, in order of arrival, when the context is added: its creator
 * may be ahead of us. Messages that nobody received when a context is freed are dropped and counted; those that arrive
 * afterwards are for the next context of that id, which may only come into use when every member has freed the old one.
 */
#include <limits.h>
#include <stdlib.h>
#include "comm.h"
#include "match.h"
#include "message.h"
#include "ob1.h"
#include "ob1_inl.h"
#include "peer.h"
#include "recv.h"
#include "report.h"
#include "revoke.h"
#include "send.h"

/* Delivers what came for this context before it existed. */
static void ob1_comm_replay(struct ob1 *pml, struct ob1_comm *c)
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
    int rc;

    ob1_lock(pml);
    rc = ob1_comm_find(pml, comm->id) ? STRATA_ERR_STATE : ob1_comm_table_room(pml);
    if (rc == STRATA_OK)
        rc = ob1_match_init(&c->match);
    if (rc == STRATA_OK) {
        (void)st_rank_table_init(&c->peers, (uint32_t)comm->size); /* allocates nothing */
        (void)st_rank_table_init(&c->held, (uint32_t)comm->size);
        c->to = c->from = &pml->nobody;
        c->revoked = INT_MIN;
        ob1_revoked_forget(pml, comm->id);
        ob1_comm_table_add(pml, c);
        if (pml->early)
            ob1_comm_replay(pml, c);
    }
    ob1_leave(pml);
    return rc;
}

static void ob1_comm_drop_messages(struct ob1 *pml, struct ob1_comm *c)
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

/* Without memory for it the peer's report lacks what went in this context. */
static void ob1_comm_keep_counts(struct ob1_peer *peer, const struct ob1_cpeer *p)
{
    if (!peer->gone)
        peer->gone = calloc(1, sizeof(*peer->gone));
    if (peer->gone)
        ob1_traffic_add(peer->gone, p);
}

static void ob1_comm_forget_cpeers(struct ob1 *pml, struct ob1_comm *c)
{
    for (int64_t i = 0; (i = st_rank_table_next(&c->peers, (uint32_t)i)) >= 0; i++) {
        struct ob1_cpeer *p = st_rank_table_get(&c->peers, (uint32_t)i);
        ob1_peer_remove_member(p->peer, p);
        ob1_comm_keep_counts(p->peer, p);
        pml->n_sent += p->send_seq;
        pml->n_received += p->recv_seq;
        st_slab_put(&pml->cpeers, p);
    }
}

void ob1_comm_del(strata_comm_t *comm)
{
    struct ob1_comm *c = (struct ob1_comm *)comm;
    struct ob1 *pml = ob1_of(comm);

    ob1_lock(pml);
    ob1_comm_table_remove(pml, c);
    ob1_revoked_keep(pml, c);
    ob1_send_orphan(c);
    ob1_comm_drop_messages(pml, c);
    ob1_held_drop(pml, c);
    ob1_comm_forget_cpeers(pml, c);
    st_rank_table_destroy(&c->peers);
    ob1_match_destroy(&c->match);
    ob1_leave(pml);
}

void ob1_comms_destroy(struct ob1 *pml)
{
    struct ob1_msg *msg;

    while ((msg = pml->early) != NULL) {
        pml->early = msg->next;
        pml->n_dropped++;
        ob1_msg_free(pml, msg);
    }
    free(pml->revoked);
    free(pml->comms);
}
