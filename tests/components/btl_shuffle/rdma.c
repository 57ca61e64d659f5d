/* get and put, and messages that are not copied when they are sent: copied in pieces by the initiator's progress, some
 * polls later, in any order; every access is checked against the registration tables of both ends. */
#include <strata/sdk/btl_rdma.h>
#include "shuffle.h"

#include <stdlib.h>

struct key {
    uint64_t id; /* first: all that is looked at */
    uint64_t base, len;
};
_Static_assert(sizeof(struct key) <= ST_BTL_KEY_MAX, "a key travels in an active message");

/* Under port->lock. */
static bool registered(struct port *port, uint64_t id, uint64_t at, size_t len)
{
    for (struct st_node *n = port->regions.next; n != &port->regions; n = n->next) {
        struct region *r = ST_CONTAINER(n, struct region, node);
        uint64_t base = (uint64_t)(uintptr_t)r->base;
        if (r->id == id)
            return at >= base && at - base <= r->len && len <= r->len - (at - base);
    }
    return false;
}

static bool registered_now(struct port *port, uint64_t id, uint64_t at, size_t len)
{
    pthread_mutex_lock(&port->lock);
    bool ok = registered(port, id, at, len);
    pthread_mutex_unlock(&port->lock);
    return ok;
}

/* Copies when both ends are registered: as a device would, that looks at each access. The peer cannot withdraw its
 * memory meanwhile: it needs the lock for that. */
static bool copy(struct transfer *t, size_t n)
{
    struct module *m = (struct module *)t->ep->super.btl;
    struct port *far = t->ep->port;
    if (!m->config->needs_reg) {
        memcpy(t->to, t->from, n);
        return true;
    }
    uint64_t from = (uint64_t)(uintptr_t)t->from, to = (uint64_t)(uintptr_t)t->to;
    if (!registered_now(m->port, t->near_id, t->cap == ST_BTL_GET ? to : from, n))
        return false;
    pthread_mutex_lock(&far->lock);
    bool ok = registered(far, t->far_id, t->cap == ST_BTL_GET ? from : to, n);
    if (ok)
        memcpy(t->to, t->from, n);
    pthread_mutex_unlock(&far->lock);
    return ok;
}

static int refuse(struct transfer *t)
{
    st_log(t->ep->super.btl->context, ST_LOG_ERROR, "btl_shuffle", "%s of %zu bytes, rank %d: memory is not registered",
           t->cap == ST_BTL_GET ? "get" : "put", t->left, t->ep->super.rank);
    return STRATA_ERR_ARG;
}

static int start(struct st_btl_endpoint *ep, uint32_t cap, char *to, const char *from, size_t len,
                 const uint8_t *remote_key, struct st_btl_reg *reg, struct st_btl_op *op)
{
    struct endpoint *e = (struct endpoint *)ep;
    struct module *m = (struct module *)ep->btl;
    struct transfer now = {.ep = e, .op = op, .cap = cap, .to = to, .from = from, .left = len};
    if (!(ep->caps & cap))
        return STRATA_ERR_UNSUPPORTED;
    if (refuses(m))
        return STRATA_ERR_AGAIN;
    int rc = endpoint_use(e);
    if (rc != STRATA_OK)
        return rc;
    if (m->config->needs_reg) {
        if (!reg || !remote_key)
            return refuse(&now);
        memcpy(&now.far_id, remote_key, sizeof now.far_id);
        memcpy(&now.near_id, reg->key, sizeof now.near_id);
    }
    ep->btl->messages_sent++;
    *(cap == ST_BTL_GET ? &ep->btl->bytes_got : &ep->btl->bytes_sent) += len;
    bool lost = (cap == ST_BTL_GET || m->config->unsupported_put) && chance(m, m->config->unsupported_percent);
    if (lost)
        ep->caps &= ~cap;
    bool async = chance(m, m->config->async_percent);
    if (lost && !async)
        return STRATA_ERR_UNSUPPORTED;
    if (!async)
        return copy(&now, len) ? 1 : refuse(&now);
    struct transfer *t = malloc(sizeof *t);
    if (!t)
        return STRATA_ERR_AGAIN;
    *t = now;
    t->delay = draw(m, (uint32_t)m->config->delay + 1);
    t->verdict = lost ? STRATA_ERR_UNSUPPORTED : STRATA_OK;
    st_list_append(&m->transfers, &t->node);
    return STRATA_OK;
}

bool transfer_message(struct endpoint *e, struct packet *p, const char *data, struct st_btl_op *op)
{
    struct module *m = (struct module *)e->super.btl;
    struct transfer *t = malloc(sizeof *t);
    if (!t)
        return false;
    *t = (struct transfer){
        .ep = e, .op = op, .packet = p, .from = data, .delay = draw(m, (uint32_t)m->config->delay + 1)};
    st_list_append(&m->transfers, &t->node);
    return true;
}

int shuffle_get(struct st_btl_endpoint *ep, void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
                struct st_btl_reg *reg, struct st_btl_op *op)
{
    return start(ep, ST_BTL_GET, local, (const char *)(uintptr_t)remote, len, remote_key, reg, op);
}

int shuffle_put(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
                struct st_btl_reg *reg, struct st_btl_op *op)
{
    return start(ep, ST_BTL_PUT, (char *)(uintptr_t)remote, local, len, remote_key, reg, op);
}

int shuffle_reg(struct st_btl *btl, void *base, size_t len, enum st_btl_use use, struct st_btl_reg *out)
{
    (void)use;
    struct module *m = (struct module *)btl;
    if (refuses(m))
        return STRATA_ERR_AGAIN;
    struct region *r = calloc(1, sizeof *r);
    if (!r)
        return STRATA_ERR_NOMEM;
    r->id = ((uint64_t)(uint32_t)m->rank << 40) + ++m->next_region;
    r->base = base;
    r->len = len;
    pthread_mutex_lock(&m->port->lock);
    st_list_append(&m->port->regions, &r->node);
    pthread_mutex_unlock(&m->port->lock);
    struct key key = {r->id, (uint64_t)(uintptr_t)base, len};
    memset(out, 0, sizeof *out);
    out->handle = r;
    memcpy(out->key, &key, sizeof key);
    return STRATA_OK;
}

void shuffle_dereg(struct st_btl *btl, struct st_btl_reg *reg)
{
    struct module *m = (struct module *)btl;
    struct region *r = reg->handle;
    pthread_mutex_lock(&m->port->lock);
    st_list_remove(&r->node);
    pthread_mutex_unlock(&m->port->lock);
    free(r);
    reg->handle = NULL;
}

static void finish(struct transfer *t, int rc)
{
    struct st_btl_op *op = t->op;
    st_list_remove(&t->node);
    free(t->packet);
    free(t);
    op->done(op, rc);
}

/* One poll of one transfer: 1 when something happened. */
static int step(struct module *m, struct transfer *t)
{
    if (t->ep && endpoint_cut(t->ep) && !t->ep->told)
        return 0; /* the upper layer hears of the path before its operations end */
    if (!t->ep || t->ep->dead) {
        finish(t, STRATA_ERR_PEER);
        return 1;
    }
    if (t->delay) {
        t->delay--;
        return 0;
    }
    if (t->packet) {
        memcpy(t->packet->bytes + t->packet->hdr_len, t->from, t->packet->len);
        packet_arrive(t->ep, t->packet);
        t->packet = NULL;
        finish(t, STRATA_OK);
        return 1;
    }
    size_t piece = 1 + draw(m, (uint32_t)m->config->piece);
    piece = piece < t->left ? piece : t->left;
    if (t->verdict == STRATA_OK && !copy(t, piece)) {
        (void)refuse(t);
        t->verdict = STRATA_ERR_PEER; /* as a device would end it: the peer may have withdrawn the memory meanwhile */
    }
    t->to += piece;
    t->from += piece;
    t->left -= piece;
    if (t->left == 0 || t->verdict != STRATA_OK)
        finish(t, t->verdict);
    return 1;
}

int transfer_some(struct module *m)
{
    int events = 0;
    struct st_node *n;
    /* A done callback may start others, and may disconnect: each poll looks once at those there when it began. */
    while ((n = st_list_pop(&m->transfers))) {
        if (draw(m, 2))
            st_list_append(&m->batch, n);
        else
            st_list_prepend(&m->batch, n);
    }
    while ((n = st_list_pop(&m->batch))) {
        st_list_append(&m->transfers, n);
        events += step(m, ST_CONTAINER(n, struct transfer, node));
    }
    return events;
}

static void orphan(struct st_node *list, const struct endpoint *e)
{
    for (struct st_node *n = list->next; n != list; n = n->next) {
        struct transfer *t = ST_CONTAINER(n, struct transfer, node);
        if (t->ep == e)
            t->ep = NULL;
    }
}

void transfers_orphan(struct module *m, struct endpoint *e)
{
    orphan(&m->transfers, e);
    orphan(&m->batch, e);
}
