/* Connecting by sockets, out of band (the paper, section 5.2.1): the frames of sdk/frames.h carry messages, at the port
 * and addresses that cards name. */
#include <errno.h>
#include <stdio.h>
#include <strata/sdk/frames.h>
#include <strata/sdk/socket.h>
#include <string.h>
#include "module.h"

/* The peer's addresses in turn, on this machine loopback first; NULL: it has published none. */
static const uint8_t *tcp_address(const struct ib_module *m, const struct ib_wire_up *w)
{
    const uint8_t *all[IB_ADDRESSES + 1];
    static const uint8_t none[16];
    uint32_t n = 0;

    if (m->rte->ops->is_local(m->rte, w->peer->ep.rank))
        all[n++] = st_socket_loopback;
    for (uint32_t i = 0; i < IB_ADDRESSES; i++)
        if (memcmp(w->card.address[i], none, 16) != 0)
            all[n++] = w->card.address[i];
    return n ? all[w->addresses % n] : NULL;
}

static int tcp_send(struct ib_module *m, struct ib_wire_up *w, const struct ib_conn *c)
{
    int rc = st_frames_send(m->oob.state[IB_METHOD_TCP], w->peer->ep.rank, c, tcp_address(m, w), w->card.tcp_port);

    w->addresses += rc == STRATA_ERR_UNREACHABLE;
    return rc == STRATA_OK ? rc : STRATA_ERR_AGAIN;
}

static bool tcp_sender(void *arg, const void *frame, int *rank)
{
    const struct ib_module *m = arg;
    const struct ib_conn *c = frame;

    *rank = c->from;
    return c->key == m->card.key && c->to == m->rte->rank;
}

static bool tcp_take(void *arg, const void *frame)
{
    struct ib_module *m = arg;

    return m->oob.take(m, &ib_method_tcp, frame);
}

static void tcp_refused(void *arg)
{
    ((struct ib_module *)arg)->count.refused++;
}

static void tcp_in_vain(void *arg, int rank)
{
    const struct ib_peer *p = ib_peer_find(arg, rank);

    if (p && p->up)
        p->up->addresses++;
}

static int tcp_poll(struct ib_module *m)
{
    return st_frames_poll(m->oob.state[IB_METHOD_TCP]);
}

static bool tcp_all_local(const struct ib_module *m)
{
    int n = 0;

    (void)m->rte->ops->local_ranks(m->rte, &n);
    return n > 0 && n == m->rte->size;
}

static int tcp_open(struct ib_module *m, char *why, size_t why_size)
{
    const struct st_frames_owner owner = {m,           IB_TCP_MAGIC, sizeof(struct ib_conn), tcp_sender, tcp_take,
                                          tcp_refused, tcp_in_vain};
    static const uint8_t none[16];
    bool here = tcp_all_local(m);
    struct st_frames *f = m->oob.state[IB_METHOD_TCP] = st_frames_open(&owner, here, &m->card.tcp_port);

    if (!f || ib_wait_on(m, st_frames_fd(f)) != STRATA_OK) {
        snprintf(why, why_size, "btl_openib_connect=tcp: no socket that listens: %s", strerror(errno));
        return !f && errno == ENOMEM ? STRATA_ERR_NOMEM : STRATA_ERR_SYSTEM;
    }
    if (here)
        return STRATA_OK;
    st_socket_addresses(m->card.address, IB_ADDRESSES);
    if (memcmp(m->card.address[0], none, 16) == 0) {
        snprintf(why, why_size, "btl_openib_connect=tcp: no network interface but loopback is up");
        return STRATA_ERR_UNSUPPORTED;
    }
    return STRATA_OK;
}

static void tcp_close(struct ib_module *m)
{
    st_frames_close(m->oob.state[IB_METHOD_TCP]);
    m->oob.state[IB_METHOD_TCP] = NULL;
    m->card.tcp_port = 0;
}

static size_t tcp_bytes(const struct ib_module *m)
{
    return st_frames_bytes(m->oob.state[IB_METHOD_TCP]);
}

const struct ib_method ib_method_tcp = {.name = "tcp",
                                        .mask = 15,
                                        .open = tcp_open,
                                        .close = tcp_close,
                                        .send = tcp_send,
                                        .poll = tcp_poll,
                                        .bytes = tcp_bytes};
