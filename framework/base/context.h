/* The context behind strata_t: what one rank's Strata consists of. */
#ifndef ST_BASE_CONTEXT_H
#define ST_BASE_CONTEXT_H

#include <stdatomic.h>

#include <strata/sdk/pml.h>
#include "framework/base/account.h"
#include "framework/mca/mca.h"

/* Parameters mca_base_*, filled by framework/mca. */
struct st_base_config {
    int64_t verbose; /* 0 errors .. 3 debug */
    int64_t spin;    /* polls before yielding; -1: by oversubscription */
    int64_t yield;   /* yields before sleeping; -1: by oversubscription */
    int64_t sleep_max_us;
    size_t mem_spare;
    size_t channel_direct_min;
    int64_t fence_after_failure_ms; /* 0: for ever */
    int tune;                       /* enum st_tune */
    int report_transports;          /* enum st_report_format */
    const char *report_folder;      /* framework/base/job_report.h; empty: none */
    bool account_memory;
    bool live;        /* framework/base/live.h */
    const char *node; /* framework/rte/rte_nodes.h; empty: a machine is one node */
};

enum st_report_format { ST_REPORT_OFF, ST_REPORT_TEXT, ST_REPORT_JSON };

struct st_btl_filled;
struct colls;
struct channels;

struct strata {
    struct st_mca *mca;
    const struct st_base_config *base;
    strata_thread_level_t thread_level;
    const strata_host_t *host; /* copy of the embedder's table or NULL */
    struct st_rte *rte;
    struct st_memory_source *memory;             /* NULL: nothing tells when memory goes away, or nobody has asked */
    struct st_rcache *rcache;                    /* NULL until st_rcache is called */
    struct st_rcache_ear *ear;                   /* framework/rcache/rcache_select.c: what is told, or NULL */
    const struct st_component *rcache_component; /* that made it */
    struct st_mpool *mpool;                      /* NULL: not asked for yet, or no component is installed */
    struct st_counting *counting;                /* framework/base/counters.c: who counts */
    const struct st_component *mpool_component;  /* that made it */
    struct {
        uint64_t n, bytes, bytes_max; /* what users have of it */
        struct st_mem_block *spare;   /* what they have given back, last first */
        size_t spare_bytes;
        uint64_t used; /* bit per module: it has an endpoint */
    } mem;             /* framework/mpool/mem_alloc.c */
    void *mem_blocks;  /* framework/mpool/mem_alloc.c: tree of the user's */
    struct st_btl **btls;
    size_t n_btls;
    struct st_btl_filled **btl_filled; /* n_btls: tables with defaults, or NULL; framework/btl/btl_defaults.c */
    struct st_bml *bml;
    struct st_worker *worker;
    struct st_pml *pml;
    struct colls *coll;        /* framework/coll/group.h, or NULL: no component is installed */
    struct channels *channels; /* channel/client.c */
    struct st_buffer *buffer;  /* of buffered sends, or NULL: framework/pml/buffer.c */
    strata_comm_t *world;
    uint32_t spin_limit, yield_limit; /* resolved for struct st_idle */
    struct st_run_queue *run_queue;   /* framework/base/run_queue.h, or NULL: waits go by the limits alone */
    _Atomic(uint32_t) missed;         /* calls in a row that did not wait and found nothing; framework/pml/poll.h */
    _Atomic(bool) fence_given_up;     /* framework/base/fence.c: somebody never came */
    char *error;                      /* during strata_init: why it fails, st_fail writes it; else NULL */
    size_t error_size;
    struct st_job_report *job_report; /* framework/base/job_report.c, or NULL */
    struct st_live *live;             /* framework/base/live.c, or NULL */
    strata_host_t host_copy;
    bool memory_chosen, rcache_needed;
    bool mpool_by_name, keep_memory;
    ST_ATOMIC(bool) mpool_settled; /* the mpool is selected, or there is none */
    bool mca_lent;                 /* mca outlives the context: st_context_try */
    struct st_account account;
};

/* Says why strata_init fails; the first text wins. Returns rc. */
int st_fail(strata_t *s, int rc, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Makes a context over a component system that the caller keeps, and ends it again: what became of each component is
 * then recorded in `mca`, whether it worked or not. In between `look`, unless NULL, is shown it. Returns what
 * strata_init would, with the reason in err. */
int st_context_try(const strata_config_t *config, struct st_mca *mca, void (*look)(void *arg, strata_t *s), void *arg,
                   char *err, size_t err_size);

/* The context's lock; nothing before there is a worker, when one thread is inside. */
static inline void st_context_lock(strata_t *s)
{
    if (s->worker)
        st_worker_lock(s->worker);
}
static inline void st_context_unlock(strata_t *s)
{
    if (s->worker)
        st_worker_unlock(s->worker);
}

#endif
