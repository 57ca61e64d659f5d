/* Peers: whether they can be reached, what is known of them, and how they fail. */
#include "openib.h"
#include "rails.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Packets pass between members of the same partition of which one at least is a full member. */
static bool same_partition(uint16_t a, uint16_t b)
{
    return a == 0 || b == 0 || (((a ^ b) & (uint16_t)~IB_PKEY_FULL) == 0 && ((a | b) & IB_PKEY_FULL) != 0);
}

/* Whether what a peer has published fits us; `why` may be NULL. */
static bool fits(const struct ib_module *m, int rank, const struct ib_card *c, char *why, size_t why_size)
{
    const struct ib_card *mine = &m->card;

    if (c->version != IB_WIRE_VERSION || c->job != mine->job) {
        if (why)
            snprintf(why, why_size, "rank %d is of another %s", rank, c->job != mine->job ? "job" : "version");
        return false;
    }
    if (c->ethernet != mine->ethernet || (!c->ethernet && memcmp(c->gid, mine->gid, 8) != 0)) {
        if (why)
            snprintf(why, why_size, "rank %d's %.31s is on another network than our %s", rank, c->device, m->name);
        return false;
    }
    if (!same_partition(mine->pkey, c->pkey)) {
        if (why)
            snprintf(why, why_size,
                     "rank %d has partition key 0x%04x, rank %d (here) 0x%04x (btl_openib_pkey_index): nothing passes "
                     "between them",
                     rank, c->pkey, m->rte->rank, mine->pkey);
        return false;
    }
    if (ib_method_choose(mine->methods, c->methods, m->rte->rank < rank) == 0) {
        char theirs[32], ours[32];
        if (why)
            snprintf(why, why_size, "rank %d has btl_openib_connect=%s, rank %d (here) %s: they have none in common",
                     rank, ib_methods_text(c->methods, theirs, sizeof theirs), m->rte->rank,
                     ib_methods_text(mine->methods, ours, sizeof ours));
        return false;
    }
    if (c->size[IB_HIGH] != mine->size[IB_HIGH] || c->size[IB_LOW] != mine->size[IB_LOW]) {
        if (why)
            snprintf(
                why, why_size,
                "rank %d has receive_queues with buffers of %u and %u bytes, rank %d (here) of %u and %u: they must "
                "be the same in all of the job",
                rank, c->size[IB_HIGH], c->size[IB_LOW], m->rte->rank, mine->size[IB_HIGH], mine->size[IB_LOW]);
        return false;
    }
    return true;
}

/* One that is no card of ours has version 0. */
static int get_card(struct ib_module *m, int rank, uint32_t number, struct ib_card *out)
{
    char key[32];
    void *blob = NULL;
    size_t length = 0;
    int rc;

    memset(out, 0, sizeof *out);
    snprintf(key, sizeof key, IB_CARD_KEY ".%u", number);
    rc = m->rte->ops->get(m->rte, rank, key, &blob, &length);
    if (rc != STRATA_OK)
        return rc;
    if (length == sizeof *out) {
        memcpy(out, blob, sizeof *out);
        out->device[sizeof out->device - 1] = 0;
    }
    free(blob);
    return STRATA_OK;
}

/* Nearly always it has our number. Where it has not, any card of the rank says which ports it has. */
static int corresponding(struct ib_module *m, int rank, struct ib_card *out)
{
    int rc = get_card(m, rank, m->index, out), place;
    uint64_t rails;

    if (rc != STRATA_OK && m->index > 0)
        rc = get_card(m, rank, 0, out);
    if (rc != STRATA_OK || out->version != IB_WIRE_VERSION || out->place == m->place)
        return rc;
    rails = out->rails;
    place = ib_rail_match(m->rails, rails, m->place);
    rc = place < 0 ? STRATA_ERR_NOT_FOUND : get_card(m, rank, ib_rail_number(rails, (uint32_t)place), out);
    if (rc == STRATA_OK && (out->version != IB_WIRE_VERSION || out->place == place))
        return STRATA_OK;
    *out = (struct ib_card){.rails = rails};
    return STRATA_ERR_NOT_FOUND;
}

int ib_card_fetch(struct ib_module *m, int rank, struct ib_card *out, char *why, size_t why_size)
{
    int rc = corresponding(m, rank, out);

    if (rc != STRATA_OK) {
        if (why)
            snprintf(why, why_size, "rank %d has no port to match our %s: %s", rank, m->name, strata_strerror(rc));
        return STRATA_ERR_UNREACHABLE;
    }
    if (!fits(m, rank, out, why, why_size))
        return STRATA_ERR_UNREACHABLE;
    ib_address_apply(st_rank_table_get(&m->peers, (uint32_t)rank), out);
    return STRATA_OK;
}

/* That a rank has fewer ports than we is said by who has fewer, where it should not be so. */
void ib_misfit(struct ib_module *m, int rank, const struct ib_card *card, const char *why)
{
    struct ib_peer *p = ib_peer_get(m, rank);
    bool fewer = card->version == 0 && card->rails != 0;

    if (p && !p->misfit)
        st_log(m->btl.context, fewer ? ST_LOG_INFO : ST_LOG_WARN, "btl_openib", "%s", why);
    if (p)
        p->misfit = true;
}

int ib_reach(struct st_btl *btl, int rank)
{
    struct ib_module *m = ib_module(btl);
    const struct ib_peer *p = st_rank_table_get(&m->peers, (uint32_t)rank);
    struct ib_card card;
    char why[256] = "";
    int rc;

    if (rank == m->rte->rank || m->dead)
        return STRATA_ERR_UNREACHABLE;
    if (p && (p->state != IB_IDLE || p->misfit))
        return p->misfit || p->state == IB_FAILED || p->state == IB_GONE ? STRATA_ERR_UNREACHABLE : STRATA_OK;
    rc = ib_card_fetch(m, rank, &card, why, sizeof why);
    if (rc != STRATA_OK) {
        ib_misfit(m, rank, &card, why);
        if (card.version == IB_WIRE_VERSION) /* it may never send to us, and not look at our card */
            ib_wire_up_misfit(m, rank, &card);
    }
    return rc;
}

struct ib_peer *ib_peer_get(struct ib_module *m, int rank)
{
    struct ib_peer *p = st_rank_table_get(&m->peers, (uint32_t)rank);

    if (p)
        return p;
    p = calloc(1, sizeof *p);
    if (!p || st_rank_table_set(&m->peers, (uint32_t)rank, p) != STRATA_OK) {
        free(p);
        return NULL;
    }
    p->ep = (struct st_btl_endpoint){.btl = &m->btl, .rank = rank, .caps = m->btl.caps};
    p->next = m->all;
    m->all = p;
    m->n_peers++;
    return p;
}

int ib_connect(struct st_btl *btl, int rank, struct st_btl_endpoint **out)
{
    struct ib_peer *p = ib_peer_get(ib_module(btl), rank);

    if (!p)
        return STRATA_ERR_NOMEM;
    if (p->state == IB_FAILED && !ib_module(btl)->dead && ib_port_refresh(ib_module(btl))) {
        ib_teardown_mend(p);
        return STRATA_ERR_AGAIN;
    }
    if (p->state == IB_FAILED || p->state == IB_GONE)
        return p->state == IB_GONE ? STRATA_ERR_PEER : STRATA_ERR_UNREACHABLE;
    p->connected = true;
    *out = &p->ep;
    return STRATA_OK;
}

void ib_disconnect(struct st_btl_endpoint *ep)
{
    struct ib_peer *p = ib_peer(ep);

    p->connected = false;
    ib_teardown_begin(p);
}

void ib_peer_broken(struct ib_peer *p, const char *why)
{
    if (p->error || p->state == IB_FAILED || p->state == IB_GONE)
        return;
    p->error = why;
    ib_module(p->ep.btl)->broken = true;
    ib_attend(ib_module(p->ep.btl));
}

/* A peer that has said goodbye goes without a word. */
static void end(struct ib_module *m, struct ib_peer *p)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
    const char *why = p->error;
    bool news = !p->left && !m->closing;

    p->error = NULL;
    if (p->state >= IB_DRAINING && p->state <= IB_CLOSED)
        m->n_closing--;
    p->state = p->left ? IB_GONE : IB_FAILED;
    p->failed_ns = st_now_ns();
    /* First: the operations that end below make the layer above send, and what it is answered says less. */
    if (news && m->btl.path_failed)
        m->btl.path_failed(m->btl.peer_failed_arg, &p->ep, STRATA_ERR_PEER, why);
    if (news && !p->told)
        ib_wire_up_failed(p);
    else
        ib_wire_up_end(p);
    /* The queue pairs stay until the peer is mended or the module closes: completions of theirs may still be in the
     * queues. */
    ib_credits_drop(p);
    for (int i = 0; i < IB_PRIORITIES; i++) {
        if (p->q[i].qp)
            (void)ibv_modify_qp(p->q[i].qp, &a, IBV_QP_STATE);
        ib_sent_drop(&p->q[i], STRATA_ERR_PEER);
    }
    ib_rdma_cancel(p);
}

void ib_report_broken(struct ib_module *m)
{
    m->broken = false;
    for (struct ib_peer *p = m->all; p; p = p->next)
        if (p->error)
            end(m, p);
}
