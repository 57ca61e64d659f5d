/* Two modules with rings of eager RDMA for each other: for ring_test and ring_grant_test. Messages are numbered, and
 * checked when they arrive. */
#ifndef RING_RIG_H
#define RING_RIG_H

#include "ring_sides.h"

static enum st_am client_of(uint32_t i)
{
    return i % 9 < odd_clients ? ST_AM_STREAM : ST_AM_PML;
}
/* Bytes of message i; its header is as long as most in three of four. */
static uint32_t bytes_of(uint32_t i)
{
    return i % 5 < 3 ? i % (IB_LINE_DATA + 1) : i * 7 % 1000;
}
static uint32_t header_of(uint32_t i)
{
    return i % 4 ? IB_USUAL_HDR : 8 + i % 24;
}

struct numbered {
    char hdr[32], data[1024];
};

static void make_number(uint32_t i, struct numbered *m)
{
    memset(m, (int)(i & 0xff), sizeof *m);
    memcpy(m->hdr, &i, sizeof i);
}

static int send_number(struct side *s, uint32_t i)
{
    struct numbered m;

    if (s->p->ring_out && !s->p->ring_out->staging.mr)
        s->p->ring_out->staging = (struct ib_ring_memory){
            .piece = {.fd = -1, .memory = s->staging, .length = sizeof s->staging}, .mr = &s->mr};
    make_number(i, &m);
    return (beside ? ib_send : ib_send_eager)(&s->p->ep, client_of(i), m.hdr, header_of(i), m.data, bytes_of(i));
}

static void deliver(void *arg, const struct st_frag *f)
{
    const struct client *client = arg;
    struct side *s = client->side;
    uint32_t i;
    char want[1024];

    memcpy(&i, f->hdr, sizeof i);
    HOLDS(i == s->got);
    HOLDS(client->am == client_of(i));
    HOLDS(f->hdr_len == header_of(i));
    HOLDS(f->len == bytes_of(i));
    HOLDS(f->rank == (s == side ? 1 : 0));
    if (s->answers && any(3) == 0)
        s->answered += send_number(s, s->answered) == STRATA_OK;
    if (s->looks && any(3) == 0)
        ib_reclaim(&s->m);
    memset(want, (int)(i & 0xff), sizeof want);
    HOLDS(memcmp(f->data, want, f->len) == 0);
    HOLDS(memcmp((const char *)f->hdr + sizeof i, want, f->hdr_len - sizeof i) == 0);
    s->got++;
}

static void open_side(struct side *s, uint32_t begin, uint8_t first)
{
    static const struct st_rcache_ops ops = {.apply = apply_nothing};
    int me = s == &side[1];
    struct ib_module *m = &s->m;

    memset(s, 0, sizeof *s);
    s->device.ops = (struct ibv_context_ops){.post_send = post, .poll_cq = poll_cq, .post_srq_recv = post_srq_recv};
    s->srq.context = &s->device;
    s->rte = (struct st_rte){.rank = me, .size = 2};
    s->cache.ops = &ops;
    m->rte = &s->rte;
    m->registrar.cache = &s->cache;
    s->device.async_fd = -1;
    m->dev.verbs = &s->device;
    m->dev.par = &params;
    m->spec[IB_HIGH].size = m->spec[IB_LOW].size = SIZE;
    m->qps.n_peers = 1;
    m->poll.hot = true;
    m->poll.until = 32;
    m->poll.frag.btl = &m->btl;
    st_list_init(&m->rdma.waiting);
    st_list_init(&m->conns.pending);
    ib_brief_init(&m->brief, INLINE);
    ck_assert_int_eq(ib_qp_map_init(&m->qps.map), STRATA_OK);
    for (int i = 0; i < ST_AM_COUNT; i++) {
        m->btl.am[i].fn = deliver;
        s->clients[i] = (struct client){s, (enum st_am)i};
        m->btl.am[i].arg = &s->clients[i];
    }
    s->p = calloc(1, sizeof *s->p);
    s->p->ep = (struct st_btl_endpoint){.btl = &m->btl, .rank = !me};
    s->p->state = IB_UP;
    s->p->usual = true;
    m->peers.all = s->p;
    m->peers.n = 1;
    ck_assert_int_eq(st_rank_table_init(&m->peers.table, 2), STRATA_OK);
    ck_assert_int_eq(st_rank_table_set(&m->peers.table, (uint32_t)!me, s->p), STRATA_OK);
    for (int i = 0; i < IB_PRIORITIES; i++) {
        s->cq[i].context = s->qp[i].context = &s->device;
        m->q[i] = (struct ib_queue){.cq = &s->cq[i],
                                    .srq = &s->srq,
                                    .spec = &spec,
                                    .posted = ARRIVALS,
                                    .target = ARRIVALS,
                                    .batch = 100,
                                    .priority = (uint8_t)i,
                                    .read = true};
        s->p->q[i] = (struct ib_qp){.qp = &s->qp[i],
                                    .peer = s->p,
                                    .priority = (uint8_t)i,
                                    .credits = CREDITS,
                                    .most_credits = CREDITS,
                                    .window = 3 * CREDITS / 4,
                                    .depth = DEPTH,
                                    .every = DEPTH / 4 - 1,
                                    .mask = DEPTH - 1,
                                    .posted = begin,
                                    .done = begin,
                                    .received = begin,
                                    .packet = IB_NO_PACKETS,
                                    .number = 7u + (uint32_t)i + 2 * (uint32_t)me};
        s->qp[i].qp_num = s->p->q[i].number;
        s->p->q[i].sent = calloc(DEPTH, sizeof *s->p->q[i].sent);
        ck_assert_int_eq(ib_qp_map_add(&m->qps.map, &s->p->q[i]), STRATA_OK);
    }
    for (uint32_t i = 0; i < DEPTH; i++) {
        s->out[i].data = s->out_data[i];
        ib_buffer_put(&m->q[IB_HIGH].sends, &s->out[i]);
    }
    ck_assert_int_eq(ib_eager_open(m), STRATA_OK);
    m->eager.rings[0].first = first;
    m->eager.rings[0].memory =
        (struct ib_ring_memory){.piece = {.fd = -1, .memory = s->ring, .length = sizeof s->ring}, .mr = &s->mr};
}

static void close_side(struct side *s)
{
    for (int i = 0; i < IB_PRIORITIES; i++)
        free(s->p->q[i].sent);
    s->m.eager.rings[0].memory.mr = NULL;
    ib_eager_close(&s->m);
    free(s->p->ring_out);
    free(s->p);
    st_rank_table_destroy(&s->m.peers.table);
    ib_qp_map_destroy(&s->m.qps.map);
}

static void open_both(uint32_t begin, int detect, int order, uint8_t first)
{
    seed = begin + (uint32_t)detect;
    refuse = 0;
    odd_clients = 1;
    beside = false;
    params = (struct ib_params){.eager_rdma = IB_EAGER_ON,
                                .eager_rdma_detect = detect,
                                .eager_rdma_peers = 1,
                                .eager_rdma_slots = SLOTS,
                                .eager_rdma_slot = SLOT,
                                .eager_rdma_span = SPAN,
                                .eager_rdma_after = 4,
                                .eager_rdma_window = 64,
                                .eager_rdma_order = order,
                                .eager_rdma_lively = 1,
                                .coalesce_at = 8};
    open_side(&side[0], begin, first);
    open_side(&side[1], begin, first);
}

static void close_both(void)
{
    close_side(&side[0]);
    close_side(&side[1]);
}

static void progress(struct side *s)
{
    /* The staging memory is the side's own, and is not released after a farewell. */
    if (s->p->ring_out && s->p->ring_out->left)
        s->p->ring_out->staging.mr = NULL;
    (void)ib_progress_eager(&s->m.btl);
}

#endif
