/* Connecting an endpoint to the other side's. */
#include "config.h"
#include "endpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "post_inl.h"

#define FIRST_PSN 0x1234u
/* Reads and atomic operations under way at most; fewer where a device has fewer. */
#define MOST_READS 16
/* 4.096 us * 2^14: 67 ms; seven times is half a second. */
#define ACK_TIMEOUT 14
#define RNR_TIMER   1 /* 10 us */

void endpoint_info(const struct endpoint *e, char *line, size_t size)
{
    int n = snprintf(line, size, "info %u %u %d %u %" PRIx64 " %" PRIx64 " %x ", e->m->dev.port.lid, e->t.mtu,
                     e->m->dev.attr.max_qp_rd_atom, e->m->processors, (uint64_t)(uintptr_t)endpoint_rx(e, 0),
                     (uint64_t)(uintptr_t)e->memory, e->mr->rkey);

    for (unsigned i = 0; i < sizeof e->m->dev.gid.raw; i++)
        n += snprintf(line + n, size - (size_t)n, "%02x", e->m->dev.gid.raw[i]);
    for (unsigned i = 0; i < e->pairs; i++)
        n += snprintf(line + n, size - (size_t)n, " %x", e->qp[i]->qp_num);
}

bool endpoint_take_info(struct endpoint *e, const char *line)
{
    struct remote *r = &e->remote;
    char gid[33];
    int n = 0;

    if (sscanf(line, "info %u %u %u %u %" SCNx64 " %" SCNx64 " %x %32[0-9a-f]%n", &r->lid, &r->mtu, &r->reads,
               &r->processors, &r->address, &r->word, &r->rkey, gid, &n) != 8 ||
        strlen(gid) != 32)
        return false;
    for (unsigned i = 0; i < 16; i++) {
        unsigned byte;
        if (sscanf(gid + (size_t)2 * i, "%2x", &byte) != 1)
            return false;
        r->gid.raw[i] = (uint8_t)byte;
    }
    for (unsigned i = 0; i < e->pairs; i++) {
        int more = 0;
        if (sscanf(line + n, " %x%n", &r->qpn[i], &more) != 1)
            return false;
        n += more;
    }
    return true;
}

static struct ibv_ah_attr address_of(const struct endpoint *e)
{
    struct ibv_ah_attr a = {.dlid = (uint16_t)e->remote.lid, .sl = e->t.sl, .port_num = e->m->dev.port_number};

    if (e->m->dev.port.link_layer == IBV_LINK_LAYER_ETHERNET || e->remote.lid == 0) {
        a.is_global = 1;
        a.grh.dgid = e->remote.gid;
        a.grh.sgid_index = (uint8_t)e->m->dev.gid_index;
        a.grh.hop_limit = 64;
    }
    return a;
}

static int to_init(const struct endpoint *e, struct ibv_qp *qp)
{
    const bool datagram = e->t.transport == UD;
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
                            .pkey_index = e->t.pkey_index,
                            .port_num = e->m->dev.port_number,
                            .qkey = ENDPOINT_QKEY,
                            .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};

    if (e->t.transport == RC)
        a.qp_access_flags |= IBV_ACCESS_REMOTE_READ;
    if (miba_op_is_atomic(e->t.op))
        a.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
    return ibv_modify_qp(
        qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

static int to_rtr(const struct endpoint *e, unsigned i)
{
    const uint32_t mtu = e->remote.mtu < e->t.mtu ? e->remote.mtu : e->t.mtu;
    const int reads = e->m->dev.attr.max_qp_rd_atom;
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
                            .path_mtu = device_mtu_code(mtu),
                            .dest_qp_num = e->remote.qpn[i],
                            .rq_psn = FIRST_PSN,
                            .max_dest_rd_atomic = (uint8_t)(reads > MOST_READS ? MOST_READS : reads),
                            .min_rnr_timer = RNR_TIMER,
                            .ah_attr = address_of(e)};
    const int connected = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

    if (e->t.transport == UD)
        return ibv_modify_qp(e->qp[i], &a, IBV_QP_STATE);
    return ibv_modify_qp(
        e->qp[i], &a, e->t.transport == RC ? connected | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : connected);
}

/* No more than the other side answers: it refuses the rest. */
static int reads_at_once(const struct endpoint *e)
{
    const int own = e->m->dev.attr.max_qp_init_rd_atom,
              theirs = e->remote.reads < MOST_READS ? (int)e->remote.reads : MOST_READS;

    return own < theirs ? own : theirs;
}

static int to_rts(const struct endpoint *e, unsigned i)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS,
                            .sq_psn = FIRST_PSN,
                            .timeout = ACK_TIMEOUT,
                            .retry_cnt = 7,
                            .rnr_retry = 7,
                            .max_rd_atomic = (uint8_t)reads_at_once(e)};
    const int reliable = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;

    return ibv_modify_qp(e->qp[i], &a, IBV_QP_STATE | IBV_QP_SQ_PSN | (e->t.transport == RC ? reliable : 0));
}

enum miba_status endpoint_connect(struct endpoint *e)
{
    for (unsigned i = e->pairs; i-- > 0;)
        e->pair_of[e->qp[i]->qp_num % PAIR_SLOTS] = (uint8_t)i;
    for (unsigned i = 0; i < e->pairs; i++) {
        int error = to_init(e, e->qp[i]);
        const char *state = "INIT";
        if (!error) {
            state = "RTR";
            error = to_rtr(e, i);
        }
        if (!error) {
            state = "RTS";
            error = to_rts(e, i);
        }
        if (error)
            return miba_fail_verb(&e->m->why, error, "ibv_modify_qp", state);
    }
    if (e->t.transport == UD) {
        struct ibv_ah_attr a = address_of(e);
        e->ah = ibv_create_ah(e->m->dev.pd, &a);
        if (!e->ah)
            return miba_fail_verb(&e->m->why, errno, "ibv_create_ah", NULL);
    }
    const uint32_t receives = e->srq ? e->depth : e->depth * e->t.qps;
    for (uint32_t i = 0; miba_op_takes_receive(e->t.op) && i < receives; i++) {
        const int error = endpoint_post_recv(e, i % e->t.qps, i);
        if (error)
            return miba_fail(&e->m->why, MIBA_FAILED, "ibv_post_recv: %s", strerror(error));
    }
    for (unsigned i = 0; i < EVENT_QUEUES; i++) {
        const enum miba_status status = e->by_event[i].cq ? endpoint_arm(e, &e->by_event[i]) : MIBA_OK;
        if (status)
            return status;
    }
    return MIBA_OK;
}
