/* Puts, with notice or without, and gets that are longer than one work request: in pieces, the last of which ends them.
 */
#include "module.h"

#define PIECES 8u /* posted by one call */

/* The next pieces for which there is room, posted by one call. The last piece of all is signalled, and one of so many.
 */
static uint32_t rdma_plan(const struct ib_module *m, const struct ib_rdma *r, const struct ib_qp *q,
                          struct ibv_send_wr *wr, struct ibv_sge *sge)
{
    uint64_t at = 0;
    uint32_t n = 0;

    for (; n < PIECES && at < r->left && ib_qp_room(q) > IB_RDMA_CONTROL + n; n++) {
        uint32_t len = (uint32_t)(r->left - at < m->dev.max_rdma ? r->left - at : m->dev.max_rdma);
        bool signal = at + len == r->left || ((q->posted + n + 1) & q->every) == 0;
        wr[n] = ib_rdma_piece(q, r, at, len, signal, &sge[n]);
        if (n)
            wr[n - 1].next = &wr[n];
        at += len;
    }
    return n;
}

static void rdma_advance(struct ib_module *m, struct ib_rdma *r)
{
    struct ib_qp *q = &r->peer->q[IB_LOW];
    struct ibv_send_wr wr[PIECES], *bad;
    struct ibv_sge sge[PIECES];
    uint32_t n, taken;

    while ((n = rdma_plan(m, r, q, wr, sge)) > 0) {
        taken = ibv_post_send(q->qp, wr, &bad) == 0 ? n : (uint32_t)(bad - wr);
        for (uint32_t i = 0; i < taken; i++) {
            r->local += sge[i].length;
            r->remote += sge[i].length;
            r->left -= sge[i].length;
            if (r->left == 0) {
                q->messages += r->notifies;
                ib_posted(q, r, IB_SENT_RDMA);
            } else if (wr[i].send_flags & IBV_SEND_SIGNALED) {
                ib_posted(q, NULL, IB_SENT_NOTHING);
            } else {
                q->posted++;
            }
        }
        ib_expect_low(&m->poll);
        if (taken < n)
            return;
    }
    if (r->left == 0)
        st_list_remove(&r->node);
}

void ib_rdma_progress(struct ib_module *m)
{
    for (struct st_node *n = m->rdma.waiting.next, *next; n != &m->rdma.waiting; n = next) {
        next = n->next;
        rdma_advance(m, ST_CONTAINER(n, struct ib_rdma, node));
    }
}

struct st_btl_op *ib_rdma_free(struct ib_module *m, struct ib_rdma *r)
{
    struct st_btl_op *op = r->op;

    st_slab_put(&m->rdma.slab, r);
    return op;
}

void ib_rdma_cancel(struct ib_peer *p)
{
    struct ib_module *m = ib_module_of(p);

    for (struct st_node *n = m->rdma.waiting.next, *next; n != &m->rdma.waiting; n = next) {
        struct ib_rdma *r = ST_CONTAINER(n, struct ib_rdma, node);
        struct st_btl_op *op;
        next = n->next;
        if (r->peer != p)
            continue;
        st_list_remove(n);
        op = ib_rdma_free(m, r);
        if (!m->closing)
            op->done(op, STRATA_ERR_PEER);
    }
}

int ib_rdmas_open(struct ib_rdmas *r)
{
    st_list_init(&r->waiting);
    return st_slab_init(&r->slab, sizeof(struct ib_rdma), 16, 32, 0);
}

bool ib_drained(const struct ib_peer *p)
{
    const struct ib_module *m = ib_module_of(p);

    if (p->q[IB_LOW].posted != p->q[IB_LOW].done)
        return false;
    for (const struct st_node *n = m->rdma.waiting.next; n != &m->rdma.waiting; n = n->next)
        if (ST_CONTAINER(n, struct ib_rdma, node)->peer == p)
            return false;
    return true;
}

int ib_rdma_begin(const struct ib_rdma *as)
{
    struct ib_module *m = ib_module_of(as->peer);
    struct ib_rdma *r = st_slab_get(&m->rdma.slab);

    if (!r)
        return STRATA_ERR_AGAIN;
    *r = *as;
    st_list_append(&m->rdma.waiting, &r->node);
    ib_attend(&m->poll);
    rdma_advance(m, r);
    return STRATA_OK;
}

int ib_rdma_post(struct ib_qp *q, struct ibv_send_wr *wr, void *what, enum ib_sent_kind kind)
{
    struct ibv_send_wr *bad;

    if (ibv_post_send(q->qp, wr, &bad) != 0)
        return STRATA_ERR_AGAIN;
    ib_posted(q, what, kind);
    ib_expect_low(&ib_module_of(q->peer)->poll);
    return STRATA_OK;
}
