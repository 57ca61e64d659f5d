/* Softhca's connection manager by librdmacm, case by case: `manager CASE`, with libsofthca preloaded. Both ends are in
 * this process, or in a child that ends on purpose. `manager list` prints the cases. */
#define _GNU_SOURCE 1
#ifndef HAVE_RDMACM
#include <stdio.h>
int main(void)
{
    puts("SKIP: this build has no librdmacm");
    return 77;
}
#else
#include "tests/softhca/manager/cases.h"

struct rdma_event_channel *channel(void)
{
    struct rdma_event_channel *c = rdma_create_event_channel();

    NEED(c);
    return c;
}

struct sockaddr_in at(const char *host, int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

    NEED(inet_pton(AF_INET, host, &a.sin_addr) == 1);
    return a;
}

struct rdma_cm_event *next(struct rdma_event_channel *c, enum rdma_cm_event_type what, int status)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    struct rdma_cm_event *e;

    NEED(poll(&p, 1, WAIT_MS) == 1);
    NEED(rdma_get_cm_event(c, &e) == 0);
    if (e->event != what || e->status != status) {
        fprintf(stderr, "manager: %s with status %d, not %s with %d\n", rdma_event_str(e->event), e->status,
                rdma_event_str(what), status);
        exit(1);
    }
    return e;
}

void pass(struct rdma_event_channel *c, enum rdma_cm_event_type what, int status)
{
    NEED(rdma_ack_cm_event(next(c, what, status)) == 0);
}

bool nothing(struct rdma_event_channel *c)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN};

    return poll(&p, 1, 50) == 0;
}

struct rdma_cm_id *new_in(struct rdma_event_channel *c, enum rdma_port_space space)
{
    struct rdma_cm_id *id;

    NEED(rdma_create_id(c, &id, NULL, space) == 0);
    return id;
}

struct rdma_cm_id *new_id(struct rdma_event_channel *c)
{
    return new_in(c, RDMA_PS_TCP);
}

struct rdma_cm_id *listener_in(struct rdma_event_channel *c, const char *host, enum rdma_port_space space)
{
    struct rdma_cm_id *id = new_in(c, space);
    struct sockaddr_in a = at(host, 0);

    NEED(rdma_bind_addr(id, (struct sockaddr *)&a) == 0 && rdma_listen(id, 64) == 0);
    NEED(rdma_get_src_port(id) != 0);
    return id;
}

struct rdma_cm_id *listener(struct rdma_event_channel *c, const char *host)
{
    return listener_in(c, host, RDMA_PS_TCP);
}

/* Up to where the way is known. */
struct rdma_cm_id *routed_in(struct rdma_event_channel *c, const char *host, int port, enum rdma_port_space space)
{
    struct rdma_cm_id *id = new_in(c, space);
    struct sockaddr_in a = at(host, port);

    NEED(rdma_resolve_addr(id, NULL, (struct sockaddr *)&a, 1000) == 0);
    pass(c, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    NEED(id->verbs && strcmp(ibv_get_device_name(id->verbs->device), "soft0") == 0 && id->port_num == 1);
    NEED(rdma_resolve_route(id, 1000) == 0);
    pass(c, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    NEED(id->route.num_paths == 1);
    return id;
}

struct rdma_cm_id *routed(struct rdma_event_channel *c, const char *host, int port)
{
    return routed_in(c, host, port, RDMA_PS_TCP);
}

void ask(struct rdma_cm_id *id)
{
    struct rdma_conn_param p = {.private_data = "ask",
                                .private_data_len = 4,
                                .responder_resources = 3,
                                .initiator_depth = 5,
                                .retry_count = 6,
                                .rnr_retry_count = 7,
                                .qp_num = 1234};

    NEED(rdma_connect(id, &p) == 0);
}

struct pair requested(void)
{
    struct pair p = {.active = channel(), .passive = channel()};
    struct rdma_cm_event *e;

    p.listener = listener(p.passive, "127.0.0.1");
    p.from = routed(p.active, "127.0.0.1", ntohs(rdma_get_src_port(p.listener)));
    ask(p.from);
    e = next(p.passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    NEED(e->listen_id == p.listener && strcmp(e->param.conn.private_data, "ask") == 0);
    /* What the other may ask for is what we have to answer, and the other way. */
    NEED(e->param.conn.responder_resources == 5 && e->param.conn.initiator_depth == 3 && e->param.conn.qp_num == 1234);
    p.to = e->id;
    NEED(rdma_ack_cm_event(e) == 0);
    NEED(p.to->verbs == p.from->verbs && rdma_get_dst_port(p.to) == rdma_get_src_port(p.from));
    return p;
}

static struct pair connected(void)
{
    struct rdma_conn_param param = {
        .private_data = "yes", .private_data_len = 4, .responder_resources = 2, .initiator_depth = 1, .qp_num = 4321};
    struct pair p = requested();
    struct rdma_cm_event *e;

    NEED(rdma_accept(p.to, &param) == 0);
    e = next(p.active, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
    NEED(strcmp(e->param.conn.private_data, "yes") == 0 && e->param.conn.qp_num == 4321);
    NEED(e->param.conn.responder_resources == 1 && e->param.conn.initiator_depth == 2);
    NEED(rdma_ack_cm_event(e) == 0);
    NEED(rdma_establish(p.from) == 0);
    pass(p.passive, RDMA_CM_EVENT_ESTABLISHED, 0);
    return p;
}

void end(struct pair *p)
{
    NEED(rdma_destroy_id(p->from) == 0 && rdma_destroy_id(p->listener) == 0);
    NEED(!p->to || rdma_destroy_id(p->to) == 0);
    rdma_destroy_event_channel(p->active);
    rdma_destroy_event_channel(p->passive);
}

/* ---- cases ---- */

static void agreed(void)
{
    struct pair p = connected();
    struct ibv_qp_attr from = {.qp_state = IBV_QPS_RTR}, to = {.qp_state = IBV_QPS_RTS};
    int mask;

    NEED(rdma_init_qp_attr(p.from, &from, &mask) == 0 && (mask & IBV_QP_AV) && from.dest_qp_num == 4321);
    NEED(rdma_init_qp_attr(p.to, &to, &mask) == 0 && (mask & IBV_QP_SQ_PSN) && to.sq_psn == from.rq_psn);
    to.qp_state = IBV_QPS_RTR;
    NEED(rdma_init_qp_attr(p.to, &to, &mask) == 0 && to.dest_qp_num == 1234 && to.ah_attr.port_num == 1);
    NEED(rdma_disconnect(p.from) == 0);
    pass(p.active, RDMA_CM_EVENT_DISCONNECTED, 0);
    pass(p.passive, RDMA_CM_EVENT_DISCONNECTED, 0);
    NEED(rdma_disconnect(p.to) == 0 && nothing(p.passive));
    end(&p);
}

static void refused(void)
{
    struct rdma_event_channel *c = channel();
    struct pair p = requested();
    struct rdma_cm_event *e;
    struct rdma_cm_id *id = listener(c, "127.0.0.1");
    int port = ntohs(rdma_get_src_port(id));

    NEED(rdma_reject(p.to, "no", 3) == 0);
    e = next(p.active, RDMA_CM_EVENT_REJECTED, BY_CONSUMER);
    NEED(e->param.conn.private_data_len >= 3 && strcmp(e->param.conn.private_data, "no") == 0);
    NEED(rdma_ack_cm_event(e) == 0);
    NEED(rdma_accept(p.to, &(struct rdma_conn_param){.qp_num = 1}) == -1);
    end(&p);
    NEED(rdma_destroy_id(id) == 0); /* nobody listens there any more */
    id = routed(c, "127.0.0.1", port);
    ask(id);
    pass(c, RDMA_CM_EVENT_REJECTED, NO_SERVICE);
    NEED(rdma_destroy_id(id) == 0);
    rdma_destroy_event_channel(c);
}

/* Ends that go without a word. */
static void gone(void)
{
    struct pair p = requested();
    struct rdma_event_channel *c = channel();
    struct rdma_cm_event *e;
    struct rdma_cm_id *id;

    NEED(rdma_destroy_id(p.to) == 0);
    p.to = NULL;
    pass(p.active, RDMA_CM_EVENT_REJECTED, BY_CONSUMER);
    end(&p);

    p = connected();
    NEED(rdma_destroy_id(p.to) == 0);
    p.to = NULL;
    pass(p.active, RDMA_CM_EVENT_DISCONNECTED, 0);
    end(&p);

    /* A listener goes with the requests that its program has not fetched. */
    p.passive = channel();
    p.listener = listener(p.passive, "127.0.0.1");
    id = routed(c, "127.0.0.1", ntohs(rdma_get_src_port(p.listener)));
    ask(id);
    NEED(!nothing(p.passive) && rdma_destroy_id(p.listener) == 0 && nothing(p.passive));
    pass(c, RDMA_CM_EVENT_REJECTED, BY_CONSUMER);
    NEED(rdma_destroy_id(id) == 0);
    /* Who asks has gone when it is answered. */
    p.listener = listener(p.passive, "127.0.0.1");
    id = routed(c, "127.0.0.1", ntohs(rdma_get_src_port(p.listener)));
    ask(id);
    NEED(rdma_destroy_id(id) == 0);
    e = next(p.passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    id = e->id;
    FAILS(rdma_accept(id, &(struct rdma_conn_param){.qp_num = 1}), ENOTCONN);
    NEED(rdma_ack_cm_event(e) == 0 && rdma_destroy_id(id) == 0 && nothing(p.passive));
    /* All of a channel's. */
    id = routed(c, "127.0.0.1", ntohs(rdma_get_src_port(p.listener)));
    ask(id);
    close(p.passive->fd);
    pass(c, RDMA_CM_EVENT_REJECTED, BY_CONSUMER);
}

/* A child that is killed, and one that has our descriptors and leaves them alone. */
static void killed(void)
{
    struct rdma_event_channel *c = channel();
    struct rdma_cm_id *l = listener(c, "127.0.0.1");
    struct rdma_conn_param param = {.qp_num = 1};
    int port = ntohs(rdma_get_src_port(l)), status;
    struct rdma_cm_event *e;
    pid_t child = fork();

    NEED(child >= 0);
    if (child == 0) {
        struct rdma_event_channel *mine = channel();
        struct rdma_cm_id *id = routed(mine, "127.0.0.1", port);
        ask(id);
        pass(mine, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
        NEED(rdma_establish(id) == 0);
        pause();
    }
    e = next(c, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    NEED(rdma_accept(e->id, &param) == 0 && rdma_ack_cm_event(e) == 0);
    pass(c, RDMA_CM_EVENT_ESTABLISHED, 0);
    NEED(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    pass(c, RDMA_CM_EVENT_DISCONNECTED, 0);

    struct pair p = connected();
    child = fork();
    NEED(child >= 0);
    if (child == 0) {
        close(p.active->fd);
        close(p.passive->fd);
        _exit(0);
    }
    NEED(waitpid(child, &status, 0) == child && status == 0);
    NEED(nothing(p.active) && nothing(p.passive));
    NEED(rdma_disconnect(p.to) == 0);
    pass(p.active, RDMA_CM_EVENT_DISCONNECTED, 0);
}

static void addresses(void)
{
    struct rdma_event_channel *c = channel();
    struct rdma_cm_id *l = listener(c, "127.0.0.1"), *id = new_id(c), *any = listener(c, "0.0.0.0");
    struct sockaddr_in taken = at("127.0.0.1", ntohs(rdma_get_src_port(l))), nobodys = at("192.0.2.1", 0);

    NEED(l->verbs && !any->verbs); /* the device is known of an address alone */
    FAILS(rdma_bind_addr(id, (struct sockaddr *)&taken), EADDRINUSE);
    FAILS(rdma_bind_addr(id, (struct sockaddr *)&nobodys), EADDRNOTAVAIL);
    NEED(rdma_resolve_addr(id, NULL, (struct sockaddr *)&nobodys, 100) == 0);
    pass(c, RDMA_CM_EVENT_ADDR_ERROR, -ENETUNREACH);
    NEED(rdma_destroy_id(id) == 0);
    /* Who listens at one address does not at another. */
    id = routed(c, "127.0.0.2", ntohs(rdma_get_src_port(l)));
    ask(id);
    pass(c, RDMA_CM_EVENT_REJECTED, NO_SERVICE);
    FAILS((fcntl(c->fd, F_SETFL, O_NONBLOCK), rdma_get_cm_event(c, &(struct rdma_cm_event *){NULL})), EAGAIN);
    NEED(rdma_destroy_id(id) == 0);
    id = routed(c, "127.0.0.2", ntohs(rdma_get_src_port(any)));
    ask(id);
    pass(c, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
}

static void wrong(void)
{
    struct pair p = requested();
    struct rdma_event_channel *c = channel();
    char bytes[256] = "";
    struct rdma_conn_param param = {.private_data = bytes, .private_data_len = 57};
    struct rdma_cm_id *id = routed(c, "127.0.0.1", ntohs(rdma_get_src_port(p.listener)));

    FAILS(rdma_connect(id, &param), EINVAL); /* 56 bytes are what a request has room for */
    param.private_data_len = 197;
    FAILS(rdma_accept(p.to, &param), EINVAL);
    FAILS(rdma_reject(p.to, bytes, 149), EINVAL);
    FAILS(rdma_listen(p.from, 1), EINVAL);
    FAILS(rdma_establish(p.from), EINVAL);
    FAILS(rdma_create_id(c, &(struct rdma_cm_id *){NULL}, NULL, RDMA_PS_IPOIB), EOPNOTSUPP);
    FAILS(rdma_resolve_route(p.from, 100), EINVAL);
    NEED(rdma_destroy_id(id) == 0);
    end(&p);
}

static void *sleeper(void *of)
{
    pass(of, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    return NULL;
}

/* Without poll(): fetching an event waits for one. And who may not wait is told. */
static void waiting(void)
{
    struct rdma_event_channel *c = channel(), *active = channel();
    struct rdma_cm_id *l = listener(c, "127.0.0.1"), *id = routed(active, "127.0.0.1", ntohs(rdma_get_src_port(l)));
    struct rdma_cm_event *e;
    pthread_t t;

    NEED(fcntl(active->fd, F_SETFL, O_NONBLOCK) == 0);
    FAILS(rdma_get_cm_event(active, &e), EAGAIN);
    NEED(pthread_create(&t, NULL, sleeper, c) == 0);
    usleep(50000);
    ask(id);
    NEED(pthread_join(t, NULL) == 0);
}

/* Identifiers that have a channel of their own, so that each call waits for what it began. */
static void *client(void *port)
{
    struct rdma_cm_id *id = new_id(NULL);
    struct sockaddr_in a = at("127.0.0.1", *(int *)port);
    struct rdma_conn_param param = {.qp_num = 1, .retry_count = 1};

    NEED(rdma_resolve_addr(id, NULL, (struct sockaddr *)&a, 1000) == 0 && rdma_resolve_route(id, 1000) == 0);
    NEED(rdma_connect(id, &param) == 0 && id->event->event == RDMA_CM_EVENT_CONNECT_RESPONSE);
    NEED(rdma_establish(id) == 0 && rdma_disconnect(id) == 0 && rdma_destroy_id(id) == 0);
    return NULL;
}

static void moved(void)
{
    struct rdma_cm_id *l = new_id(NULL), *id;
    struct sockaddr_in a = at("127.0.0.1", 0);
    struct rdma_conn_param param = {.qp_num = 1};
    pthread_t t;
    int port;

    NEED(rdma_bind_addr(l, (struct sockaddr *)&a) == 0 && rdma_listen(l, 4) == 0);
    port = ntohs(rdma_get_src_port(l));
    NEED(pthread_create(&t, NULL, client, &port) == 0);
    NEED(rdma_get_request(l, &id) == 0); /* the new one moves to its own channel */
    NEED(id->channel != l->channel && rdma_accept(id, &param) == 0);
    NEED(id->event->event == RDMA_CM_EVENT_ESTABLISHED && pthread_join(t, NULL) == 0);
    pass(id->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
    NEED(rdma_destroy_id(id) == 0);
    /* A listener with requests that have come in already, to a channel of the program's. */
    struct rdma_event_channel *c = channel(), *other = channel();
    id = routed(c, "127.0.0.1", port);
    ask(id);
    NEED(poll(&(struct pollfd){.fd = l->channel->fd, .events = POLLIN}, 1, WAIT_MS) == 1);
    NEED(rdma_migrate_id(l, other) == 0);
    pass(other, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
}

/* Identifiers that move to another channel before they listen or connect, as libfabric's do. */
static void moved_early(void)
{
    struct rdma_event_channel *c = channel(), *passive = channel(), *active = channel(), *last = channel();
    struct rdma_cm_id *l = new_id(c), *id;
    struct rdma_conn_param param = {.qp_num = 1};
    struct sockaddr_in a = at("127.0.0.1", 0);
    struct rdma_cm_event *e;

    NEED(rdma_bind_addr(l, (struct sockaddr *)&a) == 0 && rdma_migrate_id(l, passive) == 0 && rdma_listen(l, 4) == 0);
    id = routed(c, "127.0.0.1", ntohs(rdma_get_src_port(l)));
    NEED(rdma_migrate_id(id, active) == 0);
    ask(id);
    e = next(passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    NEED(rdma_migrate_id(e->id, last) == 0 && rdma_accept(e->id, &param) == 0 && rdma_ack_cm_event(e) == 0);
    pass(active, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
    NEED(rdma_establish(id) == 0);
    pass(last, RDMA_CM_EVENT_ESTABLISHED, 0);
    NEED(nothing(c) && nothing(passive));
    /* Connected ones, and one that has ended. */
    NEED(rdma_migrate_id(id, c) == 0 && rdma_disconnect(id) == 0);
    pass(c, RDMA_CM_EVENT_DISCONNECTED, 0);
    pass(last, RDMA_CM_EVENT_DISCONNECTED, 0);
    NEED(rdma_migrate_id(id, active) == 0 && rdma_destroy_id(id) == 0);
}

/* The port is down: SOFTHCA_FAULTS='port soft0 1 down'. */
static void down(void)
{
    struct rdma_event_channel *c = channel();
    struct rdma_cm_id *id = new_id(c);
    struct sockaddr_in a = at("127.0.0.1", 4);

    NEED(rdma_resolve_addr(id, NULL, (struct sockaddr *)&a, 1000) == 0);
    pass(c, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    NEED(rdma_resolve_route(id, 1000) == 0);
    pass(c, RDMA_CM_EVENT_ROUTE_ERROR, -ENETUNREACH);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {{"agreed", agreed},           {"refused", refused}, {"gone", gone},       {"killed", killed},
             {"addresses", addresses},     {"wrong", wrong},     {"waiting", waiting}, {"moved", moved},
             {"moved_early", moved_early}, {"ports", ports},     {"reused", reused},   {"options", options},
             {"datagrams", datagrams},     {"down", down}};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof cases[0]; i++) {
        if (strcmp(argv[1], "list") == 0)
            puts(cases[i].name);
        if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            puts("passed");
            return 0;
        }
    }
    return argc == 2 && strcmp(argv[1], "list") == 0 ? 0 : 2;
}
#endif
