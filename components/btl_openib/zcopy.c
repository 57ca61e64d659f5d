/* Messages that are not copied: one request has the device gather the head from a buffer of ours and the data from
 * where it is, which must be registered. Registering costs more than a copy, so it is done for memory that comes back:
 * when a message is sent from a page that was sent from lately. */
#include "send_inl.h"

#define HEAD_SIZE 64u /* bytes of a buffer for a head: IB_HEAD and ST_BTL_HDR_MAX fit */
#define HEADS     32u /* made at a time */
_Static_assert(sizeof(struct ib_head) + ST_BTL_HDR_MAX <= HEAD_SIZE, "a head fits");

int ib_zcopy_open(struct ib_module *m)
{
    ib_pool_init(&m->heads, m, HEAD_SIZE, HEADS, 0);
    return st_slab_init(&m->zcopies, sizeof(struct ib_zcopy), HEADS, HEADS, 0);
}

/* The registration of memory that was sent from before, or NULL. A slot of `seen` holds the page that was sent from
 * last, of those that fall on it; inverted when it could not be registered. */
static struct st_rcache_entry *registered(struct ib_module *m, const void *data, uint32_t len)
{
    uint32_t page = (uint32_t)((uintptr_t)data / m->cache->page);
    uint32_t *seen = &m->seen[page * 0x9e3779b1u >> 24];
    struct st_rcache_entry *e = NULL;

    _Static_assert(IB_SEEN == 1u << 8, "the highest bits of the product choose");
    if (*seen == page) { /* registered as the source of a get is, so that one serves both */
        if (ST_UNLIKELY(m->cache->ops->get(m->cache, &m->registrar, data, len, ST_RCACHE_REMOTE_READ, &e) != STRATA_OK))
            *seen = ~page;
    } else if (*seen != ~page) {
        *seen = page;
    }
    return e;
}

static void give_back(struct ib_module *m, struct ib_zcopy *z)
{
    m->cache->ops->put(m->cache, z->memory);
    if (z->head)
        ib_buffer_put(&m->heads, z->head);
    st_slab_put(&m->zcopies, z);
}

/* NULL: it must be copied. */
static struct ib_zcopy *make(struct ib_module *m, const void *data, uint32_t len, struct st_btl_op *op)
{
    struct st_rcache_entry *e = registered(m, data, len);
    struct ib_zcopy *z = e ? st_slab_get(&m->zcopies) : NULL;

    if (!z) {
        if (e)
            m->cache->ops->put(m->cache, e);
        return NULL;
    }
    *z = (struct ib_zcopy){.head = ib_buffer_get(&m->heads), .memory = e, .op = op};
    if (ST_LIKELY(z->head != NULL))
        return z;
    give_back(m, z);
    return NULL;
}

int ib_send_zcopy(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                  uint32_t len, struct st_btl_op *op)
{
    struct ib_peer *p = ib_peer(ep);
    struct ib_module *m = ib_module(ep->btl);
    struct ib_qp *q = qp_for(m, p, IB_HEAD + hdr_len + len);
    struct ibv_sge sge[2];
    struct ib_lead lead;
    struct ib_zcopy *z;

    if (!has_room(q) && !ib_send_room(m, p, q))
        return ib_send_not_now(p);
    z = make(m, data, len, op);
    if (!z) {
        int rc = ib_send(ep, am, hdr, hdr_len, data, len);
        return rc == STRATA_OK ? 1 : rc;
    }
    lead_make(q, am, hdr, hdr_len, len, &lead);
    lead_put(&lead, z->head->data, hdr, hdr_len);
    sge[0] = (struct ibv_sge){(uintptr_t)z->head->data, IB_HEAD + hdr_len, z->head->lkey};
    sge[1] = (struct ibv_sge){(uintptr_t)data, len, ((const struct ibv_mr *)z->memory->handle)->lkey};
    if (ST_UNLIKELY(post_signalled(m, q, sge + lead.as_imm, 2 - lead.as_imm, lead.as_imm ? &lead.imm : NULL, z,
                                   IB_SENT_ZCOPY) != STRATA_OK)) {
        give_back_owed(p, &lead.head);
        give_back(m, z);
        return STRATA_ERR_AGAIN;
    }
    lead_went(m, q, &lead, hdr);
    m->count.zcopy++;
    sent(m, q, len);
    return STRATA_OK;
}

void ib_zcopy_ended(struct ib_module *m, struct ib_zcopy *z, int rc)
{
    struct st_btl_op *op = z->op;

    give_back(m, z);
    if (!m->closing)
        op->done(op, rc);
}
