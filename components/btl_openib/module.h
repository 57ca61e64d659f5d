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
#include "queues/queue.h"
#include "wire.h"

/* Polling: what a module looks at next, and completions that were found when they could not be handled. */
struct ib_poll {
    bool hot;             /* there are queue pairs, and nothing is stashed */
    bool attend;          /* ib_attend was called */
    bool again;           /* the last look at more than high priority called for another one in the next poll */
    bool stashed;         /* `stash` is not empty */
    uint32_t until;       /* polls until more than the CQ of high priority is looked at */
    struct ib_qp *last;   /* queue pair of the last message */
    uint32_t last_number; /* of `last`; with eager RDMA 0: all completions are looked at one by one */
    uint32_t low_soon;    /* polls in which low priority is looked at each time */
    uint32_t looks;       /* calls of ib_progress_rest */
    uint32_t rare;        /* of these, with nothing in particular to do */
    struct st_frag frag;  /* being delivered */
    struct {
        struct ibv_wc wc[IB_POLLED];
        int n, at;
    } stash[IB_PRIORITIES];
};

/* Makes the next poll, or the rest of the present one, look at more than completions of high priority. While the first
 * ring of eager RDMA has messages, one of the next 32 polls. */
static inline void ib_attend(struct ib_poll *p)
{
    p->attend = true;
    p->until = 1;
}
/* Polls in which low priority is looked at each time after something was sent or has come there. In between it is
 * looked at now and then. */
#define IB_LOW_SOON 256u
static inline void ib_expect_low(struct ib_poll *p)
{
    p->low_soon = IB_LOW_SOON;
    ib_attend(p);
}

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

/* ---- progress.c: messages and their completions ---- */
int ib_progress(struct st_btl *btl);
int ib_poll_high(struct ib_module *m);
int ib_poll_low(struct ib_module *m);
int ib_unstash(struct ib_module *m);
/* ---- eager_rdma/ring_recv.c ---- */
int ib_progress_eager(struct st_btl *btl); /* with eager RDMA: the rings first */
/* ---- progress_rest.c ---- */
int ib_progress_rest(struct ib_module *m, int n); /* all else; n: events so far */
int ib_arm(struct st_btl *btl, struct st_btl_wait *w);
void ib_disarm(struct st_btl *btl);
/* ---- async.c ---- */
void ib_async_poll(struct ib_module *m); /* events of the device */

/* ---- report.c ---- */
void ib_count(const struct st_counting *counting, uint64_t *value);
void ib_mem_report(struct st_btl *btl, st_mem_line_fn line, void *arg);
char *ib_describe(struct st_btl *btl, struct st_btl_endpoint *ep);

#endif
