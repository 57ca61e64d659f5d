/* Active messages: copied into a packet, pooled by the receiver, delivered in a random order. */
#include <strata/sdk/btl_hints.h>
#include "shuffle.h"

#include <stdlib.h>
#include <string.h>

uint32_t draw(struct module *m, uint32_t below)
{
    uint64_t z = (m->rng += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    return below ? (uint32_t)(((z >> 32) * below) >> 32) : 0;
}

bool chance(struct module *m, int64_t percent)
{
    return percent > 0 && draw(m, 100) < (uint32_t)percent;
}

/* At random; the next try may succeed, so nobody goes to sleep over it. */
bool refuses(struct module *m)
{
    bool yes = chance(m, m->config->again_percent);
    m->refused |= yes;
    return yes;
}

static int launch(struct endpoint *e, enum st_am am, const void *hdr, uint32_t hdr_len, struct packet **out,
                  uint32_t len)
{
    struct module *m = (struct module *)e->super.btl;
    if (hdr_len > ST_BTL_HDR_MAX || (uint64_t)hdr_len + len > (uint64_t)m->super.max_send + ST_BTL_HDR_MAX ||
        am >= ST_AM_COUNT) {
        st_log(m->super.context, ST_LOG_ERROR, "btl_shuffle", "send breaks the contract: header %u, payload %u, max %u",
               hdr_len, len, m->super.max_send);
        return STRATA_ERR_ARG;
    }
    if (refuses(m))
        return STRATA_ERR_AGAIN;
    int rc = endpoint_use(e);
    if (rc != STRATA_OK)
        return rc;
    if (chance(m, m->config->crowded_percent))
        e->super.caps |= ST_BTL_CROWDED;
    else
        e->super.caps &= ~(uint32_t)ST_BTL_CROWDED;
    struct packet *p = malloc(sizeof *p + hdr_len + len);
    if (!p)
        return STRATA_ERR_AGAIN;
    p->src = m->rank;
    p->cuts = e->cuts;
    p->am = am;
    p->hdr_len = hdr_len;
    p->len = len;
    p->delay = draw(m, (uint32_t)m->config->delay + 1);
    if (hdr_len)
        memcpy(p->bytes, hdr, hdr_len);
    *out = p;
    return STRATA_OK;
}

void packet_arrive(struct endpoint *e, struct packet *p)
{
    struct module *m = (struct module *)e->super.btl;
    struct port *port = e->port;
    m->super.messages_sent++;
    m->super.bytes_sent += p->len;
    pthread_mutex_lock(&port->lock);
    bool closed = port->closed;
    if (!closed)
        st_list_append(&port->arrived, &p->node);
    pthread_mutex_unlock(&port->lock);
    if (closed)
        free(p); /* the peer has left */
    else
        port_wake(port);
}

int shuffle_send(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                 uint32_t len)
{
    struct endpoint *e = (struct endpoint *)ep;
    struct packet *p = NULL;
    int rc = launch(e, am, hdr, hdr_len, &p, len);
    if (rc != STRATA_OK)
        return rc;
    if (len)
        memcpy(p->bytes + hdr_len, data, len);
    packet_arrive(e, p);
    return STRATA_OK;
}

int shuffle_send_payload(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                         const struct st_payload *payload)
{
    struct endpoint *e = (struct endpoint *)ep;
    struct packet *p = NULL;
    if (payload->length > UINT32_MAX)
        return STRATA_ERR_ARG;
    int rc = launch(e, am, hdr, hdr_len, &p, (uint32_t)payload->length);
    if (rc != STRATA_OK)
        return rc;
    rc = st_payload_gather(payload, p->bytes + hdr_len);
    if (rc != STRATA_OK) {
        free(p);
        return rc;
    }
    packet_arrive(e, p);
    return STRATA_OK;
}

/* Takes the data as late as it may, so that whoever changes it too early is found out. */
int shuffle_send_zcopy(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                       uint32_t len, struct st_btl_op *op)
{
    struct endpoint *e = (struct endpoint *)ep;
    struct module *m = (struct module *)ep->btl;
    struct packet *p = NULL;
    int rc = launch(e, am, hdr, hdr_len, &p, len);
    if (rc != STRATA_OK)
        return rc;
    if (chance(m, m->config->zcopy_percent) && transfer_message(e, p, data, op))
        return STRATA_OK;
    memcpy(p->bytes + hdr_len, data, len);
    packet_arrive(e, p);
    return 1;
}

/* Moves what has arrived into the pool, from which only this module takes. */
static void collect(struct module *m)
{
    struct st_node *n;
    pthread_mutex_lock(&m->port->lock);
    while ((n = st_list_pop(&m->port->arrived))) {
        struct packet *p = ST_CONTAINER(n, struct packet, node);
        st_list_append(&m->pool, n);
        p->number = m->n_collected++;
        m->n_pool++;
        m->bytes += sizeof *p + p->hdr_len + p->len;
    }
    pthread_mutex_unlock(&m->port->lock);
}

static void discard(struct module *m, struct packet *p)
{
    m->bytes -= sizeof *p + p->hdr_len + p->len;
    free(p);
}

static void deliver(struct module *m, struct packet *p)
{
    struct st_frag frag = {.hdr = p->bytes,
                           .data = p->bytes + p->hdr_len,
                           .hdr_len = p->hdr_len,
                           .len = p->len,
                           .rank = p->src,
                           .btl = &m->super};
    m->now = p;
    m->now_kept = NULL;
    if (m->super.am[p->am].fn)
        st_btl_deliver(&m->super, p->am, &frag);
    else
        st_log(m->super.context, ST_LOG_ERROR, "btl_shuffle", "a fragment for nobody (kind %d)", (int)p->am);
    m->now = NULL;
    if (!m->now_kept)
        discard(m, p);
    m->now_kept = NULL;
}

/* ---- fragments that clients keep ---- */

bool shuffle_keep(struct st_btl *btl, const void *data, uint32_t len, struct st_btl_kept *kept)
{
    struct module *m = (struct module *)btl;
    struct packet *p = m->now;
    const unsigned char *from = data;
    if (!p) /* tests deliver fragments of their own */
        return false;
    if (from < p->bytes + p->hdr_len || len > p->len || from - p->bytes > (ptrdiff_t)(p->hdr_len + p->len - len)) {
        st_log(btl->context, ST_LOG_ERROR, "btl_shuffle", "keep of what is not being delivered");
        return false;
    }
    if (m->now_kept || !chance(m, m->config->keep_percent))
        return false;
    kept->owner = p;
    st_list_append(&m->kept, &kept->node);
    m->now_kept = kept;
    return true;
}

void shuffle_release(struct st_btl *btl, struct st_btl_kept *kept)
{
    struct module *m = (struct module *)btl;
    st_list_remove(&kept->node);
    if (m->now_kept == kept)
        m->now_kept = NULL; /* discarded after its delivery */
    else
        discard(m, kept->owner);
}

/* The packet's bytes are of no use afterwards to whoever still reads them. */
static void leave(struct module *m, struct st_btl_kept *kept)
{
    struct packet *p = kept->owner;
    st_list_remove(&kept->node);
    kept->leave(kept);
    memset(p->bytes, 0xdb, p->hdr_len + p->len);
    discard(m, p);
}

void leave_one(struct module *m)
{
    struct st_node *n = st_list_first(&m->kept);
    if (n && chance(m, m->config->leave_percent))
        leave(m, ST_CONTAINER(n, struct st_btl_kept, node));
}

void leave_all_of(struct module *m, int rank)
{
    struct st_node *next;
    for (struct st_node *n = m->kept.next; n != &m->kept; n = next) {
        struct st_btl_kept *kept = ST_CONTAINER(n, struct st_btl_kept, node);
        next = n->next;
        if (((const struct packet *)kept->owner)->src == rank && kept != m->now_kept)
            leave(m, kept);
    }
}

static bool from_dead(const struct module *m, int rank)
{
    return m->failure_told && rank == m->config->fail_rank;
}

/* Of what was on its way when the connection was cut some had arrived. */
static bool lost(struct module *m, const struct packet *p)
{
    if (!m->config->break_after)
        return false;
    pthread_mutex_lock(&m->port->lock);
    bool cut = m->port->cuts[(uint32_t)p->src % SHUFFLE_CUTS] != p->cuts;
    pthread_mutex_unlock(&m->port->lock);
    return cut && draw(m, 2);
}

int deliver_some(struct module *m)
{
    int events = 0;
    collect(m);
    /* Any that is less than `window` packets behind the first may be next: none is overtaken by more. */
    for (int round = 0; round < 16 && m->n_pool; round++) {
        uint32_t span = (uint32_t)m->config->window < m->n_pool ? (uint32_t)m->config->window : m->n_pool;
        struct st_node *n = m->pool.next;
        for (uint32_t skip = draw(m, span); skip; skip--)
            n = n->next;
        struct packet *p = ST_CONTAINER(n, struct packet, node);
        if (p->number - ST_CONTAINER(m->pool.next, struct packet, node)->number >= (uint64_t)m->config->window) {
            n = m->pool.next;
            p = ST_CONTAINER(n, struct packet, node);
        }
        if (p->delay) {
            p->delay--;
            continue;
        }
        st_list_remove(n);
        m->n_pool--;
        events++;
        if (from_dead(m, p->src) || lost(m, p))
            discard(m, p);
        else
            deliver(m, p);
    }
    return events;
}

bool packets_pending(struct module *m)
{
    if (m->n_pool)
        return true;
    pthread_mutex_lock(&m->port->lock);
    bool any = !st_list_empty(&m->port->arrived);
    pthread_mutex_unlock(&m->port->lock);
    return any;
}
