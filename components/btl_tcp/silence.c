/* Peers that do not answer: an idle peer is asked by the kernel (keepalive); while something is under way the module
 * asks the kernel whether answers come. TCP_USER_TIMEOUT is not used: it ends a connection whose peer lives and
 * computes, and reads nothing meanwhile. Of this machine nobody is asked: the end of a process ends its connections,
 * and probes of many ranks fill the kernel's queues. */
#include <netinet/in.h>
#include <stddef.h>
#include <linux/tcp.h>
#include <sys/socket.h>
#include "bulk.h"
#include "dial.h"
#include "tcp.h"

/* Sent again, or asked for room, and not answered since the last look. */
static bool silence_is(const struct tcp_conn *c, uint64_t period_ms)
{
    struct tcp_info info = {0};
    socklen_t n = sizeof info;

    if (getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &n) != 0)
        return false;
    return (info.tcpi_retransmits || info.tcpi_probes) && info.tcpi_last_ack_recv >= period_ms;
}

/* Looks are counted, not time: a process that was stopped blames no peer. */
void tcp_silence_look(struct tcp_module *m, uint64_t now)
{
    uint64_t period_ms = tcp_half_timeout_ms(m) / TCP_LOOKS;
    bool found = false;

    if (now < m->probed + period_ms * TCP_MS)
        return;
    m->probed = now;
    for (struct st_node *n = m->conns.next; n != &m->conns; n = n->next) {
        struct tcp_conn *c = ST_CONTAINER(n, struct tcp_conn, node);
        if (c->state == TCP_DIALLED || !c->peer || !c->peer->far)
            continue;
        c->silent = silence_is(c, period_ms) ? (uint8_t)(c->silent + 1) : 0;
        found |= c->silent >= TCP_LOOKS;
    }
    for (struct st_node *n = m->conns.next, *next; found && n != &m->conns; n = next) {
        struct tcp_conn *c = ST_CONTAINER(n, struct tcp_conn, node);
        next = n->next;
        if (c->silent < TCP_LOOKS || !c->peer)
            continue;
        tcp_dial_dark(c->peer);
        if (c == c->peer->conn)
            tcp_receive_second(m, c->peer);
        tcp_conn_lost(m, c, "its machine does not answer any more");
        next = m->conns.next; /* others of that peer may have gone with it */
    }
}
