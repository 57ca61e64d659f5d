/* Shared receive queues: how many buffers are posted, and how the queue grows. */
#include <stdio.h>
#include <strata/sdk/account.h>
#include <strata/sdk/component.h>
#include "device/device.h"
#include "queues/queue.h"

#define MOST_BATCH  16u
#define LEAST_GRANT 2u /* credits: one message in flight while the credit for another is */
/* Code of the longest time between two attempts of a sender that is chosen here: 10 ms. */
#define LONGEST_RNR 20u

/* Buffers that cannot be posted now are tried again next time. */
static void srq_post_again(struct ib_queue *q)
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

/* The limit at which the queue grows. A short queue grows at a quarter of its buffers. */
static uint32_t srq_few(const struct ib_queue *q)
{
    uint32_t low = q->spec->low, quarter = q->target / 4;

    return low < quarter ? low : quarter;
}

static void srq_arm_limit(struct ib_queue *q)
{
    struct ibv_srq_attr a = {.srq_limit = srq_few(q)};

    q->armed = a.srq_limit > 0 && ibv_modify_srq(q->srq, &a, IBV_SRQ_LIMIT) == 0;
    q->passed = false;
}

/* The SRQ may have been made for fewer. */
static uint32_t srq_make_room(struct ib_queue *q, uint32_t want)
{
    struct ibv_srq_attr a = {.max_wr = ib_doubled(q->srq_max, want, (uint32_t)q->dev->attr.max_srq_wr)};

    if (a.max_wr > q->srq_max && ibv_modify_srq(q->srq, &a, IBV_SRQ_MAX_WR) == 0)
        q->srq_max = a.max_wr;
    return want < q->srq_max ? want : q->srq_max;
}

/* Buffers whose completions need room: those above the target exist until they have been used. */
static uint32_t srq_held(const struct ib_queue *q)
{
    return q->target > q->posted ? q->target : q->posted;
}

static void srq_aim(struct ib_queue *q, uint32_t want)
{
    uint32_t before = srq_held(q);

    if (want > ib_srq_most(q))
        want = ib_srq_most(q);
    want = srq_make_room(q, want);
    if (want <= before || ib_cq_reserve(q, want - before) == STRATA_OK)
        q->target = want;
    if (srq_held(q) < before)
        ib_cq_release(q, before - srq_held(q));
    /* Buffers held back must not be missed. */
    q->batch = q->target / 4 < MOST_BATCH ? q->target / 4 : MOST_BATCH;
}

/* More buffers than the peers may use, with two control messages each, are of no use. */
static uint32_t srq_most_useful(const struct ib_queue *q)
{
    uint64_t most = (uint64_t)q->n_peers * (q->spec->credits + 2);

    return (uint32_t)(most < UINT32_MAX ? most : UINT32_MAX);
}

/* A peer gets its share of an SRQ that cannot hold the credits of all: where many send to few buffers, senders wait for
 * credits, not for the RNR timer. */
uint32_t ib_srq_grant(const struct ib_queue *q)
{
    uint32_t credits = q->spec->credits, share = ib_srq_most(q) / (q->n_peers ? q->n_peers : 1);

    if (!q->spec->shared || share >= credits)
        return credits;
    return share > LEAST_GRANT ? share : LEAST_GRANT;
}

/* Logged once; later times are counted. */
static void srq_log_short(const struct ib_queue *q, uint32_t before)
{
    char what[96] = "may not have more (COUNT of btl_openib_receive_queues, or the device's limits)";

    if (q->target > before)
        snprintf(what, sizeof what, "has %u now", q->target);
    st_log(q->dev->context, ST_LOG_INFO, "btl_openib",
           "%s: the shared receive queue of %s priority ran short with %u buffers, and %s; %u peers are connected",
           q->dev->name, ib_priority_name[q->priority], before, what, q->n_peers);
}

static void srq_grow(struct ib_queue *q)
{
    uint32_t most = srq_most_useful(q), before = q->target;

    if (before >= most)
        return;
    srq_aim(q, before < most / 2 ? 2 * before : most);
    if (q->target > before) {
        q->grown = q->target;
        q->n_grown++;
    }
    if (!q->short_logged)
        srq_log_short(q, before);
    q->short_logged = true;
}

/* The formula for the peers there are now, or what traffic needed before. */
static uint32_t srq_needed(const struct ib_queue *q)
{
    uint32_t least = ib_srq_first(q, q->n_peers), most = srq_most_useful(q), again = q->grown;

    again = again < most ? again : most;
    return least > again ? least : again;
}

bool ib_srq_behind(struct ib_queue *q)
{
    q->behind += IB_POLLED;
    if (q->behind < q->target || !q->srq)
        return false;
    q->behind = 0;
    return true;
}

static void srq_add_new(struct ib_queue *q)
{
    uint32_t missing = q->target - q->posted;

    /* No more is registered than is posted. */
    if (missing > q->receives.n_free)
        q->receives.per_slab = missing - q->receives.n_free < MOST_BATCH ? missing - q->receives.n_free : MOST_BATCH;
    while (q->posted < q->target) {
        struct ib_buffer *b = ib_buffer_get(&q->receives);
        if (!b) { /* registered memory has run out: with fewer it goes on, without asking for more each time */
            ib_cq_release(q, q->target - q->posted);
            q->target = q->grown = q->posted;
            return;
        }
        b->wr.next = q->again;
        q->again = &b->wr;
        q->n_again++;
        q->posted++;
    }
}

/* Used buffers above the target are not posted again. */
static void srq_give_back(struct ib_queue *q)
{
    while (q->posted > q->target && q->again) {
        struct ib_buffer *b = (struct ib_buffer *)(void *)q->again; /* its first member */
        q->again = b->wr.next;
        q->n_again--;
        q->posted--;
        ib_buffer_put(&q->receives, b);
        ib_cq_release(q, 1);
    }
}

void ib_srq_fill(struct ib_queue *q)
{
    uint32_t before = q->target;

    if (!q->srq)
        return;
    if (ST_UNLIKELY(q->grow))
        srq_grow(q);
    if (ST_UNLIKELY(q->posted < q->target))
        srq_add_new(q);
    else if (ST_UNLIKELY(q->posted > q->target))
        srq_give_back(q);
    srq_post_again(q);
    /* Not when nothing could be added: the event would come again at once, before completions are looked at. */
    if (ST_UNLIKELY(q->grow) && q->target > before)
        srq_arm_limit(q);
    q->grow = false;
}

/* The timer does not depend on the length of the queue, which may still grow: by then it was empty, and all peers have
 * tried. */
#define FEW_PEERS 32u

uint8_t ib_rnr_code(const struct ib_queue *q)
{
    uint32_t code = (uint32_t)q->dev->par->rnr_timer;

    if (!q->spec->shared || code == 0 || code >= LONGEST_RNR || q->n_peers <= FEW_PEERS)
        return (uint8_t)code;
    /* Two codes further is twice as long: with 64 peers four times as long, with 128 16 times. */
    code += 4 * ib_log2_up((q->n_peers + FEW_PEERS - 1) / FEW_PEERS);
    return (uint8_t)(code < LONGEST_RNR ? code : LONGEST_RNR);
}

void ib_srq_retarget(struct ib_queue *q, bool more)
{
    srq_aim(q, srq_needed(q));
    if (!more)
        return;
    ib_srq_fill(q);
    srq_arm_limit(q);
}

void ib_srq_limit(struct ib_queue *q)
{
    q->armed = false;
    q->grow = true;
    ib_srq_fill(q);
}

#define LIMITS_NS 50000000u

/* The device removes the limit as it makes the event, which may be on its way at the first query. A queue that cannot
 * grow needs neither. */
void ib_srq_limits_look(struct ib_queue *q, uint64_t now)
{
    struct ibv_srq_attr a;

    if (now < q->look_at)
        return;
    q->look_at = now + LIMITS_NS;
    if (!q->armed || q->target >= srq_most_useful(q) || q->target >= ib_srq_most(q) || ibv_query_srq(q->srq, &a) != 0 ||
        a.srq_limit != 0)
        return;
    if (q->passed)
        ib_srq_limit(q);
    else
        q->passed = true;
}

int ib_srq_open(struct ib_queue *q)
{
    struct ibv_srq_init_attr a = {.attr = {.max_sge = 1, .max_wr = 64}};
    uint32_t most = ib_srq_for_all(q);
    struct st_account_mark mark;

    /* Small at first where the device can make it larger. */
    if (!(q->dev->attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE) && most > a.attr.max_wr)
        a.attr.max_wr = most;
    if (a.attr.max_wr > (uint32_t)q->dev->attr.max_srq_wr)
        a.attr.max_wr = (uint32_t)q->dev->attr.max_srq_wr;
    st_account_enter(q->dev->context, ST_ACCOUNT_HEAP, &mark);
    q->srq = ibv_create_srq(q->dev->pd, &a);
    st_account_leave(q->dev->context, &mark);
    q->srq_max = a.attr.max_wr;
    return q->srq ? STRATA_OK : STRATA_ERR_NOMEM;
}
