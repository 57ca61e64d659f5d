/* Business cards: reading a peer's, whether it fits ours, and filling in ours. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/hash.h>
#include <sys/random.h>
#include "module.h"

/* Packets pass between members of the same partition of which one at least is a full member. */
static bool card_same_partition(uint16_t a, uint16_t b)
{
    return a == 0 || b == 0 || (((a ^ b) & (uint16_t)~IB_PKEY_FULL) == 0 && ((a | b) & IB_PKEY_FULL) != 0);
}

/* Whether a peer's card fits ours. */
static bool card_fits(const struct ib_module *m, int rank, const struct ib_card *c, char *why, size_t why_size)
{
    const struct ib_card *mine = &m->card;
    char theirs[32], ours[32];
    int us = m->rte->rank;

    if (c->version != IB_WIRE_VERSION || c->job != mine->job)
        snprintf(why, why_size, "rank %d is of another %s", rank, c->job != mine->job ? "job" : "version");
    else if (c->ethernet != mine->ethernet || (!c->ethernet && memcmp(c->gid, mine->gid, 8) != 0))
        snprintf(why, why_size, "rank %d's %.31s is on another network than our %s", rank, c->device, m->dev.name);
    else if (!card_same_partition(mine->pkey, c->pkey))
        snprintf(why, why_size,
                 "rank %d has partition key 0x%04x, rank %d (here) 0x%04x (btl_openib_pkey_index): nothing passes "
                 "between them",
                 rank, c->pkey, us, mine->pkey);
    else if (ib_method_choose(mine->methods, c->methods, us < rank) == 0)
        snprintf(why, why_size, "rank %d has btl_openib_connect=%s, rank %d (here) %s: they have none in common", rank,
                 ib_methods_text(c->methods, theirs, sizeof theirs), us,
                 ib_methods_text(mine->methods, ours, sizeof ours));
    else if (c->size[IB_HIGH] != mine->size[IB_HIGH] || c->size[IB_LOW] != mine->size[IB_LOW])
        snprintf(why, why_size,
                 "rank %d has receive_queues with buffers of %u and %u bytes, rank %d (here) of %u and %u: they must "
                 "be the same in all of the job",
                 rank, c->size[IB_HIGH], c->size[IB_LOW], us, mine->size[IB_HIGH], mine->size[IB_LOW]);
    else
        return true;
    return false;
}

/* A value that is no card of ours gets version 0. */
static int card_get(struct ib_module *m, int rank, uint32_t number, struct ib_card *out)
{
    char key[32];
    void *blob = NULL;
    size_t length = 0;
    int rc;

    memset(out, 0, sizeof *out);
    snprintf(key, sizeof key, IB_CARD_KEY ".%u", number);
    rc = m->rte->ops->get(m->rte, rank, key, &blob, &length);
    if (rc != STRATA_OK)
        return rc;
    if (length == sizeof *out) {
        memcpy(out, blob, sizeof *out);
        out->device[sizeof out->device - 1] = 0;
    }
    free(blob);
    return STRATA_OK;
}

/* Nearly always the card with our number. Where that is another port's, any card says which ports the rank has. */
static int card_corresponding(struct ib_module *m, int rank, struct ib_card *out)
{
    int rc = card_get(m, rank, m->index, out), place;
    uint64_t rails;

    if (rc != STRATA_OK && m->index > 0)
        rc = card_get(m, rank, 0, out);
    if (rc != STRATA_OK || out->version != IB_WIRE_VERSION || out->place == m->dev.place)
        return rc;
    rails = out->rails;
    place = ib_rail_match(m->card.rails, rails, m->dev.place);
    rc = place < 0 ? STRATA_ERR_NOT_FOUND : card_get(m, rank, ib_rail_number(rails, (uint32_t)place), out);
    if (rc == STRATA_OK && (out->version != IB_WIRE_VERSION || out->place == place))
        return STRATA_OK;
    *out = (struct ib_card){.rails = rails};
    return STRATA_ERR_NOT_FOUND;
}

int ib_card_fetch(struct ib_module *m, int rank, struct ib_card *out, char *why, size_t why_size)
{
    const struct ib_peer *p = ib_peer_find(m, rank);
    int rc = card_corresponding(m, rank, out);
    char unread[1];

    if (!why) {
        why = unread;
        why_size = sizeof unread;
    }
    if (rc != STRATA_OK)
        snprintf(why, why_size, "rank %d has no port to match our %s: %s", rank, m->dev.name, strata_strerror(rc));
    if (rc != STRATA_OK || !card_fits(m, rank, out, why, why_size))
        return STRATA_ERR_UNREACHABLE;
    if (p && p->moved)
        ib_card_set_address(out, p->moved);
    return STRATA_OK;
}

/* A rank with fewer ports than this one warns itself, where that should not be so. */
void ib_card_misfit(struct ib_module *m, int rank, const struct ib_card *card, const char *why)
{
    struct ib_peer *p = ib_peer_get(m, rank);
    bool fewer = card->version == 0 && card->rails != 0;

    if (p && !p->misfit)
        st_log(m->btl.context, fewer ? ST_LOG_INFO : ST_LOG_WARN, "btl_openib", "%s", why);
    if (p)
        p->misfit = true;
}

void ib_card_set_address(struct ib_card *card, const struct ib_address *a)
{
    memcpy(card->gid, a->gid, sizeof card->gid);
    card->lid = a->lid;
    if (card->ethernet) /* a GID of RoCE is an IP address */
        memcpy(card->cm_address, a->gid, sizeof card->cm_address);
}

int ib_card_fill(struct ib_module *m)
{
    struct ib_card *c = &m->card;

    c->version = IB_WIRE_VERSION;
    c->job = st_hash_bytes(m->rte->job_id, strlen(m->rte->job_id));
    memcpy(c->gid, m->dev.gid.raw, sizeof c->gid);
    c->lid = m->dev.port_attr.lid;
    c->pkey = ib_device_partition(&m->dev);
    c->ethernet = m->dev.ethernet;
    for (int i = 0; i < IB_PRIORITIES; i++)
        c->size[i] = m->spec[i].size;
    c->place = (uint8_t)m->dev.place;
    snprintf(c->device, sizeof c->device, "%.31s", m->dev.name);
    return getrandom(&c->key, sizeof c->key, 0) == sizeof c->key ? STRATA_OK : STRATA_ERR_SYSTEM;
}
