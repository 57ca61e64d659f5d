/* Short messages, whose payload lies in softhca's own memory until their completions are polled (softhca/parcel.c). A
 * program of the verbs suite (tests/verbs), for softhca alone; short_messages_test.sh runs it. */
#define _GNU_SOURCE 1
#include "support/cases.h"
#include "support/ops.h"
#include "support/require.h"
#include "own_segment.h"
#include "softhca/fabric.h"
#include "softhca/segment.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MESSAGES (2 * HCA_PARCELS)
#define STRIDE   (HCA_PARCEL_ROOM + 512u)

static uint32_t held(void)
{
    char *segment = own_segment(PROT_READ);
    uint32_t n = 0;

    for (uint32_t i = 0; i < HCA_PARCELS; i++)
        n += atomic_load(&hca_parcel_at(segment, i)->holder) != 0;
    munmap(segment, HCA_SIZE);
    return n;
}

/* n messages that nobody polls. */
static void leave(struct pair *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        recv_post(&p->b, i, 1024 + 64 * (size_t)i, 64);
        struct op op = op_make(&p->a, IBV_WR_SEND, i, 0, 64);
        op_post(&p->a, &op);
        cq_expect(p->a.send_cq, i, IBV_WC_SUCCESS);
    }
}

/* More messages than there are parcels, of all lengths up to more than one holds: each is whole, and in order. */
static void many_before_polling(void)
{
    struct pair p;

    PAIR(&p, .memory = (MESSAGES + 1) * STRIDE, .send_wr = MESSAGES, .recv_wr = MESSAGES, .cqe = MESSAGES);
    for (uint32_t round = 0; round < 3; round++) {
        memset(p.b.mem.p, 0xee, p.b.mem.size);
        for (uint32_t i = 0; i < MESSAGES; i++) {
            size_t length = i * STRIDE / MESSAGES, at = (size_t)i * STRIDE;
            pattern_fill(p.a.mem.p + at, length, i + round);
            recv_post(&p.b, i, at, STRIDE);
            struct op op = op_make(&p.a, IBV_WR_SEND, i, at, length);
            op_post(&p.a, &op);
        }
        for (uint32_t i = 0; i < MESSAGES; i++) {
            size_t length = i * STRIDE / MESSAGES, at = (size_t)i * STRIDE;
            cq_expect(p.a.send_cq, i, IBV_WC_SUCCESS);
            REQUIRE_EQ(cq_expect(p.b.recv_cq, i, IBV_WC_SUCCESS).byte_len, length);
            pattern_check(p.b.mem.p + at, length, i + round);
            REQUIRE_EQ(p.b.mem.p[at + length], 0xee);
        }
    }
    REQUIRE_EQ(held(), 0);
    pair_close(&p);
}

/* What is not polled is given free with its queue pair, whether that is reset or destroyed. */
static void queue_pair_goes(void)
{
    struct pair p;

    for (int i = 0; i < 2; i++) {
        PAIR(&p, .type = i ? IBV_QPT_UC : IBV_QPT_RC);
        leave(&p, 10);
        REQUIRE_EQ(held(), 10);
        pair_reconnect(&p);
        REQUIRE_EQ(held(), 0);
        leave(&p, 10);
        pair_close(&p);
        REQUIRE_EQ(held(), 0);
    }
}

/* The queue is full: what is not added is not kept, either. */
static void overrun(void)
{
    struct ibv_async_event ev;
    struct pair p;
    uint32_t n;

    PAIR(&p, .cqe = 4);
    n = (uint32_t)p.b.recv_cq->cqe;
    leave(&p, n + 1);
    event_next(p.dev.ctx, &ev);
    REQUIRE_EQ(ev.event_type, IBV_EVENT_CQ_ERR);
    ibv_ack_async_event(&ev);
    REQUIRE_EQ(held(), n);
    pair_close(&p);
    REQUIRE_EQ(held(), 0);
}

/* A message moves with its completion from ring to ring. */
static void resize(void)
{
    struct pair p;

    PAIR(&p, .cqe = 16);
    pattern_fill(p.a.mem.p, 64, 7);
    leave(&p, 8);
    REQUIRE_OK(ibv_resize_cq(p.b.recv_cq, 64));
    REQUIRE_EQ(held(), 8);
    for (uint32_t i = 0; i < 8; i++) {
        REQUIRE_EQ(cq_expect(p.b.recv_cq, i, IBV_WC_SUCCESS).byte_len, 64);
        pattern_check(p.b.mem.p + 1024 + 64 * (size_t)i, 64, 7);
    }
    REQUIRE_EQ(held(), 0);
    pair_close(&p);
}

static struct ibv_mr *region(struct pair *p, char **at)
{
    struct ibv_mr *mr;

    *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(*at != MAP_FAILED);
    mr = ibv_reg_mr(p->dev.pd, *at, 4096, ACCESS_ALL);
    REQUIRE(mr != NULL);
    return mr;
}

/* A message has come, and before it is polled its receive's region is deregistered, or its pages go away: it ends with
 * an error, and nothing else happens. */
static void region_goes(void)
{
    struct pair p;
    char *at;

    for (int unmapped = 0; unmapped < 2; unmapped++) {
        PAIR(&p, .type = IBV_QPT_RC);
        struct ibv_mr *mr = region(&p, &at);
        struct ibv_sge sge = {(uintptr_t)at, 64, mr->lkey};
        REQUIRE_OK(recv_try(&p.b, 1, &sge, 1));
        struct op op = op_make(&p.a, IBV_WR_SEND, 2, 0, 64);
        op_post(&p.a, &op);
        cq_expect(p.a.send_cq, 2, IBV_WC_SUCCESS);
        REQUIRE_EQ(held(), 1);
        if (unmapped)
            munmap(at, 4096);
        REQUIRE_OK(ibv_dereg_mr(mr));
        cq_expect(p.b.recv_cq, 1, IBV_WC_LOC_PROT_ERR);
        REQUIRE_EQ(held(), 0);
        if (!unmapped)
            munmap(at, 4096);
        pair_close(&p);
    }
}

/* Memory of which nobody would notice that it goes away is left to the kernel, at either end. */
static void not_watched(void)
{
    struct pair p;

    REQUIRE_OK(setenv("SOFTHCA_WATCH", "0", 1));
    PAIR(&p, .type = IBV_QPT_RC, .inline_size = 64);
    leave(&p, 4);
    REQUIRE_EQ(held(), 0);
    pattern_fill(p.a.mem.p, 64, 9);
    recv_post(&p.b, 4, 0, 64);
    struct op op = op_make(&p.a, IBV_WR_SEND, 4, 0, 64);
    op.wr.send_flags |= IBV_SEND_INLINE;
    op_post(&p.a, &op);
    REQUIRE_EQ(held(), 1);
    for (uint32_t i = 0; i < 5; i++)
        cq_expect(p.b.recv_cq, i, IBV_WC_SUCCESS);
    pattern_check(p.b.mem.p, 64, 9);
    REQUIRE_EQ(held(), 0);
    pair_close(&p);
}

/* Run a second time with SOFTHCA_SHORT=64. */
static void no_longer_than(void)
{
    const char *set = getenv("SOFTHCA_SHORT");
    size_t most = set ? strtoul(set, NULL, 10) : HCA_PARCEL_ROOM;
    struct pair p;

    PAIR(&p, .type = IBV_QPT_RC);
    for (uint32_t i = 0; i < 2; i++) {
        recv_post(&p.b, i, 1024, most + 1);
        struct op op = op_make(&p.a, IBV_WR_SEND, i, 0, most + i);
        op_post(&p.a, &op);
        REQUIRE_EQ(held(), 1 - i);
        cq_expect(p.b.recv_cq, i, IBV_WC_SUCCESS);
    }
    pair_close(&p);
}

static const struct verbs_case cases[] = {
    CASE(many_before_polling), CASE(queue_pair_goes), CASE(overrun),        CASE(resize),
    CASE(region_goes),         CASE(not_watched),     CASE(no_longer_than),
};
VERBS_MAIN("short_messages", cases)
