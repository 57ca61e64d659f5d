/* Rings of eager RDMA between two modules with verbs that are made up, message by message: whatever goes by the ring
 * and beside it, of whatever length, comes once and in order; numbers begin anew; refused posts take nothing. */
/* one thread */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <strata/sdk/clock.h>
#include <string.h>
#include <time.h>
#include "data/credits.h"
#include "data/send.h"
#include "module.h"
#include "support/holds.h"
#include "support/run_suite.h"

enum { SIZE = 2048, DEPTH = 128, CREDITS = 64, INLINE = 256, SLOTS = 20, SLOT = 128, SPAN = 8, ARRIVALS = 1024 };

/* Completions: messages by send and receive, and ends of sends. */
struct arrivals {
    struct ib_buffer buffer[ARRIVALS];
    char data[ARRIVALS][SIZE];
    struct ibv_wc wc[ARRIVALS];
    uint32_t made, polled;
};
struct client {
    struct side *side;
    enum st_am am;
};
static struct side {
    struct ib_module m;
    struct client clients[ST_AM_COUNT];
    struct ib_peer *p;
    struct arrivals in;
    struct ib_buffer out[DEPTH];
    char out_data[DEPTH][SIZE];
    struct ibv_context device;
    struct ibv_cq cq[IB_PRIORITIES];
    struct ibv_srq srq;
    struct ibv_qp qp[IB_PRIORITIES];
    struct ibv_mr mr;
    struct st_rte rte;
    struct st_rcache cache;
    char ring[(SLOTS + SPAN - 1) * SLOT] __attribute__((aligned(64))), staging[(SLOTS + SPAN - 1) * SLOT];
    uint32_t got; /* messages */
    bool answers; /* from within its deliver */
    uint32_t answered;
} side[2];
static struct ib_params params;
static struct ib_queue_spec spec;
static uint32_t seed, refuse; /* of the next posts, one of so many is refused; 0: none */
static uint32_t odd_clients;  /* of nine messages so many are not the PML's */
static bool beside;           /* messages go by send and receive */

static uint32_t any(uint32_t n)
{
    return (seed = seed * 1664525 + 1013904223) / 7 % n;
}

/* ---- verbs ---- */

static void arrive(struct side *to, struct ibv_wc wc, const void *data, uint32_t len)
{
    uint32_t i = to->in.made++ % ARRIVALS;

    HOLDS(to->in.made - to->in.polled <= ARRIVALS);
    HOLDS(len <= SIZE);
    if (data) {
        to->in.buffer[i].data = to->in.data[i];
        memcpy(to->in.data[i], data, len);
        wc.wr_id = (uintptr_t)&to->in.buffer[i];
        wc.byte_len = len;
    }
    to->in.wc[i] = wc;
}

static int post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct side *from = qp == &side[0].qp[IB_HIGH] ? &side[0] : &side[1], *to = &side[from == side];
    const struct ib_qp *q = &from->p->q[IB_HIGH];

    HOLDS(qp == &from->qp[IB_HIGH]);
    for (; wr; wr = wr->next) {
        const void *data = (const void *)(uintptr_t)wr->sg_list[0].addr;
        *bad = wr;
        if (refuse && any(refuse) == 0)
            return ENOMEM;
        HOLDS(q->posted - q->done <= DEPTH);
        HOLDS(wr->sg_list[0].length <= INLINE || !(wr->send_flags & IBV_SEND_INLINE));
        if (wr->opcode != IBV_WR_SEND) {
            HOLDS(wr->wr.rdma.remote_addr >= (uintptr_t)to->ring);
            HOLDS(wr->wr.rdma.remote_addr + wr->sg_list[0].length <= (uintptr_t)to->ring + sizeof to->ring);
            memcpy((void *)(uintptr_t)wr->wr.rdma.remote_addr, data, wr->sg_list[0].length);
        }
        if (wr->opcode != IBV_WR_RDMA_WRITE) {
            bool imm = wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
            arrive(to,
                   (struct ibv_wc){.qp_num = to->qp[IB_HIGH].qp_num,
                                   .opcode = imm ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
                                   .wc_flags = imm ? IBV_WC_WITH_IMM : 0,
                                   .imm_data = wr->imm_data},
                   data, imm ? 0 : wr->sg_list[0].length);
        }
        if (wr->send_flags & IBV_SEND_SIGNALED)
            arrive(from, (struct ibv_wc){.wr_id = wr->wr_id, .qp_num = qp->qp_num}, NULL, 0);
    }
    return 0;
}

static int poll_cq(struct ibv_cq *from, int most, struct ibv_wc *wc)
{
    struct side *s = from == &side[0].cq[IB_HIGH] ? &side[0] : &side[1];
    int n = 0;

    for (; from == &s->cq[IB_HIGH] && n < most && s->in.polled != s->in.made; n++)
        wc[n] = s->in.wc[s->in.polled++ % ARRIVALS];
    return n;
}

static int post_srq_recv(struct ibv_srq *to, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    (void)to, (void)wr, (void)bad;
    return 0;
}

static void apply_nothing(struct st_rcache *cache)
{
    (void)cache;
}

/* ---- the layer above ---- */

static enum st_am client_of(uint32_t i)
{
    return i % 9 < odd_clients ? ST_AM_STREAM : ST_AM_PML;
}
/* Bytes of message i; its header is as long as most in three of four. */
static uint32_t bytes_of(uint32_t i)
{
    return i % 5 < 3 ? i % (IB_LINE_DATA + 1) : i * 7 % 1000;
}
static uint32_t header_of(uint32_t i)
{
    return i % 4 ? IB_USUAL_HDR : 8 + i % 24;
}

static int send_number(struct side *s, uint32_t i)
{
    char hdr[32], data[1024];

    if (s->p->ring_out && !s->p->ring_out->staging.mr)
        s->p->ring_out->staging = (struct ib_ring_memory){
            .piece = {.fd = -1, .memory = s->staging, .length = sizeof s->staging}, .mr = &s->mr};
    memset(hdr, (int)(i & 0xff), sizeof hdr);
    memcpy(hdr, &i, sizeof i);
    memset(data, (int)(i & 0xff), sizeof data);
    return (beside ? ib_send : ib_send_eager)(&s->p->ep, client_of(i), hdr, header_of(i), data, bytes_of(i));
}

static void deliver(void *arg, const struct st_frag *f)
{
    const struct client *client = arg;
    struct side *s = client->side;
    uint32_t i;
    char want[1024];

    memcpy(&i, f->hdr, sizeof i);
    HOLDS(i == s->got);
    HOLDS(client->am == client_of(i));
    HOLDS(f->hdr_len == header_of(i));
    HOLDS(f->len == bytes_of(i));
    HOLDS(f->rank == (s == side ? 1 : 0));
    if (s->answers && any(3) == 0)
        s->answered += send_number(s, s->answered) == STRATA_OK;
    memset(want, (int)(i & 0xff), sizeof want);
    HOLDS(memcmp(f->data, want, f->len) == 0);
    HOLDS(memcmp((const char *)f->hdr + sizeof i, want, f->hdr_len - sizeof i) == 0);
    s->got++;
}

static void open_side(struct side *s, uint32_t begin, uint8_t first)
{
    static const struct st_rcache_ops ops = {.apply = apply_nothing};
    int me = s == &side[1];
    struct ib_module *m = &s->m;

    memset(s, 0, sizeof *s);
    s->device.ops = (struct ibv_context_ops){.post_send = post, .poll_cq = poll_cq, .post_srq_recv = post_srq_recv};
    s->srq.context = &s->device;
    s->rte = (struct st_rte){.rank = me, .size = 2};
    s->cache.ops = &ops;
    m->rte = &s->rte;
    m->registrar.cache = &s->cache;
    s->device.async_fd = -1;
    m->dev.verbs = &s->device;
    m->dev.par = &params;
    m->spec[IB_HIGH].size = m->spec[IB_LOW].size = SIZE;
    m->qps.n_peers = 1;
    m->poll.hot = true;
    m->poll.until = 32;
    m->poll.frag.btl = &m->btl;
    st_list_init(&m->rdma.waiting);
    st_list_init(&m->conns.pending);
    ib_brief_init(&m->brief, INLINE);
    ck_assert_int_eq(ib_qp_map_init(&m->qps.map), STRATA_OK);
    for (int i = 0; i < ST_AM_COUNT; i++) {
        m->btl.am[i].fn = deliver;
        s->clients[i] = (struct client){s, (enum st_am)i};
        m->btl.am[i].arg = &s->clients[i];
    }
    s->p = calloc(1, sizeof *s->p);
    s->p->ep = (struct st_btl_endpoint){.btl = &m->btl, .rank = !me};
    s->p->state = IB_UP;
    s->p->usual = true;
    m->peers.all = s->p;
    m->peers.n = 1;
    ck_assert_int_eq(st_rank_table_init(&m->peers.table, 2), STRATA_OK);
    ck_assert_int_eq(st_rank_table_set(&m->peers.table, (uint32_t)!me, s->p), STRATA_OK);
    for (int i = 0; i < IB_PRIORITIES; i++) {
        s->cq[i].context = s->qp[i].context = &s->device;
        m->q[i] = (struct ib_queue){
            .cq = &s->cq[i], .srq = &s->srq, .spec = &spec, .batch = 100, .priority = (uint8_t)i, .read = true};
        s->p->q[i] = (struct ib_qp){.qp = &s->qp[i],
                                    .peer = s->p,
                                    .priority = (uint8_t)i,
                                    .credits = CREDITS,
                                    .most_credits = CREDITS,
                                    .window = 3 * CREDITS / 4,
                                    .depth = DEPTH,
                                    .every = DEPTH / 4 - 1,
                                    .mask = DEPTH - 1,
                                    .posted = begin,
                                    .done = begin,
                                    .received = begin,
                                    .packet = IB_NO_PACKETS,
                                    .number = 7u + (uint32_t)i + 2 * (uint32_t)me};
        s->qp[i].qp_num = s->p->q[i].number;
        s->p->q[i].sent = calloc(DEPTH, sizeof *s->p->q[i].sent);
        ck_assert_int_eq(ib_qp_map_add(&m->qps.map, &s->p->q[i]), STRATA_OK);
    }
    for (uint32_t i = 0; i < DEPTH; i++) {
        s->out[i].data = s->out_data[i];
        ib_buffer_put(&m->q[IB_HIGH].sends, &s->out[i]);
    }
    ck_assert_int_eq(ib_eager_open(m), STRATA_OK);
    m->eager.rings[0].first = first;
    m->eager.rings[0].memory =
        (struct ib_ring_memory){.piece = {.fd = -1, .memory = s->ring, .length = sizeof s->ring}, .mr = &s->mr};
}

static void close_side(struct side *s)
{
    for (int i = 0; i < IB_PRIORITIES; i++)
        free(s->p->q[i].sent);
    s->m.eager.rings[0].memory.mr = NULL;
    ib_eager_close(&s->m);
    free(s->p->ring_out);
    free(s->p);
    st_rank_table_destroy(&s->m.peers.table);
    ib_qp_map_destroy(&s->m.qps.map);
}

static void open_both(uint32_t begin, int detect, int order, uint8_t first)
{
    seed = begin + (uint32_t)detect;
    refuse = 0;
    odd_clients = 1;
    beside = false;
    params = (struct ib_params){.eager_rdma = IB_EAGER_ON,
                                .eager_rdma_detect = detect,
                                .eager_rdma_peers = 1,
                                .eager_rdma_slots = SLOTS,
                                .eager_rdma_slot = SLOT,
                                .eager_rdma_span = SPAN,
                                .eager_rdma_after = 4,
                                .eager_rdma_window = 64,
                                .eager_rdma_order = order,
                                .eager_rdma_lively = 1,
                                .coalesce_at = 8};
    open_side(&side[0], begin, first);
    open_side(&side[1], begin, first);
}

static void close_both(void)
{
    close_side(&side[0]);
    close_side(&side[1]);
}

static void progress(struct side *s)
{
    (void)ib_progress_eager(&s->m.btl);
}

/* Sends in bursts, and now and then looks: n messages to one side, which answers some. */
static void traffic(uint32_t n)
{
    struct side *from = &side[0], *to = &side[1];
    uint32_t sent = 0;

    to->answers = true;
    for (uint32_t round = 0; to->got < n || from->got < to->answered; round++) {
        HOLDS(round < 40 * n);
        for (uint32_t burst = any(8); burst > 0 && sent < n; burst--)
            if (send_number(from, sent) == STRATA_OK)
                sent++;
        if (any(40) == 0)
            (void)ib_send_control(from->p, IB_CONTROL_CREDITS);
        for (uint32_t looks = any(9); looks > 0; looks--)
            progress(to);
        for (uint32_t looks = any(9); looks > 0; looks--)
            progress(from);
    }
    ck_assert_uint_eq(sent, n);
    for (int i = 0; i < 100; i++) /* all that is owed and counted */
        progress(from), progress(to);
    ck_assert_uint_eq(from->p->q[IB_HIGH].posted - to->p->q[IB_HIGH].received, 0);
    ck_assert_uint_eq(to->p->q[IB_HIGH].posted - from->p->q[IB_HIGH].received, 0);
    ck_assert_ptr_null(from->p->error);
    ck_assert_ptr_null(to->p->error);
    ck_assert_uint_gt(from->m.count.ring_sent, n / 4);
}

static const struct {
    uint32_t begin;
    int detect, order;
    uint32_t refuse;
    uint8_t first;
} cases[] = {{0, IB_PARAM_FLAG, IB_POLL_PRIORITISED, 0, 0},
             {UINT16_MAX - 40, IB_PARAM_FLAG, IB_POLL_PRIORITISED, 0, 1},
             {UINT32_MAX - 40, IB_PARAM_SEAL, IB_POLL_PRIORITISED, 0, SLOTS - 1},
             {UINT32_MAX / 2 - 40, IB_PARAM_FLAG, IB_POLL_CIRCULAR, 0, SLOTS - 2},
             {7, IB_PARAM_FLAG, IB_POLL_PRIORITISED, 9, SLOTS / 2},
             {9, IB_PARAM_SEAL, IB_POLL_SEQUENTIAL, 5, 0},
             {UINT16_MAX - 40, IB_PARAM_IMM, IB_POLL_PRIORITISED, 7, 3}};

START_TEST(once_and_in_order)
{
    open_both(cases[_i].begin, cases[_i].detect, cases[_i].order, cases[_i].first);
    refuse = cases[_i].refuse;
    traffic(100000); /* numbers of 16 bits begin anew */
    ck_assert_uint_gt(side[1].m.count.ring_sent, side[1].answered / 4);
    ck_assert_uint_gt(side[0].m.count.ring_around, 0);
    close_both();
}
END_TEST

/* Whatever message comes then: a number that grows beyond its bits would look like another client. */
START_TEST(numbers_begin_anew)
{
    for (uint32_t begin = UINT16_MAX - 300; begin < UINT16_MAX - 100; begin++) {
        open_both(begin, IB_PARAM_FLAG, IB_POLL_PRIORITISED, (uint8_t)(begin % SLOTS));
        odd_clients = 4;
        traffic(600);
        close_both();
    }
}
END_TEST

/* Messages of both sides in turn are no burst; messages of one side in a row are one, of which the layer above is told.
 */
START_TEST(bursts_are_told)
{
    struct side *from = &side[0], *to = &side[1];
    bool told = false;
    uint32_t sent = 0;

    open_both(0, IB_PARAM_FLAG, IB_POLL_PRIORITISED, 0);
    for (; sent < 1000; sent++) {
        HOLDS(send_number(from, sent) == STRATA_OK);
        progress(to), progress(to);
        HOLDS(send_number(to, sent) == STRATA_OK);
        progress(from), progress(from);
        HOLDS(!(from->p->ep.caps & ST_BTL_CROWDED) && !(to->p->ep.caps & ST_BTL_CROWDED));
    }
    ck_assert_uint_gt(from->m.count.ring_sent, sent / 2);
    for (int round = 0; round < 2000 && !told; round++) {
        for (int i = 0; i < 20; i++) { /* the last note was just before, however slow the machine is */
            from->p->q[IB_HIGH].noticed_ns = st_now_ns();
            sent += send_number(from, sent) == STRATA_OK;
        }
        told = from->p->ep.caps & ST_BTL_CROWDED;
        for (int i = 0; i < 40; i++)
            progress(to), progress(from);
    }
    ck_assert(told);
    close_both();
}
END_TEST

static const int detections[] = {IB_PARAM_FLAG, IB_PARAM_SEAL, IB_PARAM_IMM};

/* Side 1 has granted a ring; n messages have come from side 0. */
static uint32_t grant(void)
{
    uint32_t sent = 0;

    for (; sent < 20; sent++) {
        HOLDS(send_number(&side[0], sent) == STRATA_OK);
        progress(&side[1]), progress(&side[0]), progress(&side[1]);
    }
    ck_assert_uint_eq(side[1].got, sent);
    ck_assert_int_eq(side[1].m.eager.hot.places[0].state, ST_HOT_GRANTED);
    ck_assert_uint_gt(side[0].m.count.ring_sent, 0);
    return sent;
}

/* A peer that sends much is not evicted, whichever way its messages come. */
START_TEST(messages_beside_a_quiet_ring_are_reported)
{
    struct side *from = &side[0], *to = &side[1];
    const struct ib_ring_in *r;

    open_both(0, IB_PARAM_FLAG, IB_POLL_PRIORITISED, 0);
    params.eager_rdma_lively = 0;
    uint32_t sent = grant();
    r = &to->m.eager.rings[0];
    for (int i = 0; i < 100; i++)
        ib_eager_report(&to->m);
    ck_assert(r->quiet);
    ck_assert_uint_eq(to->m.eager.n_lively, 0);
    beside = true;
    for (int i = 0; i < 20; i++, sent++) {
        HOLDS(send_number(from, sent) == STRATA_OK);
        progress(to);
    }
    ck_assert_uint_eq(to->got, sent);
    for (int i = 0; i < 2; i++)
        ib_eager_report(&to->m);
    ck_assert(!r->quiet);
    ck_assert_uint_eq(to->m.eager.n_lively, 1);
    ck_assert_uint_eq(r->arrivals, 0);
    close_both();
}
END_TEST

/* Eager RDMA is off at side 0, whose farewell finds no room at first. */
START_TEST(a_refused_ring_is_returned)
{
    struct side *from = &side[0], *to = &side[1];
    const struct st_hot_place *place;
    struct ib_params off;

    open_both(0, IB_PARAM_FLAG, IB_POLL_PRIORITISED, 0);
    off = params;
    off.eager_rdma = IB_EAGER_OFF;
    from->m.dev.par = &off;
    place = &to->m.eager.hot.places[0];
    for (uint32_t i = 0; i < 20; i++) {
        HOLDS(send_number(from, i) == STRATA_OK);
        progress(to);
    }
    ck_assert_int_eq(place->state, ST_HOT_GRANTED);
    refuse = 1;
    for (int i = 0; i < 50; i++)
        progress(from);
    ck_assert_ptr_null(from->p->ring_out);
    ck_assert(ib_eager_arm(&from->m)); /* a short sleep, after which it is said again */
    refuse = 0;
    for (int i = 0; i < 50; i++)
        progress(from), progress(to);
    ck_assert_int_eq(place->state, ST_HOT_FREE);
    ck_assert(to->p->ringless);
    ck_assert(!ib_eager_arm(&from->m));
    ck_assert_uint_eq(from->m.eager.unsaid, 0);
    ck_assert_uint_eq(from->m.eager.refused, 0);
    close_both();
}
END_TEST

/* Sleeps that end at once, as by messages of peers without a ring, are no long wait. */
START_TEST(rings_are_revoked_after_a_time_of_sleep)
{
    const struct st_hot_place *place;
    struct side *to = &side[1];
    uint64_t begin;
    int naps = 0;

    open_both(0, IB_PARAM_FLAG, IB_POLL_PRIORITISED, 0);
    place = &to->m.eager.hot.places[0];
    (void)grant();
    for (int i = 0; i < 25; i++)
        ck_assert(ib_eager_arm(&to->m));
    ck_assert_int_eq(place->state, ST_HOT_GRANTED);
    begin = st_now_ns();
    for (; place->state == ST_HOT_GRANTED && naps < 1000; naps++) {
        const struct timespec nap = {.tv_nsec = 10000};
        (void)nanosleep(&nap, NULL);
        (void)ib_eager_arm(&to->m);
    }
    ck_assert_int_eq(place->state, ST_HOT_REVOKED);
    ck_assert_int_ge(naps, 15); /* each counts 50 us at most */
    ck_assert_uint_ge(st_now_ns() - begin, 500000);
    close_both();
}
END_TEST

static void progress_both(uint32_t times)
{
    for (uint32_t i = 0; i < times; i++)
        progress(&side[1]), progress(&side[0]);
}

static void send_next(uint32_t *sent)
{
    HOLDS(send_number(&side[0], *sent) == STRATA_OK);
    (*sent)++;
}

/* The ring changes hands again and again; the revocation and the farewell find no room at first. */
START_TEST(revocations_and_farewells_are_repeated)
{
    struct side *from = &side[0], *to = &side[1];
    const struct st_hot_place *place;
    uint32_t sent;

    open_both(UINT16_MAX - 400, detections[_i], IB_POLL_PRIORITISED, 0);
    place = &to->m.eager.hot.places[0];
    sent = grant();
    for (uint32_t round = 1; round <= 200; round++) {
        uint64_t by;

        HOLDS(to->m.count.rings == round && to->m.count.rings_revoked == round - 1);
        for (; sent % 5; progress_both(3)) /* the next one fits the ring */
            send_next(&sent);
        refuse = 1;
        st_hot_revoke_all(&to->m.eager.hot);
        progress_both(5);
        HOLDS(to->m.eager.unsaid == 1 && !from->p->ring_out->left);
        refuse = 0;
        by = from->m.count.ring_sent;
        send_next(&sent); /* the peer does not know yet */
        HOLDS(from->m.count.ring_sent == by + 1);
        for (int i = 0; i < 50; i++)
            progress(to);
        HOLDS(to->m.eager.unsaid == 0 && to->got == sent);
        refuse = 1;
        for (int i = 0; i < 50; i++)
            progress(from);
        HOLDS(from->p->ring_out->left && from->m.eager.unsaid == 1);
        refuse = 0;
        send_next(&sent); /* beside the ring, before the farewell */
        HOLDS(from->m.count.ring_sent == by + 1);
        progress_both(50);
        HOLDS(to->got == sent && place->state == ST_HOT_FREE);
        HOLDS(from->m.eager.unsaid == 0 && from->p->ring_out->word == 0);
        for (int i = 0; i < 30; i++) {
            send_next(&sent);
            progress_both(3);
        }
        HOLDS(to->got == sent && place->state == ST_HOT_GRANTED && from->m.count.ring_sent > by + 1);
    }
    ck_assert_ptr_null(from->p->error);
    ck_assert_ptr_null(to->p->error);
    close_both();
}
END_TEST

/* A message goes by the ring, or is counted as one that goes around it. */
START_TEST(messages_around_a_full_ring_are_counted)
{
    struct side *from = &side[0];
    const struct ib_counts *count = &from->m.count;
    uint32_t sent, by, around, full = 0;

    open_both(0, IB_PARAM_FLAG, IB_POLL_PRIORITISED, 0);
    sent = grant();
    by = (uint32_t)count->ring_sent;
    around = (uint32_t)count->ring_around;
    for (uint32_t n = 1; n <= 40; n++) {
        full += from->p->slots == 0;
        HOLDS(send_number(from, sent++) == STRATA_OK);
        HOLDS(count->ring_sent - by + count->ring_around - around == n);
    }
    ck_assert_uint_gt(full, 10);
    while (send_number(from, sent) == STRATA_OK)
        sent++;
    around = (uint32_t)count->ring_around;
    ck_assert_int_eq(send_number(from, sent), STRATA_ERR_AGAIN);
    ck_assert_uint_eq(count->ring_around, around);
    close_both();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ring");
    TCase *t = tcase_create("ring");

    tcase_add_loop_test(t, once_and_in_order, 0, sizeof cases / sizeof *cases);
    tcase_add_test(t, numbers_begin_anew);
    tcase_add_test(t, bursts_are_told);
    tcase_add_test(t, messages_beside_a_quiet_ring_are_reported);
    tcase_add_test(t, a_refused_ring_is_returned);
    tcase_add_test(t, rings_are_revoked_after_a_time_of_sleep);
    tcase_add_test(t, messages_around_a_full_ring_are_counted);
    tcase_add_loop_test(t, revocations_and_farewells_are_repeated, 0, sizeof detections / sizeof *detections);
    suite_add_tcase(s, t);
    return run_suite(s);
}
