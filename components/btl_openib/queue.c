/* Completion queues and shared receive queues, one of each per priority. */
#include "openib.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FIRST_CQE   256u
#define TRIED_CQE   16u         /* a queue is made with so many, to see whether it can be resized */
#define MOST_FIXED  (16u << 10) /* entries of one that cannot: 1 MiB of 64 bytes each, as adapters have them */
#define MOST_BATCH  16u
#define LEAST_GRANT 2u /* credits: one under way while the word of another is */
/* Code of the longest time between two attempts of a sender that is chosen here: 10 ms. */
#define LONGEST_RNR 20u

static uint32_t log2_up(uint32_t n)
{
    uint32_t k = 0;

    while ((1ull << k) < n)
        k++;
    return k;
}

/* That a queue of completions may ever have. */
static uint32_t most_entries(const struct ib_module *m, uint32_t priority)
{
    return m->q[priority].fixed ? m->q[priority].cqe : (uint32_t)m->attr.max_cqe;
}

/* Receives take half of them, however many there may be by the parameters. */
static uint32_t most_receives(const struct ib_module *m, uint32_t priority)
{
    uint32_t most = most_entries(m, priority) / 2;

    return most < m->spec[priority].count ? most : m->spec[priority].count;
}

/* x = log2(n) * k + b: paper, section 5.2.2. */
static uint32_t receives_for(const struct ib_module *m, uint32_t priority, uint32_t n_peers)
{
    double x = (double)log2_up(n_peers ? n_peers : 1) * m->par->srq_k + (double)m->par->srq_b;
    uint32_t n = x < 1e6 ? (uint32_t)x : 1000000u;

    /* Fragments of low priority are large, and few are under way at a time. */
    if (priority == IB_LOW)
        n = n / 4 > 4 ? n / 4 : 4;
    return n < most_receives(m, priority) ? n : most_receives(m, priority);
}

/* A queue of `now` entries that is to have `want`: doubled as often as that takes, up to the most there may be. */
static uint32_t doubled(uint32_t now, uint32_t want, uint32_t most)
{
    uint32_t n = now;

    while (n < want && n < most)
        n = n <= most / 2 ? 2 * n : most;
    return n;
}

/* ---- completion queues ---- */

/* Work requests of a peer's queue pair. */
static uint32_t entries_of_peer(const struct ib_module *m, uint32_t priority)
{
    return (uint32_t)m->par->send_depth[priority] + ib_own_receives(m, priority);
}

/* Peers whose completions there is room for. */
static uint32_t peers_with_room(const struct ib_module *m)
{
    uint32_t least = UINT32_MAX;

    for (uint32_t i = 0; i < IB_PRIORITIES; i++) {
        uint32_t most = most_entries(m, i), each = entries_of_peer(m, i), n = most / each;
        while (n > 0 && m->spec[i].shared && n * each + receives_for(m, i, n) > most)
            n--;
        least = n < least ? n : least;
    }
    return least;
}

/* Peers there may be at a time. */
static uint64_t all_peers(const struct ib_module *m)
{
    uint64_t n = m->rte->size > 0 ? (uint64_t)m->rte->size - 1 : MOST_FIXED, most = ib_kept_peers(m);

    return most && most < n ? most : n;
}

/* Buffers of a shared queue that these may fill. */
static uint32_t receives_for_all(const struct ib_module *m, uint32_t priority)
{
    uint64_t n = all_peers(m), fill = n * (m->spec[priority].credits + 2);
    uint32_t first = receives_for(m, priority, n < MOST_FIXED ? (uint32_t)n : MOST_FIXED);

    if (fill > m->spec[priority].count)
        fill = m->spec[priority].count;
    return fill > first ? (uint32_t)fill : first;
}

/* What a queue of completions that stays as it is needs for all peers there may be. */
static uint32_t entries_for_all(const struct ib_module *m, uint32_t priority)
{
    uint64_t n = all_peers(m), shared = m->spec[priority].shared ? receives_for_all(m, priority) : 0, sum;

    sum = n * entries_of_peer(m, priority) + shared;
    sum = sum > 2 * shared ? sum : 2 * shared;
    sum = sum > FIRST_CQE ? sum : FIRST_CQE;
    return (uint32_t)(sum < MOST_FIXED ? sum : MOST_FIXED);
}

static struct ibv_cq *make_cq(struct ib_module *m, uint32_t priority, uint32_t n)
{
    uint32_t most = (uint32_t)m->attr.max_cqe;

    m->q[priority].cqe = n < most ? n : most;
    return ibv_create_cq(m->device, (int)m->q[priority].cqe, (void *)(uintptr_t)priority, m->channel, 0);
}

/* Some devices cannot make it longer. They say so when they are asked to; for these it is made as long as it may have
 * to be. */
static int open_cq(struct ib_module *m, uint32_t priority)
{
    struct ib_queue *q = &m->q[priority];
    uint32_t first = FIRST_CQE < (uint32_t)m->attr.max_cqe ? FIRST_CQE : (uint32_t)m->attr.max_cqe;

    q->cq = make_cq(m, priority, TRIED_CQE);
    if (!q->cq)
        return STRATA_ERR_NOMEM;
    if (ibv_resize_cq(q->cq, (int)first) == 0) {
        q->cqe = first;
        return STRATA_OK;
    }
    (void)ibv_destroy_cq(q->cq);
    q->cq = make_cq(m, priority, entries_for_all(m, priority));
    q->fixed = true;
    return q->cq ? STRATA_OK : STRATA_ERR_NOMEM;
}

int ib_cq_reserve(struct ib_module *m, uint32_t priority, uint32_t n)
{
    struct ib_queue *q = &m->q[priority];
    uint32_t want = doubled(q->cqe, q->cqe_used + n, most_entries(m, priority));

    if (want < q->cqe_used + n)
        return STRATA_ERR_NOMEM;
    if (want != q->cqe) {
        if (ibv_resize_cq(q->cq, (int)want) != 0)
            return STRATA_ERR_NOMEM;
        q->cqe = want;
    }
    q->cqe_used += n;
    return STRATA_OK;
}

void ib_cq_release(struct ib_module *m, uint32_t priority, uint32_t n)
{
    m->q[priority].cqe_used -= n;
}

/* ---- the shared receive queue ---- */

/* What cannot be posted now is tried again next time. */
static void post_again(struct ib_queue *q)
{
    struct ibv_recv_wr *bad = NULL;

    if (!q->again)
        return;
    if (ST_LIKELY(ibv_post_srq_recv(q->srq, q->again, &bad) == 0)) {
        q->again = NULL;
        q->n_again = 0;
        return;
    }
    while (q->again != bad && q->again) {
        q->again = q->again->next;
        q->n_again--;
    }
}

/* So few are left that more are posted. A queue that is not that long yet is short at a quarter of what it has. */
static uint32_t few(const struct ib_module *m, uint32_t priority)
{
    uint32_t low = m->spec[priority].low, quarter = m->q[priority].target / 4;

    return low < quarter ? low : quarter;
}

static void arm_limit(struct ib_module *m, uint32_t priority)
{
    struct ib_queue *q = &m->q[priority];
    struct ibv_srq_attr a = {.srq_limit = few(m, priority)};

    q->armed = a.srq_limit > 0 && ibv_modify_srq(q->srq, &a, IBV_SRQ_LIMIT) == 0;
    q->passed = false;
}

/* The queue itself may have been made for fewer. */
static uint32_t make_room(const struct ib_module *m, struct ib_queue *q, uint32_t want)
{
    struct ibv_srq_attr a = {.max_wr = doubled(q->srq_max, want, (uint32_t)m->attr.max_srq_wr)};

    if (a.max_wr > q->srq_max && ibv_modify_srq(q->srq, &a, IBV_SRQ_MAX_WR) == 0)
        q->srq_max = a.max_wr;
    return want < q->srq_max ? want : q->srq_max;
}

/* Whose completions there must be room for: buffers in excess of the target are there until they have been used. */
static uint32_t held(const struct ib_queue *q)
{
    return q->target > q->posted ? q->target : q->posted;
}

static void aim(struct ib_module *m, uint32_t priority, uint32_t want)
{
    struct ib_queue *q = &m->q[priority];
    uint32_t before = held(q);

    if (want > most_receives(m, priority))
        want = most_receives(m, priority);
    want = make_room(m, q, want);
    if (want <= before || ib_cq_reserve(m, priority, want - before) == STRATA_OK)
        q->target = want;
    if (held(q) < before)
        ib_cq_release(m, priority, before - held(q));
    /* What is held back must not be missed. */
    q->batch = q->target / 4 < MOST_BATCH ? q->target / 4 : MOST_BATCH;
}

/* More than the peers may have under way, with a control message or two of each, is of no use. */
static uint32_t most_useful(const struct ib_module *m, uint32_t priority)
{
    uint64_t most = (uint64_t)m->n_up * (m->spec[priority].credits + 2);

    return (uint32_t)(most < UINT32_MAX ? most : UINT32_MAX);
}

/* What one more peer may have under way. Of a shared queue that may not become as long as what all peers may have under
 * way it is a share: where many send to few buffers, senders wait for credits, not for the device's timer. */
uint32_t ib_grant(const struct ib_module *m, uint32_t priority)
{
    uint32_t credits = m->spec[priority].credits, share = most_receives(m, priority) / (m->n_up ? m->n_up : 1);

    if (!m->spec[priority].shared || share >= credits)
        return credits;
    return share > LEAST_GRANT ? share : LEAST_GRANT;
}

static const char *const priorities[] = {"high", "low"};

/* Once: how often it happens afterwards is counted. */
static void say_short(const struct ib_module *m, uint32_t priority, uint32_t before)
{
    const struct ib_queue *q = &m->q[priority];
    char what[96] = "may not have more (COUNT of btl_openib_receive_queues, or the device's limits)";

    if (q->target > before)
        snprintf(what, sizeof what, "has %u now", q->target);
    st_log(m->btl.context, ST_LOG_INFO, "btl_openib",
           "%s: the shared receive queue of %s priority ran short with %u buffers, and %s; %u peers are connected",
           m->name, priorities[priority], before, what, m->n_up);
}

static void grow(struct ib_module *m, uint32_t priority)
{
    struct ib_queue *q = &m->q[priority];
    uint32_t most = most_useful(m, priority), before = q->target;

    if (before >= most)
        return;
    aim(m, priority, before < most / 2 ? 2 * before : most);
    if (q->target > before) {
        q->grown = q->target;
        m->count.grown++;
    }
    if (!q->short_said)
        say_short(m, priority, before);
    q->short_said = true;
}

/* For the peers there are now: what they needed once they may need again. */
static uint32_t needed(const struct ib_module *m, uint32_t priority)
{
    uint32_t least = receives_for(m, priority, m->n_up), most = most_useful(m, priority), again = m->q[priority].grown;

    again = again < most ? again : most;
    return least > again ? least : again;
}

/* The device's word that few are left would be seen late otherwise. */
void ib_srq_behind(struct ib_module *m, uint32_t priority)
{
    struct ib_queue *q = &m->q[priority];

    q->behind += IB_BATCH;
    if (q->behind < q->target || !q->srq)
        return;
    q->behind = 0;
    ib_async_poll(m);
}

static void add_new(struct ib_module *m, uint32_t priority)
{
    struct ib_queue *q = &m->q[priority];
    uint32_t missing = q->target - q->posted;

    /* No more is registered than is posted. */
    if (missing > q->receives.n_free)
        q->receives.per_slab = missing - q->receives.n_free < MOST_BATCH ? missing - q->receives.n_free : MOST_BATCH;
    while (q->posted < q->target) {
        struct ib_buffer *b = ib_buffer_get(&q->receives);
        if (!b) { /* registered memory has run out: with fewer it goes on, without asking for more each time */
            ib_cq_release(m, priority, q->target - q->posted);
            q->target = q->grown = q->posted;
            return;
        }
        b->wr.next = q->again;
        q->again = &b->wr;
        q->n_again++;
        q->posted++;
    }
}

/* Fewer peers need fewer: those that were used are not posted again. */
static void give_back(struct ib_module *m, uint32_t priority)
{
    struct ib_queue *q = &m->q[priority];

    while (q->posted > q->target && q->again) {
        struct ib_buffer *b = (struct ib_buffer *)(void *)q->again; /* its first member */
        q->again = b->wr.next;
        q->n_again--;
        q->posted--;
        ib_buffer_put(&q->receives, b);
        ib_cq_release(m, priority, 1);
    }
}

void ib_srq_fill(struct ib_module *m, uint32_t priority)
{
    struct ib_queue *q = &m->q[priority];
    uint32_t before = q->target;

    if (!q->srq)
        return;
    if (ST_UNLIKELY(q->grow))
        grow(m, priority);
    if (ST_UNLIKELY(q->posted < q->target))
        add_new(m, priority);
    else if (ST_UNLIKELY(q->posted > q->target))
        give_back(m, priority);
    post_again(q);
    /* Not when nothing could be added: the event would come again at once, before completions are looked at. */
    if (ST_UNLIKELY(q->grow) && q->target > before)
        arm_limit(m, priority);
    q->grow = false;
}

/* How often peers try again is not for the queue's length, which may still grow, to say: it has to be empty first, and
 * then all of them do. */
#define FEW_PEERS 32u

uint8_t ib_rnr_code(const struct ib_module *m, uint32_t priority)
{
    uint32_t code = (uint32_t)m->par->rnr_timer;

    if (!m->spec[priority].shared || code == 0 || code >= LONGEST_RNR || m->n_up <= FEW_PEERS)
        return (uint8_t)code;
    /* Two codes further is twice as long: with 64 peers four times as long, with 128 16 times. */
    code += 4 * log2_up((m->n_up + FEW_PEERS - 1) / FEW_PEERS);
    return (uint8_t)(code < LONGEST_RNR ? code : LONGEST_RNR);
}

/* Those that are connected are told as well. */
static void slow_down(struct ib_module *m, uint32_t priority)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS, .min_rnr_timer = ib_rnr_code(m, priority)};

    if (a.min_rnr_timer == m->q[priority].rnr_code)
        return;
    m->q[priority].rnr_code = a.min_rnr_timer;
    for (struct ib_peer *p = m->all; p; p = p->next)
        if (p->q[priority].qp && p->state >= IB_ANSWERED && p->state < IB_CLOSED)
            (void)ibv_modify_qp(p->q[priority].qp, &a, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER);
}

void ib_srq_retarget(struct ib_module *m)
{
    for (uint32_t i = 0; i < IB_PRIORITIES; i++) {
        if (!m->q[i].srq)
            continue;
        slow_down(m, i);
        aim(m, i, needed(m, i));
        ib_srq_fill(m, i);
        arm_limit(m, i);
    }
}

/* Nothing is posted, and the rest are not told of another time to wait: the next one that comes sees to that. */
void ib_srq_fewer(struct ib_module *m)
{
    for (uint32_t i = 0; i < IB_PRIORITIES; i++)
        if (m->q[i].srq)
            aim(m, i, needed(m, i));
}

void ib_srq_limit(struct ib_module *m, uint32_t priority)
{
    m->q[priority].armed = false;
    m->q[priority].grow = true;
    ib_srq_fill(m, priority);
}

#define LIMITS_NS 50000000u

/* The device takes the limit away as it makes the event, which may be on its way when it is first seen. A queue that
 * cannot grow needs neither. */
void ib_srq_limits_look(struct ib_module *m)
{
    uint64_t now = st_now_ns();

    if (now < m->limits_at)
        return;
    m->limits_at = now + LIMITS_NS;
    for (uint32_t i = 0; i < IB_PRIORITIES; i++) {
        struct ib_queue *q = &m->q[i];
        struct ibv_srq_attr a;
        if (!q->armed || q->target >= most_useful(m, i) || q->target >= most_receives(m, i) ||
            ibv_query_srq(q->srq, &a) != 0 || a.srq_limit != 0)
            continue;
        if (q->passed)
            ib_srq_limit(m, i);
        else
            q->passed = true;
    }
}

static int open_srq(struct ib_module *m, uint32_t priority)
{
    struct ib_queue *q = &m->q[priority];
    struct ibv_srq_init_attr a = {.attr = {.max_sge = 1, .max_wr = 64}};
    uint32_t most = receives_for_all(m, priority);

    /* Small at first where the device can make it larger. */
    if (!(m->attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE) && most > a.attr.max_wr)
        a.attr.max_wr = most;
    if (a.attr.max_wr > (uint32_t)m->attr.max_srq_wr)
        a.attr.max_wr = (uint32_t)m->attr.max_srq_wr;
    q->srq = ibv_create_srq(m->pd, &a);
    q->srq_max = a.attr.max_wr;
    return q->srq ? STRATA_OK : STRATA_ERR_NOMEM;
}

/* A shared queue of fewer than COUNT holds fewer, and all works; the rest has no other size to go on with. */
bool ib_queues_fit(const struct ib_module *m, char *why, size_t why_size)
{
    uint32_t most = m->attr.max_qp_wr > 0 ? (uint32_t)m->attr.max_qp_wr : UINT32_MAX;

    for (uint32_t i = 0; i < IB_PRIORITIES; i++) {
        const struct ib_queue_spec *s = &m->spec[i];
        if ((uint64_t)m->par->send_depth[i] > most) {
            snprintf(why, why_size, "btl_openib_send_depth_%s=%d: a send queue of %s holds %u work requests at most",
                     priorities[i], (int)m->par->send_depth[i], m->name, most);
            return false;
        }
        if (ib_own_receives(m, i) > most) {
            snprintf(why, why_size,
                     "btl_openib_receive_queues, %s priority: CREDITS (%u) may be %u at most, since a receive queue of "
                     "%s holds %u buffers, %u of them for what needs none",
                     priorities[i], s->credits, most > s->beyond ? most - s->beyond : 0, m->name, most, s->beyond);
            return false;
        }
        if (s->shared && m->attr.max_srq_wr > 0 && s->count > (uint32_t)m->attr.max_srq_wr)
            st_log(m->btl.context, ST_LOG_INFO, "btl_openib",
                   "a shared receive queue of %s holds %d buffers at most, fewer than COUNT (%u) of %s priority in "
                   "btl_openib_receive_queues: it grows no further",
                   m->name, m->attr.max_srq_wr, s->count, priorities[i]);
    }
    return true;
}

/* NULL, or what cannot be made, and which kind of object that is. */
static const char *open_queue(struct ib_module *m, uint32_t i, enum ib_resource *kind)
{
    struct ib_queue *q = &m->q[i];
    uint32_t first = receives_for(m, i, 1);

    ib_pool_init(&q->receives, m, m->spec[i].size, m->spec[i].shared ? (first < 16 ? first : 16) : 8, (uint8_t)i);
    ib_pool_init(&q->sends, m, m->spec[i].size, i == IB_HIGH ? 16 : 4, (uint8_t)i);
    /* Payloads that begin with a line are copied faster, by us and by what copies for a device in software. */
    ib_pool_align(&q->receives, IB_HEAD + IB_USUAL_HDR);
    ib_pool_align(&q->sends, IB_HEAD + IB_USUAL_HDR);
    *kind = IB_CQS;
    if (open_cq(m, i) != STRATA_OK)
        return "completion queue";
    *kind = IB_SRQS;
    if (m->spec[i].shared && open_srq(m, i) != STRATA_OK)
        return "shared receive queue";
    *kind = IB_MRS;
    /* The first buffers of each kind now: who has a few goes on with a few, who has none would wait for ever. */
    if (ib_pool_grow(&q->receives) != STRATA_OK || ib_pool_grow(&q->sends) != STRATA_OK)
        return "registered buffers";
    return NULL;
}

int ib_queues_open(struct ib_module *m, char *why, size_t why_size)
{
    for (uint32_t i = 0; i < IB_PRIORITIES; i++) {
        enum ib_resource kind;
        const char *missing = open_queue(m, i, &kind);
        if (missing) {
            ib_explain(m, kind, missing, why, why_size);
            return STRATA_ERR_NOMEM;
        }
    }
    m->cq_peers = peers_with_room(m);
    return STRATA_OK;
}

void ib_queues_close(struct ib_module *m)
{
    for (uint32_t i = 0; i < IB_PRIORITIES; i++) {
        struct ib_queue *q = &m->q[i];
        if (q->srq)
            (void)ibv_destroy_srq(q->srq);
        if (q->cq)
            (void)ibv_destroy_cq(q->cq);
        ib_pool_destroy(&q->receives);
        ib_pool_destroy(&q->sends);
    }
}
