/* Crowds: bursts of short messages to a peer, which the layer above had better send together. */
#include <strata/sdk/clock.h>
#include "module.h"

uint32_t ib_crowd_from_now(const struct ib_qp *q)
{
    uint32_t most = (uint32_t)ib_module_of(q->peer)->dev.par->coalesce_at;

    return q->credits > most ? q->credits - most : 0;
}

/* Messages sent within this time are a burst. Credits return seldom, so that slow messages without credits are no
 * crowd. */
#define BURST_NS 1000000u

/* Notes that so many messages have gone again. True: they are a burst, of which the layer above is told. */
static bool crowd_note(struct ib_qp *q)
{
    struct ib_module *m = ib_module_of(q->peer);
    uint64_t now = st_now_ns();
    bool burst = now - q->noticed_ns < BURST_NS;

    q->peer->usual = false;
    q->noticed_ns = now;
    if (!burst)
        return false;
    q->peer->ep.caps |= ST_BTL_CROWDED;
    if (m->credits.crowded_ns == 0)
        m->credits.crowded_ns = now;
    return true;
}

/* The flag is set once until credits come, so that further sends go the usual way. */
__attribute__((noinline)) void ib_crowded(struct ib_qp *q)
{
    if (q->notice_at != 0)
        q->notice_at = crowd_note(q) ? 0 : ib_crowd_from_now(q);
}

/* ---- messages by a ring of eager RDMA: slots return late, so what the peer sends says whether it keeps up ---- */
#define LITTLE       2u    /* times coalesce_at: a burst may have one message more of the peer for so many posts */
#define LOOKS_MOST   4096u /* posts between two looks at most */
#define CONVERSATION 4u    /* times coalesce_at: posts between two looks while the two take turns */
#define TURNS        8u    /* messages of the two in turn after which they go by the ring again */

/* Messages that have come from the peer, ever. */
static uint32_t burst_heard(const struct ib_qp *q)
{
    return q->received + (q->ring ? q->ring->taken : 0);
}

/* Most unsignalled posts in a row: with as many more as others may add until one of theirs is signalled they do not
 * fill the send queue. */
static uint32_t burst_unsignalled(const struct ib_qp *q)
{
    uint32_t most = q->depth - IB_CONTROL_SENDS - 1;

    return most > 2 * q->every ? most - q->every : 0;
}

/* A plan ends with the unsignalled posts: with few of these, the next look is not late. */
static void burst_next(struct ib_peer *p, uint32_t each)
{
    const struct ib_qp *q = &p->q[IB_HIGH];
    struct ib_burst *b = &p->ring_out->burst;

    p->ring_out->unsignalled = burst_unsignalled(q);
    if (each < p->ring_out->unsignalled)
        p->ring_out->unsignalled = each;
    b->each = each;
    b->at = q->posted + each;
    b->heard = burst_heard(q);
    b->joined = false;
}

static uint32_t burst_least(const struct ib_peer *p)
{
    int64_t at = ib_module_of(p)->dev.par->coalesce_at;

    return at ? (uint32_t)at : LOOKS_MOST;
}

void ib_burst_begin(struct ib_peer *p)
{
    p->ring_out->burst.beside = false;
    burst_next(p, burst_least(p));
}

/* Whether the messages since the last look are a burst, however long ago that was: a late look has heard the answers to
 * several windows. */
static bool burst_is_one(const struct ib_peer *p, uint32_t least)
{
    const struct ib_qp *q = &p->q[IB_HIGH];
    const struct ib_burst *b = &p->ring_out->burst;
    uint32_t heard = burst_heard(q) - b->heard, posts = q->posted - (b->at - b->each);

    return heard <= 1 || (uint64_t)(heard - 1) * LITTLE * least <= posts;
}

/* In windows; whether they go on. A message that nothing has come before since the last one is part of a window. They
 * end as well where nothing has gone together for long, as blocking sends never do. */
static bool burst_goes_on(const struct ib_peer *p)
{
    const struct ib_qp *q = &p->q[IB_HIGH];
    struct ib_burst *b = &p->ring_out->burst;
    uint32_t heard = burst_heard(q);

    b->alone = heard == b->heard || b->joined ? 0 : (uint8_t)(b->alone + 1);
    b->each = b->joined ? 0 : b->each + 1;
    b->heard = heard;
    b->joined = false;
    b->at = q->posted;
    return b->alone < TURNS && b->each < LOOKS_MOST;
}

/* From here on messages go beside the ring. Slots and numbers stay what they are. */
static void burst_leaves_ring(struct ib_peer *p)
{
    p->ring_out->burst.beside = true;
    p->ring_out->burst.alone = 0;
    p->ring_out->burst.each = 0;
    p->ring_out->burst.at = p->ring_out->plain = p->q[IB_HIGH].posted;
}

/* Looks become rare where the last one was of no use: blocking sends never go together. Where messages have gone
 * together, the first ones of a window are not worth a ring: its receiver would look for them in the ring and in the
 * CQ. */
bool ib_burst_look(struct ib_peer *p)
{
    struct ib_burst *b = &p->ring_out->burst;
    uint32_t least = burst_least(p), each = least;
    bool burst, joined = b->joined;

    if (b->beside) {
        b->beside = burst_goes_on(p);
        if (!b->beside)
            burst_next(p, CONVERSATION * least);
        return b->beside;
    }
    burst = burst_is_one(p, least);
    if (!burst)
        each = CONVERSATION * least;
    else if (!joined)
        each = 8 * b->each;
    burst_next(p, each < LOOKS_MOST ? each : least > LOOKS_MOST ? least : LOOKS_MOST);
    if (burst && ib_module_of(p)->dev.par->coalesce_at) {
        (void)crowd_note(&p->q[IB_HIGH]);
        if (joined)
            burst_leaves_ring(p);
    }
    return b->beside;
}

/* After a burst without credits the messages were probably handled; later ones are no part of it. */
void ib_crowds_end(struct ib_module *m)
{
    uint64_t now = st_now_ns();

    if (now - m->credits.crowded_ns < BURST_NS)
        return;
    m->credits.crowded_ns = 0;
    for (struct ib_peer *p = m->peers.all; p; p = p->next) {
        if (!(p->ep.caps & ST_BTL_CROWDED))
            continue;
        if (now - p->q[IB_HIGH].noticed_ns < BURST_NS)
            m->credits.crowded_ns = now;
        else
            ib_not_crowded(p);
    }
}
