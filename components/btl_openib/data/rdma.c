/* Put and get over the queue pair of low priority, and put with notice. */
#include <string.h>
#include "data/send_inl.h"

struct ib_rdma ib_rdma_make(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key,
                            size_t len, const struct st_btl_reg *reg, struct st_btl_op *op)
{
    const struct ibv_mr *mr = ((const struct st_rcache_entry *)reg->handle)->handle;
    struct ib_key key;

    memcpy(&key, remote_key, sizeof key);
    return (struct ib_rdma){.peer = ib_peer(ep),
                            .op = op,
                            .local = (uintptr_t)local,
                            .remote = remote,
                            .left = len,
                            .lkey = mr->lkey,
                            .rkey = key.rkey};
}

void ib_rdma_count(struct ib_module *m, bool read, size_t len)
{
    *(read ? &m->btl.bytes_got : &m->btl.bytes_sent) += len;
    m->btl.messages_sent++;
    m->count.rdma++;
}

static int rdma_start(struct st_btl_endpoint *ep, bool read, const void *local, uint64_t remote,
                      const uint8_t *remote_key, size_t len, const struct st_btl_reg *reg, struct st_btl_op *op)
{
    struct ib_peer *p = ib_peer(ep);
    struct ib_module *m = ib_module(ep->btl);
    struct ib_qp *q = &p->q[IB_LOW];
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    int rc = STRATA_ERR_AGAIN;

    if (ST_UNLIKELY(p->state != IB_UP))
        return ib_send_not_now(p);
    struct ib_rdma all = ib_rdma_make(ep, local, remote, remote_key, len, reg, op);
    all.read = read;
    if (len > m->dev.max_rdma) {
        rc = ib_rdma_begin(&all);
    } else if (ib_qp_room(q) > IB_RDMA_CONTROL) {
        wr = ib_rdma_piece(q, &all, 0, (uint32_t)len, true, &sge);
        rc = ib_rdma_post(q, &wr, op, IB_SENT_OP);
    }
    if (rc == STRATA_OK)
        ib_rdma_count(m, read, len);
    return rc;
}

int ib_get(struct st_btl_endpoint *ep, void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
           struct st_btl_reg *reg, struct st_btl_op *op)
{
    return rdma_start(ep, true, local, remote, remote_key, len, reg, op);
}

int ib_put(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
           struct st_btl_reg *reg, struct st_btl_op *op)
{
    return rdma_start(ep, false, local, remote, remote_key, len, reg, op);
}

/* ---- put with notice: a write with immediate data ---- */

/* A notice consumes a receive, so that it is a message at both ends: for credits, and for the counts by which a
 * connection closes. Data and notice go by one queue pair, since two are not ordered; of high priority uncut. */
static int notify_post_high(struct ib_qp *q, struct ibv_send_wr *wr, struct st_btl_op *op)
{
    struct ibv_send_wr *bad;

    if (ibv_post_send(q->qp, wr, &bad) != 0)
        return STRATA_ERR_AGAIN;
    ib_posted(q, op, IB_SENT_OP);
    return STRATA_OK;
}

/* Copied into a request that was made before: the data may be used again at once, so nobody waits for its end. */
static int notify_post_brief(struct ib_brief *b, struct ib_qp *q, const void *local, uint64_t remote,
                             const uint8_t *remote_key, uint32_t len, uint32_t word)
{
    bool signal = ((q->posted + 1) & q->every) == 0;
    struct ib_key key;

    memcpy(&key, remote_key, sizeof key);
    b->notice_sge.addr = (uintptr_t)local;
    b->notice_sge.length = len;
    b->notice.wr_id = ib_wr_id(q);
    b->notice.send_flags = IBV_SEND_INLINE | (signal ? IBV_SEND_SIGNALED : 0u);
    b->notice.imm_data = htonl(word);
    b->notice.wr.rdma.remote_addr = remote;
    b->notice.wr.rdma.rkey = key.rkey;
    if (ST_UNLIKELY(ibv_post_send(q->qp, &b->notice, &b->bad) != 0))
        return STRATA_ERR_AGAIN;
    if (ST_UNLIKELY(signal))
        ib_posted(q, NULL, IB_SENT_NOTHING);
    else
        q->posted++;
    return 1;
}

static int notify_post_low(struct ib_qp *q, struct ibv_send_wr *wr, struct st_btl_op *op)
{
    int rc = ib_rdma_post(q, wr, op, IB_SENT_OP);

    q->messages += rc == STRATA_OK;
    return rc;
}

/* Posts the operations that notify_post_brief does not take. */
static int notify_post(struct ib_qp *q, struct ib_rdma *all, struct st_btl_op *op)
{
    struct ibv_send_wr wr;
    struct ibv_sge sge;

    if (q->priority == IB_LOW && all->left > ib_module_of(q->peer)->dev.max_rdma)
        return ib_rdma_begin(all);
    wr = ib_rdma_piece(q, all, 0, (uint32_t)all->left, true, &sge);
    return q->priority == IB_HIGH ? notify_post_high(q, &wr, op) : notify_post_low(q, &wr, op);
}

/* The credit is taken now, so that the last piece of a long one needs none. */
int ib_put_notify(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
                  struct st_btl_reg *reg, uint32_t word, struct st_btl_op *op)
{
    struct ib_peer *p = ib_peer(ep);
    struct ib_module *m = ib_module(ep->btl);
    struct ib_qp *q = &p->q[len <= m->spec[IB_HIGH].size ? IB_HIGH : IB_LOW];
    int rc;

    if (!send_has_room(p, q))
        return ib_send_not_now(p);
    ib_batch_post(m);
    if (ST_LIKELY(len <= m->brief.most && q->priority == IB_HIGH)) {
        rc = notify_post_brief(&m->brief, q, local, remote, remote_key, (uint32_t)len, word);
    } else {
        struct ib_rdma all = ib_rdma_make(ep, local, remote, remote_key, len, reg, op);
        all.notifies = true;
        all.word = word;
        rc = notify_post(q, &all, op);
    }
    if (rc < STRATA_OK)
        return rc;
    q->credits--;
    ib_rdma_count(m, false, len);
    m->count.notices++;
    return rc;
}
