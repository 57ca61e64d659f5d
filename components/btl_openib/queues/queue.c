/* The two queues of a module: opened and closed together. */
#include "queues/queue.h"

#include <stdio.h>
#include <strata/sdk/component.h>
#include "device/device.h"
#include "wire.h"

const char *const ib_priority_name[] = {"high", "low"};

/* A shared queue of fewer than COUNT holds fewer, and all works; the rest has no other size to go on with. */
bool ib_queues_fit(const struct ib_device *dev, const struct ib_queue_spec spec[], char *why, size_t why_size)
{
    uint32_t most = dev->attr.max_qp_wr > 0 ? (uint32_t)dev->attr.max_qp_wr : UINT32_MAX;

    for (uint32_t i = 0; i < IB_PRIORITIES; i++) {
        const struct ib_queue_spec *s = &spec[i];
        if ((uint64_t)dev->par->send_depth[i] > most) {
            snprintf(why, why_size, "btl_openib_send_depth_%s=%d: a send queue of %s holds %u work requests at most",
                     ib_priority_name[i], (int)dev->par->send_depth[i], dev->name, most);
            return false;
        }
        if (ib_own_receives(s) > most) {
            snprintf(why, why_size,
                     "btl_openib_receive_queues, %s priority: CREDITS (%u) may be %u at most, since a receive queue of "
                     "%s holds %u buffers, %u of them for what needs none",
                     ib_priority_name[i], s->credits, most > s->beyond ? most - s->beyond : 0, dev->name, most,
                     s->beyond);
            return false;
        }
        if (s->shared && dev->attr.max_srq_wr > 0 && s->count > (uint32_t)dev->attr.max_srq_wr)
            st_log(dev->context, ST_LOG_INFO, "btl_openib",
                   "a shared receive queue of %s holds %d buffers at most, fewer than COUNT (%u) of %s priority in "
                   "btl_openib_receive_queues: it grows no further",
                   dev->name, dev->attr.max_srq_wr, s->count, ib_priority_name[i]);
    }
    return true;
}

/* NULL, or what cannot be made, and which kind of object that is. */
static const char *queue_open(struct ib_queue *q, enum ib_resource *kind)
{
    uint32_t size = q->spec->size, first = ib_srq_first(q, 1), head = IB_HEAD + IB_USUAL_HDR;

    ib_pool_init(&q->receives, q->dev, size, !q->spec->shared ? 8 : first < 16 ? first : 16, head);
    ib_pool_init(&q->sends, q->dev, size, q->priority == IB_HIGH ? 16 : 4, head);
    *kind = IB_CQS;
    if (ib_cq_open(q) != STRATA_OK)
        return "completion queue";
    *kind = IB_SRQS;
    if (q->spec->shared && ib_srq_open(q) != STRATA_OK)
        return "shared receive queue";
    *kind = IB_MRS;
    /* The first buffers of each kind now: who has a few goes on with a few, who has none would wait for ever. */
    if (ib_pool_grow(&q->receives) != STRATA_OK || ib_pool_grow(&q->sends) != STRATA_OK)
        return "registered buffers";
    return NULL;
}

int ib_queues_open(struct ib_queue q[], const struct ib_device *dev, const struct ib_queue_spec spec[], uint32_t ranks,
                   char *why, size_t why_size)
{
    for (uint32_t i = 0; i < IB_PRIORITIES; i++) {
        enum ib_resource kind;
        const char *missing;
        q[i] = (struct ib_queue){.dev = dev, .spec = &spec[i], .priority = (uint8_t)i, .ranks = ranks};
        missing = queue_open(&q[i], &kind);
        if (missing) {
            ib_init_error(dev, kind, missing, why, why_size);
            return STRATA_ERR_NOMEM;
        }
    }
    return STRATA_OK;
}

void ib_queues_close(struct ib_queue q[])
{
    for (uint32_t i = 0; i < IB_PRIORITIES; i++) {
        if (q[i].srq)
            (void)ibv_destroy_srq(q[i].srq);
        if (q[i].cq)
            (void)ibv_destroy_cq(q[i].cq);
        ib_pool_destroy(&q[i].receives);
        ib_pool_destroy(&q[i].sends);
    }
}
