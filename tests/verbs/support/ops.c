#include "support/ops.h"
#include "support/require.h"

#include <poll.h>

struct op op_make(const struct end *e, enum ibv_wr_opcode opcode, uint64_t wr_id, size_t off, size_t len)
{
    struct op op = {.wr = {.wr_id = wr_id, .opcode = opcode, .num_sge = len > 0, .send_flags = IBV_SEND_SIGNALED}};
    op.sge[0] = (struct ibv_sge){(uintptr_t)e->mem.p + off, (uint32_t)len, e->mem.mr->lkey};
    return op;
}

struct op op_rdma(const struct end *e, enum ibv_wr_opcode opcode, uint64_t wr_id, size_t off, size_t len,
                  const struct end_address *to, size_t remote_off)
{
    struct op op = op_make(e, opcode, wr_id, off, len);
    op.wr.wr.rdma.remote_addr = to->addr + remote_off;
    op.wr.wr.rdma.rkey = to->rkey;
    return op;
}

struct op op_atomic(const struct end *e, enum ibv_wr_opcode opcode, uint64_t wr_id, size_t off,
                    const struct end_address *to, size_t remote_off, uint64_t compare_add, uint64_t swap)
{
    struct op op = op_make(e, opcode, wr_id, off, 8);
    op.wr.wr.atomic.remote_addr = to->addr + remote_off;
    op.wr.wr.atomic.rkey = to->rkey;
    op.wr.wr.atomic.compare_add = compare_add;
    op.wr.wr.atomic.swap = swap;
    return op;
}

void op_to_ud(struct op *op, struct ibv_ah *ah, uint32_t qpn)
{
    op->wr.wr.ud.ah = ah;
    op->wr.wr.ud.remote_qpn = qpn;
    op->wr.wr.ud.remote_qkey = UD_QKEY;
}

int op_try(const struct end *e, struct op *op)
{
    struct ibv_send_wr *bad = NULL;
    op->wr.sg_list = op->sge;
    return ibv_post_send(e->qp, &op->wr, &bad);
}

void op_post(const struct end *e, struct op *op)
{
    REQUIRE_OK(op_try(e, op));
}

int recv_try(const struct end *e, uint64_t wr_id, struct ibv_sge *sge, int n)
{
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = sge, .num_sge = n}, *bad = NULL;
    return ibv_post_recv(e->qp, &wr, &bad);
}

void recv_post(const struct end *e, uint64_t wr_id, size_t off, size_t len)
{
    struct ibv_sge sge = {(uintptr_t)e->mem.p + off, (uint32_t)len, e->mem.mr->lkey};
    REQUIRE_OK(recv_try(e, wr_id, &sge, len > 0));
}

void srq_post(struct ibv_srq *srq, uint64_t wr_id, const struct memory *m, size_t off, size_t len)
{
    struct ibv_sge sge = {(uintptr_t)m->p + off, (uint32_t)len, m->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad = NULL;
    REQUIRE_OK(ibv_post_srq_recv(srq, &wr, &bad));
}

void cq_next(struct ibv_cq *cq, struct ibv_wc *wc)
{
    double end = now() + time_limit();
    for (int n = 0;;) {
        int got = ibv_poll_cq(cq, 1, wc);
        REQUIRE_MSG(got >= 0, "ibv_poll_cq returned %d", got);
        if (got)
            return;
        if (++n > 1000) { /* the machine may have fewer cores than processes */
            sleep_ms(1);
            REQUIRE_MSG(now() < end, "no completion within %g seconds", time_limit());
        }
    }
}

struct ibv_wc cq_expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
    struct ibv_wc wc;
    cq_next(cq, &wc);
    REQUIRE_MSG(wc.wr_id == wr_id && wc.status == status, "completion of %llu with \"%s\", not of %llu with \"%s\"",
                (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status), (unsigned long long)wr_id,
                ibv_wc_status_str(status));
    return wc;
}

void cq_expect_none(struct ibv_cq *cq, int ms)
{
    struct ibv_wc wc;
    for (double end = now() + 1e-3 * ms; now() < end; sleep_ms(1)) {
        int got = ibv_poll_cq(cq, 1, &wc);
        REQUIRE_MSG(got == 0, "unexpected completion (%d) of %llu with \"%s\"", got, (unsigned long long)wc.wr_id,
                    ibv_wc_status_str(wc.status));
    }
}

void event_next(struct ibv_context *ctx, struct ibv_async_event *ev)
{
    struct pollfd fd = {.fd = ctx->async_fd, .events = POLLIN};
    REQUIRE_MSG(poll(&fd, 1, (int)(time_limit() * 1000)) == 1, "no asynchronous event within %g seconds", time_limit());
    REQUIRE_OK(ibv_get_async_event(ctx, ev));
}

void event_expect_none(struct ibv_context *ctx, int ms)
{
    struct pollfd fd = {.fd = ctx->async_fd, .events = POLLIN};
    REQUIRE_MSG(poll(&fd, 1, ms) == 0, "an unexpected asynchronous event");
}

void pair_exchange(struct pair *p, uint32_t seed)
{
    size_t len = 777, off = 1024;
    pattern_fill(p->a.mem.p + off, len, seed);
    memset(p->b.mem.p + off, 0, len);
    recv_post(&p->b, 1000 + seed, off, len);
    struct op op = op_make(&p->a, IBV_WR_SEND, 2000 + seed, off, len);
    op_post(&p->a, &op);
    cq_expect(p->a.send_cq, 2000 + seed, IBV_WC_SUCCESS);
    struct ibv_wc wc = cq_expect(p->b.recv_cq, 1000 + seed, IBV_WC_SUCCESS);
    REQUIRE_EQ(wc.byte_len, len);
    pattern_check(p->b.mem.p + off, len, seed);
}
