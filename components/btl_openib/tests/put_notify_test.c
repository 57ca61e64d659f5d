/* Puts with notice, with verbs that are made up: by which queue pair and in how many requests they go, what they take
 * of credits, and what the receiver owes for them and hands on. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "data/completion.h"
#include "data/rdma.h"
#include "data/send.h"
#include "support/run_suite.h"

enum { HIGH = 1000, INLINE = 100, PIECE = 2048, DEPTH = 64, CREDITS = 8, WINDOW = 6, WORD = 0x31234567 };

static struct {
    struct ibv_send_wr wr[DEPTH];
    struct ibv_sge sge[DEPTH];
    struct ibv_qp *qp[DEPTH];
    int n, most; /* taken by the device; it refuses further ones */
} posted;
static struct ibv_context device;
static struct ibv_cq cq[IB_PRIORITIES];
static struct ibv_srq srq;
static struct ibv_qp qp[IB_PRIORITIES];
static struct ibv_wc found[IB_POLLED]; /* by the next poll of `found_in` */
static int n_found, found_in;
static struct ib_params params;
static struct ib_queue_spec spec;
static struct ib_module *m;
static struct ib_peer *p;
static char local[16 * PIECE];

static int post(struct ibv_qp *to, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    for (; wr; wr = wr->next) {
        *bad = wr;
        if (posted.n == posted.most)
            return ENOMEM;
        posted.qp[posted.n] = to;
        posted.sge[posted.n] = wr->sg_list[0];
        posted.wr[posted.n++] = *wr;
    }
    return 0;
}

static int poll_cq(struct ibv_cq *from, int most, struct ibv_wc *wc)
{
    int n = from == &cq[found_in] ? n_found : 0;

    ck_assert_int_le(n, most);
    memcpy(wc, found, (size_t)n * sizeof *wc);
    n_found -= n;
    return n;
}

static int post_srq_recv(struct ibv_srq *to, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    (void)to, (void)wr, (void)bad;
    return 0;
}

/* ---- what the layers above see ---- */

struct op {
    struct st_btl_op op;
    int calls, rc;
};

static void done(struct st_btl_op *o, int rc)
{
    struct op *op = ST_CONTAINER(o, struct op, op);
    op->calls++;
    op->rc = rc;
}

static int n_notices;
static uint32_t noticed;

static void notice(void *arg, const struct st_frag *f)
{
    (void)arg;
    ck_assert_uint_eq(f->hdr_len, sizeof noticed);
    ck_assert_uint_eq(f->len, 0);
    ck_assert_int_eq(f->rank, 1);
    memcpy(&noticed, f->hdr, sizeof noticed);
    n_notices++;
}

static void unexpected(void *arg, const struct st_frag *f)
{
    (void)arg, (void)f;
    ck_abort_msg("handed to another client");
}

static void open_module(void)
{
    memset(&posted, 0, sizeof posted);
    posted.most = DEPTH;
    n_found = n_notices = 0;
    m = calloc(1, sizeof *m);
    device.ops = (struct ibv_context_ops){.post_send = post, .poll_cq = poll_cq, .post_srq_recv = post_srq_recv};
    srq.context = &device;
    m->dev.par = &params;
    m->dev.max_rdma = PIECE;
    m->spec[IB_HIGH].size = HIGH;
    m->qps.n_peers = 1;
    m->poll.hot = true;
    m->poll.until = UINT32_MAX;
    m->poll.frag.btl = &m->btl;
    ib_brief_init(&m->brief, INLINE);
    ck_assert_int_eq(ib_rdmas_open(&m->rdma), STRATA_OK);
    ck_assert_int_eq(ib_qp_map_init(&m->qps.map), STRATA_OK);
    for (int i = 0; i < ST_AM_COUNT; i++)
        m->btl.am[i].fn = i == ST_AM_NOTICE ? notice : unexpected;
    p = calloc(1, sizeof *p);
    p->ep = (struct st_btl_endpoint){.btl = &m->btl, .rank = 1};
    p->state = IB_UP;
    p->usual = true;
    for (int i = 0; i < IB_PRIORITIES; i++) {
        cq[i].context = qp[i].context = &device;
        m->q[i] = (struct ib_queue){.cq = &cq[i], .srq = &srq, .spec = &spec, .batch = 100, .priority = (uint8_t)i};
        p->q[i] = (struct ib_qp){.qp = &qp[i],
                                 .peer = p,
                                 .priority = (uint8_t)i,
                                 .credits = CREDITS,
                                 .window = WINDOW,
                                 .depth = DEPTH,
                                 .every = DEPTH / 2 - 1,
                                 .mask = DEPTH - 1,
                                 .number = 7u + (uint32_t)i};
        qp[i].qp_num = p->q[i].number;
        p->q[i].sent = calloc(DEPTH, sizeof *p->q[i].sent);
        ck_assert_int_eq(ib_qp_map_add(&m->qps.map, &p->q[i]), STRATA_OK);
    }
}

static void close_module(void)
{
    for (int i = 0; i < IB_PRIORITIES; i++)
        free(p->q[i].sent);
    ib_qp_map_destroy(&m->qps.map);
    st_slab_destroy(&m->rdma.slab);
    free(p);
    free(m);
}

static int put(struct op *op, size_t len)
{
    static struct ibv_mr mr = {.lkey = 5};
    static struct st_rcache_entry e = {.handle = &mr};
    struct st_btl_reg reg = {.handle = &e};
    struct ib_key key = {.rkey = 9};
    uint8_t theirs[ST_BTL_KEY_MAX] = {0};

    memcpy(theirs, &key, sizeof key);
    *op = (struct op){.op.done = done};
    return ib_put_notify(&p->ep, local, 4096, theirs, len, &reg, WORD, &op->op);
}

/* The last of n requests notifies, and no other does. */
static void went(int priority, int n, size_t len)
{
    size_t sum = 0;

    ck_assert_int_eq(posted.n, n);
    for (int i = 0; i < n; i++) {
        const struct ibv_send_wr *wr = &posted.wr[i];
        ck_assert_ptr_eq(posted.qp[i], &qp[priority]);
        ck_assert_int_eq(wr->opcode, i == n - 1 ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE);
        ck_assert_uint_eq(wr->wr.rdma.remote_addr, 4096 + sum);
        ck_assert_uint_eq(wr->wr.rdma.rkey, 9);
        ck_assert_uint_eq(posted.sge[i].addr, (uintptr_t)local + sum);
        sum += posted.sge[i].length;
    }
    ck_assert_uint_eq(sum, len);
    ck_assert_uint_eq(ntohl(posted.wr[n - 1].imm_data), WORD);
    ck_assert_uint_eq(p->q[priority].posted, (uint32_t)n);
    ck_assert_uint_eq(p->q[priority].credits, CREDITS - 1);
    ck_assert_uint_eq(p->q[!priority].credits, CREDITS);
    ck_assert_uint_eq(p->q[IB_LOW].messages, priority == IB_LOW);
}

/* The device has done all that it took. */
static void completed(int priority)
{
    for (int i = 0; i < posted.n; i++)
        if (posted.qp[i] == &qp[priority] && posted.wr[i].send_flags & IBV_SEND_SIGNALED)
            ib_sent_next(&p->q[priority]);
    posted.n = 0;
}

static const struct {
    size_t len;
    int priority, requests, rc;
} ways[] = {
    {1, IB_HIGH, 1, 1},
    {INLINE, IB_HIGH, 1, 1},
    {INLINE + 1, IB_HIGH, 1, STRATA_OK},
    {HIGH, IB_HIGH, 1, STRATA_OK},
    {HIGH + 1, IB_LOW, 1, STRATA_OK},
    {PIECE, IB_LOW, 1, STRATA_OK},
    {PIECE + 1, IB_LOW, 2, STRATA_OK},
    {sizeof local, IB_LOW, sizeof local / PIECE, STRATA_OK},
};

START_TEST(by_length)
{
    struct op op;

    ck_assert_int_eq(put(&op, ways[_i].len), ways[_i].rc);
    went(ways[_i].priority, ways[_i].requests, ways[_i].len);
    ck_assert_int_eq(op.calls, 0);
    completed(ways[_i].priority);
    ck_assert_int_eq(op.calls, ways[_i].rc == STRATA_OK);
    ck_assert_int_eq(op.rc, STRATA_OK);
    ck_assert(p->q[ways[_i].priority].messages == (ways[_i].priority == IB_LOW));
}
END_TEST

/* One request of high priority is not cut, whatever the longest one of a put is. */
START_TEST(one_request_of_high)
{
    struct op op;

    m->dev.max_rdma = 64;
    ck_assert_int_eq(put(&op, HIGH), STRATA_OK);
    went(IB_HIGH, 1, HIGH);
}
END_TEST

/* Without a credit, without room, refused by the device: nothing is taken. */
START_TEST(nothing_taken)
{
    const size_t len = ways[_i].len;
    struct ib_qp *q = &p->q[ways[_i].priority];
    struct op op;

    q->credits = 0;
    ck_assert_int_eq(put(&op, len), STRATA_ERR_AGAIN);
    q->credits = CREDITS;
    q->posted = DEPTH - 4;
    ck_assert_int_eq(put(&op, len), STRATA_ERR_AGAIN);
    q->posted = 0;
    ck_assert_int_eq(posted.n, 0);
    if (ways[_i].requests == 1) {
        posted.most = 0;
        ck_assert_int_eq(put(&op, len), STRATA_ERR_AGAIN);
        posted.most = DEPTH;
    }
    ck_assert(q->credits == CREDITS && q->posted == 0 && q->signals == 0 && q->messages == 0);
    ck_assert_int_eq(op.calls, 0);
    ck_assert_uint_eq(m->btl.messages_sent, 0);
    ck_assert_int_eq(put(&op, len), ways[_i].rc);
    went(ways[_i].priority, ways[_i].requests, len);
}
END_TEST

/* The pieces that find no room go later: without a credit, and counted as a message with the last of them. */
START_TEST(last_piece_needs_no_credit)
{
    struct op op;
    struct ib_qp *q = &p->q[IB_LOW];

    q->credits = 1;
    posted.most = 3;
    ck_assert_int_eq(put(&op, 5 * PIECE), STRATA_OK);
    ck_assert_int_eq(posted.n, 3);
    ck_assert_uint_eq(q->credits, 0);
    ck_assert_uint_eq(q->messages, 0);
    ck_assert(!ib_drained(p)); /* a connection that closes waits */
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(posted.wr[i].opcode, IBV_WR_RDMA_WRITE);
    struct op next;
    ck_assert_int_eq(put(&next, 5 * PIECE), STRATA_ERR_AGAIN);
    posted.most = DEPTH;
    ib_rdma_progress(m);
    ck_assert_int_eq(posted.n, 5);
    ck_assert_int_eq(posted.wr[3].opcode, IBV_WR_RDMA_WRITE);
    ck_assert_int_eq(posted.wr[4].opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
    ck_assert_uint_eq(q->messages, 1);
    ck_assert_int_eq(op.calls, 0);
    completed(IB_LOW);
    ck_assert_int_eq(op.calls, 1);
    ck_assert(ib_drained(p));
}
END_TEST

/* A lost connection ends each with an error, once: what the device has, and what waits. */
START_TEST(lost)
{
    struct op op[4];

    ck_assert_int_eq(put(&op[0], HIGH), STRATA_OK);
    ck_assert_int_eq(put(&op[1], PIECE), STRATA_OK);
    ck_assert_int_eq(put(&op[2], 2 * PIECE), STRATA_OK);
    posted.most = posted.n + 1;
    ck_assert_int_eq(put(&op[3], 3 * PIECE), STRATA_OK);
    p->state = IB_FAILED;
    ib_credits_drop(p);
    for (int i = 0; i < IB_PRIORITIES; i++)
        ib_sent_drop(&p->q[i], STRATA_ERR_PEER);
    ib_rdma_cancel(p);
    for (int i = 0; i < 4; i++)
        ck_assert(op[i].calls == 1 && op[i].rc == STRATA_ERR_PEER);
    ck_assert_int_eq(put(&op[0], 8), STRATA_ERR_PEER);
    ck_assert_uint_eq(m->rdma.slab.in_use, 0);
}
END_TEST

/* A send that looks for room does not end one: done is called from progress only. */
START_TEST(ends_in_progress)
{
    struct op op;

    ck_assert_int_eq(put(&op, HIGH), STRATA_OK);
    found[0] = (struct ibv_wc){.wr_id = posted.wr[0].wr_id, .status = IBV_WC_SUCCESS, .qp_num = p->q[IB_HIGH].number};
    n_found = 1;
    found_in = IB_HIGH;
    ib_reclaim(m);
    ck_assert_int_eq(n_found, 0);
    ck_assert_int_eq(op.calls, 0);
    ck_assert_int_eq(ib_unstash(m), 1);
    ck_assert_int_eq(op.calls, 1);
    ck_assert_uint_eq(p->q[IB_HIGH].done, 1);
}
END_TEST

/* ---- the receiver ---- */

static struct ib_buffer *arrives(int priority, uint32_t imm)
{
    static struct ib_buffer b;
    static char nothing[64]; /* the receive buffer is as it was: here as a message of no client */

    memset(&b, 0, sizeof b);
    memset(nothing, 0xee, sizeof nothing);
    b.data = nothing;
    found[0] = (struct ibv_wc){.wr_id = (uintptr_t)&b,
                               .status = IBV_WC_SUCCESS,
                               .opcode = IBV_WC_RECV_RDMA_WITH_IMM,
                               .wc_flags = IBV_WC_WITH_IMM,
                               .imm_data = htonl(imm),
                               .byte_len = 5000, /* of the data, not of the buffer */
                               .qp_num = p->q[priority].number};
    n_found = 1;
    found_in = priority;
    ck_assert_int_eq(priority == IB_HIGH ? ib_poll_high(m) : ib_poll_low(m), 1);
    return &b;
}

/* Each is a message: received, owed, its buffer to be posted again; when many are owed they are returned by a message
 * of their own. */
START_TEST(received)
{
    struct ib_qp *q = &p->q[_i];

    for (uint32_t i = 1; i <= WINDOW; i++) {
        ck_assert(!p->owing);
        const struct ib_buffer *b = arrives(_i, WORD + i);
        ck_assert_int_eq(n_notices, (int)i);
        ck_assert_uint_eq(noticed, WORD + i);
        ck_assert_uint_eq(q->received, i);
        ck_assert_uint_eq(p->owed[_i], i);
        ck_assert_uint_eq(p->owed[!_i], 0);
        ck_assert_ptr_eq(m->q[_i].again, &b->wr);
        ck_assert_uint_eq(m->q[_i].n_again, i);
        ck_assert_uint_eq(q->credits, CREDITS);
        ck_assert_uint_eq(q->heard.len, 0);
    }
    ck_assert(p->owing);
    ib_send_credits(m);
    ck_assert_uint_eq(p->owed[_i], 0);
    ck_assert_int_eq(posted.n, 1);
    ck_assert_int_eq(posted.wr[0].opcode, IBV_WR_SEND);
}
END_TEST

/* A kept header, and what would be one in the immediate data, have nothing to do with it. */
START_TEST(not_a_compressed_header)
{
    struct ib_qp *q = &p->q[IB_HIGH];

    q->heard = (struct ib_kept_hdr){.word = {1, 2}, .len = 16, .am = ST_AM_PML};
    for (uint32_t bit = 0; bit < 32; bit++) {
        arrives(IB_HIGH, 1u << bit);
        ck_assert_uint_eq(noticed, 1u << bit);
    }
    arrives(IB_HIGH, UINT32_MAX);
    ck_assert_int_eq(n_notices, 33);
    ck_assert(q->heard.word[0] == 1 && q->heard.word[1] == 2 && q->credits == CREDITS);
}
END_TEST

/* It finds its way from the stash, too, as after a send that looked for room. */
START_TEST(stashed)
{
    arrives(IB_HIGH, 1);
    n_found = 1;
    ib_reclaim(m);
    ck_assert(m->poll.stashed && n_notices == 1);
    ck_assert_int_eq(ib_unstash(m), 1);
    ck_assert_int_eq(n_notices, 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("puts with notice");
    TCase *t = tcase_create("all");
    const int n = (int)(sizeof ways / sizeof *ways);

    tcase_add_checked_fixture(t, open_module, close_module);
    tcase_add_loop_test(t, by_length, 0, n);
    tcase_add_test(t, one_request_of_high);
    tcase_add_loop_test(t, nothing_taken, 0, n);
    tcase_add_test(t, last_piece_needs_no_credit);
    tcase_add_test(t, lost);
    tcase_add_test(t, ends_in_progress);
    tcase_add_loop_test(t, received, 0, IB_PRIORITIES);
    tcase_add_test(t, not_a_compressed_header);
    tcase_add_test(t, stashed);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
