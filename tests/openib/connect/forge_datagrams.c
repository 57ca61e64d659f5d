/* Sends connection datagrams that nobody should believe to every queue pair for datagrams that a job on softhca may
 * have: random bytes of all lengths, and well-formed requests with a wrong key. `forge_datagrams SECONDS ROUNDS`: for
 * so long, and so often to each queue pair, at least. libibverbs alone. Prints how many datagrams were sent. */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../../../components/btl_openib/wire.h"

#define PROCESSES 1023u /* of the fabric: 1 to 1023, and a job's may be any */
#define SLOTS     2u    /* of each: its first queue pairs, one of which is for datagrams */
#define QKEY      0x53545241u
#define LONGEST   512u

static struct ibv_context *device;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_ah *ah;
static struct ibv_mr *mr;
static unsigned char bytes[LONGEST];

static void need(int ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    exit(1);
}

static void open_all(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_port_attr port;
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR}, rts = {.qp_state = IBV_QPS_RTS, .sq_psn = 1};
    struct ibv_qp_init_attr a = {.qp_type = IBV_QPT_UD, .cap = {.max_send_wr = 4, .max_send_sge = 1}};
    struct ibv_ah_attr to = {.port_num = 1};

    device = list && list[0] ? ibv_open_device(list[0]) : NULL;
    need(device != NULL, "a device, open");
    ibv_free_device_list(list);
    need(ibv_query_port(device, 1, &port) == 0, "port");
    need((pd = ibv_alloc_pd(device)) != NULL, "pd");
    need((cq = a.send_cq = a.recv_cq = ibv_create_cq(device, 16, NULL, NULL, 0)) != NULL, "cq");
    need((qp = ibv_create_qp(pd, &a)) != NULL, "qp");
    need(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0, "init");
    need(ibv_modify_qp(qp, &rtr, IBV_QP_STATE) == 0, "rtr");
    need(ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0, "rts");
    to.dlid = port.lid;
    need((ah = ibv_create_ah(pd, &to)) != NULL, "ah");
    need((mr = ibv_reg_mr(pd, bytes, sizeof bytes, IBV_ACCESS_LOCAL_WRITE)) != NULL, "mr");
}

static void forge(uint32_t qpn, uint32_t n)
{
    struct ibv_sge sge = {(uintptr_t)bytes, n, mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    struct ibv_wc wc;

    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = qpn;
    wr.wr.ud.remote_qkey = QKEY;
    need(ibv_post_send(qp, &wr, &bad) == 0, "post");
    while (ibv_poll_cq(cq, 1, &wc) == 0)
        ;
}

static uint32_t choose(long round)
{
    struct ib_conn c = {.version = IB_WIRE_VERSION, .type = (uint8_t)(1 + round / 2 % 4), .mtu = IBV_MTU_1024};

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)rand();
    if (round % 2)
        return round % 4 == 1 ? (uint32_t)sizeof c : (uint32_t)rand() % (LONGEST + 1);
    c.key = (uint64_t)rand() << 32 | (uint64_t)rand();
    c.from = rand() % 4;
    c.to = rand() % 4;
    c.qpn[0] = c.qpn[1] = (uint32_t)rand() & 0xffffffu;
    c.credits[0] = c.credits[1] = 1000;
    memcpy(bytes, &c, sizeof c);
    return sizeof c;
}

int main(int argc, char **argv)
{
    time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 2);
    long rounds = argc > 2 ? atol(argv[2]) : 1, sent = 0;

    open_all();
    srand(3);
    for (long round = 0; round < rounds || time(NULL) < end; round++)
        for (uint32_t i = 0; i < PROCESSES * SLOTS; i++, sent++)
            forge((1 + i / SLOTS) << 14 | i % SLOTS, choose(round));
    printf("sent %ld\n", sent);
    return ibv_dereg_mr(mr) || ibv_destroy_ah(ah) || ibv_destroy_qp(qp) || ibv_destroy_cq(cq) || ibv_dealloc_pd(pd) ||
           ibv_close_device(device);
}
