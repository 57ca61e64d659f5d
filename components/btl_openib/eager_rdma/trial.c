/* Whether the device's RDMA write beats its send, of 64 bytes: measured between two queue pairs of this module that are
 * connected to each other, as `auto` wants to know at the first hot peer. Takes well below a millisecond, and where the
 * device is slow at most IB_LOOP_LIMIT for each operation. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/clock.h>
#include "device/device.h"
#include "module.h"

#define TRIAL_BYTES  64u
#define TRIAL_TURNS  41    /* of each kind, in turn */
#define TRIAL_GAIN   15u   /* percent: the writes are to be that much faster, as rings have a cost of their own */
#define TRIAL_TARGET 4096u /* offset of what is written and received; before it lies what is sent */

struct trial {
    struct ib_loop loop;
    struct ib_ring_memory memory;
    uint32_t inlined; /* send_flags */
};

static void trial_end(struct ib_module *m, struct trial *t)
{
    ib_loop_end(&t->loop);
    ib_ring_memory_put(m, &t->memory);
}

static bool trial_begin(struct ib_module *m, struct trial *t)
{
    uint32_t inlined = m->brief.most >= TRIAL_BYTES ? TRIAL_BYTES : 0;

    *t = (struct trial){.inlined = inlined ? IBV_SEND_INLINE : 0};
    if (!ib_loop_begin(m, &t->loop, inlined))
        return false;
    if (ib_ring_memory_get(m, 2 * (size_t)TRIAL_TARGET, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &t->memory) ==
        STRATA_OK) {
        memset(t->memory.piece.memory, 0, 2 * (size_t)TRIAL_TARGET);
        return true;
    }
    trial_end(m, t);
    return false;
}

/* One operation until the receiver has seen it, ns; 0: it failed. All that was posted has ended then. */
static uint64_t trial_turn(struct trial *t, bool write, uint8_t value)
{
    char *from = t->memory.piece.memory, *to = from + TRIAL_TARGET;
    struct ibv_sge sge = {(uintptr_t)from, TRIAL_BYTES, t->memory.mr->lkey},
                   in = {(uintptr_t)to, TRIAL_BYTES, t->memory.mr->lkey};
    struct ibv_recv_wr receive = {.sg_list = &in, .num_sge = 1}, *bad_receive;
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = write ? IBV_WR_RDMA_WRITE : IBV_WR_SEND,
                                   .send_flags = t->inlined | IBV_SEND_SIGNALED,
                                   .wr.rdma = {(uintptr_t)to, t->memory.mr->rkey}};
    const _Atomic(uint8_t) *last = (const _Atomic(uint8_t) *)(const void *)(to + TRIAL_BYTES - 1);
    uint64_t begin, took, until;

    from[TRIAL_BYTES - 1] = (char)value;
    begin = st_now_ns();
    until = begin + IB_LOOP_LIMIT;
    if ((!write && ibv_post_recv(t->loop.qp[1], &receive, &bad_receive) != 0) ||
        ibv_post_send(t->loop.qp[0], &wr, &bad) != 0)
        return 0;
    while (write && atomic_load_explicit(last, memory_order_acquire) != value)
        if (st_now_ns() > until)
            return 0;
    took = st_now_ns() - begin;
    if (!ib_loop_take(&t->loop, write ? 1 : 2, until)) /* the send's own completion may come after the receive's */
        return 0;
    if (!write)
        took = st_now_ns() - begin;
    return took ? took : 1;
}

static int trial_by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

bool ib_eager_trial(struct ib_module *m)
{
    uint64_t ns[2][TRIAL_TURNS] = {{0}};
    struct trial t;
    bool worth = false, whole = trial_begin(m, &t);

    if (!whole) {
        st_log(m->btl.context, ST_LOG_INFO, "btl_openib", "%s: no queue pairs to try RDMA writes: no rings",
               m->dev.name);
        return false;
    }
    for (int i = 0; i < TRIAL_TURNS && whole; i++)
        for (int write = 0; write < 2 && whole; write++) {
            ns[write][i] = trial_turn(&t, write, (uint8_t)(i + 1));
            whole = ns[write][i] != 0;
        }
    if (whole) {
        for (int write = 0; write < 2; write++)
            qsort(ns[write], TRIAL_TURNS, sizeof ns[write][0], trial_by_value);
        worth = ns[1][TRIAL_TURNS / 2] * 100 <= ns[0][TRIAL_TURNS / 2] * (100 - TRIAL_GAIN);
    }
    st_log(m->btl.context, ST_LOG_INFO, "btl_openib", "%s: a write takes %lu ns, a send %lu ns: %s", m->dev.name,
           (unsigned long)ns[1][TRIAL_TURNS / 2], (unsigned long)ns[0][TRIAL_TURNS / 2],
           worth ? "hot peers get rings of eager RDMA" : "no rings of eager RDMA");
    trial_end(m, &t);
    return worth;
}
