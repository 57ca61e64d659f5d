/* The cards of peers: where they listen, by which links they are reached, and in which order their addresses are
 * dialled. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "dial.h"
#include "tcp.h"

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
void tcp_dial_order(struct tcp_module *m, int rank, struct tcp_dial *d)
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
