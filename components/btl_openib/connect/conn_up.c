/* Connections that come up, and queue pairs that go. */
#include <strata/sdk/clock.h>
#include "data/completion.h"

void ib_conn_up(struct ib_peer *p)
{
    struct ib_module *m = ib_module_of(p);

    ib_credits_start(p, p->up->credits);
    p->state = IB_UP;
    p->remade = false;
    m->count.connected++;
    if (p->up->began) {
        uint64_t took = st_now_ns() - p->up->began;
        m->count.asked++;
        m->count.connect_ns += took;
        if (took > m->count.slowest_ns)
            m->count.slowest_ns = took;
    }
    ib_wire_up_end(p);
}

void ib_conn_heard(struct ib_peer *p)
{
    if (p->state == IB_ANSWERED)
        ib_conn_up(p);
}

/* Messages are built in one place for all peers, and inlined up to what the first queue pair holds. */
int ib_conn_make_qps(struct ib_peer *p)
{
    struct ib_module *m = ib_module_of(p);
    int rc = ib_qps_make(p);

    if (rc != STRATA_OK) {
        ib_methods_disconnected(p);
        return rc;
    }
    if (m->brief.most != m->qps.max_inline)
        ib_brief_init(&m->brief, m->qps.max_inline);
    m->poll.hot = !m->poll.stashed;
    return STRATA_OK;
}

/* Before queue pairs go their work requests end. They have arrived, whatever the device knows, when the connection was
 * closed in agreement. */
void ib_conn_free_qps(struct ib_peer *p, bool used)
{
    struct ib_module *m = ib_module_of(p);

    ib_methods_disconnected(p);
    ib_eager_reset(p);
    for (int i = 0; i < IB_PRIORITIES; i++) {
        ib_batch_drop(m, &p->q[i]);
        ib_sent_drop(&p->q[i], p->state == IB_CLOSED ? STRATA_OK : STRATA_ERR_PEER);
        if (m->poll.last == &p->q[i]) {
            m->poll.last = NULL;
            m->poll.last_number = 0; /* no queue pair has this number */
        }
    }
    ib_qps_destroy(p, used);
    m->poll.hot = m->poll.hot && m->qps.n_peers > 0;
}
