/* Dialling: a peer's addresses in turn, the next one as well where the last has not answered soon. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/clock.h>
#include <strata/sdk/socket.h>
#include "tcp.h"

#define UNSEEN (500 * TCP_MS) /* between two looks: this process was busy with something else */

int tcp_dial_begin(struct tcp_module *m, struct tcp_peer *p)
{
    struct tcp_dial *d = calloc(1, sizeof *d);
    int rank = p->ep.rank, rc;
    void *blob = NULL;
    size_t n = 0;

    if (!d)
        return STRATA_ERR_NOMEM;
    rc = m->rte->ops->get(m->rte, rank, "btl_tcp", &blob, &n);
    if (rc == STRATA_OK && n == sizeof d->card)
        memcpy(&d->card, blob, n);
    free(blob);
    if (rc == STRATA_OK && (d->card.magic != TCP_MAGIC || d->card.n > TCP_ADDRESSES))
        rc = STRATA_ERR_PROTOCOL;
    if (rc != STRATA_OK) {
        free(d);
        return rc == STRATA_ERR_NOT_FOUND ? STRATA_ERR_UNREACHABLE : rc; /* it has not opened btl_tcp */
    }
    d->n = tcp_order(d->card.address, d->card.n, m->card.address, m->card.n, m->rte->ops->is_local(m->rte, rank),
                     d->order);
    d->began = d->seen = st_now_ns();
    p->dial = d;
    st_list_append(&m->dialling, &p->dialling);
    tcp_dial_go_on(m, p, d->began);
    return STRATA_OK;
}

void tcp_dial_end(struct tcp_peer *p)
{
    st_list_remove(&p->dialling);
    free(p->dial);
    p->dial = NULL;
}

static void dial_note(struct tcp_dial *d, uint8_t address, const char *why)
{
    char text[TCP_TEXT];

    snprintf(d->why, sizeof d->why, "%s port %u: %s", tcp_address_text(d->card.address[address].ip, text), d->card.port,
             why);
}

void tcp_dial_failed(struct tcp_peer *p, const struct tcp_conn *c, const char *why)
{
    if (!p->dial)
        return;
    dial_note(p->dial, c->address, why);
    if (p->dial->next < p->dial->n)
        p->dial->next_at = 0;
}

/* A peer that was connected has used up half of its time when its silence was noticed. */
static uint64_t dial_limit_ms(const struct tcp_module *m, const struct tcp_peer *p)
{
    uint64_t first = (uint64_t)m->par->connect_timeout_ms, again = tcp_half_timeout_ms(m);

    return p->epoch && again < first ? again : first;
}

/* False: it failed at once. */
static bool dial_one(struct tcp_module *m, struct tcp_peer *p, uint8_t address, uint64_t now)
{
    struct tcp_dial *d = p->dial;
    int fd = st_socket_dial(d->card.address[address].ip, d->card.port);
    struct tcp_conn *c = NULL;

    m->count.dials++;
    if (fd >= 0) {
        tcp_set_socket(m, fd);
        c = tcp_conn_make(m, fd, p, TCP_DIALLED);
    }
    if (c) {
        c->address = address;
        c->deadline = now + dial_limit_ms(m, p) * TCP_MS;
        return true;
    }
    d->n_refused += errno == ECONNREFUSED;
    dial_note(d, address, errno == EMFILE ? "no descriptor is left (see ulimit -n)" : strerror(errno));
    return false;
}

void tcp_dial_go_on(struct tcp_module *m, struct tcp_peer *p, uint64_t now)
{
    struct tcp_dial *d = p->dial;
    uint64_t limit;
    char why[240];

    /* A program that computes does not use up the peer's time, which may have hung up meanwhile. */
    if (now > d->seen + UNSEEN)
        d->began += now - d->seen;
    d->seen = now;
    limit = d->began + dial_limit_ms(m, p) * TCP_MS;
    if (p->conn || now < d->next_at)
        return;
    while (d->next < d->n && now >= d->next_at)
        if (dial_one(m, p, d->order[d->next++], now))
            d->next_at = now + TCP_DIAL_NEXT;
    if (d->next < d->n || p->n_tries > 0)
        return;
    d->rounds++;
    if (d->n == 0 || now > limit || (d->n_refused >= d->n && d->rounds >= TCP_REFUSALS)) {
        snprintf(why, sizeof why, "none of its %u addresses can be reached by TCP: the last one, %s", d->n,
                 d->n ? d->why : "none was published");
        tcp_peer_gone(p, why);
        return;
    }
    d->next = d->n_refused = 0;
    d->next_at = now + (TCP_DIAL_AGAIN << (d->rounds < 6 ? d->rounds - 1 : 5));
}
