/* A module's life, and what it says of itself to the layer above. */
#include "openib.h"
#include "rails.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Where RDMA begins to pay, measured on softhca (docs/design/btl_openib.md): when registrations are kept, and when both
 * sides register for each message. */
#define RDMA_MIN_KEPT      (32u << 10)
#define RDMA_MIN_EACH_TIME (512u << 10)

static const struct st_btl_ops ops = {
    .reach = ib_reach,
    .connect = ib_connect,
    .disconnect = ib_disconnect,
    .send = ib_send,
    .send_payload = ib_send_payload,
    .send_zcopy = ib_send_zcopy,
    .batch = ib_batch,
    .get = ib_get,
    .put = ib_put,
    .reg = ib_reg,
    .dereg = ib_dereg,
    .progress = ib_progress,
    .arm = ib_arm,
    .disarm = ib_disarm,
    .mem_report = ib_mem_report,
    .describe = ib_describe,
    .close = ib_close,
};

static void attributes(struct ib_module *m)
{
    const struct ib_params *par = m->par;
    struct st_btl *b = &m->btl;
    uint32_t room = (uint32_t)sizeof(struct ib_head) + ST_BTL_HDR_MAX;
    uint32_t high = m->spec[IB_HIGH].size - room, low = m->spec[IB_LOW].size - room;
    bool software = ib_is_software(m->device->device);
    bool ethernet = m->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    size_t stream;

    b->max_send = low;
    b->eager_limit = !par->eager_limit ? high : par->eager_limit < low ? (uint32_t)par->eager_limit : low;
    b->pipeline_send = low;
    stream = ib_stream_limit(par->stream_limit, software, ethernet);
    b->stream_limit = stream > b->eager_limit ? (uint32_t)stream : b->eager_limit;
    b->zcopy_min = st_rcache_keeps(b->context) ? (uint32_t)par->zcopy_min : 0;
    b->rdma_min = par->rdma_min ? par->rdma_min : st_rcache_keeps(b->context) ? RDMA_MIN_KEPT : RDMA_MIN_EACH_TIME;
    m->cuts_packets = !software || ethernet;
    m->max_inline = ib_max_inline(par->max_inline, software, ethernet);
    b->split_min = ib_split_min(par->split_min, software, ethernet);
    b->rdma_pipeline = par->rdma_pipeline;
    b->latency_ns = 1500 + 100 * (uint32_t)(m->distance > 0 ? m->distance : 0);
    b->bandwidth_mbs = ib_bandwidth(&m->port_attr);
    b->exclusivity = 1 << 10;
    b->caps =
        ST_BTL_GET | ST_BTL_PUT | ST_BTL_NEEDS_REG | ST_BTL_MENDS | (st_rcache_keeps(b->context) ? ST_BTL_REG_KEPT : 0);
}

static uint64_t hash_text(const char *p)
{
    uint64_t h = 0xcbf29ce484222325ull; /* FNV-1a */

    while (*p)
        h = (h ^ (uint8_t)*p++) * 0x100000001b3ull;
    return h;
}

static uint16_t partition(const struct ib_module *m)
{
    __be16 key = 0;

    return ibv_query_pkey(m->device, m->port, (int)m->par->pkey_index, &key) == 0 ? be16toh(key) : 0;
}

/* All but what the methods of connecting have filled in. */
static int fill_card(struct ib_module *m)
{
    struct ib_card *c = &m->card;

    c->version = IB_WIRE_VERSION;
    c->job = hash_text(m->rte->job_id);
    memcpy(c->gid, m->gid.raw, sizeof c->gid);
    c->lid = m->port_attr.lid;
    c->pkey = partition(m);
    c->ethernet = m->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    for (int i = 0; i < IB_PRIORITIES; i++)
        c->size[i] = m->spec[i].size;
    c->place = (uint8_t)m->place;
    snprintf(c->device, sizeof c->device, "%.31s", m->name);
    return getrandom(&c->key, sizeof c->key, 0) == sizeof c->key ? STRATA_OK : STRATA_ERR_SYSTEM;
}

int ib_module_publish(struct ib_module *m, uint64_t rails)
{
    char key[32];

    m->rails = m->card.rails = rails;
    m->index = ib_rail_number(rails, m->place);
    snprintf(key, sizeof key, IB_CARD_KEY ".%u", m->index);
    return m->rte->ops->put(m->rte, key, &m->card, sizeof m->card);
}

static void free_all(struct ib_module *m)
{
    for (struct ib_peer *p = m->all, *next; p; p = next) {
        next = p->next;
        ib_wire_up_end(p);
        ib_qps_destroy(p);
        free(p->moved);
        free(p);
    }
    m->all = NULL;
    ib_methods_close(m);
    ib_queues_close(m);
    ib_qp_map_destroy(&m->map);
    st_rank_table_destroy(&m->peers);
    st_slab_destroy(&m->rdmas);
    st_slab_destroy(&m->zcopies);
    ib_pool_destroy(&m->heads);
    ib_registrations_close(m);
    if (m->channel)
        (void)ibv_destroy_comp_channel(m->channel);
    if (m->pd)
        (void)ibv_dealloc_pd(m->pd);
}

static int set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 ? STRATA_OK : STRATA_ERR_SYSTEM;
}

static int fill(struct ib_module *m, char *why, size_t why_size)
{
    uint32_t ranks = m->rte->size > 0 ? (uint32_t)m->rte->size : 1u << 30;
    int rc;

    if (!st_mpool(m->btl.context)) {
        snprintf(why, why_size, "no component of mpool is installed or admitted by the list of components");
        return STRATA_ERR_UNSUPPORTED;
    }
    m->pd = ibv_alloc_pd(m->device);
    m->channel = ibv_create_comp_channel(m->device);
    if (!m->pd || !m->channel) {
        ib_explain(m, IB_PDS, "protection domain or completion channel", why, why_size);
        return STRATA_ERR_SYSTEM;
    }
    rc = set_nonblocking(m->channel->fd);
    if (rc == STRATA_OK)
        rc = set_nonblocking(m->device->async_fd);
    if (rc == STRATA_OK)
        rc = st_rank_table_init(&m->peers, ranks);
    if (rc == STRATA_OK)
        rc = st_slab_init(&m->rdmas, sizeof(struct ib_rdma), 16, 32, 0);
    if (rc == STRATA_OK)
        rc = ib_zcopy_open(m);
    if (rc == STRATA_OK)
        rc = ib_qp_map_init(&m->map);
    if (rc == STRATA_OK)
        rc = ib_registrations_open(m);
    if (rc == STRATA_OK)
        rc = ib_queues_open(m, why, why_size);
    return rc == STRATA_OK ? ib_methods_open(m, why, why_size) : rc;
}

int ib_module_open(struct ib_module *m, strata_t *s, const struct st_component *c, char *why, size_t why_size)
{
    int rc;

    m->btl.ops = &ops;
    m->btl.context = s;
    m->btl.component = c;
    m->rte = st_rte(s);
    ib_brief_init(&m->brief, 0);
    m->until = 1;
    m->frag.btl = &m->btl;
    m->wait_fd = -1;
    st_list_init(&m->wiring);
    st_list_init(&m->rdma_waiting);
    if (!ib_queue_spec_parse(m->par->receive_queues, m->spec, why, why_size) || !ib_queues_fit(m, why, why_size))
        return STRATA_ERR_PARAM;
    rc = fill(m, why, why_size);
    if (rc == STRATA_OK) {
        attributes(m);
        rc = fill_card(m);
    }
    if (rc != STRATA_OK) {
        free_all(m);
        return rc;
    }
    m->counting = (struct st_counting){.component = c, .count = ib_count};
    st_counters_add(s, &m->counting);
    return rc;
}

/* Whether something that was sent has not reached the memory of a peer that is there to read it, and that we know how
 * to reach. */
static bool sending(const struct ib_module *m)
{
    for (const struct ib_peer *p = m->all; p; p = p->next) {
        if (p->left || p->up || (p->state != IB_UP && !ib_is_closing(p->state)))
            continue;
        for (int i = 0; i < IB_PRIORITIES; i++)
            if (p->q[i].posted != p->q[i].done)
                return true;
    }
    return false;
}

/* A connection that the layer above has given up is there as long as both ends have not agreed. Who has consented knows
 * that it may go. */
static bool is_to_be_told(const struct ib_peer *p)
{
    return (p->state == IB_UP || (p->state >= IB_DRAINING && p->state <= IB_CONSENTING)) && !p->left && !p->up &&
           !p->error;
}

static void dropped(void *arg, const struct st_frag *frag)
{
    (void)arg;
    (void)frag;
}

void ib_close(struct st_btl *btl)
{
    struct ib_module *m = ib_module(btl);
    uint64_t end = st_now_ns() + (uint64_t)m->par->close_timeout_ms * 1000000u;

    m->closing = true;
    st_counters_remove(btl->context, &m->counting);
    for (int i = 0; i < ST_AM_COUNT; i++) /* whoever took messages may have gone */
        btl->am[i].fn = dropped;
    /* Those that have left already are not waited for. */
    while (ib_progress(btl) > 0 && st_now_ns() < end)
        ;
    /* Signalled: when it has arrived, so has all before it. */
    for (struct ib_peer *p = m->all; p; p = p->next)
        while (is_to_be_told(p) && ib_send_control(p, IB_CONTROL_BYE) == STRATA_ERR_AGAIN && st_now_ns() < end)
            (void)ib_progress(btl);
    while (sending(m) && st_now_ns() < end)
        (void)ib_progress(btl);
    free_all(m);
    ib_port_close(m);
}
