/* The hot half of the sender: a message of one fragment to a peer that is connected and has nothing queued. */
#include "comm.h"
#include "ob1.h"
#include "ob1_inl.h"
#include "peer.h"
#include "send.h"
#include "wire.h"

/* One fragment to a member that takes it at once, by the header that h has room for. The caller counts its bytes. */
ST_INLINE int ob1_fast_eager(const struct ob1_comm *c, struct ob1_cpeer *p, union wire_match_words *h, const void *buf,
                             size_t len, int tag)
{
    int rc;

    ob1_match_words(h, OB1_EAGER, (uint16_t)p->send_seq, c->head.id, tag, c->head.rank);
    rc = p->send(p->ep, ST_AM_PML, h, sizeof(*h), buf, (uint32_t)len);
    if (ST_LIKELY(rc == STRATA_OK))
        p->send_seq++;
    return rc;
}

/* Sends it now or says why not; nothing is kept. `may_wait`: nobody waits for it. STRATA_ERR_AGAIN: the long way knows
 * why; OB1_REFUSED: the transport has no room. */
ST_INLINE int ob1_fast_send(struct ob1_comm *c, const void *buf, size_t len, int dst, int tag, strata_mode_t mode,
                            bool may_wait)
{
    struct ob1_cpeer *p = c->to;
    union wire_match_words h;
    int rc;

    if (ST_UNLIKELY(p->rank != dst)) {
        p = st_rank_table_get(&c->peers, (uint32_t)dst);
        if (ST_UNLIKELY(!p))
            return STRATA_ERR_AGAIN;
        c->to = p;
    }
    if (ST_UNLIKELY((int64_t)len > p->fast_limit || mode == STRATA_SYNCHRONOUS)) {
        if (mode == STRATA_SYNCHRONOUS || !may_wait || p->fast_limit < 0 ||
            (int64_t)len > ob1_peer_window_limit(p->peer))
            return STRATA_ERR_AGAIN;
    }
    if (may_wait && ob1_keeps_back(p->peer, p->ep, len))
        return STRATA_ERR_AGAIN;
    rc = ob1_fast_eager(c, p, &h, buf, len, tag);
    if (ST_LIKELY(rc == STRATA_OK)) {
        p->bytes_sent += len;
        return rc;
    }
    return rc == STRATA_ERR_AGAIN ? OB1_REFUSED : rc;
}

/* Not to the peer that was sent to last, or not at once. */
static __attribute__((noinline)) int ob1_fast_other(struct ob1_comm *c, const void *buf, size_t len, int dst, int tag,
                                                    strata_mode_t mode)
{
    int rc = ob1_fast_send(c, buf, len, dst, tag, mode, false);

    return rc == STRATA_OK ? STRATA_OK : ob1_send_slow(&c->head, buf, len, dst, tag, mode, rc == OB1_REFUSED);
}

/* What a blocking send needs again when its transport does not take it. It lies where the transport may read it, beside
 * the header, so that it is kept in memory and not in six registers that would have to be saved. */
struct sending {
    union wire_match_words h;
    strata_comm_t *comm;
    const void *buf;
    size_t len;
    strata_mode_t mode;
};

static __attribute__((noinline)) int ob1_fast_not_taken(const struct ob1_cpeer *p, const struct sending *s, int rc)
{
    return ob1_send_slow(s->comm, s->buf, s->len, p->rank, s->h.match.tag, s->mode, rc == STRATA_ERR_AGAIN);
}

int ob1_send(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag, strata_mode_t mode)
{
    struct ob1_comm *c = (struct ob1_comm *)comm;
    struct ob1_cpeer *p = c->to;
    struct sending s;
    int rc;

    if (ST_UNLIKELY(p->rank != dst || (int64_t)len > p->fast_limit || mode == STRATA_SYNCHRONOUS))
        return ob1_fast_other(c, buf, len, dst, tag, mode);
    s.comm = comm;
    s.buf = buf;
    s.len = len;
    s.mode = mode;
    rc = ob1_fast_eager(c, p, &s.h, buf, len, tag);
    if (ST_UNLIKELY(rc != STRATA_OK))
        return ob1_fast_not_taken(p, &s, rc);
    p->bytes_sent += s.len; /* and not len, which would have to be saved in a register */
    return STRATA_OK;
}

/* At STRATA_THREAD_MULTIPLE: the same under the lock. */
int ob1_send_locked(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag, strata_mode_t mode)
{
    struct ob1 *pml = ob1_of(comm);
    int rc;

    st_worker_lock(pml->head.worker);
    rc = ob1_fast_send((struct ob1_comm *)comm, buf, len, dst, tag, mode, false);
    st_worker_unlock(pml->head.worker);
    return ST_LIKELY(rc == STRATA_OK) ? STRATA_OK : ob1_send_slow(comm, buf, len, dst, tag, mode, rc == OB1_REFUSED);
}

ST_INLINE int ob1_fast_isend(strata_comm_t *comm, const struct st_pml_send *a, strata_request_t **req, bool threaded)
{
    struct ob1 *pml = ob1_of(comm);
    const void *buf = a->buf;
    size_t len = a->len;
    int rc;

    if (ST_UNLIKELY(a->data != NULL)) {
        if (a->data->kind != STRATA_CONTIGUOUS)
            return ob1_isend_slow(comm, a, req, false);
        buf = a->data->u.buffer;
        len = a->data->length;
    }
    if (threaded)
        st_worker_lock(pml->head.worker);
    rc = ob1_fast_send((struct ob1_comm *)comm, buf, len, a->dst, a->tag, a->mode, true);
    if (threaded)
        st_worker_unlock(pml->head.worker);
    if (ST_UNLIKELY(rc != STRATA_OK))
        return ob1_isend_slow(comm, a, req, rc == OB1_REFUSED);
    if (!req)
        return 1;
    *req = &pml->done;
    return STRATA_OK;
}

int ob1_isend(strata_comm_t *comm, const struct st_pml_send *a, strata_request_t **req)
{
    return ob1_fast_isend(comm, a, req, false);
}

int ob1_isend_locked(strata_comm_t *comm, const struct st_pml_send *a, strata_request_t **req)
{
    return ob1_fast_isend(comm, a, req, true);
}
