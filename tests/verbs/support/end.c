#include "support/end.h"
#include "support/require.h"

static void defaults(struct end_options *o)
{
    int all = ACCESS_ALL;
    if (!o->type)
        o->type = IBV_QPT_RC;
    if (o->type == IBV_QPT_UC)
        all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    o->send_wr = o->send_wr ? o->send_wr : 64;
    o->recv_wr = o->recv_wr ? o->recv_wr : 64;
    o->send_sge = o->send_sge ? o->send_sge : 4;
    o->recv_sge = o->recv_sge ? o->recv_sge : 4;
    o->memory = o->memory ? o->memory : 65536;
    o->mr_access = o->mr_access ? o->mr_access : ACCESS_ALL;
    o->qp_access = o->qp_access == NO_ACCESS ? 0 : o->qp_access ? o->qp_access : all;
    o->rnr_retry = o->rnr_retry == NO_RNR_RETRY ? 0 : o->rnr_retry ? o->rnr_retry : 7;
    o->retry_cnt = o->retry_cnt ? o->retry_cnt : 5;
    o->timeout = o->timeout ? o->timeout : 14;
    o->min_rnr_timer = o->min_rnr_timer ? o->min_rnr_timer : 12;
    o->cqe = o->cqe ? o->cqe : 256;
}

void end_open(struct end *e, struct device *d, const struct end_options *opt)
{
    memset(e, 0, sizeof *e);
    e->dev = d;
    e->opt = *opt;
    defaults(&e->opt);
    e->send_cq = e->opt.send_cq;
    e->recv_cq = e->opt.recv_cq;
    if (!e->send_cq) {
        e->send_cq = ibv_create_cq(d->ctx, (int)e->opt.cqe, NULL, NULL, 0);
        e->own_send_cq = true;
    }
    if (!e->recv_cq) {
        e->recv_cq = ibv_create_cq(d->ctx, (int)e->opt.cqe, NULL, NULL, 0);
        e->own_recv_cq = true;
    }
    REQUIRE(e->send_cq && e->recv_cq);
    memory_make(&e->mem, d->pd, e->opt.memory, e->opt.mr_access);
    struct ibv_qp_init_attr init = {
        .qp_context = e,
        .send_cq = e->send_cq,
        .recv_cq = e->recv_cq,
        .srq = e->opt.srq,
        .cap = {.max_send_wr = e->opt.send_wr,
                .max_recv_wr = e->opt.srq ? 0 : e->opt.recv_wr,
                .max_send_sge = e->opt.send_sge,
                .max_recv_sge = e->opt.srq ? 0 : e->opt.recv_sge,
                .max_inline_data = e->opt.inline_size},
        .qp_type = e->opt.type,
        .sq_sig_all = e->opt.signal_all,
    };
    e->qp = ibv_create_qp(d->pd, &init);
    REQUIRE(e->qp != NULL);
    e->psn = (e->qp->qp_num * 7919u + 17) & 0xffffff;
}

void end_close(struct end *e)
{
    REQUIRE_OK(ibv_destroy_qp(e->qp));
    memory_free(&e->mem);
    if (e->own_send_cq)
        REQUIRE_OK(ibv_destroy_cq(e->send_cq));
    if (e->own_recv_cq)
        REQUIRE_OK(ibv_destroy_cq(e->recv_cq));
}

struct end_address end_address(const struct end *e)
{
    return (struct end_address){.qpn = e->qp->qp_num,
                                .psn = e->psn,
                                .rkey = e->mem.mr->rkey,
                                .lid = e->dev->port.lid,
                                .gid = e->dev->gid,
                                .addr = (uintptr_t)e->mem.p};
}

void address_vector(const struct device *d, const struct end_address *peer, struct ibv_ah_attr *av)
{
    memset(av, 0, sizeof *av);
    av->dlid = peer->lid;
    av->port_num = d->port_num;
    if (d->global) {
        av->is_global = 1;
        av->grh.dgid = peer->gid;
        av->grh.sgid_index = d->gid_index;
        av->grh.hop_limit = 64;
    }
}

struct ibv_ah *end_ah(const struct end *e, const struct end_address *peer)
{
    struct ibv_ah_attr av;
    address_vector(e->dev, peer, &av);
    struct ibv_ah *ah = ibv_create_ah(e->dev->pd, &av);
    REQUIRE(ah != NULL);
    return ah;
}

int end_to_init(struct end *e, int without)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
                            .port_num = e->dev->port_num,
                            .qkey = UD_QKEY,
                            .qp_access_flags = (unsigned)e->opt.qp_access};
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    mask |= e->opt.type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
    return ibv_modify_qp(e->qp, &a, mask & ~without);
}

int end_to_rtr(struct end *e, const struct end_address *peer, int without)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR};
    int mask = IBV_QP_STATE;
    if (e->opt.type != IBV_QPT_UD) {
        a.path_mtu = e->dev->port.active_mtu;
        a.dest_qp_num = peer->qpn;
        a.rq_psn = peer->psn;
        address_vector(e->dev, peer, &a.ah_attr);
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    }
    if (e->opt.type == IBV_QPT_RC) {
        a.max_dest_rd_atomic = 4;
        a.min_rnr_timer = e->opt.min_rnr_timer;
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    return ibv_modify_qp(e->qp, &a, mask & ~without);
}

int end_to_rts(struct end *e, int without)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS, .sq_psn = e->psn};
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (e->opt.type == IBV_QPT_RC) {
        a.timeout = e->opt.timeout;
        a.retry_cnt = e->opt.retry_cnt;
        a.rnr_retry = e->opt.rnr_retry;
        a.max_rd_atomic = 4;
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    return ibv_modify_qp(e->qp, &a, mask & ~without);
}

int end_to_state(struct end *e, enum ibv_qp_state state)
{
    struct ibv_qp_attr a = {.qp_state = state};
    return ibv_modify_qp(e->qp, &a, IBV_QP_STATE);
}

enum ibv_qp_state end_state(const struct end *e)
{
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr init;
    REQUIRE_OK(ibv_query_qp(e->qp, &a, IBV_QP_STATE, &init));
    return a.qp_state;
}

void end_await_state(const struct end *e, enum ibv_qp_state state)
{
    for (double end = now() + time_limit(); end_state(e) != state; sleep_ms(1))
        REQUIRE_MSG(now() < end, "the queue pair stays in state %d, not %d", end_state(e), state);
}

void end_connect(struct end *e, const struct end_address *peer)
{
    REQUIRE_OK(end_to_init(e, 0));
    REQUIRE_OK(end_to_rtr(e, peer, 0));
    REQUIRE_OK(end_to_rts(e, 0));
}

void pair_open(struct pair *p, const struct end_options *a, const struct end_options *b)
{
    device_open(&p->dev);
    end_open(&p->a, &p->dev, a);
    end_open(&p->b, &p->dev, b);
    struct end_address aa = end_address(&p->a), ba = end_address(&p->b);
    end_connect(&p->a, &ba);
    end_connect(&p->b, &aa);
}

void pair_reconnect(struct pair *p)
{
    struct end_address aa = end_address(&p->a), ba = end_address(&p->b);
    REQUIRE_OK(end_to_state(&p->a, IBV_QPS_RESET));
    REQUIRE_OK(end_to_state(&p->b, IBV_QPS_RESET));
    end_connect(&p->a, &ba);
    end_connect(&p->b, &aa);
}

void pair_close(struct pair *p)
{
    end_close(&p->a);
    end_close(&p->b);
    device_close(&p->dev);
}
