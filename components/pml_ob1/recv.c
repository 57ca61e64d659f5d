/* Receives: blocking on a request of the stack, nonblocking, and of a message that a matched probe took. */
#include "comm.h"
#include "match.h"
#include "message.h"
#include "ob1.h"
#include "ob1_inl.h"
#include "recv.h"
#include "request.h"
#include "wire.h"

ST_COLD int ob1_dead_source(const strata_comm_t *comm, int src)
{
    const struct st_peer *peer;

    if (src < 0)
        return STRATA_OK;
    peer = st_worker_peer_known(comm->worker, comm->world ? comm->world[src] : src);
    return peer ? peer->failed : STRATA_OK;
}

/* Posts a request whose data is set; the lock is held. */
ST_INLINE int ob1_recv_start_any(struct ob1 *pml, struct ob1_req *req)
{
    struct ob1_comm *c = (struct ob1_comm *)req->head.comm;
    struct ob1_unexp *u;
    int rc = ob1_match_post(&c->match, &req->posted, req->rank, req->tag, &u);

    if (rc != STRATA_OK)
        return rc;
    if (u) {
        ob1_recv_begin_msg(pml, req, ST_CONTAINER(u, struct ob1_msg, unexp));
    } else if (ST_UNLIKELY(pml->head.worker->n_failed != 0) &&
               (rc = ob1_dead_source(req->head.comm, req->rank)) != STRATA_OK) {
        ob1_recv_withdraw(pml, &req->posted, rc);
    }
    return STRATA_OK;
}

int ob1_recv_start(struct ob1 *pml, struct ob1_req *req)
{
    return ob1_recv_start_any(pml, req);
}

/* A request for a receive into contiguous memory: no more is filled in than is read. */
ST_INLINE void ob1_recv_fill_request(struct ob1_req *req, strata_comm_t *comm, const void *buf, size_t len, int src,
                                     int tag)
{
    memcpy(&req->head.state, &(uint8_t){ST_REQ_ACTIVE}, 1); /* not yet shared: with its neighbours it is one word */
    req->head.flags = 0;
    req->head.kind = OB1_RECV;
    req->head.end_bits = 0;
    req->head.comm = comm;
    ob1_data_contiguous(&req->data, buf, len);
    req->rank = src;
    req->tag = tag;
    req->matched = false;
}

/* What was not there at the first poll. */
static __attribute__((noinline)) void ob1_recv_spin(struct ob1_req *req)
{
    struct ob1 *pml = ob1_of(req->head.comm);

    for (uint32_t polls = pml->head.worker->spin; polls > 0; polls--) {
        if (st_worker_poll(pml->head.worker) == 0)
            st_relax();
        if (ob1_req_done(req))
            return;
    }
    ob1_wait_req(pml, req);
}

ST_INLINE int ob1_recv_ended(struct st_worker *w, const struct ob1_req *req, strata_status_t *status)
{
    if (ST_UNLIKELY(st_worker_has_news(w)))
        st_worker_outside(w);
    if (status)
        *status = req->head.status;
    return req->head.status.error;
}

/* With threads; or with a wildcard, for another source or tag than the one before, for what has come already, or while
 * other receives or messages out of turn wait. */
__attribute__((noinline)) int ob1_recv_locked(strata_comm_t *comm, void *buf, size_t len, int src, int tag,
                                              strata_status_t *status)
{
    struct ob1 *pml = ob1_of(comm);
    struct ob1_req req;
    int rc;

    ob1_recv_fill_request(&req, comm, buf, len, src, tag);
    ob1_lock(pml);
    rc = ob1_recv_start_any(pml, &req);
    ob1_leave(pml);
    if (ST_UNLIKELY(rc != STRATA_OK))
        return rc;
    if (pml->threaded)
        ob1_wait_new(pml, &req);
    else if (!ob1_req_done(&req))
        ob1_recv_spin(&req);
    return ob1_recv_ended(comm->worker, &req, status);
}

void ob1_want_post(struct ob1 *pml)
{
    struct ob1_want *want = &pml->want;
    struct ob1_match *match;

    if (want->hdr_len != sizeof want->w)
        return;
    match = &((struct ob1_comm *)want->comm)->match;
    want->hdr_len = OB1_WANT_NONE;
    ob1_recv_fill_request(want->req, want->comm, want->buf, want->room, ob1_key_src(want->w[1]),
                          ob1_key_tag(want->w[1]));
    ob1_match_queue(match, match->last, &want->req->posted); /* the bin is still the one that was used last */
}

/* The first poll did not bring the wanted message, or not as one that is taken at once. */
static __attribute__((noinline)) int ob1_recv_not_come(struct ob1 *pml)
{
    struct st_worker *w = pml->head.worker;
    struct ob1_req *req = pml->want.req;
    strata_status_t *status = pml->want.status;

    ob1_want_post(pml);
    if (ST_UNLIKELY(atomic_load_explicit(&w->attention, memory_order_relaxed) != 0))
        (void)st_worker_attend_all(w, 0);
    if (!ob1_req_done(req))
        ob1_recv_spin(req);
    return ob1_recv_ended(w, req, status);
}

int ob1_recv(strata_comm_t *comm, void *buf, size_t len, int src, int tag, strata_status_t *status)
{
    struct ob1_comm *c = (struct ob1_comm *)comm;
    struct ob1_bin *bin = c->match.last;
    struct ob1 *pml = ob1_of(comm);
    struct ob1_want *want = &pml->want;
    union wire_match_words h;
    struct ob1_req req;
    struct st_worker *w = comm->worker;

    if (ST_UNLIKELY(bin->key != ob1_key(src, tag) || c->from->rank != src || !ob1_bin_is_empty(bin) ||
                    (c->match.n_wild | c->n_held | w->n_failed) != 0))
        return ob1_recv_locked(comm, buf, len, src, tag, status);
    ob1_match_words(&h, OB1_EAGER, (uint16_t)c->from->recv_seq, c->head.id, tag, src);
    want->hdr_len = sizeof want->w;
    want->w[0] = h.w[0];
    want->w[1] = h.w[1];
    want->buf = buf;
    want->room = len;
    want->comm = comm;
    want->status = status;
    want->req = &req;
    (void)st_worker_poll_modules(w);
    if (ST_UNLIKELY(want->hdr_len != OB1_WANT_CAME))
        return ob1_recv_not_come(pml);
    w = pml->head.worker;
    status = want->status;
    if (status)
        *status = (strata_status_t){.source = ob1_key_src(want->w[1]),
                                    .tag = ob1_key_tag(want->w[1]),
                                    .error = STRATA_OK,
                                    .length = want->len,
                                    .sent = want->len};
    if (ST_UNLIKELY(atomic_load_explicit(&w->attention, memory_order_relaxed) != 0))
        (void)st_worker_attend_all(w, 0);
    if (ST_UNLIKELY(st_worker_has_news(w)))
        st_worker_outside(w);
    return STRATA_OK;
}

/* Sets up a request of either kind of storage for `a`. */
ST_INLINE struct ob1_req *ob1_recv_make(struct ob1 *pml, strata_comm_t *comm, const struct st_pml_recv *a)
{
    struct ob1_req *req = a->storage ? a->storage : st_slab_get(&pml->requests);

    if (ST_UNLIKELY(!req))
        return NULL;
    ob1_recv_fill_request(req, comm, a->buf, a->len, a->src, a->tag);
    req->head.fn = a->fn;
    if (ST_UNLIKELY(a->data != NULL))
        req->data = *a->data;
    if (a->storage)
        req->head.flags = ST_REQ_FOREIGN;
    if (a->fn) {
        req->head.arg = a->arg;
        req->head.end_bits = OB1_END_CALLBACK;
    }
    return req;
}

ST_INLINE int ob1_irecv_any(strata_comm_t *comm, const struct st_pml_recv *a, strata_request_t **out, bool threaded)
{
    struct ob1 *pml = ob1_of(comm);
    struct ob1_req *req;
    int rc;

    if (threaded)
        st_worker_lock(pml->head.worker);
    req = ob1_recv_make(pml, comm, a);
    rc = req ? ob1_recv_start_any(pml, req) : STRATA_ERR_NOMEM;
    if (ST_LIKELY(rc == STRATA_OK)) {
        if (out)
            *out = &req->head;
    } else if (req && !(req->head.flags & ST_REQ_FOREIGN)) {
        st_slab_put(&pml->requests, req);
    }
    if (threaded || ST_UNLIKELY(st_worker_has_news(pml->head.worker)))
        ob1_leave(pml);
    return rc;
}

int ob1_irecv(strata_comm_t *comm, const struct st_pml_recv *a, strata_request_t **out)
{
    return ob1_irecv_any(comm, a, out, false);
}

int ob1_irecv_locked(strata_comm_t *comm, const struct st_pml_recv *a, strata_request_t **out)
{
    return ob1_irecv_any(comm, a, out, true);
}

int ob1_imrecv(strata_message_t *message, const struct st_pml_recv *a, strata_request_t **out)
{
    struct ob1_msg *msg = (struct ob1_msg *)message;
    struct ob1 *pml = ob1_of(message->comm);
    struct ob1_req *req;

    ob1_lock(pml);
    req = ob1_recv_make(pml, message->comm, a);
    if (req) {
        req->rank = msg->from->rank;
        req->tag = msg->a.tag;
        ob1_recv_begin_msg(pml, req, msg);
        if (out)
            *out = &req->head;
    }
    ob1_leave(pml);
    return req ? STRATA_OK : STRATA_ERR_NOMEM;
}
