/* Times of the operations of a device, between two queue pairs of a module. */
#define _GNU_SOURCE 1

#include <string.h>
#include <sys/mman.h>
#include <strata/sdk/clock.h>
#include "module.h"

#define SHORT  16384u
#define WHOLE  65536u
#define TURNS  5
#define SIGNAL 8u /* bytes of the short send */

struct port_trial {
    struct ib_loop loop;
    struct ibv_mr *mr;
    uint8_t *memory; /* what is written, then where to */
};

static void port_least(uint64_t *least, uint64_t ns)
{
    ns = ns ? ns : 1;
    if (*least == 0 || ns < *least)
        *least = ns;
}

/* The registration that the turns need is one of the samples; it is made again each time. */
static bool port_register(struct ib_module *m, struct port_trial *t, struct st_btl_times *out)
{
    uint64_t begin = st_now_ns();
    struct ibv_mr *mr =
        ibv_reg_mr(m->dev.pd, t->memory, 2 * (size_t)WHOLE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

    if (!mr)
        return false;
    if (t->mr) {
        (void)ibv_dereg_mr(t->mr);
        port_least(&out->registers, st_now_ns() - begin);
    }
    t->mr = mr;
    return true;
}

/* ns until the completion; 0: it failed. *posted: of these, in ibv_post_send. */
static uint64_t port_write(struct port_trial *t, uint32_t bytes, uint64_t *posted)
{
    struct ibv_sge sge = {(uintptr_t)t->memory, bytes, t->mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_RDMA_WRITE,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.rdma = {(uintptr_t)t->memory + WHOLE, t->mr->rkey}};
    uint64_t begin = st_now_ns();

    if (ibv_post_send(t->loop.qp[0], &wr, &bad) != 0)
        return 0;
    *posted = st_now_ns() - begin;
    if (!ib_loop_take(&t->loop, 1, begin + IB_LOOP_LIMIT))
        return 0;
    return st_now_ns() - begin;
}

static uint64_t port_send(struct port_trial *t)
{
    struct ibv_sge from = {(uintptr_t)t->memory, SIGNAL, t->mr->lkey},
                   to = {(uintptr_t)t->memory + WHOLE, SIGNAL, t->mr->lkey};
    struct ibv_recv_wr receive = {.sg_list = &to, .num_sge = 1}, *bad_receive;
    struct ibv_send_wr *bad,
        wr = {.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    uint64_t begin;

    if (ibv_post_recv(t->loop.qp[1], &receive, &bad_receive) != 0)
        return 0;
    begin = st_now_ns();
    if (ibv_post_send(t->loop.qp[0], &wr, &bad) != 0 || !ib_loop_take(&t->loop, 2, begin + IB_LOOP_LIMIT))
        return 0;
    return st_now_ns() - begin;
}

static bool port_turn(struct ib_module *m, struct port_trial *t, struct st_btl_times *out)
{
    uint64_t posted, ns, begin;

    if (!port_register(m, t, out) || (ns = port_send(t)) == 0)
        return false;
    port_least(&out->sends, ns);
    if ((ns = port_write(t, SHORT, &posted)) == 0)
        return false;
    port_least(&out->writes_16k, ns);
    if ((ns = port_write(t, WHOLE, &posted)) == 0)
        return false;
    port_least(&out->writes_64k, ns);
    port_least(&out->posts_64k, posted);
    begin = st_now_ns();
    memcpy(t->memory + WHOLE, t->memory, WHOLE);
    __asm__ volatile("" : : "r"(t->memory) : "memory");
    port_least(&out->copies_64k, st_now_ns() - begin);
    return true;
}

/* False: the device does not connect to itself, or an operation failed or took 2 ms. */
static bool port_measure(struct ib_module *m, struct st_btl_times *out)
{
    struct port_trial t = {0};
    bool whole;

    *out = (struct st_btl_times){0};
    t.memory = mmap(NULL, 2 * (size_t)WHOLE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (t.memory == MAP_FAILED)
        return false;
    whole = ib_loop_begin(m, &t.loop, 0);
    if (whole) {
        whole = port_register(m, &t, out);
        for (int i = 0; i < TURNS && whole; i++)
            whole = port_turn(m, &t, out);
        ib_loop_end(&t.loop);
    }
    if (t.mr)
        (void)ibv_dereg_mr(t.mr);
    (void)munmap(t.memory, 2 * (size_t)WHOLE);
    if (!whole)
        *out = (struct st_btl_times){0};
    return whole;
}

void ib_port_facts(const struct st_btl_endpoint *ep, struct st_btl_facts *facts)
{
    const struct ib_module *m = ib_module(ep->btl);

    if (m->times.sends)
        st_thresholds_costs(&m->times, st_rcache_keeps(m->btl.context), m->dev.software, facts);
}

void ib_port_calibrate(struct ib_module *m)
{
    const struct st_btl_times *t = &m->times;
    struct st_btl_facts facts = m->btl.facts;

    if (m->calibrated || st_tuning(m->btl.context) == ST_TUNE_OFF)
        return;
    m->calibrated = true;
    if (facts.fixed || !port_measure(m, &m->times))
        return;
    ib_port_facts(&(struct st_btl_endpoint){.btl = &m->btl}, &facts);
    st_log(m->btl.context, ST_LOG_INFO, "btl_openib",
           "%s: a send takes %lu ns, writes of 16 and 64 KiB %lu and %lu ns, a copy %lu ns, a registration %lu ns: "
           "streams up to %u bytes, RDMA from %zu, alone from %u",
           m->dev.name, t->sends, t->writes_16k, t->writes_64k, t->copies_64k, t->registers, facts.ask_cost,
           facts.rdma_cost, facts.alone_cost);
}
