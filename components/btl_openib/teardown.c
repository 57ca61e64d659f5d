/* Giving up connections that nobody uses. Paper, section 7.2 ("dynamic connection tear down"). Both sides finish what
 * they have begun before either queue pair goes, so nothing is lost; the next send connects again. Which connections,
 * and when: pressure.c. States and messages: docs/design/btl_openib.md. */
#include "openib.h"

#define ALL_COME_NS 1000000000u /* in which what a peer has sent comes out of the queues, when progress is made */
#define FLUSH_NS                                                                                                       \
    200000000u /* in which a device has said of all work requests of a failed queue pair that they ended               \
                */

/* All of low priority has arrived at the peer, or come from there. What was sent by high priority needs no waiting: our
 * word comes behind it. */
bool ib_drained(const struct ib_peer *p)
{
    const struct ib_module *m = ib_module(p->ep.btl);

    if (p->q[IB_LOW].posted != p->q[IB_LOW].done)
        return false;
    for (const struct st_node *n = m->rdma_waiting.next; n != &m->rdma_waiting; n = n->next)
        if (ST_CONTAINER(n, struct ib_rdma, node)->peer == p)
            return false;
    return true;
}

/* All that the peer has sent by low priority has been taken out of the queue. Its word came by the other one, and
 * neither that queue found empty nor the peer's own completions say that nothing is on its way into it. */
static bool all_here(const struct ib_peer *p)
{
    return p->q[IB_LOW].received == p->last_low;
}

/* Our last word, which is signalled, has arrived, as far as the device knows. */
static bool finished(const struct ib_peer *p)
{
    return p->q[IB_HIGH].posted == p->q[IB_HIGH].done;
}

static void enter(struct ib_peer *p, enum ib_state state)
{
    struct ib_module *m = ib_module(p->ep.btl);

    if (p->state == IB_UP) {
        m->n_closing++;
        ib_attend(m);
        ib_credits_drop(p);
    }
    p->state = (uint8_t)state;
}

void ib_teardown_begin(struct ib_peer *p)
{
    if (p->state == IB_UP)
        enter(p, IB_DRAINING);
}

void ib_teardown_mend(struct ib_peer *p)
{
    struct ib_module *m = ib_module(p->ep.btl);

    if (p->mending)
        return;
    p->mending = true;
    p->ep.caps = m->btl.caps;
    m->n_closing++;
    ib_attend(m);
}

/* Our last word has arrived, and so has all before it, whatever the device knows of that. */
static void has_arrived(struct ib_peer *p)
{
    for (int i = 0; i < IB_PRIORITIES; i++)
        ib_sent_drop(&p->q[i], STRATA_OK);
}

static void close_now(struct ib_peer *p)
{
    enter(p, IB_CLOSED);
    p->closing_round = ib_module(p->ep.btl)->rounds;
}

/* ---- what the peer says ---- */

void ib_teardown_asked(struct ib_peer *p, uint32_t low)
{
    p->last_low = low;
    /* It had finished before it asked. If we have asked it, too, both know all they need when it has ours. */
    if (p->state == IB_ASKED_TO_CLOSE)
        close_now(p);
    else if (p->state == IB_UP || p->state == IB_DRAINING)
        enter(p, IB_CONSENTING);
}

void ib_teardown_answered(struct ib_peer *p, uint32_t low)
{
    if (p->state != IB_ASKED_TO_CLOSE)
        return;
    p->last_low = low;
    has_arrived(p); /* else it would not answer; and it goes without waiting for our device to hear of that */
    ib_wire_up_end(p);
    close_now(p);
}

void ib_teardown_left(struct ib_peer *p, uint32_t low)
{
    p->last_low = low;
    p->left = true;
}

bool ib_teardown_heard(struct ib_peer *p)
{
    has_arrived(p);
    if (p->state == IB_ASKED_TO_CLOSE)
        return false;
    ib_wire_up_end(p);
    if (p->state == IB_CONSENTED)
        close_now(p);
    return true;
}

/* ---- when a queue pair fails ---- */

/* What fails after our last word may have failed because the peer has had that word and has gone, before its device
 * could say so; or because the connection is lost, and the word with it and what was sent before. Only the peer knows.
 */
bool ib_teardown_forgives(struct ib_peer *p)
{
    int rc;

    if (p->left || ib_module(p->ep.btl)->closing ||
        (p->state != IB_ASKED_TO_CLOSE && p->state != IB_CONSENTED && p->state != IB_CLOSED))
        return false;
    if (p->up || (p->state == IB_CLOSED && finished(p)))
        return true;
    rc = ib_wire_up_close(p);
    if (rc == STRATA_ERR_UNSUPPORTED && p->state != IB_ASKED_TO_CLOSE) { /* the first is by far the more likely one */
        (void)ib_teardown_heard(p);
        return true;
    }
    return rc == STRATA_OK;
}

/* What it has sent has arrived or never will; what has arrived may lie in the queue of completions yet. */
static enum ib_word early_or_lost(struct ib_peer *p)
{
    uint64_t now = st_now_ns();

    if (p->word_ns == 0)
        p->word_ns = now;
    return now - p->word_ns < ALL_COME_NS ? IB_WORD_EARLY : IB_WORD_LOST;
}

enum ib_word ib_teardown_word(struct ib_peer *p, bool too, uint32_t high, uint32_t low)
{
    switch ((enum ib_state)p->state) {
    case IB_UP:
    case IB_DRAINING:
        if (too) /* it cannot have had ours */
            return IB_WORD_LOST;
        /* fallthrough */
    case IB_ASKED_TO_CLOSE:
        if (p->q[IB_HIGH].received != high)
            return early_or_lost(p);
        if (too)
            ib_teardown_answered(p, low);
        else
            ib_teardown_asked(p, low);
        return IB_WORD_TAKEN;
    case IB_CONSENTING: /* it has come by the connection, too */
        return too ? IB_WORD_LOST : IB_WORD_TAKEN;
    case IB_CONSENTED:
    case IB_CLOSED:
        if (too)
            (void)ib_teardown_heard(p);
        return IB_WORD_TAKEN;
    default:
        return IB_WORD_LOST;
    }
}

/* ---- to the end ---- */

/* Receives of its own are flushed, so that their buffers come back; shared ones stay where they are. */
static bool receives_back(struct ib_peer *p)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
    bool all = true;

    for (int i = 0; i < IB_PRIORITIES; i++) {
        if (p->q[i].receives && !p->flushing)
            (void)ibv_modify_qp(p->q[i].qp, &a, IBV_QP_STATE);
        all &= p->q[i].receives == 0;
    }
    p->flushing = true;
    return all;
}

static void closed(struct ib_module *m, struct ib_peer *p)
{
    ib_qps_destroy(p);
    ib_wire_up_end(p); /* a failed one may still be telling its peer */
    p->remade = p->state == IB_FAILED;
    if (p->state == IB_CLOSED)
        p->agreed = p->theirs;
    p->flushing = p->mending = p->told = false;
    p->mine = p->theirs = 0;
    p->word_ns = 0;
    p->state = p->left ? IB_GONE : IB_IDLE;
    m->n_closing--;
    m->count.torn_down++;
}

/* Since then each queue of completions was read to the end of what was in it. */
static bool read_since(const struct ib_module *m, uint32_t round)
{
    return m->rounds - round >= 2; /* the first may have begun before */
}

static void step(struct ib_module *m, struct ib_peer *p)
{
    switch ((enum ib_state)p->state) {
    case IB_DRAINING:
        if (ib_drained(p) && ib_send_control(p, IB_CONTROL_CLOSE) == STRATA_OK)
            enter(p, IB_ASKED_TO_CLOSE);
        break;
    case IB_CONSENTING:
        if (ib_drained(p) && ib_send_control(p, IB_CONTROL_CLOSE_TOO) == STRATA_OK)
            enter(p, IB_CONSENTED);
        break;
    case IB_ASKED_TO_CLOSE:
        if (p->left && all_here(p)) /* it does not answer any more */
            ib_peer_broken(p, "it has left");
        break;
    case IB_CONSENTED:
        if (finished(p))
            close_now(p);
        break;
    case IB_CLOSED: /* after a while: a device may acknowledge what came last after it has said that it came */
        if (read_since(m, p->closing_round) && all_here(p) && finished(p) && receives_back(p))
            closed(m, p);
        break;
    case IB_FAILED:
        if (!p->mending)
            break;
        if (st_now_ns() - p->failed_ns <= FLUSH_NS)
            p->closing_round = m->rounds;
        else if (read_since(m, p->closing_round) && receives_back(p))
            closed(m, p);
        break;
    default:
        break;
    }
}

/* A look that does not bring all that one can bring has seen the queue empty. Where a stream keeps it from that, as
 * many looks as take what it can hold have taken what was in it at first. */
static void count_rounds(struct ib_module *m)
{
    bool all = true;

    for (int i = 0; i < IB_PRIORITIES; i++) {
        struct ib_queue *q = &m->q[i];
        q->read |= q->full == q->full_seen || q->full - q->full_begun > q->cqe / IB_BATCH;
        q->full_seen = q->full;
        all &= q->read;
    }
    if (!all)
        return;
    m->rounds++;
    for (int i = 0; i < IB_PRIORITIES; i++) {
        m->q[i].read = false;
        m->q[i].full_begun = m->q[i].full;
    }
}

void ib_teardown_progress(struct ib_module *m)
{
    if (m->closing) /* what is left is goodbye */
        return;
    count_rounds(m);
    for (struct ib_peer *p = m->all; p && m->n_closing; p = p->next)
        step(m, p);
}

bool ib_teardown_polls(const struct ib_module *m)
{
    if (m->n_closing == 0)
        return false;
    for (const struct ib_peer *p = m->all; p; p = p->next)
        if (p->mending || (ib_is_closing(p->state) && p->state != IB_ASKED_TO_CLOSE))
            return true;
    return false;
}

void ib_teardown_requested(struct ib_peer *p, bool agreed)
{
    struct ib_module *m = ib_module(p->ep.btl);

    if (!agreed || p->state < IB_ASKED_TO_CLOSE || p->state == IB_CONSENTING) {
        ib_peer_broken(p, "the peer has given the connection up and connects anew");
        return;
    }
    /* Its own last word lies in our queue, where it has not been seen yet: the peer asks again. */
    if (!ib_teardown_heard(p))
        return;
    if (all_here(p) && receives_back(p)) /* else the peer asks again */
        closed(m, p);
}
