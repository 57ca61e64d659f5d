/* Connecting by datagrams: an unreliable queue pair with a few buffers (paper, section 7.1). Lost messages are repeated
 * by their senders. So a queue pair that has failed is reset, with all that it held, and goes on under the same number,
 * which peers know. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/account.h>
#include <strata/sdk/clock.h>
#include "module.h"

#define GRH      40u
#define SLOT     256u  /* bytes of a buffer */
#define SPILL    4096u /* bytes that no datagram exceeds: the largest MTU */
#define RECEIVES 128u
#define SENDS    32u
#define QKEY     0x53545241u
#define RESETS   3u /* one after another: a kernel may be at work on an error, and then write its state over ours */
#define LOOK_NS  100000000u /* after which a queue pair that was brought back is looked at once more, or tried again */
_Static_assert(sizeof(struct ib_conn) + GRH <= SLOT, "a message fits its buffer");

/* An address handle. The device may look for it when it sends, not when that is asked for, so it stays until its owner
 * needs it no more and all datagrams by it have ended. */
struct ib_handle {
    struct st_node node;
    struct ibv_ah *ah;
    uint32_t under_way; /* datagrams */
    bool owned;         /* by the making of a connection */
};
/* The content of a buffer that is being sent. */
struct datagram {
    struct ib_conn said;
    struct ib_handle *by;
};
_Static_assert(sizeof(struct datagram) <= SLOT, "it fits its buffer");

struct ib_datagrams {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ib_pool pool, spill_pool;
    struct ib_buffer *spill; /* takes the excess of all datagrams: one that did not fit would end the queue pair */
    struct ib_buffer *free_sends;
    struct st_node handles;
    uint64_t look_at;    /* ns, when to look at the state of the queue pair; 0: not at all */
    const char *trouble; /* last reason of a failure */
    uint8_t round;       /* how often it was brought back */
    bool up, failed, said;
};

/* A work request id is the address of a buffer with three low bits: the lowest says that it is a send, as with other
 * queue pairs, the other two count resets. Completions of requests from before a reset are ignored: their buffers are
 * in use again. */
#define ROUNDS 3u
_Static_assert(_Alignof(struct ib_buffer) >= 8, "three bits of a buffer's address are 0");
static uint64_t ud_wr_id(const struct ib_datagrams *d, const struct ib_buffer *b, bool send)
{
    return (uintptr_t)b | (uint64_t)(d->round & ROUNDS) << 1 | send;
}
static bool ud_is_old(const struct ib_datagrams *d, uint64_t wr_id)
{
    return (wr_id >> 1 & ROUNDS) != (d->round & ROUNDS);
}
static struct ib_buffer *ud_buffer(uint64_t wr_id)
{
    return (struct ib_buffer *)(uintptr_t)(wr_id & ~(uint64_t)7);
}

/* ---- address handles ---- */

static void handle_destroy(struct ib_handle *h)
{
    st_list_remove(&h->node);
    (void)ibv_destroy_ah(h->ah);
    free(h);
}

static int handle_make(struct ib_module *m, const struct ib_card *card, struct ib_handle **out)
{
    struct ib_datagrams *d = m->oob.state[IB_METHOD_UD];
    struct ib_handle *h = calloc(1, sizeof *h);
    struct ibv_ah_attr a = ib_device_path(&m->dev, card->gid, card->lid);

    if (!h)
        return STRATA_ERR_AGAIN;
    h->ah = ibv_create_ah(m->dev.pd, &a);
    if (!h->ah) {
        free(h);
        return STRATA_ERR_SYSTEM;
    }
    h->owned = true;
    st_list_append(&d->handles, &h->node);
    *out = h;
    return STRATA_OK;
}

/* No datagram is in flight any more. */
static void handles_all_ended(struct ib_datagrams *d)
{
    for (struct st_node *n = d->handles.next, *next; n != &d->handles; n = next) {
        struct ib_handle *h = ST_CONTAINER(n, struct ib_handle, node);
        next = n->next;
        h->under_way = 0;
        if (!h->owned)
            handle_destroy(h);
    }
}

/* ---- the queue pair ---- */

static int ud_post_receive(struct ib_datagrams *d, struct ib_buffer *b)
{
    struct ibv_sge sge[2] = {{(uintptr_t)b->data, SLOT, b->lkey}, {(uintptr_t)d->spill->data, SPILL, d->spill->lkey}};
    struct ibv_recv_wr wr = {.wr_id = ud_wr_id(d, b, false), .sg_list = sge, .num_sge = 2}, *bad;

    return ibv_post_recv(d->qp, &wr, &bad);
}

static int ud_bring_up(struct ib_module *m, struct ib_datagrams *d)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
                            .pkey_index = (uint16_t)m->dev.par->pkey_index,
                            .port_num = m->dev.port,
                            .qkey = QKEY};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR}, rts = {.qp_state = IBV_QPS_RTS, .sq_psn = 1};

    if (ibv_modify_qp(d->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) != 0 ||
        ibv_modify_qp(d->qp, &rtr, IBV_QP_STATE) != 0 || ibv_modify_qp(d->qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN) != 0)
        return STRATA_ERR_SYSTEM;
    for (uint32_t i = 0; i < RECEIVES; i++)
        if (ud_post_receive(d, ib_buffer_get(&d->pool)) != 0)
            return STRATA_ERR_SYSTEM;
    d->free_sends = d->pool.free;
    d->up = true;
    return STRATA_OK;
}

static enum ibv_qp_state ud_state(const struct ib_datagrams *d)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_UNKNOWN};
    struct ibv_qp_init_attr init;

    return ibv_query_qp(d->qp, &a, IBV_QP_STATE, &init) == 0 ? a.qp_state : IBV_QPS_UNKNOWN;
}

static bool ud_reset(const struct ib_datagrams *d)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RESET};

    for (uint32_t i = 0; i < RESETS; i++)
        if (ibv_modify_qp(d->qp, &a, IBV_QP_STATE) == 0 && ud_state(d) == IBV_QPS_RESET)
            return true;
    return false;
}

/* All that it held is lost, and every buffer is ours again. */
static void ud_bring_back(struct ib_module *m, struct ib_datagrams *d)
{
    struct ibv_wc wc[8];

    d->up = false;
    d->look_at = st_now_ns() + LOOK_NS;
    if (m->dev.dead || !ud_reset(d))
        return;
    /* The CQ needs room for those to come. */
    for (uint32_t i = 0; i < RECEIVES + SENDS && ibv_poll_cq(d->cq, 8, wc) > 0; i++)
        ;
    d->round++;
    ib_pool_all_back(&d->pool);
    handles_all_ended(d);
    (void)ud_bring_up(m, d);
}

/* After a completion with an error, an event, or a while after a reset. */
static void ud_look(struct ib_module *m, struct ib_datagrams *d)
{
    if (!d->failed && d->up && ud_state(d) == IBV_QPS_RTS) {
        d->look_at = 0;
        return;
    }
    if (d->up)
        st_log(m->btl.context, d->said ? ST_LOG_INFO : ST_LOG_WARN, "btl_openib",
               "%s: the queue pair for datagrams has failed (%s) and is made ready again", m->dev.name,
               d->trouble ? d->trouble : "its state says so");
    d->said = true;
    d->failed = false;
    d->trouble = NULL;
    ud_bring_back(m, d);
}

static void ud_failed(struct ib_module *m, uint32_t qpn, const char *why)
{
    struct ib_datagrams *d = m->oob.state[IB_METHOD_UD];

    if (d->qp->qp_num != qpn)
        return;
    d->trouble = why;
    d->look_at = 1;
}

/* ---- life ---- */

static int ud_open_qp(struct ib_module *m)
{
    struct ib_datagrams *d = m->oob.state[IB_METHOD_UD] = calloc(1, sizeof *d);
    struct ibv_qp_init_attr a = {
        .qp_type = IBV_QPT_UD,
        .cap = {.max_send_wr = SENDS, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 2}};
    struct st_account_mark mark;
    int rc;

    if (!d)
        return STRATA_ERR_NOMEM;
    st_list_init(&d->handles);
    ib_pool_init(&d->pool, &m->dev, SLOT, RECEIVES + SENDS, 0);
    ib_pool_init(&d->spill_pool, &m->dev, SPILL, 1, 0);
    st_account_enter(m->btl.context, ST_ACCOUNT_HEAP, &mark);
    d->cq = ibv_create_cq(m->dev.verbs, (int)(RECEIVES + SENDS), NULL, m->dev.channel, 0);
    a.send_cq = a.recv_cq = d->cq;
    d->qp = d->cq ? ibv_create_qp(m->dev.pd, &a) : NULL;
    st_account_leave(m->btl.context, &mark);
    if (!d->qp) /* of another error than ENOMEM: the device has no datagrams */
        return errno == ENOMEM ? STRATA_ERR_NOMEM : STRATA_ERR_UNSUPPORTED;
    rc = ib_pool_grow(&d->pool);
    if (rc == STRATA_OK)
        rc = ib_pool_grow(&d->spill_pool);
    if (rc == STRATA_OK) {
        d->spill = ib_buffer_get(&d->spill_pool);
        rc = ud_bring_up(m, d);
    }
    if (rc == STRATA_OK)
        m->card.qpn = d->qp->qp_num;
    return rc;
}

static int ud_open(struct ib_module *m, char *why, size_t why_size)
{
    int rc = ud_open_qp(m);

    if (rc != STRATA_OK)
        ib_init_error(&m->dev, IB_QPS, "queue pair for datagrams, with its buffers,", why, why_size);
    return rc;
}

static void ud_close(struct ib_module *m)
{
    struct ib_datagrams *d = m->oob.state[IB_METHOD_UD];

    if (!d)
        return;
    if (d->qp)
        (void)ibv_destroy_qp(d->qp);
    handles_all_ended(d);
    if (d->cq)
        (void)ibv_destroy_cq(d->cq);
    ib_pool_destroy(&d->pool);
    ib_pool_destroy(&d->spill_pool);
    free(d);
    m->oob.state[IB_METHOD_UD] = NULL;
}

static size_t ud_bytes(const struct ib_module *m)
{
    const struct ib_datagrams *d = m->oob.state[IB_METHOD_UD];

    return sizeof *d + ib_pool_bytes(&d->pool) + ib_pool_bytes(&d->spill_pool);
}

/* ---- messages ---- */

static int ud_send(struct ib_module *m, struct ib_wire_up *w, const struct ib_conn *c)
{
    struct ib_datagrams *d = m->oob.state[IB_METHOD_UD];
    struct ib_buffer *b = d->free_sends;
    int rc = w->handle ? STRATA_OK : handle_make(m, &w->card, &w->handle);
    struct ibv_sge sge;
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;

    if (rc != STRATA_OK)
        return rc;
    if (!b || !d->up)
        return STRATA_ERR_AGAIN;
    *(struct datagram *)(void *)b->data = (struct datagram){*c, w->handle};
    sge = (struct ibv_sge){(uintptr_t)b->data, sizeof *c, b->lkey};
    wr.wr_id = ud_wr_id(d, b, true);
    wr.wr.ud.ah = w->handle->ah;
    wr.wr.ud.remote_qpn = w->card.qpn;
    wr.wr.ud.remote_qkey = QKEY;
    if (ibv_post_send(d->qp, &wr, &bad) != 0)
        return STRATA_ERR_AGAIN;
    d->free_sends = b->next;
    w->handle->under_way++;
    return STRATA_OK;
}

static void ud_sent(struct ib_datagrams *d, struct ib_buffer *b)
{
    struct ib_handle *h = ((struct datagram *)(void *)b->data)->by;

    if (--h->under_way == 0 && !h->owned)
        handle_destroy(h);
    b->next = d->free_sends;
    d->free_sends = b;
}

static void ud_received(struct ib_module *m, struct ib_buffer *b, const struct ibv_wc *wc)
{
    struct ib_conn c;

    if (wc->status != IBV_WC_SUCCESS) /* posted again when the queue pair is brought back */
        return;
    if (wc->byte_len == GRH + sizeof c) {
        memcpy(&c, b->data + GRH, sizeof c);
        (void)m->oob.take(m, &ib_method_ud, &c);
    } else {
        m->count.refused++;
    }
    (void)ud_post_receive(m->oob.state[IB_METHOD_UD], b);
}

static int ud_poll(struct ib_module *m)
{
    struct ib_datagrams *d = m->oob.state[IB_METHOD_UD];
    struct ibv_wc wc[8];
    int n = ibv_poll_cq(d->cq, 8, wc);

    for (int i = 0; i < n; i++) {
        if (ud_is_old(d, wc[i].wr_id))
            continue;
        if (wc[i].status != IBV_WC_SUCCESS && !d->failed) {
            d->failed = true;
            d->trouble = ibv_wc_status_str(wc[i].status);
        }
        if (ib_is_send(wc[i].wr_id))
            ud_sent(d, ud_buffer(wc[i].wr_id));
        else
            ud_received(m, ud_buffer(wc[i].wr_id), &wc[i]);
    }
    if (d->failed || (d->look_at && st_now_ns() >= d->look_at))
        ud_look(m, d);
    return n > 0 ? n : 0;
}

static int ud_arm(struct ib_module *m)
{
    const struct ib_datagrams *d = m->oob.state[IB_METHOD_UD];

    return ibv_req_notify_cq(d->cq, 0) == 0 ? STRATA_OK : STRATA_ERR_AGAIN;
}

static void ud_end(struct ib_module *m, struct ib_wire_up *w)
{
    struct ib_handle *h = w->handle;

    (void)m;
    w->handle = NULL;
    if (!h)
        return;
    h->owned = false;
    if (h->under_way == 0)
        handle_destroy(h);
}

const struct ib_method ib_method_ud = {.name = "ud",
                                       .mask = 0,
                                       .open = ud_open,
                                       .close = ud_close,
                                       .send = ud_send,
                                       .poll = ud_poll,
                                       .arm = ud_arm,
                                       .end = ud_end,
                                       .failed = ud_failed,
                                       .bytes = ud_bytes};
