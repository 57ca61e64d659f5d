/* Connection messages: InfiniBand Architecture Specification, volume 1, chapter 12, over a socket that each connection
 * has for itself. A socket whose other end is gone says what a manager would: the connection is over, or was refused by
 * who did not answer. Under cm_lock. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "cm.h"

int cm_send(const struct cm_id *id, enum cm_kind kind, const struct rdma_ucm_conn_param *param, uint32_t reason)
{
    struct cm_message m;
    memset(&m, 0, sizeof m);
    m.magic = CM_MAGIC;
    m.kind = kind;
    m.reason = reason;
    m.from = id->here;
    m.to = id->there;
    if (param)
        m.param = *param;
    return send(id->fd, &m, sizeof m, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof m ? 0 : errno;
}

void cm_hang_up(struct cm_id *id, enum cm_state now)
{
    id->state = now;
    if (id->fd < 0)
        return;
    cm_unwatch(id);
    close(id->fd);
    id->fd = -1;
}

/* What the other end can do is what we may ask for, and the other way. */
static void take_param(struct cm_id *id, const struct cm_message *m)
{
    id->there = m->from;
    id->theirs = m->param;
    id->theirs.responder_resources = m->param.initiator_depth;
    id->theirs.initiator_depth = m->param.responder_resources;
    id->responder_resources = id->theirs.responder_resources;
    id->initiator_depth = id->theirs.initiator_depth;
}

static void tell_theirs(const struct cm_id *id, struct cm_event *e)
{
    struct rdma_ucm_ud_param *ud = &e->say.param.ud;
    if (!id->datagram) {
        e->say.param.conn = id->theirs;
        return;
    }
    ud->qp_num = id->theirs.qp_num;
    ud->qkey = id->theirs.qkey;
    cm_path(id, &ud->ah_attr);
    memcpy(ud->private_data, id->theirs.private_data, sizeof ud->private_data);
    ud->private_data_len = id->theirs.private_data_len;
}

void cm_say_theirs(struct cm_id *id, enum cm_event_code what, int status)
{
    struct cm_event *e = cm_say(id, what, status);
    if (e)
        tell_theirs(id, e);
}

/* A request that is for this listener: at its address, and over ports that are up. */
static void requested(struct cm_id *id, const struct cm_message *m)
{
    struct cm_id *listener = cm_id_at(id->listener);
    id->here.at = m->to.at;
    take_param(id, m);
    id->retry_count = m->param.retry_count;
    if (!cm_is_any(&listener->here.at) && !cm_same_host(&listener->here.at, &m->to.at)) {
        (void)cm_send(id, CM_REJECT, NULL, CM_NO_SUCH_SERVICE);
        cm_id_free(id);
        return;
    }
    if (cm_place(&id->here, true) || (hca.header && !hca_port_up(hca.segment, id->here.device, id->here.port))) {
        (void)cm_send(id, CM_UNREACHABLE, NULL, 0);
        cm_id_free(id);
        return;
    }
    id->state = CM_ASKED;
    struct cm_event *e = cm_say(listener, CM_EVENT_CONNECT_REQUEST, 0);
    if (!e) {
        cm_id_free(id);
        return;
    }
    e->say.id = id->number;
    tell_theirs(id, e);
}

/* Of datagrams: a request that nobody answers is over after a time. Else nobody is told that the other end has gone. */
static void ended_datagrams(struct cm_id *id)
{
    if (id->state != CM_ASKING) {
        cm_hang_up(id, id->state);
        return;
    }
    cm_hang_up(id, CM_OVER);
    (void)cm_say(id, CM_EVENT_UNREACHABLE, -ETIMEDOUT);
}

static void ended(struct cm_id *id)
{
    const enum cm_state was = id->state;
    if (id->listener != CM_NONE) { /* the program has not heard of it */
        cm_id_free(id);
        return;
    }
    if (id->datagram) {
        ended_datagrams(id);
        return;
    }
    cm_hang_up(id, CM_OVER);
    if (was == CM_UP) {
        (void)cm_say(id, CM_EVENT_DISCONNECTED, 0);
        return;
    }
    memset(&id->theirs, 0, sizeof id->theirs);
    cm_say_theirs(id, CM_EVENT_REJECTED, CM_BY_CONSUMER);
}

/* What the one that asked hears of datagrams: SIDR has one answer. */
static void heard_datagrams(struct cm_id *id, const struct cm_message *m)
{
    const bool yes = m->kind == CM_RESPONSE;
    if (id->state != CM_ASKING || (!yes && m->kind != CM_REJECT)) {
        ended(id);
        return;
    }
    take_param(id, m);
    cm_hang_up(id, yes ? CM_UP : CM_OVER);
    if (yes)
        cm_say_theirs(id, CM_EVENT_ESTABLISHED, 0);
    else
        cm_say_theirs(id, CM_EVENT_UNREACHABLE,
                      m->reason == CM_NO_SUCH_SERVICE ? CM_SIDR_UNSUPPORTED : CM_SIDR_REJECTED);
}

static void heard(struct cm_id *id, const struct cm_message *m)
{
    const enum cm_state was = id->state;
    if (m->kind == CM_REQUEST && was == CM_EXPECTING) {
        requested(id, m);
    } else if (id->datagram) {
        heard_datagrams(id, m);
    } else if (m->kind == CM_RESPONSE && was == CM_ASKING) {
        take_param(id, m);
        id->state = CM_ANSWERED;
        cm_say_theirs(id, CM_EVENT_CONNECT_RESPONSE, 0);
    } else if (m->kind == CM_READY && was == CM_ANSWERING) {
        id->state = CM_UP;
        cm_say_theirs(id, CM_EVENT_ESTABLISHED, 0);
    } else if (m->kind == CM_REJECT && (was == CM_ASKING || was == CM_ANSWERING)) {
        take_param(id, m);
        cm_hang_up(id, CM_OVER);
        cm_say_theirs(id, CM_EVENT_REJECTED, (int)m->reason);
    } else if (m->kind == CM_UNREACHABLE && was == CM_ASKING) {
        cm_hang_up(id, CM_OVER);
        (void)cm_say(id, CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    } else {
        ended(id); /* DISCONNECT, and whatever nobody says in this state */
    }
}

static bool whole(const struct cm_message *m, ssize_t n)
{
    return n == sizeof *m && m->magic == CM_MAGIC && cm_address_size(&m->from.at) && cm_address_size(&m->to.at);
}

static void callers(struct cm_id *listener)
{
    /* Bounded: the rest makes the descriptor readable again. */
    for (int i = 0; i < 16; i++) {
        struct ucred who;
        socklen_t size = sizeof who;
        const int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        struct cm_id *id = NULL;
        if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) && who.uid == geteuid())
            id = cm_id_new(listener->channel, listener->space, listener->datagram);
        if (!id) {
            close(fd);
            continue;
        }
        id->fd = fd;
        id->state = CM_EXPECTING;
        id->listener = listener->number;
        if (cm_watch(id))
            cm_hear(id); /* it is there already, mostly */
        else
            cm_id_free(id);
    }
}

void cm_hear(struct cm_id *id)
{
    struct cm_message m;
    if (id->state == CM_LISTENING) {
        callers(id);
        return;
    }
    const ssize_t n = recv(id->fd, &m, sizeof m, MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (whole(&m, n))
        heard(id, &m);
    else
        ended(id);
}
