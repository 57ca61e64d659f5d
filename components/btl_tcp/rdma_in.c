/* Puts and gets that arrive. No frame is believed: the key must be of a registration that allows it, and all bytes must
 * lie in it, each time that some of them have come. What breaks that ends the connection. */
#include <string.h>
#include "rdma.h"

const char *tcp_rdma_acked(struct tcp_module *m, struct tcp_peer *p, uint32_t done)
{
    struct tcp_rdma *r = p->rdma;

    if (!r)
        return done ? "it has written puts that there are not" : NULL;
    if (r->n_sent - done > INT32_MAX)
        return "it has written puts that were not sent to it";
    for (struct st_node *n; (n = st_list_first(&r->sent)) != NULL;) {
        struct tcp_job *job = ST_CONTAINER(n, struct tcp_job, node);
        if ((int32_t)(done - job->id) < 0)
            break;
        tcp_job_end(m, r, job, STRATA_OK);
    }
    return NULL;
}

/* Whether the connection is over for sending: its peer has no use for an answer. */
static bool in_is_over(const struct tcp_module *m, const struct tcp_conn *c)
{
    const struct tcp_conn *first = c->peer->conn;

    return c->broken || m->closing || !first || first->broken || (c != first && c != c->peer->bulk);
}

const char *tcp_rdma_asked(struct tcp_module *m, struct tcp_conn *c, const struct tcp_move *move)
{
    struct tcp_rdma *r;
    struct tcp_job *job;

    if (in_is_over(m, c))
        return NULL;
    if (move->length == 0 || !tcp_reg_find(m, &move->key, move->address, move->length, false))
        return "it gets from memory that is not registered";
    r = tcp_rdma_of(m, c->peer);
    if (r && r->n_answers >= TCP_OPS)
        return "it gets more at a time than is allowed";
    job = r ? st_slab_get(&m->jobs) : NULL;
    if (!job)
        return "no memory is left for an answer to it";
    *job = (struct tcp_job){
        .kind = TCP_JOB_ANSWER, .id = move->id, .remote = move->address, .key = move->key, .len = (size_t)move->length};
    r->n_answers++;
    st_list_append(&r->out, &job->node);
    tcp_rdma_make_busy(m, r);
    return NULL;
}

/* The get of that number, or NULL: it was given up. */
static struct tcp_job *in_get(const struct tcp_rdma *r, uint32_t id)
{
    for (struct st_node *n = r->gets.next; n != &r->gets; n = n->next) {
        struct tcp_job *job = ST_CONTAINER(n, struct tcp_job, node);
        if (job->id == id)
            return job;
    }
    return NULL;
}

const char *tcp_take_where(struct tcp_module *m, struct tcp_conn *c, char **to, uint32_t *len)
{
    const struct tcp_rdma *r = c->peer->rdma;
    const struct tcp_take *t = &r->take;
    const struct tcp_job *job;

    *to = NULL;
    *len = t->len - t->have;
    if (t->put) {
        *to = m->closing ? NULL : tcp_reg_find(m, &t->move.key, t->move.address, t->len, true);
        if (!*to && !in_is_over(m, c))
            return "it puts into memory that is not registered for it";
    } else if ((job = in_get(r, t->move.id)) != NULL) {
        if (t->move.address != job->at || t->len > job->len - job->at)
            return "it answers a get with other bytes";
        *to = job->local + job->at;
    }
    if (*to)
        *to += t->have;
    return NULL;
}

/* All of the piece is there. */
static void in_done(struct tcp_module *m, struct tcp_conn *c)
{
    struct tcp_rdma *r = c->peer->rdma;
    struct tcp_take t = r->take;
    struct tcp_job *job;

    r->taker = NULL;
    c->skip = t.pad;
    if (t.put) {
        r->more = !(t.move.what & TCP_LAST);
        if (r->more || m->closing)
            return;
        r->n_taken++;
        if (!in_is_over(m, c)) {
            r->due = 1;
            tcp_rdma_make_busy(m, r);
        }
        if (t.move.what & TCP_NOTICE) {
            struct st_frag frag = {.hdr = &t.move.word,
                                   .data = &t.move.word,
                                   .hdr_len = sizeof t.move.word,
                                   .rank = c->peer->ep.rank,
                                   .btl = &m->btl};
            st_btl_deliver(&m->btl, ST_AM_NOTICE, &frag);
        }
    } else if ((job = in_get(r, t.move.id)) != NULL) {
        job->at += t.len;
        if (job->at == job->len)
            tcp_job_end(m, r, job, STRATA_OK);
    }
}

void tcp_take_came(struct tcp_module *m, struct tcp_conn *c, uint32_t n)
{
    struct tcp_take *t = &c->peer->rdma->take;

    t->have += n;
    if (t->have == t->len)
        in_done(m, c);
}

const char *tcp_take_begin(struct tcp_module *m, struct tcp_conn *c, const char *bytes, uint32_t n, uint32_t *used)
{
    struct tcp_frame f;
    struct tcp_move move;
    struct tcp_rdma *r = tcp_rdma_of(m, c->peer);
    const char *wrong;
    char *to;
    uint32_t len;

    *used = 0;
    if (!r)
        return "no memory is left for its puts";
    memcpy(&f, bytes, sizeof f);
    memcpy(&move, bytes + sizeof f, sizeof move);
    if (r->taker)
        return "it puts or answers by two connections at once";
    if (move.lead >= TCP_ALIGN || f.len <= move.lead)
        return "it puts or answers nothing";
    if (n < sizeof f + sizeof move + move.lead)
        return NULL;
    r->taker = c;
    r->take = (struct tcp_take){.move = move, .put = f.kind == TCP_PUT, .len = f.len - move.lead};
    r->take.pad = (uint8_t)(tcp_frame_bytes(sizeof move, f.len) - sizeof f - sizeof move - f.len);
    wrong = tcp_take_where(m, c, &to, &len);
    if (wrong)
        return wrong;
    *used = (uint32_t)(sizeof f + sizeof move) + move.lead;
    if (len > n - *used)
        len = n - *used;
    if (to && len)
        memcpy(to, bytes + *used, len);
    *used += len;
    tcp_take_came(m, c, len);
    return NULL;
}
