/* Control messages: adverts and stops. What meets a busy path waits ahead of everything else for its peer. */
#include <stdlib.h>
#include <string.h>

#include "slot.h"

struct message {
    struct st_work work;
    struct arrival *a;
    struct st_peer *peer;
    uint32_t hdr_len, len;
    char hdr[ST_BTL_HDR_MAX];
    char data[ST_BTL_KEY_MAX];
};

static int message_send(struct arrival *a, struct st_peer *peer, const void *hdr, uint32_t hdr_len, const void *data,
                        uint32_t len)
{
    struct st_btl_endpoint *ep = st_peer_way(peer, 0);
    int rc = ep->btl->ops->send(ep, ST_AM_COLL, hdr, hdr_len, data, len);
    if (rc != STRATA_OK && rc != STRATA_ERR_AGAIN)
        st_worker_peer_failed(a->w, peer->rank, rc, "a message of a collective could not be sent");
    return rc == STRATA_ERR_AGAIN ? rc : STRATA_OK;
}

static int message_run(void *arg, struct st_work *work)
{
    struct message *m = ST_CONTAINER(work, struct message, work);
    int rc = message_send(m->a, m->peer, m->hdr, m->hdr_len, m->data, m->len);
    (void)arg;
    if (rc == STRATA_OK)
        free(m);
    return rc;
}

static void message_drop(void *arg, struct st_work *work, int rc)
{
    (void)arg, (void)rc;
    free(ST_CONTAINER(work, struct message, work));
}

static const struct st_work_ops message_work = {ST_AM_COLL, message_run, message_drop};

void arrival_tell(struct arrival *a, struct st_peer *peer, const void *hdr, uint32_t hdr_len, const void *data,
                  uint32_t len)
{
    if (peer->failed)
        return;
    /* A peer that was only heard from is connected by progress: not inside a transport's callback. */
    if (peer->bml && st_list_empty(&peer->work[ST_WORK_CONTROL]) &&
        message_send(a, peer, hdr, hdr_len, data, len) == STRATA_OK)
        return;
    struct message *m = calloc(1, sizeof(*m));
    if (!m) {
        st_worker_peer_failed(a->w, peer->rank, STRATA_ERR_NOMEM, "no memory for a message of a collective");
        return;
    }
    *m = (struct message){.work = {.ops = &message_work}, .a = a, .peer = peer, .hdr_len = hdr_len, .len = len};
    memcpy(m->hdr, hdr, hdr_len);
    if (len)
        memcpy(m->data, data, len);
    st_worker_queue(a->w, peer, ST_WORK_CONTROL, &m->work);
}

static void message_stop(struct slot *s, int member, enum arrival_type type, uint16_t epoch, uint8_t pieces)
{
    const strata_comm_t *comm = s->base.group->comm;
    struct wire_stop stop = {.type = (uint8_t)type, .yes = pieces, .epoch = epoch, .comm = comm->id};
    stop.src = comm->rank + member - slot_rank(s, member);
    arrival_tell(s->a, s->member[member].peer, &stop, sizeof(stop), NULL, 0);
}

void arrival_tell_stop(struct slot *s, int member, uint16_t epoch, uint8_t pieces)
{
    s->a->counted[COUNT_STOPS]++;
    message_stop(s, member, ARRIVAL_STOP, epoch, pieces);
}

void arrival_tell_withdraw(struct slot *s, int member)
{
    message_stop(s, member, ARRIVAL_WITHDRAW, s->epoch, 0);
}
