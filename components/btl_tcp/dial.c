/* Dialling: a peer's addresses in turn, the next one as well where the last has not answered soon. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/clock.h>
#include <strata/sdk/socket.h>
#include "dial.h"
#include "tcp.h"

static_assert(TCP_ADDRESSES <= 8, "a bit of tcp_peer.trying for each");

void tcp_card_key(uint32_t link, char key[TCP_CARD_KEY])
{
    snprintf(key, TCP_CARD_KEY, link ? "btl_tcp.%u" : "btl_tcp", link);
}

int tcp_card_get(const struct tcp_module *m, int rank, uint32_t link, struct tcp_card *out)
{
    char key[TCP_CARD_KEY];
    struct tcp_card card = {.magic = 0};
    void *blob = NULL;
    size_t n = 0;
    int rc;

    tcp_card_key(link, key);
    rc = m->rte->ops->get(m->rte, rank, key, &blob, &n);
    if (rc == STRATA_OK && n == sizeof card)
        memcpy(&card, blob, n);
    free(blob);
    if (rc == STRATA_ERR_NOT_FOUND)
        return STRATA_ERR_UNREACHABLE; /* it has not opened btl_tcp */
    if (rc == STRATA_OK && (card.magic != TCP_MAGIC || card.n > TCP_ADDRESSES))
        rc = STRATA_ERR_PROTOCOL;
    for (uint32_t i = 0; rc == STRATA_OK && i < card.n; i++)
        if (card.address[i].interface >= TCP_ADDRESSES)
            rc = STRATA_ERR_PROTOCOL;
    if (rc == STRATA_OK)
        *out = card;
    return rc;
}

/* A peer is asked for by reach, and then by dialling: the links are found once. */
static const struct tcp_pair *dial_pair(struct tcp_module *m, int rank, const struct tcp_card *card)
{
    struct tcp_pair *p = &m->pair;

    if (p->rank != rank)
        p->n = (uint8_t)tcp_links(m->card.address, m->card.n, card->address, card->n, p->link, p->speed);
    p->rank = rank;
    return p;
}

uint32_t tcp_dial_bandwidth(struct tcp_module *m, int rank)
{
    uint32_t all = m->btl.facts.bandwidth_mbs, used;
    const struct tcp_pair *pair;
    struct tcp_card card;

    if (m->par->links < 2 || m->rte->ops->is_local(m->rte, rank) || tcp_card_get(m, rank, m->link, &card) != STRATA_OK)
        return all;
    pair = dial_pair(m, rank, &card);
    used = pair->n < m->par->links ? pair->n : (uint32_t)m->par->links;
    return tcp_link_bandwidth(pair->speed, used, m->link, all);
}

int tcp_reach(struct st_btl *btl, int rank)
{
    struct tcp_module *m = tcp_of(btl);
    struct tcp_card card;

    if (rank == m->rte->rank)
        return STRATA_ERR_UNREACHABLE;
    if (m->link == 0)
        return STRATA_OK;
    /* Its first module's card tells how many it has: of a module that it does not have there is none. */
    if (m->rte->ops->is_local(m->rte, rank) || tcp_card_get(m, rank, 0, &card) != STRATA_OK ||
        dial_pair(m, rank, &card)->n <= m->link)
        return STRATA_ERR_UNREACHABLE;
    return STRATA_OK;
}

/* The module's own link is tried first, then all others: one that does not work is no reason to have a path less. */
static void dial_order(struct tcp_module *m, int rank, struct tcp_dial *d)
{
    bool local = m->rte->ops->is_local(m->rte, rank);
    const struct tcp_pair *pair = local ? NULL : dial_pair(m, rank, &d->card);
    uint32_t at = 0;

    d->n = tcp_order(d->card.address, d->card.n, m->card.address, m->card.n, local, d->order);
    if (!pair || pair->n <= m->link)
        return;
    while (at < d->n && d->order[at] != pair->link[m->link])
        at++;
    if (at == d->n)
        return;
    memmove(d->order + 1, d->order, at);
    d->order[0] = pair->link[m->link];
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
    dial_order(m, rank, d);
    d->began = st_now_ns();
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

void tcp_dial_answered(struct tcp_peer *p)
{
    if (!p->dial)
        return;
    p->dial->answered = true;
    p->dial->n_hung_up = 0;
}

void tcp_dial_absent(struct tcp_module *m, uint64_t ns)
{
    for (struct st_node *n = m->dialling.next; n != &m->dialling; n = n->next)
        ST_CONTAINER(n, struct tcp_peer, dialling)->dial->began += ns;
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
    return TCP_DIAL_AGAIN << (d->rounds < 6 ? d->rounds - 1 : 5);
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
    d->n_refused += errno == ECONNREFUSED;
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
    if (d->n == 0 || (d->n_refused >= d->n && d->rounds >= TCP_REFUSALS))
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

void tcp_dial_go_on(struct tcp_module *m, struct tcp_peer *p, uint64_t now)
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
    /* An address that has taken the call and is silent holds up no other one. */
    if (d->next < d->n || p->trying != p->taken)
        return;
    d->rounds += d->fresh || d->rounds == 0;
    d->fresh = false;
    if (dial_gives_up(m, p, now))
        return;
    d->next = d->n_refused = 0;
    d->next_at = now + dial_pause(d);
}
