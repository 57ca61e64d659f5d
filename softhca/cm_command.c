/* Commands of the connection manager: Linux, include/uapi/rdma/rdma_user_cm.h, and the manual pages of librdmacm. Each
 * returns 0 or an errno. Of addresses only IP ones are known; there is no multicast. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cm.h"

#define RATE_10_GB 3

/* Private data that a message has room for: InfiniBand Architecture Specification, volume 1, tables 99 to 108. Of a
 * request over IP the first 36 bytes are the manager's own (annex A11). */
#define REQUEST_ROOM 92
#define IP_HEADER    36
#define REPLY_ROOM   196
#define REJECT_ROOM  148
/* The same of datagrams (SIDR): section 12.11. */
#define SIDR_REQUEST_ROOM 216
#define SIDR_REPLY_ROOM   136

union request {
    struct rdma_ucm_create_id create;
    struct rdma_ucm_destroy_id destroy;
    struct rdma_ucm_bind_ip bind;
    struct rdma_ucm_resolve_ip resolve;
    struct rdma_ucm_resolve_route route;
    struct rdma_ucm_query query;
    struct rdma_ucm_connect connect;
    struct rdma_ucm_listen listen;
    struct rdma_ucm_accept accept;
    struct rdma_ucm_reject reject;
    struct rdma_ucm_disconnect disconnect;
    struct rdma_ucm_init_qp_attr attr;
    struct rdma_ucm_get_event event;
    struct rdma_ucm_set_option option;
    struct rdma_ucm_notify notify;
    struct rdma_ucm_migrate_id migrate;
};

/* Where an answer goes has as much room as the command says, which older programs and newer ones see differently. */
struct answer {
    void *at;
    size_t room;
};
static int tell(struct answer to, const void *what, size_t size, size_t least)
{
    if (to.room < least)
        return ENOSPC;
    memcpy(to.at, what, to.room < size ? to.room : size);
    return 0;
}

static void *to_pointer(uint64_t at)
{
    return (void *)(uintptr_t)at; /* NOLINT(performance-no-int-to-ptr): the interface has addresses as numbers */
}

/* ---- identifiers ---- */

static int create_id(struct cm_channel *c, const union request *r, size_t room)
{
    struct rdma_ucm_create_id_resp said = {0};
    const uint32_t space = r->create.ps;
    if (space != RDMA_PS_TCP && space != RDMA_PS_UDP && space != RDMA_PS_IB)
        return EOPNOTSUPP;
    if (!r->create.uid || room < sizeof said)
        return EINVAL;
    struct cm_id *id =
        cm_id_new(c, space, space == RDMA_PS_UDP || (space == RDMA_PS_IB && r->create.qp_type == IBV_QPT_UD));
    if (!id)
        return errno;
    id->uid = r->create.uid;
    said.id = id->number;
    return tell((struct answer){to_pointer(r->create.response), room}, &said, sizeof said, sizeof said);
}

static int destroy_id(struct cm_id *id, const union request *r, size_t room)
{
    const struct rdma_ucm_destroy_id_resp said = {.events_reported = id->reported};
    const int error = tell((struct answer){to_pointer(r->destroy.response), room}, &said, sizeof said, sizeof said);
    if (!error)
        cm_id_free(id);
    return error;
}

/* With what has come in at it and was not fetched. */
static int migrate_id(struct cm_channel *to, const union request *r, size_t room)
{
    struct cm_channel *from = cm_channel_of((int)r->migrate.fd);
    struct cm_id *id = cm_id_at(r->migrate.id);
    if (!from || !id || id->channel != from)
        return ENOENT;
    const struct rdma_ucm_migrate_resp said = {.events_reported = id->reported};
    const int error = tell((struct answer){to_pointer(r->migrate.response), room}, &said, sizeof said, sizeof said);
    if (error || to == from)
        return error;
    cm_events_move(from, to, id);
    struct cm_id *i = cm_id_next(from, CM_NONE), *next;
    for (; i; i = next) {
        next = cm_id_next(from, i->number);
        if (i != id && i->listener != id->number)
            continue;
        /* A socket that neither listens nor is connected yet is watched later. */
        const bool watched = i->watched;
        cm_unwatch(i);
        i->channel = to;
        if (watched && !cm_watch(i))
            cm_hang_up(i, CM_OVER);
    }
    return 0;
}

static int get_event(struct cm_channel *c, const union request *r, size_t room)
{
    struct rdma_ucm_event_resp said;
    const size_t least = offsetof(struct rdma_ucm_event_resp, reserved);
    if (room < least)
        return ENOSPC;
    const int error = cm_event_get(c, &said);
    return error ? error : tell((struct answer){to_pointer(r->event.response), room}, &said, sizeof said, least);
}

/* ---- addresses ---- */

static int take_address(const struct sockaddr_in6 *from, union cm_address *to)
{
    memset(to, 0, sizeof *to);
    memcpy(&to->v6, from, sizeof to->v6);
    return cm_address_size(to) ? 0 : EAFNOSUPPORT;
}

static int bind_id(struct cm_id *id, const union request *r, size_t room)
{
    (void)room;
    struct cm_end e = id->here;
    if (id->state != CM_IDLE || id->fd >= 0)
        return EINVAL;
    int error = take_address(&r->bind.addr, &e.at);
    if (!error && !cm_is_any(&e.at))
        error = cm_place(&e, true);
    if (error)
        return error;
    error = cm_bind(id, &e.at);
    if (!error)
        id->here = e;
    return error;
}

/* From where: as bound, as the program says, or from where one gets there. */
static int source(struct cm_id *id, const struct rdma_ucm_resolve_ip *r)
{
    struct cm_end e = id->here;
    const bool bound = id->fd >= 0;
    int error = 0;
    if (!bound && ((const struct sockaddr *)&r->src_addr)->sa_family)
        error = take_address(&r->src_addr, &e.at);
    else if (!bound)
        cm_source_for(&id->there.at, &e.at);
    if (!error && cm_is_any(&e.at)) {
        const uint16_t port = cm_port_of(&e.at);
        cm_source_for(&id->there.at, &e.at);
        *(e.at.any.sa_family == AF_INET ? &e.at.v4.sin_port : &e.at.v6.sin6_port) = htons(port);
    }
    if (!error)
        error = cm_place(&e, true);
    if (!error && !bound)
        error = cm_bind(id, &e.at);
    if (!error)
        id->here = e;
    return error;
}

static int resolve_ip(struct cm_id *id, const union request *r, size_t room)
{
    (void)room;
    if (id->state != CM_IDLE)
        return EINVAL;
    int error = take_address(&r->resolve.dst_addr, &id->there.at);
    if (error)
        return error;
    error = cm_place(&id->there, false);
    if (error) { /* as the kernel says it of an address that nobody has */
        (void)cm_say(id, CM_EVENT_ADDR_ERROR, -error);
        return 0;
    }
    error = source(id, &r->resolve);
    if (error)
        return error;
    id->state = CM_ADDRESSED;
    (void)cm_say(id, CM_EVENT_ADDR_RESOLVED, 0);
    return 0;
}

static int resolve_route(struct cm_id *id, const union request *r, size_t room)
{
    (void)r, (void)room;
    if (id->state != CM_ADDRESSED)
        return EINVAL;
    if (hca.header && !hca_port_up(hca.segment, id->here.device, id->here.port)) {
        (void)cm_say(id, CM_EVENT_ROUTE_ERROR, -ENETUNREACH);
        return 0;
    }
    id->state = CM_ROUTED;
    (void)cm_say(id, CM_EVENT_ROUTE_RESOLVED, 0);
    return 0;
}

static int query_route(struct cm_id *id, const union request *r, size_t room)
{
    struct rdma_ucm_query_route_resp said;
    struct hca_device *first;
    memset(&said, 0, sizeof said);
    memcpy(&said.src_addr, &id->here.at.v6, sizeof said.src_addr);
    memcpy(&said.dst_addr, &id->there.at.v6, sizeof said.dst_addr);
    said.ibdev_index = UINT32_MAX; /* as ibv_get_device_index: found by its GUID */
    if (id->here.port) {
        hca_devices(&first);
        said.node_guid = hca_guid(&first[id->here.device]);
        said.port_num = (uint8_t)id->here.port;
        memcpy(said.ib_route[0].sgid, id->here.gid.raw, sizeof said.ib_route[0].sgid);
    }
    if (cm_has_path(id)) {
        struct ib_user_path_rec *path = &said.ib_route[0];
        said.num_paths = 1;
        memcpy(path->dgid, id->there.gid.raw, sizeof path->dgid);
        path->slid = hca.limits.roce ? 0 : htobe16((uint16_t)id->here.lid);
        path->dlid = hca.limits.roce ? 0 : htobe16((uint16_t)id->there.lid);
        path->pkey = htobe16(0xffff);
        path->hop_limit = CM_HOPS;
        path->numb_path = 1;
        path->reversible = 1;
        path->mtu_selector = path->rate_selector = path->packet_life_time_selector = 2; /* exactly */
        path->mtu = hca.limits.mtu;
        path->rate = RATE_10_GB;
    }
    return tell((struct answer){to_pointer(r->query.response), room}, &said, sizeof said,
                offsetof(struct rdma_ucm_query_route_resp, ibdev_index));
}

/* ---- connections ---- */

static int listen_id(struct cm_id *id, const union request *r, size_t room)
{
    (void)room;
    if (id->state != CM_IDLE)
        return EINVAL;
    int error;
    if (id->fd < 0) { /* at any address, any port */
        id->here.at.v4 = (struct sockaddr_in){.sin_family = AF_INET};
        error = cm_bind(id, &id->here.at);
    } else {
        error = cm_own(id);
    }
    if (error)
        return error;
    const uint32_t backlog = r->listen.backlog;
    if (listen(id->fd, backlog && backlog < 4096 ? (int)backlog : 4096) || !cm_watch(id))
        return errno;
    id->state = CM_LISTENING;
    return 0;
}

static int no_answer(struct cm_id *id)
{
    cm_hang_up(id, CM_OVER);
    (void)cm_say(id, CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    return 0;
}

/* Nobody listens there. */
static int no_service(struct cm_id *id)
{
    cm_hang_up(id, CM_OVER);
    if (id->datagram)
        (void)cm_say(id, CM_EVENT_UNREACHABLE, CM_SIDR_UNSUPPORTED);
    else
        (void)cm_say(id, CM_EVENT_REJECTED, CM_NO_SUCH_SERVICE);
    return 0;
}

static size_t request_room(const struct cm_id *id)
{
    const size_t room = id->datagram ? SIDR_REQUEST_ROOM : REQUEST_ROOM;
    return id->space == RDMA_PS_IB ? room : room - IP_HEADER;
}

static int connect_id(struct cm_id *id, const union request *r, size_t room)
{
    (void)room;
    const struct rdma_ucm_conn_param *p = &r->connect.conn_param;
    if (id->state != CM_ROUTED || !p->valid || p->private_data_len > request_room(id))
        return EINVAL;
    if (hca.header && !hca_port_up(hca.segment, id->here.device, id->here.port))
        return no_answer(id);
    id->responder_resources = p->responder_resources;
    id->initiator_depth = p->initiator_depth;
    id->retry_count = p->retry_count;
    int error = cm_connect(id);
    if (!error)
        error = cm_send(id, CM_REQUEST, p, 0);
    if (error == ECONNREFUSED || error == EPIPE || error == ECONNRESET)
        return no_service(id);
    if (error || !cm_watch(id)) /* EAGAIN: more ask there than it listens to */
        return no_answer(id);
    id->state = CM_ASKING;
    return 0;
}

/* What comes next is what the other end has to say; that it is gone is heard there. */
static int go_on(struct cm_id *id, enum cm_kind kind, const struct rdma_ucm_conn_param *p, enum cm_state now)
{
    (void)cm_send(id, kind, p, 0);
    id->state = now;
    return 0;
}

/* The answer to a datagram's request ends what the two have to do with each other. */
static int accept_datagrams(struct cm_id *id, const struct rdma_ucm_accept *r)
{
    struct rdma_ucm_conn_param p = r->conn_param;
    if (id->state != CM_ASKED || (p.valid && p.private_data_len > SIDR_REPLY_ROOM))
        return EINVAL;
    if (!p.valid)
        memset(&p, 0, sizeof p);
    if (!p.qkey)
        p.qkey = CM_QKEY;
    id->uid = r->uid;
    (void)cm_send(id, CM_RESPONSE, &p, 0);
    cm_hang_up(id, CM_UP);
    return 0;
}

/* Of who was asked, the answer; of who asked and was answered, that it is ready, too. */
static int accept_id(struct cm_id *id, const union request *r, size_t room)
{
    (void)room;
    const struct rdma_ucm_conn_param *p = &r->accept.conn_param;
    if (id->datagram)
        return accept_datagrams(id, &r->accept);
    if (id->state == CM_ANSWERED)
        return go_on(id, CM_READY, NULL, CM_UP);
    if (id->state != CM_ASKED || !p->valid || p->private_data_len > REPLY_ROOM)
        return id->state == CM_OVER ? ENOTCONN : EINVAL;
    id->uid = r->accept.uid;
    id->responder_resources = p->responder_resources;
    id->initiator_depth = p->initiator_depth;
    return go_on(id, CM_RESPONSE, p, CM_ANSWERING);
}

static int reject_id(struct cm_id *id, const union request *r, size_t room)
{
    (void)room;
    struct rdma_ucm_conn_param p = {.private_data_len = r->reject.private_data_len};
    if ((id->state != CM_ASKED && id->state != CM_ANSWERED) ||
        p.private_data_len > (id->datagram ? SIDR_REPLY_ROOM : REJECT_ROOM))
        return EINVAL;
    memcpy(p.private_data, r->reject.private_data, sizeof p.private_data);
    (void)cm_send(id, CM_REJECT, &p, r->reject.reason ? r->reject.reason : CM_BY_CONSUMER);
    cm_hang_up(id, CM_OVER);
    return 0;
}

/* Also when the other end did it before, whose word is answered so. */
static int disconnect_id(struct cm_id *id, const union request *r, size_t room)
{
    (void)r, (void)room;
    if (id->datagram && id->state == CM_UP)
        return 0;
    if (id->state == CM_UP) {
        (void)cm_send(id, CM_DISCONNECT, NULL, 0);
        (void)cm_say(id, CM_EVENT_DISCONNECTED, 0);
    }
    if (id->state >= CM_ASKING)
        cm_hang_up(id, CM_OVER);
    return 0;
}

/* A first message on the queue pair says as much as READY. */
static int notify_id(struct cm_id *id, const union request *r, size_t room)
{
    (void)room;
    if (r->notify.event != IBV_EVENT_COMM_EST)
        return EINVAL;
    if (id->state == CM_ANSWERING) {
        id->state = CM_UP;
        cm_say_theirs(id, CM_EVENT_ESTABLISHED, 0);
    }
    return 0;
}

static int set_option(struct cm_id *id, const union request *r, size_t room)
{
    const struct rdma_ucm_set_option *o = &r->option;
    (void)room;
    return cm_set_option(id, o->level, o->optname, to_pointer(o->optval), o->optlen);
}

/* ---- the queue pair ---- */

static int init_qp_attr(struct cm_id *id, const union request *r, size_t room)
{
    struct ib_uverbs_qp_attr said;
    const int error = cm_qp_attr(id, r->attr.qp_state, &said);
    return error ? error : tell((struct answer){to_pointer(r->attr.response), room}, &said, sizeof said, sizeof said);
}

/* ---- which is which ---- */

/* `least`: bytes that the command has in any version of the interface. Which identifier it is about stands at `id`. */
#define ROW(of, run, least_, member) [of] = {.for_id = (run), .least = (least_), .id = offsetof(member, id)}
static const struct row {
    int (*for_id)(struct cm_id *, const union request *, size_t room);
    int (*for_channel)(struct cm_channel *, const union request *, size_t room);
    size_t least, id;
} rows[] = {
    [RDMA_USER_CM_CMD_CREATE_ID] = {.for_channel = create_id, .least = sizeof(struct rdma_ucm_create_id)},
    [RDMA_USER_CM_CMD_GET_EVENT] = {.for_channel = get_event, .least = sizeof(struct rdma_ucm_get_event)},
    [RDMA_USER_CM_CMD_MIGRATE_ID] = {.for_channel = migrate_id, .least = sizeof(struct rdma_ucm_migrate_id)},
    ROW(RDMA_USER_CM_CMD_DESTROY_ID, destroy_id, sizeof(struct rdma_ucm_destroy_id), struct rdma_ucm_destroy_id),
    ROW(RDMA_USER_CM_CMD_BIND_IP, bind_id, sizeof(struct rdma_ucm_bind_ip), struct rdma_ucm_bind_ip),
    ROW(RDMA_USER_CM_CMD_RESOLVE_IP, resolve_ip, sizeof(struct rdma_ucm_resolve_ip), struct rdma_ucm_resolve_ip),
    ROW(RDMA_USER_CM_CMD_RESOLVE_ROUTE, resolve_route, sizeof(struct rdma_ucm_resolve_route),
        struct rdma_ucm_resolve_route),
    /* An older form has no option behind the number. */
    ROW(RDMA_USER_CM_CMD_QUERY_ROUTE, query_route, offsetof(struct rdma_ucm_query, option), struct rdma_ucm_query),
    ROW(RDMA_USER_CM_CMD_LISTEN, listen_id, sizeof(struct rdma_ucm_listen), struct rdma_ucm_listen),
    /* Older forms end before `ece`. */
    ROW(RDMA_USER_CM_CMD_CONNECT, connect_id, offsetof(struct rdma_ucm_connect, ece), struct rdma_ucm_connect),
    ROW(RDMA_USER_CM_CMD_ACCEPT, accept_id, offsetof(struct rdma_ucm_accept, ece), struct rdma_ucm_accept),
    ROW(RDMA_USER_CM_CMD_REJECT, reject_id, sizeof(struct rdma_ucm_reject), struct rdma_ucm_reject),
    ROW(RDMA_USER_CM_CMD_DISCONNECT, disconnect_id, sizeof(struct rdma_ucm_disconnect), struct rdma_ucm_disconnect),
    ROW(RDMA_USER_CM_CMD_INIT_QP_ATTR, init_qp_attr, sizeof(struct rdma_ucm_init_qp_attr),
        struct rdma_ucm_init_qp_attr),
    ROW(RDMA_USER_CM_CMD_SET_OPTION, set_option, sizeof(struct rdma_ucm_set_option), struct rdma_ucm_set_option),
    ROW(RDMA_USER_CM_CMD_NOTIFY, notify_id, sizeof(struct rdma_ucm_notify), struct rdma_ucm_notify),
};

static int carry_out(struct cm_channel *c, const struct row *row, const union request *r, size_t room)
{
    uint32_t number;
    if (row->for_channel)
        return row->for_channel(c, r, room);
    memcpy(&number, (const char *)r + row->id, sizeof number);
    struct cm_id *id = cm_id_at(number);
    /* Nobody reaches another channel's, nor one that the program was not told of. */
    if (!id || id->channel != c || id->listener != CM_NONE)
        return ENOENT;
    /* A kernel would know by itself what the other end has said meanwhile, or that it has gone. */
    if (id->fd >= 0 && id->state >= CM_ASKING)
        cm_hear(id);
    return row->for_id(id, r, room);
}

ssize_t cm_write(int fd, const void *command, size_t size)
{
    struct rdma_ucm_cmd_hdr h;
    union request r;
    int error = EINVAL;
    if (size >= sizeof h) {
        memcpy(&h, command, sizeof h);
        const struct row *row = h.cmd < sizeof rows / sizeof rows[0] ? &rows[h.cmd] : NULL;
        memset(&r, 0, sizeof r);
        if (row && !row->for_id && !row->for_channel) {
            error = ENOSYS;
        } else if (row && h.in >= row->least && h.in <= size - sizeof h) {
            memcpy(&r, (const char *)command + sizeof h, h.in < sizeof r ? h.in : sizeof r);
            pthread_mutex_lock(&cm_lock);
            struct cm_channel *c = cm_channel_of(fd);
            error = c ? carry_out(c, row, &r, h.out) : EBADF;
            pthread_mutex_unlock(&cm_lock);
        }
    }
    if (!error)
        return (ssize_t)size;
    errno = error;
    return -1;
}
