/* The end of work requests that were posted to send. */
#include <strata/sdk/btl_rdma.h>
#include "data/completion.h"

void ib_sent_end(struct ib_qp *q, struct ib_sent *s, int rc)
{
    struct ib_module *m = ib_module_of(q->peer);
    struct st_btl_op *op = s->what;

    switch ((enum ib_sent_kind)s->kind) {
    case IB_SENT_NOTHING:
        break;
    case IB_SENT_BUFFER:
        ib_buffer_put(&m->q[q->priority].sends, s->what);
        break;
    case IB_SENT_OP:
        if (!m->closing) /* the layer above has gone */
            op->done(op, rc);
        break;
    case IB_SENT_RDMA:
        ib_rdma_ended(s->what, rc);
        break;
    case IB_SENT_ZCOPY:
        ib_zcopy_ended(m, s->what, rc);
        break;
    }
}

void ib_sent_drop(struct ib_qp *q, int rc)
{
    while (q->ended != q->signals) {
        struct ib_sent s = q->sent[q->ended++ & q->mask];
        q->done = s.up_to;
        ib_sent_end(q, &s, rc);
    }
    q->done = q->posted;
}
