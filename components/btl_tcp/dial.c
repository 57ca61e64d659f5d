/* Dialling: a peer's addresses in turn, the next one as well where the last has not answered soon. A process that sends
 * to hundreds of peers at once dials some of them at a time. The others wait, and may call meanwhile; then a pair makes
 * one connection instead of two, and no listener is called by all at once. A peer that does not answer gives its turn
 * away. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/clock.h>
#include <strata/sdk/socket.h>
#include "dial.h"
#include "tcp.h"

static_assert(TCP_ADDRESSES <= 8, "a bit of tcp_peer.trying for each");

void tcp_dial_answered(struct tcp_peer *p)
{
    if (!p->dial)
        return;
    p->dial->answered = true;
    p->dial->n_hung_up = 0;
}

void tcp_dial_dark(struct tcp_peer *p)
{
    if (p->dial)
        p->dial->began = st_now_ns();
}

/* A bridge of the same address may be on this machine: its callee says nothing of the peer. */
void tcp_dial_hung_up(const struct tcp_conn *c)
{
    struct tcp_dial *d = c->peer->dial;

    if (!d || d->card.address[c->address].flags & TCP_VIRTUAL)
        return;
    d->n_hung_up++;
    d->hung_up_at = st_now_ns();
}

static void dial_note(struct tcp_dial *d, uint8_t address, const char *why)
{
    char text[TCP_TEXT];

    snprintf(d->why, sizeof d->why, "%s port %u: %s", tcp_address_text(d->card.address[address].ip, text), d->card.port,
             why);
}

/* Between two rounds: longer each time. */
static uint64_t dial_pause(const struct tcp_dial *d)
{
    uint32_t longer = d->rounds > 0 ? d->rounds - 1 : 0;

    return TCP_DIAL_AGAIN << (longer < 5 ? longer : 5);
}

/* Of several addresses the next one is dialled at once. Else there is a pause: a peer that hangs up has too many
 * callers.
 */
void tcp_dial_failed(struct tcp_peer *p, const struct tcp_conn *c, const char *why)
{
    struct tcp_dial *d = p->dial;
    uint64_t again;

    if (!d)
        return;
    dial_note(d, c->address, why);
    if (d->next > 0) {
        d->next_at = d->next < d->n ? 0 : d->next_at;
    } else if (d->rounds > 0) {
        again = st_now_ns() + dial_pause(d);
        d->next_at = again > d->next_at ? again : d->next_at;
    }
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
        c->deadline = now + tcp_dial_limit_ms(m, p) * TCP_MS;
        p->trying |= (uint8_t)(1u << address);
        return true;
    }
    if (errno == ECONNREFUSED)
        d->refused |= (uint8_t)(1u << address);
    dial_note(d, address, errno == EMFILE ? "no descriptor is left (see ulimit -n)" : strerror(errno));
    return false;
}

/* Age alone fails a peer only while nothing answers. A callee that hangs up may be the peer, which makes room among too
 * many callers, or another program at its old port: hang-ups are counted as well. One that is silent may be the peer,
 * which computes. */
static bool dial_is_over(const struct tcp_peer *p, uint64_t limit_ns, uint64_t now)
{
    struct tcp_dial *d = p->dial;

    if (d->answered)
        d->began = now;
    d->answered = false;
    if (p->taken)
        return false;
    if (d->n == 0 || ((uint32_t)__builtin_popcount(d->refused) == d->n && d->rounds >= TCP_REFUSALS))
        return true;
    return now > d->began + limit_ns && (d->n_hung_up == 0 || d->n_hung_up >= TCP_HANG_UPS);
}

static bool dial_gives_up(const struct tcp_module *m, struct tcp_peer *p, uint64_t now)
{
    const struct tcp_dial *d = p->dial;
    char why[240];

    if (!dial_is_over(p, tcp_dial_limit_ms(m, p) * TCP_MS, now))
        return false;
    snprintf(why, sizeof why, "none of its %u addresses can be reached by TCP: the last one, %s", d->n,
             d->n ? d->why : "none was published");
    tcp_peer_gone(p, why);
    return true;
}

/* All addresses have their turn behind them, and one is to be dialled again or none is being dialled. One that does not
 * answer holds up no other one. */
static bool dial_round_is_over(const struct tcp_peer *p)
{
    const struct tcp_dial *d = p->dial;

    return d->next == d->n && (p->trying == p->taken || (uint32_t)__builtin_popcount(p->trying) < d->n);
}

static void dial_go_on(struct tcp_module *m, struct tcp_peer *p, uint64_t now)
{
    struct tcp_dial *d = p->dial;

    if (p->conn || now < d->next_at)
        return;
    if (d->next == 0 && d->n_hung_up && dial_gives_up(m, p, now)) /* which callees may have done since the last round */
        return;
    while (d->next < d->n && now >= d->next_at) {
        uint8_t address = d->order[d->next++];
        if (p->trying & 1u << address)
            continue;
        d->fresh = true;
        if (dial_one(m, p, address, now))
            d->next_at = now + TCP_DIAL_NEXT;
    }
    if (now < d->next_at || !dial_round_is_over(p))
        return;
    if (!p->taken && now > d->hung_up_at + tcp_dial_limit_ms(m, p) * TCP_MS + dial_pause(d))
        d->n_hung_up = 0; /* a peer that hung up before this round may be dark by now */
    d->rounds += d->fresh || d->rounds == 0;
    d->fresh = false;
    if (dial_gives_up(m, p, now))
        return;
    d->next = 0;
    d->refused = 0;
    d->next_at = now + dial_pause(d);
}

/* ---- turns ---- */

static void turn_begin(struct tcp_module *m, struct tcp_peer *p, uint64_t now)
{
    struct tcp_dial *d = p->dial;

    d->called = d->began = now;
    d->young = true;
    m->n_young++;
    m->dial_at = 0;
    st_list_append(&m->dialling, &p->dialling);
    dial_go_on(m, p, now);
}

/* Its turn is over. */
static void turn_end(struct tcp_module *m, struct tcp_dial *d)
{
    m->n_young -= d->young;
    d->young = false;
}

int tcp_dial_begin(struct tcp_module *m, struct tcp_peer *p)
{
    struct tcp_dial *d = calloc(1, sizeof *d);
    int rank = p->ep.rank, rc;

    if (!d)
        return STRATA_ERR_NOMEM;
    rc = tcp_card_get(m, rank, m->link, &d->card);
    if (rc != STRATA_OK) {
        free(d);
        return rc;
    }
    tcp_dial_order(m, rank, d);
    p->dial = d;
    if (m->n_young < (uint64_t)m->par->dials && st_list_empty(&m->waiting))
        turn_begin(m, p, st_now_ns());
    else
        st_list_append(&m->waiting, &p->dialling);
    return STRATA_OK;
}

void tcp_dial_end(struct tcp_peer *p)
{
    struct tcp_module *m = tcp_of(p->ep.btl);

    if (!p->dial)
        return;
    turn_end(m, p->dial);
    m->dial_at = 0;
    st_list_remove(&p->dialling);
    free(p->dial);
    p->dial = NULL;
}

void tcp_dial_absent(struct tcp_module *m, uint64_t ns)
{
    for (struct st_node *n = m->dialling.next; n != &m->dialling; n = n->next) {
        struct tcp_dial *d = ST_CONTAINER(n, struct tcp_peer, dialling)->dial;
        d->began += ns;
        d->hung_up_at += ns;
    }
}

/* When it is to be looked at again; after events of its connections at once (tcp_module.dial_at). */
static uint64_t turn_due(const struct tcp_module *m, const struct tcp_peer *p)
{
    const struct tcp_dial *d = p->dial;
    bool waits = p->conn || (d->next == d->n && !dial_round_is_over(p));
    uint64_t at = waits ? UINT64_MAX : d->next_at, old = d->called + TCP_DIAL_NEXT;

    return d->young && !st_list_empty(&m->waiting) && old < at ? old : at;
}

void tcp_dials_go_on(struct tcp_module *m, uint64_t now)
{
    uint64_t due = UINT64_MAX;
    struct st_node *first;

    if (now < m->dial_at)
        return;
    m->dial_at = UINT64_MAX;
    for (struct st_node *n = m->dialling.next, *next; n != &m->dialling; n = next) {
        struct tcp_peer *p = ST_CONTAINER(n, struct tcp_peer, dialling);
        next = n->next;
        if (p->dial->young && now >= p->dial->called + TCP_DIAL_NEXT)
            turn_end(m, p->dial);
        dial_go_on(m, p, now);
        if (p->dial && turn_due(m, p) < due)
            due = turn_due(m, p);
    }
    while (m->n_young < (uint64_t)m->par->dials && (first = st_list_pop(&m->waiting)) != NULL)
        turn_begin(m, ST_CONTAINER(first, struct tcp_peer, dialling), now);
    if (due < m->dial_at) /* what has begun in this round is looked at in the next one */
        m->dial_at = due;
}
