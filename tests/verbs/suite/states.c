/* Queue pair states: which transitions exist, which attributes each needs, what may be posted in each, what a query
 * tells. IBA 10.3.1 and 11.2 (modify queue pair, tables of attributes); man ibv_modify_qp. */
#include "support/cases.h"
#include "support/ops.h"
#include "support/require.h"

struct one {
    struct device dev;
    struct end e;
    struct end_address self; /* connected with itself: enough for states */
};

static void one_open(struct one *o, enum ibv_qp_type type)
{
    device_open(&o->dev);
    end_open(&o->e, &o->dev, &(struct end_options){.type = type});
    o->self = end_address(&o->e);
}

static void one_close(struct one *o)
{
    end_close(&o->e);
    device_close(&o->dev);
}

static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

static void new_is_reset(void)
{
    for (int i = 0; i < 3; i++) {
        struct one o;
        one_open(&o, types[i]);
        REQUIRE_EQ(o.e.qp->qp_type, types[i]);
        REQUIRE_EQ(end_state(&o.e), IBV_QPS_RESET);
        one_close(&o);
    }
}

static void walk(void)
{
    for (int i = 0; i < 3; i++) {
        struct one o;
        one_open(&o, types[i]);
        REQUIRE_OK(end_to_init(&o.e, 0));
        REQUIRE_EQ(end_state(&o.e), IBV_QPS_INIT);
        REQUIRE_OK(end_to_init(&o.e, 0)); /* INIT to INIT is allowed */
        REQUIRE_OK(end_to_rtr(&o.e, &o.self, 0));
        REQUIRE_EQ(end_state(&o.e), IBV_QPS_RTR);
        REQUIRE_OK(end_to_rts(&o.e, 0));
        REQUIRE_EQ(end_state(&o.e), IBV_QPS_RTS);
        REQUIRE_EQ(o.e.qp->state, IBV_QPS_RTS);
        one_close(&o);
    }
}

static void illegal_transitions(void)
{
    for (int i = 0; i < 3; i++) {
        struct one o;
        one_open(&o, types[i]);
        REQUIRE_FAILS(end_to_rtr(&o.e, &o.self, 0));
        REQUIRE_FAILS(end_to_rts(&o.e, 0));
        REQUIRE_EQ(end_state(&o.e), IBV_QPS_RESET);
        REQUIRE_OK(end_to_init(&o.e, 0));
        REQUIRE_FAILS(end_to_rts(&o.e, 0));
        REQUIRE_FAILS(end_to_state(&o.e, IBV_QPS_SQD));
        REQUIRE_EQ(end_state(&o.e), IBV_QPS_INIT);
        REQUIRE_OK(end_to_rtr(&o.e, &o.self, 0));
        REQUIRE_FAILS(end_to_init(&o.e, 0));
        REQUIRE_EQ(end_state(&o.e), IBV_QPS_RTR);
        REQUIRE_OK(end_to_rts(&o.e, 0));
        REQUIRE_FAILS(end_to_init(&o.e, 0));
        REQUIRE_FAILS(end_to_rtr(&o.e, &o.self, 0));
        REQUIRE_EQ(end_state(&o.e), IBV_QPS_RTS);
        REQUIRE_OK(end_to_state(&o.e, IBV_QPS_ERR));
        REQUIRE_FAILS(end_to_init(&o.e, 0));
        REQUIRE_FAILS(end_to_rts(&o.e, 0));
        REQUIRE_EQ(end_state(&o.e), IBV_QPS_ERR);
        one_close(&o);
    }
}

static void refuse_each(struct one *o, const int *attributes, int n, int step)
{
    for (int i = 0; i < n; i++) {
        int rc = step == 0   ? end_to_init(&o->e, attributes[i])
                 : step == 1 ? end_to_rtr(&o->e, &o->self, attributes[i])
                             : end_to_rts(&o->e, attributes[i]);
        REQUIRE_MSG(rc, "step %d of type %d was accepted without attribute %#x", step, o->e.opt.type, attributes[i]);
    }
}

static void missing_attributes_rc(void)
{
    struct one o;
    one_open(&o, IBV_QPT_RC);
    const int init[] = {IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_ACCESS_FLAGS};
    const int rtr[] = {IBV_QP_AV,     IBV_QP_PATH_MTU,           IBV_QP_DEST_QPN,
                       IBV_QP_RQ_PSN, IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_MIN_RNR_TIMER};
    const int rts[] = {IBV_QP_SQ_PSN, IBV_QP_TIMEOUT, IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY, IBV_QP_MAX_QP_RD_ATOMIC};
    refuse_each(&o, init, 3, 0);
    REQUIRE_OK(end_to_init(&o.e, 0));
    refuse_each(&o, rtr, 6, 1);
    REQUIRE_OK(end_to_rtr(&o.e, &o.self, 0));
    refuse_each(&o, rts, 5, 2);
    REQUIRE_OK(end_to_rts(&o.e, 0));
    one_close(&o);
}

static void missing_attributes_uc(void)
{
    struct one o;
    one_open(&o, IBV_QPT_UC);
    const int init[] = {IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_ACCESS_FLAGS};
    const int rtr[] = {IBV_QP_AV, IBV_QP_PATH_MTU, IBV_QP_DEST_QPN, IBV_QP_RQ_PSN};
    const int rts[] = {IBV_QP_SQ_PSN};
    refuse_each(&o, init, 3, 0);
    REQUIRE_OK(end_to_init(&o.e, 0));
    refuse_each(&o, rtr, 4, 1);
    REQUIRE_OK(end_to_rtr(&o.e, &o.self, 0));
    refuse_each(&o, rts, 1, 2);
    REQUIRE_OK(end_to_rts(&o.e, 0));
    one_close(&o);
}

static void missing_attributes_ud(void)
{
    struct one o;
    one_open(&o, IBV_QPT_UD);
    const int init[] = {IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_QKEY};
    const int rts[] = {IBV_QP_SQ_PSN};
    refuse_each(&o, init, 3, 0);
    REQUIRE_OK(end_to_init(&o.e, 0));
    REQUIRE_OK(end_to_rtr(&o.e, &o.self, 0));
    refuse_each(&o, rts, 1, 2);
    REQUIRE_OK(end_to_rts(&o.e, 0));
    one_close(&o);
}

static void foreign_attributes_refused(void)
{
    struct one o;
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .qkey = 1};
    int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    one_open(&o, IBV_QPT_RC);
    a.port_num = o.dev.port_num;
    REQUIRE_FAILS(ibv_modify_qp(o.e.qp, &a, init | IBV_QP_ACCESS_FLAGS | IBV_QP_QKEY));
    REQUIRE_FAILS(ibv_modify_qp(o.e.qp, &a, init | IBV_QP_ACCESS_FLAGS | IBV_QP_DEST_QPN));
    one_close(&o);
    one_open(&o, IBV_QPT_UD);
    REQUIRE_FAILS(ibv_modify_qp(o.e.qp, &a, init | IBV_QP_QKEY | IBV_QP_ACCESS_FLAGS));
    REQUIRE_EQ(end_state(&o.e), IBV_QPS_RESET);
    one_close(&o);
}

static void bad_values_refused(void)
{
    struct one o;
    one_open(&o, IBV_QPT_RC);
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = (uint8_t)(o.dev.attr.phys_port_cnt + 1)};
    int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    REQUIRE_FAILS(ibv_modify_qp(o.e.qp, &a, init));
    a.port_num = 0;
    REQUIRE_FAILS(ibv_modify_qp(o.e.qp, &a, init));
    REQUIRE_EQ(end_state(&o.e), IBV_QPS_RESET);
    one_close(&o);
}

static void bad_pkey_index_refused(void)
{
    struct one o;
    one_open(&o, IBV_QPT_RC);
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT, .port_num = o.dev.port_num, .pkey_index = o.dev.port.pkey_tbl_len};
    REQUIRE_FAILS(ibv_modify_qp(o.e.qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    one_close(&o);
}

/* More outstanding reads and atomics than the device has, as responder and as initiator. */
static void bad_dest_rd_atomic_refused(void)
{
    struct one o;
    one_open(&o, IBV_QPT_RC);
    REQUIRE_MSG(o.dev.attr.max_qp_rd_atom < 255, "a limit of %d cannot be exceeded", o.dev.attr.max_qp_rd_atom);
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
                            .path_mtu = o.dev.port.active_mtu,
                            .dest_qp_num = o.self.qpn,
                            .max_dest_rd_atomic = (uint8_t)(o.dev.attr.max_qp_rd_atom + 1)};
    address_vector(&o.dev, &o.self, &a.ah_attr);
    REQUIRE_OK(end_to_init(&o.e, 0));
    REQUIRE_FAILS(ibv_modify_qp(o.e.qp, &a,
                                IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    one_close(&o);
}

static void bad_rd_atomic_refused(void)
{
    struct one o;
    one_open(&o, IBV_QPT_RC);
    REQUIRE_MSG(o.dev.attr.max_qp_init_rd_atom < 255, "a limit of %d cannot be exceeded",
                o.dev.attr.max_qp_init_rd_atom);
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS, .max_rd_atomic = (uint8_t)(o.dev.attr.max_qp_init_rd_atom + 1)};
    REQUIRE_OK(end_to_init(&o.e, 0));
    REQUIRE_OK(end_to_rtr(&o.e, &o.self, 0));
    REQUIRE_FAILS(ibv_modify_qp(o.e.qp, &a,
                                IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                    IBV_QP_MAX_QP_RD_ATOMIC));
    one_close(&o);
}

/* IBA 10.3.1.1, 10.3.1.2: a send work request posted before RTS is an immediate error. */
static void send_before_rts_refused(void)
{
    for (int i = 0; i < 3; i++) {
        struct one o;
        one_open(&o, types[i]);
        struct op op = op_make(&o.e, IBV_WR_SEND, 1, 0, 8);
        struct ibv_ah *ah = types[i] == IBV_QPT_UD ? end_ah(&o.e, &o.self) : NULL;
        if (ah)
            op_to_ud(&op, ah, o.self.qpn);
        REQUIRE_FAILS(op_try(&o.e, &op));
        REQUIRE_OK(end_to_init(&o.e, 0));
        REQUIRE_FAILS(op_try(&o.e, &op));
        REQUIRE_OK(end_to_rtr(&o.e, &o.self, 0));
        REQUIRE_FAILS(op_try(&o.e, &op));
        if (ah)
            REQUIRE_OK(ibv_destroy_ah(ah));
        one_close(&o);
    }
}

/* IBA 10.3.1.1: so is a receive in RESET. */
static void receive_in_reset_refused(void)
{
    struct one o;
    one_open(&o, IBV_QPT_RC);
    struct ibv_sge sge = {(uintptr_t)o.e.mem.p, 8, o.e.mem.mr->lkey};
    REQUIRE_FAILS(recv_try(&o.e, 1, &sge, 1));
    one_close(&o);
}

/* IBA 10.3.1.2: a receive may be posted in INIT; it is used once messages arrive. */
static void receive_in_init(void)
{
    struct pair p;
    device_open(&p.dev);
    end_open(&p.a, &p.dev, &(struct end_options){0});
    end_open(&p.b, &p.dev, &(struct end_options){0});
    struct end_address aa = end_address(&p.a), ba = end_address(&p.b);
    REQUIRE_OK(end_to_init(&p.b, 0));
    recv_post(&p.b, 7, 0, 100);
    cq_expect_none(p.b.recv_cq, 20);
    REQUIRE_OK(end_to_rtr(&p.b, &aa, 0));
    end_connect(&p.a, &ba);
    pattern_fill(p.a.mem.p, 100, 1);
    struct op op = op_make(&p.a, IBV_WR_SEND, 8, 0, 100);
    op_post(&p.a, &op);
    cq_expect(p.b.recv_cq, 7, IBV_WC_SUCCESS); /* in RTR it receives, and acknowledges */
    cq_expect(p.a.send_cq, 8, IBV_WC_SUCCESS);
    pattern_check(p.b.mem.p, 100, 1);
    REQUIRE_EQ(end_state(&p.b), IBV_QPS_RTR);
    pair_close(&p);
}

/* IBA 10.3.1.7: what is posted in the error state completes with a flush error. */
static void send_in_error_is_flushed(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    REQUIRE_OK(end_to_state(&p.a, IBV_QPS_ERR));
    struct op op = op_make(&p.a, IBV_WR_SEND, 11, 0, 8);
    op_post(&p.a, &op);
    cq_expect(p.a.send_cq, 11, IBV_WC_WR_FLUSH_ERR);
    pair_close(&p);
}

static void receive_in_error_is_flushed(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    REQUIRE_OK(end_to_state(&p.a, IBV_QPS_ERR));
    recv_post(&p.a, 12, 0, 8);
    cq_expect(p.a.recv_cq, 12, IBV_WC_WR_FLUSH_ERR);
    pair_close(&p);
}

/* IBA 10.3.1.1: RESET takes what is outstanding away, without completions; the queue pair can then be used anew. */
static void reset_forgets(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    for (uint64_t i = 0; i < 10; i++)
        recv_post(&p.b, i, 0, 8);
    pair_reconnect(&p);
    cq_expect_none(p.b.recv_cq, 20);
    pair_exchange(&p, 3);
    REQUIRE_OK(end_to_state(&p.a, IBV_QPS_ERR));
    pair_reconnect(&p);
    pair_exchange(&p, 4);
    pair_close(&p);
}

static void query_returns_what_was_set(void)
{
    struct pair p;
    pair_open(&p, &(struct end_options){.timeout = 13, .retry_cnt = 3, .rnr_retry = 2, .min_rnr_timer = 9},
              &(struct end_options){.signal_all = true});
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr init;
    REQUIRE_OK(ibv_query_qp(p.a.qp, &a, 0x1fffff, &init));
    REQUIRE_EQ(a.qp_state, IBV_QPS_RTS);
    REQUIRE_EQ(a.path_mtu, p.dev.port.active_mtu);
    REQUIRE_EQ(a.dest_qp_num, p.b.qp->qp_num);
    REQUIRE_EQ(a.qp_access_flags & 0xf, ACCESS_ALL);
    REQUIRE_EQ(a.pkey_index, 0);
    REQUIRE_EQ(a.port_num, p.dev.port_num);
    REQUIRE_EQ(a.max_rd_atomic, 4);
    REQUIRE_EQ(a.max_dest_rd_atomic, 4);
    REQUIRE_EQ(a.min_rnr_timer, 9);
    REQUIRE_EQ(a.timeout, 13);
    REQUIRE_EQ(a.retry_cnt, 3);
    REQUIRE_EQ(a.rnr_retry, 2);
    REQUIRE_EQ(a.ah_attr.is_global, p.dev.global);
    if (p.dev.global) {
        REQUIRE(!memcmp(&a.ah_attr.grh.dgid, &p.dev.gid, 16));
        REQUIRE_EQ(a.ah_attr.grh.sgid_index, p.dev.gid_index);
    } else {
        REQUIRE_EQ(a.ah_attr.dlid, p.dev.port.lid);
    }
    REQUIRE(a.cap.max_send_wr >= 64 && a.cap.max_recv_wr >= 64);
    REQUIRE(a.cap.max_send_sge >= 4 && a.cap.max_recv_sge >= 4);
    REQUIRE_EQ(init.qp_type, IBV_QPT_RC);
    REQUIRE_EQ(init.sq_sig_all, 0);
    REQUIRE(init.send_cq == p.a.send_cq && init.recv_cq == p.a.recv_cq && init.srq == NULL && init.qp_context == &p.a);
    REQUIRE_OK(ibv_query_qp(p.b.qp, &a, 0x1fffff, &init));
    REQUIRE(init.sq_sig_all);
    pair_close(&p);
}

/* The first packet number is what rq_psn of one side and sq_psn of the other say; a query shows the next one. */
static void query_psn(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr init;
    REQUIRE_OK(ibv_query_qp(p.a.qp, &a, 0x1fffff, &init));
    REQUIRE_EQ(a.sq_psn, p.a.psn);
    REQUIRE_EQ(a.rq_psn, p.b.psn);
    pair_close(&p);
}

static void change_while_ready(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    struct ibv_qp_attr a = {.min_rnr_timer = 20, .qp_access_flags = IBV_ACCESS_REMOTE_READ};
    struct ibv_qp_init_attr init;
    REQUIRE_OK(ibv_modify_qp(p.a.qp, &a, IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS));
    REQUIRE_OK(ibv_query_qp(p.a.qp, &a, IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS, &init));
    REQUIRE_EQ(a.min_rnr_timer, 20);
    REQUIRE_EQ(a.qp_access_flags & (ACCESS_ALL & ~IBV_ACCESS_LOCAL_WRITE), IBV_ACCESS_REMOTE_READ);
    a.retry_cnt = 1; /* fixed once RTS is reached */
    REQUIRE_FAILS(ibv_modify_qp(p.a.qp, &a, IBV_QP_RETRY_CNT));
    pair_exchange(&p, 5);
    pair_close(&p);
}

static void drain(struct pair *p)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    struct ibv_async_event ev;
    REQUIRE_OK(ibv_modify_qp(p->a.qp, &a, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
    event_next(p->dev.ctx, &ev);
    REQUIRE_EQ(ev.event_type, IBV_EVENT_SQ_DRAINED);
    REQUIRE(ev.element.qp == p->a.qp);
    ibv_ack_async_event(&ev);
    REQUIRE_EQ(end_state(&p->a), IBV_QPS_SQD);
}

/* IBA 10.3.1.5: in SQD the send queue drains, then an event tells; the receive queue goes on. */
static void send_queue_drained(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    drain(&p);
    recv_post(&p.a, 1, 0, 8);
    struct op op = op_make(&p.b, IBV_WR_SEND, 2, 0, 8);
    op_post(&p.b, &op);
    cq_expect(p.b.send_cq, 2, IBV_WC_SUCCESS);
    cq_expect(p.a.recv_cq, 1, IBV_WC_SUCCESS);
    pair_close(&p);
}

/* The same clause: requests posted in SQD wait, and are processed after the change back to RTS. */
static void drained_queue_resumes(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    drain(&p);
    recv_post(&p.b, 1, 0, 8);
    struct op op = op_make(&p.a, IBV_WR_SEND, 2, 0, 8);
    op_post(&p.a, &op);
    cq_expect_none(p.a.send_cq, 30);
    REQUIRE_OK(end_to_state(&p.a, IBV_QPS_RTS));
    cq_expect(p.a.send_cq, 2, IBV_WC_SUCCESS);
    cq_expect(p.b.recv_cq, 1, IBV_WC_SUCCESS);
    pair_close(&p);
}

static const struct verbs_case cases[] = {
    CASE(new_is_reset),
    CASE(walk),
    CASE(illegal_transitions),
    CASE(missing_attributes_rc),
    CASE(missing_attributes_uc),
    CASE(missing_attributes_ud),
    CASE(foreign_attributes_refused),
    CASE(bad_values_refused),
    CASE(bad_pkey_index_refused),
    CASE(bad_dest_rd_atomic_refused),
    CASE(bad_rd_atomic_refused),
    CASE(send_before_rts_refused),
    CASE(receive_in_reset_refused),
    CASE(receive_in_init),
    CASE(send_in_error_is_flushed),
    CASE(receive_in_error_is_flushed),
    CASE(reset_forgets),
    CASE(query_returns_what_was_set),
    CASE(query_psn),
    CASE(change_while_ready),
    CASE(send_queue_drained),
    CASE(drained_queue_resumes),
};
VERBS_MAIN("states", cases)
