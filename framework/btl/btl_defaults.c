/* Defaults for the operations that a module leaves out. A module that leaves none out keeps its own table. */
#include "framework/btl/btl_select.h"

#include <stdlib.h>

#include <strata/sdk/btl_rdma.h>
#include <strata/sdk/btl_hints.h>
#include <strata/sdk/list.h>

/* Found again from btl->ops by the defaults. */
struct st_btl_filled {
    struct st_btl_ops ops;
    struct st_btl_rdma rdma;
    void *bounce; /* max_send bytes, from the first send that needs it */
};

static int btl_default_send_payload(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                                    const struct st_payload *payload)
{
    struct st_btl *btl = ep->btl;
    if (payload->length > btl->max_send)
        return STRATA_ERR_ARG;
    const void *p = st_payload_contiguous(payload);
    if (p || payload->length == 0)
        return btl->ops->send(ep, am, hdr, hdr_len, p, (uint32_t)payload->length);
    struct st_btl_filled *f = ST_CONTAINER(btl->ops, struct st_btl_filled, ops);
    if (!f->bounce && !(f->bounce = malloc(btl->max_send)))
        return STRATA_ERR_NOMEM;
    int rc = st_payload_gather(payload, f->bounce);
    return rc != STRATA_OK ? rc : btl->ops->send(ep, am, hdr, hdr_len, f->bounce, (uint32_t)payload->length);
}

static int btl_default_reg(struct st_btl *btl, void *base, size_t len, enum st_btl_use use, struct st_btl_reg *out)
{
    (void)btl, (void)base, (void)len, (void)use;
    *out = (struct st_btl_reg){0};
    return STRATA_OK;
}

static void btl_default_dereg(struct st_btl *btl, struct st_btl_reg *reg)
{
    (void)btl, (void)reg;
}

static void btl_default_mem_report(struct st_btl *btl, st_mem_line_fn line, void *arg)
{
    (void)btl, (void)line, (void)arg;
}

static char *btl_default_describe(struct st_btl *btl, struct st_btl_endpoint *ep)
{
    (void)btl, (void)ep;
    return NULL;
}

/* What arrives for an owner that has not opened is dropped: a peer must not be able to make us call NULL. */
static void btl_drop(void *arg, const struct st_frag *frag)
{
    struct st_btl *btl = arg;
    st_log(btl->context, ST_LOG_WARN, "btl", "dropped a message from rank %d: nobody here takes its kind", frag->rank);
}

int st_btl_fill(struct st_btl *btl, struct st_btl_filled **filled)
{
    for (int i = 0; i < ST_AM_COUNT; i++) {
        if (!btl->am[i].fn) {
            btl->am[i].fn = btl_drop;
            btl->am[i].arg = btl;
        }
    }
    static const struct st_btl_rdma no_rdma = {.reg = btl_default_reg, .dereg = btl_default_dereg};
    static const struct st_btl_hints no_hints = {0};
    const struct st_btl_ops *o = btl->ops;
    btl->rdma = btl->rdma ? btl->rdma : &no_rdma;
    btl->hints = btl->hints ? btl->hints : &no_hints;
    if (o->send_payload && o->mem_report && o->describe && btl->rdma->reg && btl->rdma->dereg) {
        *filled = NULL;
        return STRATA_OK;
    }
    struct st_btl_filled *f = malloc(sizeof(*f));
    if (!f)
        return STRATA_ERR_NOMEM;
    *f = (struct st_btl_filled){.ops = *o, .rdma = *btl->rdma};
#define DEFAULT(table, op)                                                                                             \
    if (!f->table.op)                                                                                                  \
    f->table.op = btl_default_##op
    DEFAULT(ops, send_payload);
    DEFAULT(ops, mem_report);
    DEFAULT(ops, describe);
    DEFAULT(rdma, reg);
    DEFAULT(rdma, dereg);
#undef DEFAULT
    btl->ops = &f->ops;
    btl->rdma = &f->rdma;
    *filled = f;
    return STRATA_OK;
}

void st_btl_close(struct st_btl *btl, struct st_btl_filled *filled)
{
    btl->ops->close(btl); /* frees the module; its table must last until this returns */
    if (filled) {
        free(filled->bounce);
        free(filled);
    }
}
