/* Waiting on an endpoint: how a loop learns that it waits in vain. */
#include "config.h"
#include "endpoint.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

/* Whoever has waited so long lets others have the processor: the other side may need it. */
#define YIELD_NS 1000000u

/* A reliable message of a peer that lives is late; one of UC or UD may be lost. */
static unsigned most_timeouts(const struct endpoint *e)
{
    return e->t.transport == RC && link_lives(e->m->link) ? e->m->link->patience : 1;
}

void endpoint_look(struct endpoint *e, struct idle *w)
{
    const uint64_t timeout_ns = (uint64_t)e->m->set.timeout_s * 1000000000u;

    silence_goes_on(&w->quiet, miba_now(), timeout_ns);
    if (link_stirs(e->m->link))
        e->over = OVER_STIRRED;
    else if (e->m->leads && w->quiet.ns >= timeout_ns * most_timeouts(e))
        e->over = OVER_SILENT;
    else if (w->quiet.ns > YIELD_NS)
        sched_yield();
}

/* The signals of session.c end the wait, so that the link is looked at. */
enum miba_status endpoint_sleep(struct endpoint *e, struct event_queue *q)
{
    struct idle w = {0};
    struct ibv_cq *cq;
    void *context;

    while (ibv_get_cq_event(q->channel, &cq, &context)) {
        if (errno != EINTR && errno != EAGAIN)
            return miba_fail_verb(&e->m->why, errno, "ibv_get_cq_event", NULL);
        endpoint_look(e, &w);
        if (e->over)
            return MIBA_OK;
    }
    ibv_ack_cq_events(cq, 1);
    q->armed = false;
    return MIBA_OK;
}

enum miba_status endpoint_arm(struct endpoint *e, struct event_queue *q)
{
    const int error = ibv_req_notify_cq(q->cq, 0);

    if (error)
        return miba_fail_verb(&e->m->why, error, "ibv_req_notify_cq", NULL);
    q->armed = true;
    return MIBA_OK;
}

enum miba_status endpoint_failed(struct endpoint *e, const struct ibv_wc *wc)
{
    const bool refused = wc->status == IBV_WC_REM_INV_REQ_ERR || wc->status == IBV_WC_REM_OP_ERR;

    return miba_fail(&e->m->why, refused ? MIBA_UNSUPPORTED : MIBA_FAILED, "a message ended with \"%s\"",
                     ibv_wc_status_str(wc->status));
}

enum miba_status endpoint_over(struct endpoint *e)
{
    struct miba *m = e->m;
    char line[LINE_MOST];

    if (e->over == OVER_SILENT && e->t.transport != RC)
        return miba_fail(&m->why, MIBA_FAILED, "a message was lost: nothing came for %d s", m->set.timeout_s);
    if (e->over == OVER_SILENT && link_lives(m->link))
        return miba_fail(&m->why, MIBA_FAILED, "nothing was completed for %u s, and the peer lives",
                         m->link->patience * (unsigned)m->set.timeout_s);
    if (e->over == OVER_SILENT) {
        m->link->lost = true;
        return miba_fail(&m->why, MIBA_LOST, "the peer is lost: nothing was completed for %d s", m->set.timeout_s);
    }
    const enum miba_status status = link_hear(m->link, line, false, &m->why);
    if (status)
        return status;
    return miba_fail(&m->why, MIBA_BROKEN, "the other side says \"%.80s\" in the middle of a batch", line);
}
