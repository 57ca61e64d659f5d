/* Closing connections. Paper, section 7.2 ("dynamic connection tear down"). Both sides finish their messages before
 * either queue pair goes, so nothing is lost; the next send connects again. Which connections, and when: conn_evict.c.
 * States and messages: docs/design/openib-connections.md. */
#include <strata/sdk/clock.h>
#include "data/completion.h"

#define ALL_COME_NS 1000000000u /* ns in which the messages of a peer come out of the CQs, when progress is made */
#define FLUSH_NS    200000000u  /* ns in which a device ends all work requests of a failed queue pair */

/* All messages of low priority have been received. CLOSE came by the other queue pair, and neither an empty CQ nor the
 * acknowledgements of the peer say that nothing is on its way into this one. */
static bool close_all_received(const struct ib_peer *p)
{
    return p->q[IB_LOW].received == p->last_low;
}

/* Our CLOSE, which is signalled, is acknowledged. */
static bool close_is_acknowledged(const struct ib_peer *p)
{
    return p->q[IB_HIGH].posted == p->q[IB_HIGH].done;
}

static void close_enter(struct ib_peer *p, enum ib_state state)
{
    struct ib_module *m = ib_module_of(p);

    if (p->state == IB_UP) {
        m->conns.n_closing++;
        ib_attend(&m->poll);
        ib_credits_drop(p);
    }
    p->state = (uint8_t)state;
}

void ib_close_begin(struct ib_peer *p)
{
    if (p->state == IB_UP)
        close_enter(p, IB_DRAINING);
}

void ib_close_mend(struct ib_peer *p)
{
    struct ib_module *m = ib_module_of(p);

    if (p->mending)
        return;
    p->mending = true;
    p->ep.caps = m->btl.caps;
    m->conns.n_closing++;
    ib_attend(&m->poll);
}

/* Our CLOSE has arrived, and so has all before it, whatever the device knows. */
static void close_all_sent(struct ib_peer *p)
{
    for (int i = 0; i < IB_PRIORITIES; i++)
        ib_sent_drop(&p->q[i], STRATA_OK);
}

static void close_closed(struct ib_peer *p)
{
    close_enter(p, IB_CLOSED);
    p->closing_round = ib_module_of(p)->conns.rounds;
}

/* ---- messages of the peer ---- */

void ib_close_asked(struct ib_peer *p, uint32_t low)
{
    p->last_low = low;
    /* The peer had finished before. If we have sent CLOSE, too, both know enough when ours is acknowledged. */
    if (p->state == IB_ASKED_TO_CLOSE)
        close_closed(p);
    else if (p->state == IB_UP || p->state == IB_DRAINING)
        close_enter(p, IB_CONSENTING);
}

void ib_close_answered(struct ib_peer *p, uint32_t low)
{
    if (p->state != IB_ASKED_TO_CLOSE)
        return;
    p->last_low = low;
    close_all_sent(p); /* else it would not answer; and it goes without waiting for our device to hear of that */
    ib_wire_up_end(p);
    close_closed(p);
}

void ib_close_left(struct ib_peer *p, uint32_t low)
{
    p->last_low = low;
    p->left = true;
}

bool ib_close_heard(struct ib_peer *p)
{
    close_all_sent(p);
    if (p->state == IB_ASKED_TO_CLOSE)
        return false;
    ib_wire_up_end(p);
    if (p->state == IB_CONSENTED)
        close_closed(p);
    return true;
}

/* ---- when a queue pair fails ---- */

/* An error after our CLOSE has two meanings: the peer received CLOSE and has gone before its device acknowledged it, or
 * the connection is lost with messages in it. Only the peer knows. */
bool ib_close_forgives(struct ib_peer *p)
{
    int rc;

    if (p->left || ib_module_of(p)->closing ||
        (p->state != IB_ASKED_TO_CLOSE && p->state != IB_CONSENTED && p->state != IB_CLOSED))
        return false;
    if (p->up || (p->state == IB_CLOSED && close_is_acknowledged(p)))
        return true;
    rc = ib_conn_send_close(p);
    if (rc == STRATA_ERR_UNSUPPORTED && p->state != IB_ASKED_TO_CLOSE) { /* the first is by far the more likely one */
        (void)ib_close_heard(p);
        return true;
    }
    return rc == STRATA_OK;
}

/* The missing messages may still lie in the CQ. */
static enum ib_close_word close_early_or_lost(struct ib_peer *p)
{
    uint64_t now = st_now_ns();

    if (p->word_ns == 0)
        p->word_ns = now;
    return now - p->word_ns < ALL_COME_NS ? IB_WORD_EARLY : IB_WORD_LOST;
}

enum ib_close_word ib_close_word(struct ib_peer *p, bool too, uint32_t high, uint32_t low)
{
    switch ((enum ib_state)p->state) {
    case IB_UP:
    case IB_DRAINING:
        if (too) /* it cannot have had ours */
            return IB_WORD_LOST;
        /* fallthrough */
    case IB_ASKED_TO_CLOSE:
        if (p->q[IB_HIGH].ring)
            ib_ring_settle(ib_module_of(p), p->q[IB_HIGH].ring);
        if (p->q[IB_HIGH].received != high)
            return close_early_or_lost(p);
        if (too)
            ib_close_answered(p, low);
        else
            ib_close_asked(p, low);
        return IB_WORD_TAKEN;
    case IB_CONSENTING: /* it has come by the connection, too */
        return too ? IB_WORD_LOST : IB_WORD_TAKEN;
    case IB_CONSENTED:
    case IB_CLOSED:
        if (too)
            (void)ib_close_heard(p);
        return IB_WORD_TAKEN;
    default:
        return IB_WORD_LOST;
    }
}

/* ---- to the end ---- */

/* Receives of a queue per peer are flushed, so that their buffers come back; shared ones stay. */
static bool close_receives_back(struct ib_peer *p)
{
    bool all = p->q[IB_HIGH].receives == 0 && p->q[IB_LOW].receives == 0;

    if (!all && !p->flushing)
        ib_qps_error(p);
    p->flushing = true;
    return all;
}

static void close_destroy(struct ib_module *m, struct ib_peer *p)
{
    ib_conn_free_qps(p, true);
    ib_wire_up_end(p); /* a failed one may still be telling its peer */
    p->remade = p->state == IB_FAILED;
    if (p->state == IB_CLOSED)
        p->agreed = p->theirs;
    p->flushing = p->mending = p->told = false;
    p->mine = p->theirs = 0;
    p->word_ns = 0;
    p->state = p->left ? IB_GONE : IB_IDLE;
    m->conns.n_closing--;
    m->count.torn_down++;
}

/* Both CQs have been polled to the end since that round. */
static bool close_read_since(const struct ib_module *m, uint32_t round)
{
    return m->conns.rounds - round >= 2; /* the first may have begun before */
}

static void close_step(struct ib_module *m, struct ib_peer *p)
{
    switch ((enum ib_state)p->state) {
    case IB_DRAINING:
        if (ib_drained(p) && ib_send_control(p, IB_CONTROL_CLOSE) == STRATA_OK)
            close_enter(p, IB_ASKED_TO_CLOSE);
        break;
    case IB_CONSENTING:
        if (ib_drained(p) && ib_send_control(p, IB_CONTROL_CLOSE_TOO) == STRATA_OK)
            close_enter(p, IB_CONSENTED);
        break;
    case IB_ASKED_TO_CLOSE:
        if (p->left && close_all_received(p)) /* it does not answer any more */
            ib_peer_broken(p, "it has left");
        break;
    case IB_CONSENTED:
        if (close_is_acknowledged(p))
            close_closed(p);
        break;
    case IB_CLOSED: /* after a while: a device may acknowledge a message after it has reported its arrival */
        if (close_read_since(m, p->closing_round) && close_all_received(p) && close_is_acknowledged(p) &&
            close_receives_back(p))
            close_destroy(m, p);
        break;
    case IB_FAILED:
        if (!p->mending)
            break;
        if (st_now_ns() - p->failed_ns <= FLUSH_NS)
            p->closing_round = m->conns.rounds;
        else if (close_read_since(m, p->closing_round) && close_receives_back(p))
            close_destroy(m, p);
        break;
    default:
        break;
    }
}

void ib_close_progress(struct ib_module *m)
{
    if (m->closing) /* what is left is goodbye */
        return;
    m->conns.rounds += ib_cqs_read(m->q);
    for (struct ib_peer *p = m->peers.all; p && m->conns.n_closing; p = p->next)
        close_step(m, p);
}

bool ib_close_polls(const struct ib_module *m)
{
    if (m->conns.n_closing == 0)
        return false;
    for (const struct ib_peer *p = m->peers.all; p; p = p->next)
        if (p->mending || (ib_is_closing(p->state) && p->state != IB_ASKED_TO_CLOSE))
            return true;
    return false;
}

void ib_close_requested(struct ib_peer *p, bool agreed)
{
    struct ib_module *m = ib_module_of(p);

    if (!agreed || p->state < IB_ASKED_TO_CLOSE || p->state == IB_CONSENTING) {
        ib_peer_broken(p, "the peer has given the connection up and connects anew");
        return;
    }
    /* Without the CLOSE of the peer, which lies in our CQ: the peer asks again. */
    if (!ib_close_heard(p))
        return;
    if (close_all_received(p) && close_receives_back(p)) /* else the peer asks again */
        close_destroy(m, p);
}
