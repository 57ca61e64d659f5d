/* Connections that come up, and queue pairs that go. */
#include "connect/conn.h"

#include <strata/sdk/clock.h>
#include "module.h"

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

void ib_conn_free_qps(struct ib_peer *p)
{
    ib_methods_disconnected(p);
    ib_qps_destroy(p);
}

void ib_conn_unmake_qps(struct ib_peer *p)
{
    ib_methods_disconnected(p);
    ib_qps_unmake(p);
}
