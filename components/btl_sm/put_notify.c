/* put_notify: the data by stores where the peer's memory is mapped here, else by single copy, and then a message to
 * the peer. Short ones at once, when there is room for the message; longer ones from progress, in pieces, and then they
 * may have to wait for room. */
#include "peer_maps.h"
#include "ring_inl.h"
#include "send.h"
#include "single_copy.h"
#include "sm.h"

#define STORE_AT_ONCE 65536u

void sm_store(struct sm_peer *p, uint8_t *to, const uint8_t *from, size_t len)
{
    if (len <= SM_LINE)
        st_copy(to, from, len);
    else
        st_copy_shared(to, from, len, p->movs_min);
}

/* Of more than is done at once. */
static int put_notify_begin(struct sm_peer *p, const struct sm_op *what)
{
    struct sm_module *m = sm_module(p->ep.btl);
    struct sm_op *op = sm_op_new(p, what);

    if (!op)
        return STRATA_ERR_AGAIN;
    if (op->map)
        op->map->holds++;
    sm_op_begin(m, op);
    return STRATA_OK;
}

int sm_put_notify(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
                  struct st_btl_reg *reg, uint32_t word, struct st_btl_op *user)
{
    struct sm_peer *p = sm_peer(ep);
    struct sm_module *m = sm_module(ep->btl);
    struct sm_map *map = NULL;
    uint8_t *to;
    int rc;

    (void)reg;
    if (p->failed || p->died || p->gone)
        return STRATA_ERR_PEER;
    to = sm_map_find(p, remote_key, remote, len, &map);
    if (!to && p->single_copy == SM_COPY_OFF)
        return STRATA_ERR_UNSUPPORTED;
    rc = sm_send_room(p);
    if (rc != STRATA_OK) {
        m->count.again += rc == STRATA_ERR_AGAIN;
        return rc;
    }
    if (len > (to ? STORE_AT_ONCE : SM_COPY_AT_ONCE))
        return put_notify_begin(p, &(struct sm_op){.user = user,
                                                   .local = (uint8_t *)(uintptr_t)local,
                                                   .remote = remote,
                                                   .len = len,
                                                   .dir = SM_COPY_PUT,
                                                   .to = to,
                                                   .map = map,
                                                   .notify = true,
                                                   .word = word});
    if (to) {
        sm_store(p, to, local, len);
        m->count.stored++;
        m->btl.bytes_sent += len;
    } else {
        rc = sm_copy_now(p, SM_COPY_PUT, (void *)(uintptr_t)local, remote, len);
        if (rc != STRATA_OK)
            return rc;
    }
    /* The message's release makes the data visible first. There may be no room after all: a ring that is taken back,
     * or other senders in the queue. Then the data is written again, when the caller tries again. */
    rc = sm_send(ep, ST_AM_NOTICE, &word, sizeof word, NULL, 0);
    return rc == STRATA_OK ? 1 : rc;
}

/* The data of op has gone. */
static int notice_send(struct sm_op *op)
{
    struct sm_peer *p = op->peer;
    int rc;

    if (op->error != STRATA_OK)
        return op->error;
    if (p->failed || p->died)
        return STRATA_ERR_PEER;
    rc = sm_send(&p->ep, ST_AM_NOTICE, &op->word, sizeof op->word, NULL, 0);
    if (rc == STRATA_ERR_AGAIN && atomic_load_explicit(&p->header->closing, memory_order_relaxed))
        return STRATA_OK; /* it ends in order and reads no more: as if this had been sent a moment earlier */
    return rc;
}

bool sm_notice_waits(struct sm_module *m, struct sm_op *op)
{
    int rc = notice_send(op);

    if (rc != STRATA_ERR_AGAIN) {
        sm_op_end(m, op, rc);
        return false;
    }
    sm_op_push(&m->notices, op);
    return true;
}

int sm_notices_progress(struct sm_module *m)
{
    struct sm_op *last = m->notices.last, *op;
    int n = 0;

    /* Each once: what a callback adds comes after the last one. */
    for (bool more = last != NULL; more && (op = sm_op_pop(&m->notices)) != NULL;) {
        more = op != last;
        n += !sm_notice_waits(m, op);
    }
    return n;
}
