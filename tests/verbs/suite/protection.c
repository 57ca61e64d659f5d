/* Keys, access rights, protection domains, bounds and lengths: which error each side sees, and that memory stays as it
 * was. IBA 9.7.4, 9.9 (error behaviour of requester and responder), 10.6, 11.6.2; man ibv_reg_mr, ibv_poll_cq. */
#include "support/cases.h"
#include "support/ops.h"
#include "support/require.h"

#include <sys/mman.h>

/* The request fails at the requester with this status, both queue pairs end in the error state, and the target is
 * untouched. */
static void refused_remotely(struct pair *p, struct op *op, enum ibv_wc_status status)
{
    static uint8_t before[65536];
    memset(p->b.mem.p, 0x3c, p->b.mem.size);
    memcpy(before, p->b.mem.p, sizeof before);
    op_post(&p->a, op);
    cq_expect(p->a.send_cq, op->wr.wr_id, status);
    end_await_state(&p->a, IBV_QPS_ERR);
    end_await_state(&p->b, IBV_QPS_ERR);
    REQUIRE(!memcmp(before, p->b.mem.p, sizeof before));
}

static void key_without_right(int rights, enum ibv_wr_opcode opcode)
{
    struct pair p;
    PAIR(&p, .mr_access = rights);
    struct end_address to = end_address(&p.b);
    struct memory own; /* the requester's own memory has every right */
    memory_make(&own, p.dev.pd, 4096, ACCESS_ALL);
    struct op op = op_rdma(&p.a, opcode, 1, 0, 100, &to, 0);
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
        op = op_atomic(&p.a, opcode, 1, 0, &to, 0, 1, 0);
    op.sge[0].addr = (uintptr_t)own.p;
    op.sge[0].lkey = own.mr->lkey;
    refused_remotely(&p, &op, IBV_WC_REM_ACCESS_ERR);
    memory_free(&own);
    pair_close(&p);
}

static void write_without_right(void)
{
    key_without_right(ACCESS_ALL & ~IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE);
    key_without_right(IBV_ACCESS_LOCAL_WRITE, IBV_WR_RDMA_WRITE);
}

static void read_without_right(void)
{
    key_without_right(ACCESS_ALL & ~IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_READ);
}

static void atomic_without_right(void)
{
    key_without_right(ACCESS_ALL & ~IBV_ACCESS_REMOTE_ATOMIC, IBV_WR_ATOMIC_FETCH_AND_ADD);
}

/* IBA 9.7.4.1: the queue pair itself must allow the kind of request; adapters answer "invalid request" or "access". */
static void queue_pair_without_right(void)
{
    const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};
    for (int i = 0; i < 3; i++) {
        struct pair p;
        struct ibv_wc wc;
        PAIR(&p, .qp_access = NO_ACCESS);
        struct end_address to = end_address(&p.b);
        struct op op = op_rdma(&p.a, opcodes[i], 1, 0, 8, &to, 0);
        if (i == 2)
            op = op_atomic(&p.a, opcodes[i], 1, 0, &to, 0, 1, 0);
        op_post(&p.a, &op);
        cq_next(p.a.send_cq, &wc);
        REQUIRE_MSG(wc.status == IBV_WC_REM_INV_REQ_ERR || wc.status == IBV_WC_REM_ACCESS_ERR,
                    "opcode %d ended with %s", i, ibv_wc_status_str(wc.status));
        end_await_state(&p.a, IBV_QPS_ERR);
        REQUIRE_EQ(p.b.mem.p[0], 0);
        pair_close(&p);
    }
}

static void out_of_bounds(void)
{
    const long offs[] = {65536 - 50, 65536, -1, -100, 1L << 40};
    for (int i = 0; i < 5; i++)
        for (int read = 0; read < 2; read++) {
            struct pair p;
            PAIR(&p, .type = IBV_QPT_RC);
            struct end_address to = end_address(&p.b);
            struct op op = op_rdma(&p.a, read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, 1, 0, 100, &to, (size_t)offs[i]);
            refused_remotely(&p, &op, IBV_WC_REM_ACCESS_ERR);
            pair_close(&p);
        }
}

/* Up to the last byte is inside. */
static void whole_region(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    struct end_address to = end_address(&p.b);
    pattern_fill(p.a.mem.p, 65536, 2);
    struct op op = op_rdma(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 65536, &to, 0);
    op_post(&p.a, &op);
    cq_expect(p.a.send_cq, 1, IBV_WC_SUCCESS);
    pattern_check(p.b.mem.p, 65536, 2);
    pair_close(&p);
}

static void wrong_remote_key(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    struct end_address to = end_address(&p.b);
    to.rkey ^= 0x5a5a5a00;
    struct op op = op_rdma(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 100, &to, 0);
    refused_remotely(&p, &op, IBV_WC_REM_ACCESS_ERR);
    pair_close(&p);
}

/* A key whose region is deregistered is refused, also when a new region lies at the same place. */
static void deregistered_key(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    struct end_address to = end_address(&p.b);
    REQUIRE_OK(ibv_dereg_mr(p.b.mem.mr));
    p.b.mem.mr = ibv_reg_mr(p.dev.pd, p.b.mem.p, p.b.mem.size, ACCESS_ALL);
    REQUIRE(p.b.mem.mr && p.b.mem.mr->rkey != to.rkey);
    struct op op = op_rdma(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 100, &to, 0);
    refused_remotely(&p, &op, IBV_WC_REM_ACCESS_ERR);
    pair_reconnect(&p);
    to = end_address(&p.b);
    op = op_rdma(&p.a, IBV_WR_RDMA_WRITE, 2, 0, 100, &to, 0);
    op_post(&p.a, &op);
    cq_expect(p.a.send_cq, 2, IBV_WC_SUCCESS);
    pair_close(&p);
}

static void key_of_another_domain(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    struct ibv_pd *pd = ibv_alloc_pd(p.dev.ctx);
    REQUIRE(pd != NULL);
    struct memory m;
    memory_make(&m, pd, 4096, ACCESS_ALL);
    struct end_address to = end_address(&p.b);
    to.addr = (uintptr_t)m.p;
    to.rkey = m.mr->rkey;
    struct op op = op_rdma(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 100, &to, 0);
    refused_remotely(&p, &op, IBV_WC_REM_ACCESS_ERR);
    REQUIRE_EQ(m.p[0], 0);
    memory_free(&m);
    REQUIRE_OK(ibv_dealloc_pd(pd));
    pair_close(&p);
}

/* What is wrong with an element of a local list. */
enum wrong { WRONG_KEY, BEYOND_END, BEFORE_START, OTHER_DOMAIN, READ_ONLY };

struct wrong_memory {
    struct ibv_pd *pd;
    struct memory other, read_only;
};

static struct ibv_sge wrong_make(struct wrong_memory *w, const struct end *e, enum wrong wrong)
{
    struct ibv_sge sge = {(uintptr_t)e->mem.p, 100, e->mem.mr->lkey};
    w->pd = ibv_alloc_pd(e->dev->ctx);
    REQUIRE(w->pd != NULL);
    memory_make(&w->other, w->pd, 4096, ACCESS_ALL);
    memory_make(&w->read_only, e->dev->pd, 4096, IBV_ACCESS_REMOTE_READ);
    if (wrong == WRONG_KEY)
        sge.lkey ^= 0x12340000;
    else if (wrong == BEYOND_END)
        sge.addr += e->mem.size - 99;
    else if (wrong == BEFORE_START)
        sge.addr -= 1;
    else if (wrong == OTHER_DOMAIN)
        sge = (struct ibv_sge){(uintptr_t)w->other.p, 100, w->other.mr->lkey};
    else
        sge = (struct ibv_sge){(uintptr_t)w->read_only.p, 100, w->read_only.mr->lkey};
    return sge;
}

static void wrong_free(struct wrong_memory *w)
{
    REQUIRE_EQ(w->other.p[0], 0);
    REQUIRE_EQ(w->read_only.p[0], 0);
    memory_free(&w->other);
    memory_free(&w->read_only);
    REQUIRE_OK(ibv_dealloc_pd(w->pd));
}

/* The next completion is an error of this id. `exact`: it is the one that IBA 11.6.2 names for it. */
static void expect_error(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status, bool exact)
{
    struct ibv_wc wc;
    cq_next(cq, &wc);
    REQUIRE_EQ(wc.wr_id, id);
    REQUIRE(wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_WR_FLUSH_ERR);
    if (exact)
        REQUIRE_MSG(wc.status == status, "\"%s\", not \"%s\"", ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
}

static void send_from_wrong(bool exact)
{
    for (enum wrong wrong = WRONG_KEY; wrong <= OTHER_DOMAIN; wrong++) {
        struct pair p;
        struct wrong_memory w;
        PAIR(&p, .type = IBV_QPT_RC);
        struct op op = op_make(&p.a, IBV_WR_SEND, 1, 0, 100);
        op.sge[0] = wrong_make(&w, &p.a, wrong);
        recv_post(&p.b, 2, 0, 100);
        op_post(&p.a, &op);
        expect_error(p.a.send_cq, 1, IBV_WC_LOC_PROT_ERR, exact);
        end_await_state(&p.a, IBV_QPS_ERR);
        cq_expect_none(p.b.recv_cq, 20);
        wrong_free(&w);
        pair_close(&p);
    }
}

/* A local key that is wrong, or memory beyond its region: an error, and nothing is received. */
static void send_from_wrong_memory(void)
{
    send_from_wrong(false);
}

static void send_from_wrong_memory_status(void)
{
    send_from_wrong(true);
}

static void receive_into_wrong(bool exact)
{
    const enum wrong wrongs[] = {WRONG_KEY, BEYOND_END, OTHER_DOMAIN, READ_ONLY};
    for (int i = 0; i < 4; i++) {
        struct pair p;
        struct wrong_memory w;
        PAIR(&p, .type = IBV_QPT_RC);
        struct ibv_sge sge = wrong_make(&w, &p.b, wrongs[i]);
        REQUIRE_OK(recv_try(&p.b, 1, &sge, 1));
        memset(p.a.mem.p, 1, 100);
        struct op op = op_make(&p.a, IBV_WR_SEND, 2, 0, 100);
        op_post(&p.a, &op);
        expect_error(p.b.recv_cq, 1, IBV_WC_LOC_PROT_ERR, exact);
        cq_expect(p.a.send_cq, 2, IBV_WC_REM_OP_ERR);
        end_await_state(&p.b, IBV_QPS_ERR);
        end_await_state(&p.a, IBV_QPS_ERR);
        wrong_free(&w);
        pair_close(&p);
    }
}

/* The same at the receiver: it gets the error, the sender a remote operation error. IBA 9.9. */
static void receive_into_wrong_memory(void)
{
    receive_into_wrong(false);
}

static void receive_into_wrong_memory_status(void)
{
    receive_into_wrong(true);
}

/* A read writes to local memory, which must allow that. */
static void read_into_read_only(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    struct memory m;
    memory_make(&m, p.dev.pd, 4096, IBV_ACCESS_REMOTE_READ);
    struct end_address from = end_address(&p.b);
    memset(p.b.mem.p, 5, 100);
    struct op op = op_rdma(&p.a, IBV_WR_RDMA_READ, 1, 0, 100, &from, 0);
    op.sge[0] = (struct ibv_sge){(uintptr_t)m.p, 100, m.mr->lkey};
    op_post(&p.a, &op);
    cq_expect(p.a.send_cq, 1, IBV_WC_LOC_PROT_ERR);
    REQUIRE_EQ(m.p[0], 0);
    memory_free(&m);
    pair_close(&p);
}

/* Sending from memory without any right is allowed: local read is always enabled (man ibv_reg_mr). */
static void send_from_read_only(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    void *text = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(text != MAP_FAILED);
    pattern_fill(text, 100, 8);
    REQUIRE_OK(mprotect(text, 4096, PROT_READ));
    struct ibv_mr *mr = ibv_reg_mr(p.dev.pd, text, 4096, 0);
    REQUIRE(mr != NULL);
    struct op op = op_make(&p.a, IBV_WR_SEND, 1, 0, 100);
    op.sge[0] = (struct ibv_sge){(uintptr_t)text, 100, mr->lkey};
    recv_post(&p.b, 2, 0, 100);
    op_post(&p.a, &op);
    cq_expect(p.a.send_cq, 1, IBV_WC_SUCCESS);
    cq_expect(p.b.recv_cq, 2, IBV_WC_SUCCESS);
    pattern_check(p.b.mem.p, 100, 8);
    REQUIRE_OK(ibv_dereg_mr(mr));
    munmap(text, 4096);
    pair_close(&p);
}

/* man ibv_reg_mr: remote write or atomic needs local write. Memory that is not there, or not writable, cannot be
 * registered. */
static void bad_registrations_refused(void)
{
    struct device d;
    device_open(&d);
    uint8_t *m = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(m != MAP_FAILED);
    REQUIRE(ibv_reg_mr(d.pd, m, 4096, IBV_ACCESS_REMOTE_WRITE) == NULL);
    REQUIRE(ibv_reg_mr(d.pd, m, 4096, IBV_ACCESS_REMOTE_ATOMIC) == NULL);
    REQUIRE_OK(munmap(m + 4096, 4096));
    REQUIRE(ibv_reg_mr(d.pd, m, 8192, ACCESS_ALL) == NULL);
    REQUIRE_OK(mprotect(m, 4096, PROT_READ));
    REQUIRE(ibv_reg_mr(d.pd, m, 4096, ACCESS_ALL) == NULL);
    munmap(m, 4096);
    device_close(&d);
}

static void region_describes_itself(void)
{
    struct device d;
    struct memory m, again;
    device_open(&d);
    memory_make(&m, d.pd, 10000, ACCESS_ALL);
    REQUIRE(m.mr->addr == m.p && m.mr->length == 10000 && m.mr->pd == d.pd && m.mr->context == d.ctx);
    again = m; /* the same memory twice: two regions with keys of their own */
    again.mr = ibv_reg_mr(d.pd, m.p, m.size, IBV_ACCESS_LOCAL_WRITE);
    REQUIRE(again.mr && again.mr->lkey != m.mr->lkey);
    REQUIRE_OK(ibv_dereg_mr(again.mr));
    memory_free(&m);
    device_close(&d);
}

/* man ibv_rereg_mr: a change of access counts for what follows. The keys stay, which peers hold. */
static void registered_anew(void)
{
    struct pair p;
    PAIR(&p, .type = IBV_QPT_RC);
    struct ibv_mr *mr = p.b.mem.mr;
    const uint32_t lkey = mr->lkey, rkey = mr->rkey;
    REQUIRE_OK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE));
    REQUIRE(mr->lkey == lkey && mr->rkey == rkey);
    struct ibv_pd *other = ibv_alloc_pd(p.dev.ctx), *before = mr->pd;
    REQUIRE_OK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0));
    REQUIRE(mr->lkey == lkey && mr->rkey == rkey && mr->pd == other);
    REQUIRE_ERR(ibv_dealloc_pd(other), EBUSY);
    REQUIRE_OK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, before, NULL, 0, 0));
    REQUIRE_OK(ibv_dealloc_pd(other));
    struct end_address to = end_address(&p.b);
    struct op op = op_rdma(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 100, &to, 0);
    refused_remotely(&p, &op, IBV_WC_REM_ACCESS_ERR);
    pair_close(&p);
}

static void longer_than(const uint32_t *lens, int n, bool exact)
{
    for (int i = 0; i < n; i++) {
        struct pair p;
        struct ibv_wc wc;
        PAIR(&p, .type = IBV_QPT_RC);
        memset(p.b.mem.p, 0x44, 65536);
        recv_post(&p.b, 1, 0, 100);
        struct op op = op_make(&p.a, IBV_WR_SEND, 2, 0, lens[i]);
        op_post(&p.a, &op);
        expect_error(p.b.recv_cq, 1, IBV_WC_LOC_LEN_ERR, exact);
        cq_next(p.a.send_cq, &wc);
        REQUIRE(wc.status != IBV_WC_SUCCESS);
        if (exact)
            REQUIRE_EQ(wc.status, IBV_WC_REM_INV_REQ_ERR);
        end_await_state(&p.a, IBV_QPS_ERR);
        end_await_state(&p.b, IBV_QPS_ERR);
        for (int k = 100; k < 65536; k++)
            REQUIRE_EQ(p.b.mem.p[k], 0x44);
        pair_close(&p);
    }
}

/* A message longer than its receive: both sides end in an error, and memory behind the receive stays as it was. */
static void longer_than_receive(void)
{
    longer_than((const uint32_t[]){101, 1000, 5000}, 3, false);
}

/* IBA 9.7.4.1, 9.9: a length error at the receiver, an invalid request at the sender. */
static void longer_than_receive_status(void)
{
    longer_than((const uint32_t[]){101, 1000, 5000}, 3, true);
}

/* An error of one connection does not touch another one of the same memory. */
static void others_go_on(void)
{
    struct pair p;
    struct end c, e;
    PAIR(&p, .type = IBV_QPT_RC);
    end_open(&c, &p.dev, &(struct end_options){0});
    end_open(&e, &p.dev, &(struct end_options){0});
    struct end_address ca = end_address(&c), ea = end_address(&e);
    end_connect(&c, &ea);
    end_connect(&e, &ca);
    ea.rkey ^= 0x11000000;
    struct op op = op_rdma(&c, IBV_WR_RDMA_WRITE, 1, 0, 100, &ea, 0);
    op_post(&c, &op);
    cq_expect(c.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
    pair_exchange(&p, 1);
    end_close(&c);
    end_close(&e);
    pair_close(&p);
}

static const struct verbs_case cases[] = {
    CASE(write_without_right),
    CASE(read_without_right),
    CASE(atomic_without_right),
    CASE(queue_pair_without_right),
    CASE(out_of_bounds),
    CASE(whole_region),
    CASE(wrong_remote_key),
    CASE(deregistered_key),
    CASE(key_of_another_domain),
    CASE(send_from_wrong_memory),
    CASE(send_from_wrong_memory_status),
    CASE(receive_into_wrong_memory),
    CASE(receive_into_wrong_memory_status),
    CASE(read_into_read_only),
    CASE(send_from_read_only),
    CASE(bad_registrations_refused),
    CASE(region_describes_itself),
    CASE(registered_anew),
    CASE(longer_than_receive),
    CASE(longer_than_receive_status),
    CASE(others_go_on),
};
VERBS_MAIN("protection", cases)
