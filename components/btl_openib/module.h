/* A module: one port of one device, with its queues, its peers and their connections. All of it is under the context's
 * lock, and nothing of it but the bytes of receive buffers is written by another process.
 */
#ifndef IB_MODULE_H
#define IB_MODULE_H

#include <strata/sdk/btl.h>
#include <strata/sdk/hint.h>
#include <strata/sdk/thresholds.h>
#include "connect/conn.h"
#include "params.h"
#include "data/send.h"
#include "data/credits.h"
#include "data/rdma.h"
#include "device/device.h"
#include "eager_rdma/eager.h"
#include "methods/oob.h"
#include "peer/peer.h"
#include "progress.h"
#include "queues/queue.h"
#include "wire.h"

struct ib_module {
    struct st_btl btl;
    struct st_rte *rte;
    bool closing; /* the layer above has gone: nothing is reported to it */
    struct ib_queue_spec spec[IB_PRIORITIES];
    struct ib_poll poll;
    struct ib_queue q[IB_PRIORITIES];
    struct ib_brief brief;
    struct ib_batch batch;
    struct ib_qps qps;
    struct ib_peers peers;
    struct ib_credits credits;
    struct ib_zcopies zcopy;
    struct ib_rdmas rdma;
    struct ib_eager eager;
    struct ib_device dev;
    struct ib_conns conns;
    struct ib_evict evict;
    struct ib_oob oob;
    struct ib_card card; /* ours */
    uint32_t index;      /* of this rail among those of the process that have a card */
    struct ib_registrar registrar;
    struct st_btl_times times; /* zeros: not measured */
    bool calibrated;           /* it was tried */
    struct ib_counts count;
    struct st_counting counting;
};

static inline struct ib_module *ib_module(const struct st_btl *btl)
{
    return (struct ib_module *)(uintptr_t)btl;
}
static inline struct ib_module *ib_module_of(const struct ib_peer *p)
{
    return ib_module(p->ep.btl);
}

/* ---- module.c ---- */
int ib_module_open(struct ib_module *m, strata_t *s, const struct st_component *c, char *why, size_t why_size);
/* Publishes the card, when all modules that can be opened are: this is one of `rails`. */
int ib_module_publish(struct ib_module *m, uint64_t rails);
void ib_close(struct st_btl *btl);

/* ---- endpoint.c: peers as the layer above sees them ---- */
int ib_reach(struct st_btl *btl, int rank);
int ib_connect(struct st_btl *btl, int rank, struct st_btl_endpoint **out);
void ib_disconnect(struct st_btl_endpoint *ep);
void ib_report_broken(struct ib_module *m);

/* ---- report.c ---- */
void ib_count(const struct st_counting *counting, uint64_t *value);
void ib_mem_report(struct st_btl *btl, st_mem_line_fn line, void *arg);
char *ib_describe(struct st_btl *btl, struct st_btl_endpoint *ep);

#endif
