/* btl_sm: messages between processes of one machine through shared memory. */
#include "attach.h"
#include "peer_maps.h"
#include "polling.h"
#include "progress.h"
#include "report.h"
#include "send.h"
#include "single_copy.h"
#include "sm.h"
#include "wake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <strata/sdk/copy.h>

static const struct st_btl_ops ops;
static const struct st_btl_rdma sm_rdma;

static uint32_t sm_round_line(size_t v)
{
    return (uint32_t)((v + SM_LINE - 1) / SM_LINE * SM_LINE);
}

/* All rings of a process together should stay in its caches: each message lies further on in its ring, so a ring is
 * read and written as a whole. Measured with 8 processes on 2 processors: all-to-all of 64 KiB takes 1.7 times as long
 * with 256 KiB a ring as with 64. */
#define RINGS_TOTAL ((size_t)512 << 10)
#define RING_MOST   ((size_t)256 << 10)

static size_t sm_ring_data(const struct sm_params *par, uint32_t n_local)
{
    size_t share = RINGS_TOTAL / (n_local > 1 ? n_local - 1 : 1);

    if (par->ring_data)
        return par->ring_data;
    while (share & (share - 1))
        share &= share - 1; /* down to a power of two */
    return share < RING_MOST ? share : RING_MOST;
}

/* Of a process that knows of n_local processes here and has to expect `late` more. */
static struct sm_geometry sm_geometry_of(const struct sm_params *par, uint32_t n_local, uint32_t late)
{
    struct sm_geometry g = {.n_dir = n_local + n_local / 2 + late,
                            .queue_slots = sm_pow2((uint32_t)par->queue_slots),
                            .n_cells = (uint32_t)par->cells,
                            .cell_data = sm_round_line(par->max_send + ST_BTL_HDR_MAX),
                            .n_rings = (uint32_t)par->rings,
                            .ring_slots = sm_pow2((uint32_t)par->ring_slots),
                            .ring_data = (uint32_t)sm_ring_data(par, n_local)};

    /* Fewer rings than peers: no more than there can be peers. */
    if (g.n_rings > n_local - 1 + late)
        g.n_rings = n_local - 1 + late;
    if (g.ring_data < 3 * g.cell_data)
        g.ring_data = 3 * g.cell_data;
    g.ring_data = sm_pow2(g.ring_data);
    return g;
}

/* From which length on REP MOVSB copies. */
static uint32_t sm_movs_threshold(const struct sm_params *par)
{
    if (par->movs_min < 0)
        return st_copy_shared_least();
    return par->movs_min ? (uint32_t)par->movs_min : UINT32_MAX;
}

/* The user has set limits: a message that they let pass is not asked for, and nothing is learnt. */
static bool sm_limits_are_the_users(const struct sm_params *par)
{
    return par->rdma_min || par->eager_limit != SM_EAGER_LIMIT_KIB << 10 ||
           par->stream_limit != SM_STREAM_LIMIT_KIB << 10;
}

static void sm_attributes(struct sm_module *m)
{
    const struct sm_params *par = m->par;
    struct st_btl *b = &m->btl;

    b->max_send = (uint32_t)par->max_send;
    b->eager_limit = (uint32_t)(par->eager_limit < par->max_send ? par->eager_limit : par->max_send);
    b->pipeline_send = (uint32_t)(par->pipeline_send < par->max_send ? par->pipeline_send : par->max_send);
    b->rdma_pipeline = (size_t)1 << 20;
    b->facts = (struct st_btl_facts){.latency_ns = 100,
                                     .bandwidth_mbs = 15000,
                                     .ask_cost = (uint32_t)par->stream_limit,
                                     .rdma_cost = par->rdma_min ? par->rdma_min : SM_RDMA_MIN,
                                     .split_cost = 128u << 10};
    for (int d = 0; d < SM_DISTANCES; d++)
        m->costs[d].rdma = b->facts.rdma_cost;
    b->facts.fixed = sm_limits_are_the_users(par);
    b->max_overtaking = SM_OVERTAKING;
    b->exclusivity = 1 << 16;
    b->caps = par->single_copy == SM_COPY_OFF ? 0 : ST_BTL_GET | ST_BTL_PUT;
}

/* Waits until peers have read what lies in our cells: with us the way to the segment goes away. */
static void sm_flush(struct sm_module *m)
{
    for (int64_t waited = 0; !sm_cells_idle(m) && waited < m->par->close_timeout_ms * 10; waited++) {
        sm_socket_serve(m);
        usleep(100);
    }
}

static void sm_module_free(struct sm_module *m)
{
    sm_copy_close(m);
    sm_peers_close(m);
    free(m->senders);
    free(m->cell_to);
    sm_rings_close(m);
    sm_card_drop(m);
    sm_segment_destroy(&m->seg);
    free(m);
}

static void sm_close(struct st_btl *btl)
{
    struct sm_module *m = sm_module(btl);

    st_counters_remove(btl->context, &m->counting);
    /* Before the entries are left: who sees that finds this set. */
    atomic_store_explicit(&m->header->closing, 1, memory_order_relaxed);
    for (struct sm_peer *p = m->peers; p; p = p->next) {
        if (p->connected)
            sm_disconnect(&p->ep);
        sm_leave(p);
    }
    sm_flush(m);
    sm_module_free(m);
}

/* Processes of this machine that may come later: when the embedder's rank space is open. */
static uint32_t sm_late_peers(const struct st_rte *rte, const struct sm_params *par)
{
    return rte->size == STRATA_RANKS_OPEN ? (uint32_t)par->late_peers : 0;
}

static int sm_module_make(strata_t *s, const struct st_component *c, const struct sm_params *par, uint32_t n_local,
                          struct sm_module **out)
{
    struct st_rte *rte = st_rte(s);
    struct sm_module *m = aligned_alloc(SM_LINE, (sizeof *m + SM_LINE - 1) / SM_LINE * SM_LINE);
    struct sm_geometry g;
    int rc;

    if (!m)
        return STRATA_ERR_NOMEM;
    memset(m, 0, sizeof *m);
    m->btl.ops = &ops;
    m->btl.rdma = &sm_rdma;
    m->btl.context = s;
    m->btl.component = c;
    m->par = par;
    m->rte = rte;
    m->seg.fd = -1;
    m->listen_fd = m->wake_fd = -1;
    g = sm_geometry_of(par, n_local, sm_late_peers(rte, par));
    rc = sm_segment_create(&g, par->memory_limit, &m->seg);
    if (rc != STRATA_OK) {
        st_reject(s, c, "no shared memory for the segment: %s",
                  errno == EFBIG ? "btl_sm_memory_limit or the limit on file sizes (ulimit -f)" : strerror(errno));
        m->seg.fd = -1;
        goto fail;
    }
    m->header = sm_header(m->seg.base);
    m->header->package = sm_package();
    sm_queue_rx_init(&m->queue, (struct sm_slot *)(void *)(m->seg.base + m->seg.at.queue), g.queue_slots);
    m->dir = (struct sm_dir_entry *)(void *)(m->seg.base + m->seg.at.directory);
    m->n_dir = g.n_dir;
    m->senders = calloc(m->n_dir, sizeof *m->senders);
    m->cell_to = calloc(g.n_cells, sizeof *m->cell_to);
    rc = m->senders && m->cell_to ? sm_rings_open(m) : STRATA_ERR_NOMEM;
    if (rc == STRATA_OK)
        rc = sm_card_make(m);
    if (rc != STRATA_OK) {
        st_reject(s, c, "setting up failed: %s", strata_strerror(rc));
        goto fail;
    }
    sm_attributes(m);
    m->movs_min = sm_movs_threshold(par);
    sm_wake_init();
    *out = m;
    return STRATA_OK;
fail:
    sm_module_free(m);
    return rc;
}

static int sm_open(strata_t *s, const struct st_component *c, const void *config, struct st_btl ***mods, size_t *n)
{
    struct st_rte *rte = st_rte(s);
    struct st_btl **list;
    struct sm_module *m;
    int rc, n_local = 0;

    *mods = NULL;
    *n = 0;
    if (!rte->ops->local_ranks(rte, &n_local) || (n_local < 2 && sm_late_peers(rte, config) == 0)) {
        st_reject(s, c, "no other rank of the job is on this machine");
        return STRATA_OK;
    }
    list = malloc(sizeof(struct st_btl *));
    if (!list)
        return STRATA_ERR_NOMEM;
    rc = sm_module_make(s, c, config, (uint32_t)n_local, &m);
    if (rc != STRATA_OK) {
        free(list);
        return rc;
    }
    m->counting = (struct st_counting){.component = c, .count = sm_count};
    st_counters_add(s, &m->counting);
    list[0] = &m->btl;
    *mods = list;
    *n = 1;
    return STRATA_OK;
}

static const struct st_btl_ops ops = {
    .reach = sm_reach,
    .connect = sm_connect,
    .disconnect = sm_disconnect,
    .send = sm_send,
    .send_payload = sm_send_payload,
    .progress = sm_progress,
    .arm = sm_arm,
    .disarm = sm_disarm,
    .mem_report = sm_mem_report,
    .describe = sm_describe,
    .facts = sm_facts_of,
    .close = sm_close,
};
static const struct st_btl_rdma sm_rdma = {
    .get = sm_get, .put = sm_put, .put_notify = sm_put_notify, .map = sm_map_lasting, .reg = sm_reg};

static const struct st_help_topic help[] = {
    {"no shared memory",
     "btl_sm could not reserve %lu bytes of shared memory: %s. Free memory on this machine, raise the "
     "memory limit of the job or btl_sm_memory_limit, or leave sm out (--mca btl ^sm)."},
};

static const struct st_btl_component_ops component_ops = {.open = sm_open};

ST_COMPONENT(btl, sm) = {
    ST_COMPONENT_HEAD("btl", "sm", "0.1.0", "messages between processes of one machine through shared memory"),
    .ops_size = sizeof(struct st_btl_component_ops),
    .priority = 50,
    .params = sm_param_rows,
    .n_params = SM_N_PARAMS,
    .config_size = sizeof(struct sm_params),
    .help = help,
    .n_help = sizeof help / sizeof help[0],
    .ops = &component_ops,
    .counters = sm_counters,
    .n_counters = SM_N_COUNTERS,
};
