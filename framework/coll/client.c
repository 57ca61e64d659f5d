/* Collectives as a client of the worker: failures of peers, what members tell each other of them, and what is handed on
 * to the components. */
#include <stdlib.h>
#include <string.h>

#include "framework/base/context.h"
#include "framework/coll/group.h"

/* ---- a failure is told ---- */

/* The framework's own active message. The rank is the job's, since the ranks of a communicator may not be known at the
 * receiver yet. */
enum { COLL_FAILED = 1 };
struct coll_word {
    uint8_t type; /* COLL_FAILED */
    uint8_t spare[3];
    uint32_t comm;
    int32_t rank;
};
_Static_assert(sizeof(struct coll_word) == 12, "no padding");

struct coll_message {
    struct st_work work;
    struct st_peer *peer;
    struct coll_word word;
};

static int message_run(void *arg, struct st_work *work)
{
    struct coll_message *m = ST_CONTAINER(work, struct coll_message, work);
    struct st_btl_endpoint *ep = st_peer_way(m->peer, 0);
    int rc = ep->btl->ops->send(ep, ST_AM_COLL, &m->word, sizeof(m->word), NULL, 0);
    (void)arg;
    if (rc == STRATA_ERR_AGAIN)
        return rc;
    free(m); /* an error: the transport has told of the peer's failure */
    return STRATA_OK;
}

static void message_drop(void *arg, struct st_work *work, int rc)
{
    (void)arg, (void)rc;
    free(ST_CONTAINER(work, struct coll_message, work));
}

static const struct st_work_ops message_work = {ST_AM_COLL, message_run, message_drop};

/* Without memory the peer is left to learn of the failure from others. */
static void message_send(struct colls *colls, struct st_peer *peer, const struct coll_word *word)
{
    struct coll_message *m = calloc(1, sizeof(*m));
    if (!m)
        return;
    m->work.ops = &message_work;
    m->peer = peer;
    m->word = *word;
    if (message_run(colls, &m->work) == STRATA_ERR_AGAIN)
        st_worker_queue(colls->w, peer, ST_WORK_CONTROL, &m->work);
}

void coll_tell_failure(struct group *g, int rank)
{
    const strata_comm_t *comm = g->head.comm;
    struct coll_word word = {.type = COLL_FAILED, .comm = comm->id, .rank = st_coll_job_rank(&g->head, rank)};
    int self = st_coll_self(&g->head);
    for (int i = 0; i < comm->size + g->head.n_local; i++) {
        struct st_peer *peer = st_worker_peer_known(g->colls->w, st_coll_job_rank(&g->head, i));
        if (i != self && i != rank && peer && peer->bml && !peer->failed)
            message_send(g->colls, peer, &word);
    }
}

/* ---- and heard ---- */

static struct group *client_find(struct colls *colls, uint32_t comm)
{
    for (struct st_node *n = colls->groups.next; n != &colls->groups; n = n->next) {
        struct group *g = ST_CONTAINER(n, struct group, node);
        if (g->head.comm->id == comm)
            return g;
    }
    return NULL;
}

void coll_keep_early(struct colls *colls, uint32_t comm, int job_rank)
{
    struct coll_early *early = colls->early;
    for (unsigned i = 0; i < colls->n_early; i++)
        if (early[i].comm == comm && early[i].rank == job_rank) /* each member tells of it */
            return;
    if (colls->n_early == COLL_EARLY)
        memmove(early, early + 1, --colls->n_early * sizeof(*early));
    early[colls->n_early++] = (struct coll_early){comm, job_rank};
}

int coll_take_early(struct colls *colls, const struct st_coll_group *group)
{
    unsigned kept = 0;
    int first = -1;
    for (unsigned i = 0; i < colls->n_early; i++) {
        struct coll_early early = colls->early[i];
        if (early.comm != group->comm->id)
            colls->early[kept++] = early;
        else if (first < 0)
            first = coll_group_number_of(group, early.rank);
    }
    colls->n_early = kept;
    return first;
}

static void client_told(struct colls *colls, const struct st_frag *frag)
{
    struct coll_word word = {.rank = -1};
    if (frag->hdr_len == sizeof(word))
        memcpy(&word, frag->hdr, sizeof(word));
    struct group *g = client_find(colls, word.comm);
    int rank = g && word.rank >= 0 ? coll_group_number_of(&g->head, word.rank) : -1;
    if (frag->hdr_len != sizeof(word) || frag->len != 0 || word.type != COLL_FAILED || word.rank < 0 || (g && rank < 0))
        st_worker_protocol_error(colls->w, "coll", frag, "a failure that cannot be true", &colls->n_protocol_errors);
    else if (g)
        coll_group_fail(g, rank);
    else
        coll_keep_early(colls, word.comm, word.rank);
}

static void client_deliver(void *arg, const struct st_frag *frag)
{
    struct colls *colls = arg;
    uint8_t type = frag->hdr_len ? *(const volatile uint8_t *)frag->hdr : 0;
    if (type < ST_COLL_OWN) {
        client_told(colls, frag);
        return;
    }
    if (!atomic_load_explicit(&colls->open, memory_order_relaxed) && coll_open(colls) != STRATA_OK)
        st_log(colls->w->context, ST_LOG_ERROR, "coll",
               "components cannot be opened, and a message for one of them is lost: rank %d may wait for ever",
               frag->rank);
    for (unsigned i = 0; i < colls->n; i++)
        if (colls->module[i]->ops->deliver)
            colls->module[i]->ops->deliver(colls->module[i], frag);
}

/* ---- the row ---- */

static void client_notified(void *arg, int rank, uint32_t notice)
{
    const struct colls *colls = arg;
    for (unsigned i = 0; i < colls->n; i++)
        if (colls->module[i]->ops->notified)
            colls->module[i]->ops->notified(colls->module[i], rank, notice);
}

static int client_attend(void *arg)
{
    const struct colls *colls = arg;
    int events = 0;
    for (unsigned i = 0; i < colls->n; i++)
        if (colls->module[i]->asks && colls->module[i]->ops->attend)
            events += colls->module[i]->ops->attend(colls->module[i]);
    return events;
}

void st_coll_attend(struct st_coll *coll, bool asks)
{
    const struct colls *colls = coll->context->coll;
    bool any = asks;
    coll->asks = asks;
    for (unsigned i = 0; i < colls->n; i++)
        any = any || colls->module[i]->asks;
    if (any)
        st_worker_attend(colls->w, ST_ATTEND_WORK << ST_AM_COLL);
    else
        st_worker_calm(colls->w, ST_ATTEND_WORK << ST_AM_COLL);
}

static void client_outside(void *arg)
{
    const struct colls *colls = arg;
    for (unsigned i = 0; i < colls->n; i++)
        if (colls->module[i]->ops->outside)
            colls->module[i]->ops->outside(colls->module[i]);
}

static void client_peer_changed(void *arg, struct st_peer *peer)
{
    const struct colls *colls = arg;
    for (unsigned i = 0; i < colls->n; i++)
        if (colls->module[i]->ops->peer_changed)
            colls->module[i]->ops->peer_changed(colls->module[i], peer);
}

static void client_peer_failed(void *arg, struct st_peer *peer)
{
    struct colls *colls = arg;
    for (struct st_node *n = colls->groups.next, *next; n != &colls->groups; n = next) {
        struct group *g = ST_CONTAINER(n, struct group, node);
        int rank = coll_group_number_of(&g->head, peer->rank);
        next = n->next;
        if (rank >= 0)
            coll_group_fail(g, rank);
    }
    client_peer_changed(colls, peer);
}

const struct st_client coll_row = {.am = ST_AM_COLL,
                                   .deliver = client_deliver,
                                   .notified = client_notified,
                                   .attend = client_attend,
                                   .outside = client_outside,
                                   .peer_changed = client_peer_changed,
                                   .peer_failed = client_peer_failed};
