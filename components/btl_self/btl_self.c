/* The transport from a rank to itself: a bounded ring of records in this process. send copies header and payload into
 * the ring, progress delivers what is there, get and put are a memcpy that is finished on return; the notice of a put
 * is one more record. */
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/btl_rdma.h>
#include <strata/sdk/copy.h>
#include <strata/sdk/process_memory.h>
#include <strata/sdk/worker.h>
#include "btl_self.h"

#define ALIGNMENT 16u

/* Leads each record of the ring; the header follows, then the payload at the next multiple of ALIGNMENT. A record is
 * contiguous: where the rest of the ring is too short for it, a record of am == ST_AM_COUNT fills that rest. */
struct record {
    uint32_t size; /* of the whole record, multiple of ALIGNMENT */
    uint32_t len;
    uint16_t hdr_len;
    uint16_t am;
    uint32_t spare;
};
_Static_assert(sizeof(struct record) == ALIGNMENT, "headers of fragments start aligned");

struct self {
    struct st_btl btl;
    struct st_btl_endpoint ep;
    bool connected;
    int rank;
    uint32_t size;       /* bytes of the ring, power of two */
    uint64_t head, tail; /* bytes ever consumed and produced */
    char *ring;          /* made by the first connect */
};

static uint32_t self_round_up(uint32_t n)
{
    return (n + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
}

static int self_reach(struct st_btl *btl, int rank)
{
    return rank == ((struct self *)btl)->rank ? STRATA_OK : STRATA_ERR_UNREACHABLE;
}

static int self_connect(struct st_btl *btl, int rank, struct st_btl_endpoint **out)
{
    struct self *self = (struct self *)btl;

    if (self_reach(btl, rank) != STRATA_OK)
        return STRATA_ERR_UNREACHABLE;
    if (!self->ring) {
        self->ring = aligned_alloc(64, self->size);
        if (!self->ring)
            return STRATA_ERR_NOMEM;
    }
    self->connected = true;
    *out = &self->ep;
    return STRATA_OK;
}

static void self_disconnect(struct st_btl_endpoint *ep)
{
    ((struct self *)ep->btl)->connected = false;
}

/* Room for a record, or NULL. The record counts only when `tail` has been moved by commit. */
static inline struct record *self_reserve(struct self *self, enum st_am am, uint32_t hdr_len, uint32_t len)
{
    uint32_t need = (uint32_t)sizeof(struct record) + self_round_up(hdr_len) + self_round_up(len);
    uint32_t at = (uint32_t)self->tail & (self->size - 1), rest = self->size - at;
    uint64_t used = self->tail - self->head;

    if (ST_UNLIKELY(need > rest)) {
        if (used + rest + need > self->size)
            return NULL;
        struct record *fill = (struct record *)(void *)(self->ring + at);
        fill->size = rest;
        fill->am = ST_AM_COUNT;
        self->tail += rest;
        at = 0;
    } else if (used + need > self->size) {
        return NULL;
    }
    struct record *r = (struct record *)(void *)(self->ring + at);
    r->size = need;
    r->len = len;
    r->hdr_len = (uint16_t)hdr_len;
    r->am = (uint16_t)am;
    return r;
}

static void self_commit(struct self *self, const struct record *r, uint32_t len)
{
    self->tail += r->size;
    self->btl.bytes_sent += len;
    self->btl.messages_sent++;
}

static char *self_record_data(struct record *r, uint32_t hdr_len)
{
    return (char *)(r + 1) + self_round_up(hdr_len);
}

static int self_send(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                     uint32_t len)
{
    struct self *self = (struct self *)ep->btl;
    struct record *r = self_reserve(self, am, hdr_len, len);

    if (ST_UNLIKELY(!r))
        return STRATA_ERR_AGAIN;
    st_copy(r + 1, hdr, hdr_len);
    st_copy(self_record_data(r, hdr_len), data, len);
    self_commit(self, r, len);
    return STRATA_OK;
}

static int self_send_payload(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                             const struct st_payload *payload)
{
    struct self *self = (struct self *)ep->btl;
    struct record *r = self_reserve(self, am, hdr_len, (uint32_t)payload->length);
    int rc;

    if (!r)
        return STRATA_ERR_AGAIN;
    memcpy(r + 1, hdr, hdr_len);
    rc = st_payload_gather(payload, self_record_data(r, hdr_len));
    if (rc != STRATA_OK)
        return rc;
    self_commit(self, r, (uint32_t)payload->length);
    return STRATA_OK;
}

/* At STRATA_THREAD_MULTIPLE another thread may sleep, and no transport tells it of what this one has sent. */
static int send_and_wake(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                         uint32_t len)
{
    int rc = self_send(ep, am, hdr, hdr_len, data, len);

    st_worker_wake(ep->btl->worker);
    return rc;
}

static int send_payload_and_wake(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                                 const struct st_payload *payload)
{
    int rc = self_send_payload(ep, am, hdr, hdr_len, payload);

    st_worker_wake(ep->btl->worker);
    return rc;
}

static int self_get(struct st_btl_endpoint *ep, void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
                    struct st_btl_reg *reg, struct st_btl_op *op)
{
    (void)remote_key, (void)reg, (void)op;
    /* memmove: a program may send a buffer to itself in place. */
    memmove(local, (const void *)(uintptr_t)remote, len);
    ep->btl->messages_sent++;
    ep->btl->bytes_got += len;
    return 1;
}

static int self_put(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key,
                    size_t len, struct st_btl_reg *reg, struct st_btl_op *op)
{
    (void)remote_key, (void)reg, (void)op;
    memmove((void *)(uintptr_t)remote, local, len);
    ep->btl->messages_sent++;
    ep->btl->bytes_sent += len;
    return 1;
}

static int self_put_notify(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key,
                           size_t len, struct st_btl_reg *reg, uint32_t word, struct st_btl_op *op)
{
    struct self *self = (struct self *)ep->btl;
    struct record *r =
        self_reserve(self, ST_AM_NOTICE, sizeof(word), 0); /* first: without room for the notice nothing is done */

    if (!r)
        return STRATA_ERR_AGAIN;
    (void)self_put(ep, local, remote, remote_key, len, reg, op);
    memcpy(r + 1, &word, sizeof(word));
    self_commit(self, r, 0);
    return 1;
}

static int put_notify_and_wake(struct st_btl_endpoint *ep, const void *local, uint64_t remote,
                               const uint8_t *remote_key, size_t len, struct st_btl_reg *reg, uint32_t word,
                               struct st_btl_op *op)
{
    int rc = self_put_notify(ep, local, remote, remote_key, len, reg, word, op);

    st_worker_wake(ep->btl->worker);
    return rc;
}

static int self_progress(struct st_btl *btl)
{
    struct self *self = (struct self *)btl;
    uint64_t end = self->tail; /* what deliver sends from here on waits for the next call: bounded */
    int events = 0;

    while (self->head != end) {
        struct record *r = (struct record *)(void *)(self->ring + (self->head & (self->size - 1)));
        if (ST_LIKELY(r->am != ST_AM_COUNT)) {
            const uint32_t hdr_len = r->hdr_len;
            struct st_frag frag = {.hdr = r + 1,
                                   .data = self_record_data(r, hdr_len),
                                   .hdr_len = hdr_len,
                                   .len = r->len,
                                   .rank = self->rank,
                                   .btl = btl};
            st_btl_deliver(btl, (enum st_am)r->am, &frag);
            events++;
        }
        self->head += r->size; /* only now: deliver may have sent, the record must not be overwritten before */
    }
    return events;
}

static int self_arm(struct st_btl *btl, struct st_btl_wait *w)
{
    const struct self *self = (const struct self *)btl;

    (void)w; /* nothing comes from outside; threads of this process see to send_and_wake */
    return self->head == self->tail ? STRATA_OK : STRATA_ERR_AGAIN;
}

static void self_disarm(struct st_btl *btl)
{
    (void)btl;
}

static void self_mem_report(struct st_btl *btl, st_mem_line_fn line, void *arg)
{
    const struct self *self = (const struct self *)btl;
    strata_mem_line_t l = {
        .component = "btl_self", .category = "eager rings", .bytes = st_resident_bytes(self->ring, self->size)};

    line(arg, &l);
}

static void self_close(struct st_btl *btl)
{
    free(((struct self *)btl)->ring);
    free(btl);
}

#define OPS(how_to_send, how_to_gather)                                                                                \
    {                                                                                                                  \
        .reach = self_reach, .connect = self_connect, .disconnect = self_disconnect, .send = how_to_send,              \
        .send_payload = how_to_gather, .progress = self_progress, .arm = self_arm, .disarm = self_disarm,              \
        .mem_report = self_mem_report, .close = self_close,                                                            \
    }
static const struct st_btl_ops one_thread = OPS(self_send, self_send_payload),
                               threads = OPS(send_and_wake, send_payload_and_wake);
static const struct st_btl_rdma one_thread_rdma = {.get = self_get, .put = self_put, .put_notify = self_put_notify},
                                threads_rdma = {.get = self_get, .put = self_put, .put_notify = put_notify_and_wake};

int btl_self_make(strata_t *s, const struct st_component *c, const struct btl_self_config *config, int rank,
                  struct st_btl **out)
{
    struct self *self = calloc(1, sizeof(*self));
    uint32_t size = 4096;

    if (!self)
        return STRATA_ERR_NOMEM;
    while (size < config->ring && size < (1u << 30))
        size *= 2;
    self->rank = rank;
    self->size = size;
    self->btl.ops = st_thread_multiple(s) ? &threads : &one_thread;
    self->btl.rdma = st_thread_multiple(s) ? &threads_rdma : &one_thread_rdma;
    self->btl.context = s;
    self->btl.component = c;
    self->btl.caps = ST_BTL_ORDERED | ST_BTL_GET | ST_BTL_PUT | ST_BTL_PASSIVE;
    /* A quarter of the ring at most, so that a few fragments always fit. */
    self->btl.max_send = size / 4;
    self->btl.eager_limit = (uint32_t)(config->eager_limit < size / 4 ? config->eager_limit : size / 4);
    self->btl.pipeline_send = self->btl.max_send;
    self->btl.rdma_pipeline = 1u << 20;
    /* Nothing is saved by not asking oneself, and both ends are this processor. */
    self->btl.facts = (struct st_btl_facts){.latency_ns = 20, .bandwidth_mbs = 50000, .ask_cost = 1};
    self->btl.exclusivity = 1000;
    self->ep.btl = &self->btl;
    self->ep.rank = rank;
    self->ep.caps = self->btl.caps;
    *out = &self->btl;
    return STRATA_OK;
}
