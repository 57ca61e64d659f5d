/* Defaults for the operations that a module leaves out. A module that leaves none out keeps its own table. */
#include "framework/btl/btl_select.h"

#include <stdlib.h>

#include <strata/sdk/btl_rdma.h>
#include <strata/sdk/btl_hints.h>
#include <strata/sdk/process_memory.h>

struct st_btl_filled {
    struct st_btl_ops ops;
    struct st_btl_rdma rdma;
};

int st_btl_flatten(struct st_btl *btl, const struct st_payload *payload, const void **data)
{
    if (payload->length > btl->max_send)
        return STRATA_ERR_ARG;
    *data = payload->length ? st_payload_contiguous(payload) : NULL;
    if (*data || payload->length == 0)
        return STRATA_OK;
    if (!btl->bounce && !(btl->bounce = malloc(btl->max_send)))
        return STRATA_ERR_NOMEM;
    *data = btl->bounce;
    return st_payload_gather(payload, btl->bounce);
}

static int btl_default_send_payload(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                                    const struct st_payload *payload)
{
    const void *data;
    int rc = st_btl_flatten(ep->btl, payload, &data);
    return rc != STRATA_OK ? rc : ep->btl->ops->send(ep, am, hdr, hdr_len, data, (uint32_t)payload->length);
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

size_t st_btl_table_bytes(const struct st_btl_filled *filled)
{
    return filled ? sizeof(*filled) : 0;
}

size_t st_btl_bounce_bytes(const struct st_btl *btl)
{
    return st_resident_bytes(btl->bounce, btl->bounce ? btl->max_send : 0);
}

void st_btl_close(struct st_btl *btl, struct st_btl_filled *filled)
{
    void *bounce = btl->bounce;
    btl->ops->close(btl); /* frees the module; its table must last until this returns */
    free(bounce);
    free(filled);
}
