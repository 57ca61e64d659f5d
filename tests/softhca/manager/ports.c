/* Cases of the connection manager: ports and who shares them, options, datagrams. */
#define _GNU_SOURCE 1
#ifdef HAVE_RDMACM
#include "tests/softhca/manager/cases.h"

static int bound_port(const char *host, int port, bool reuse, struct rdma_cm_id **id)
{
    struct sockaddr_in a = at(host, port);
    int on = reuse;

    *id = new_id(channel());
    NEED(rdma_set_option(*id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on) == 0);
    return rdma_bind_addr(*id, (struct sockaddr *)&a) ? errno : 0;
}

/* Each address has the ports for itself; who has all addresses excludes the others. Linux, cma_check_port. */
void ports(void)
{
    struct rdma_event_channel *c = channel();
    struct rdma_cm_id *one, *two, *three, *id;
    struct sockaddr_in6 any6 = {.sin6_family = AF_INET6};
    int port, on = 1;

    NEED(bound_port("127.0.0.1", 0, false, &one) == 0 && (port = ntohs(rdma_get_src_port(one))) != 0);
    NEED(bound_port("127.0.0.1", port, false, &two) == EADDRINUSE && rdma_destroy_id(two) == 0);
    NEED(bound_port("127.0.0.1", port, true, &two) == EADDRINUSE && rdma_destroy_id(two) == 0);
    NEED(bound_port("0.0.0.0", port, false, &two) == EADDRNOTAVAIL && rdma_destroy_id(two) == 0);
    NEED(bound_port("127.0.0.2", port, false, &two) == 0 && rdma_listen(one, 4) == 0 && rdma_listen(two, 4) == 0);
    id = routed(c, "127.0.0.2", port);
    ask(id);
    pass(two->channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    NEED(nothing(one->channel) && rdma_destroy_id(id) == 0);
    /* IPv6 excludes IPv4 unless it says that it does not want that. */
    three = new_id(channel());
    any6.sin6_port = htons((uint16_t)port);
    FAILS(rdma_bind_addr(three, (struct sockaddr *)&any6), EADDRNOTAVAIL);
    NEED(rdma_set_option(three, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof on) == 0);
    NEED(rdma_bind_addr(three, (struct sockaddr *)&any6) == 0 && rdma_listen(three, 4) == 0);
    NEED(rdma_destroy_id(one) == 0 && rdma_destroy_id(two) == 0);
    id = routed(c, "127.0.0.1", port);
    ask(id);
    pass(c, RDMA_CM_EVENT_REJECTED, NO_SERVICE); /* the one that is left has no IPv4 */
    NEED(rdma_destroy_id(three) == 0 && rdma_destroy_id(id) == 0);
    three = new_id(channel());
    NEED(rdma_bind_addr(three, (struct sockaddr *)&any6) == 0 && rdma_listen(three, 4) == 0);
    NEED(bound_port("127.0.0.1", port, false, &one) == EADDRNOTAVAIL);
    id = routed(c, "127.0.0.1", port);
    ask(id);
    pass(three->channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
}

/* RDMA_OPTION_ID_REUSEADDR: two may have an address and port, and one that listens has it alone. */
void reused(void)
{
    struct rdma_event_channel *c = channel();
    struct rdma_cm_id *one, *two, *three, *id;
    int port;

    NEED(bound_port("127.0.0.1", 0, true, &one) == 0 && (port = ntohs(rdma_get_src_port(one))) != 0);
    NEED(bound_port("127.0.0.1", port, true, &two) == 0);
    NEED(bound_port("0.0.0.0", port, true, &three) == 0 && rdma_destroy_id(three) == 0);
    NEED(bound_port("127.0.0.1", port, false, &three) == EADDRINUSE && rdma_destroy_id(three) == 0);
    FAILS(rdma_listen(one, 4), EADDRINUSE);
    NEED(rdma_destroy_id(two) == 0 && rdma_listen(one, 4) == 0);
    NEED(bound_port("127.0.0.1", port, true, &two) == EADDRINUSE);
    id = routed(c, "127.0.0.1", port);
    ask(id);
    pass(one->channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
}

void options(void)
{
    struct pair p = requested();
    struct rdma_conn_param param = {.qp_num = 4321};
    struct rdma_cm_id *udp = new_in(p.active, RDMA_PS_UDP);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
    uint8_t timeout = 19, huge = 32;
    int word = 1, mask;

    FAILS(rdma_set_option(p.from, RDMA_OPTION_ID, 4711, &word, sizeof word), ENOSYS);
    FAILS(rdma_set_option(p.from, 7, RDMA_OPTION_ID_TOS, &timeout, 1), ENOSYS);
    FAILS(rdma_set_option(p.from, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &word, sizeof word), EINVAL);
    FAILS(rdma_set_option(p.from, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &timeout, 1), EINVAL);
    FAILS(rdma_set_option(p.from, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &timeout, 1), EINVAL);
    FAILS(rdma_set_option(p.from, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &word, sizeof word), EINVAL);
    FAILS(rdma_set_option(p.from, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &huge, 1), EINVAL);
    FAILS(rdma_set_option(udp, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1), EINVAL);
    FAILS(rdma_set_option(p.listener, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &word, sizeof word), EINVAL);
    NEED(rdma_set_option(p.from, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &timeout, 1) == 0);
    NEED(rdma_set_option(p.from, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1) == 0);
    NEED(rdma_accept(p.to, &param) == 0);
    pass(p.active, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
    NEED(rdma_init_qp_attr(p.from, &attr, &mask) == 0 && (mask & IBV_QP_TIMEOUT) && attr.timeout == 19);
    attr.qp_state = IBV_QPS_RTS;
    NEED(rdma_init_qp_attr(p.to, &attr, &mask) == 0 && attr.timeout == 14);
    NEED(rdma_destroy_id(udp) == 0);
    end(&p);
}

/* SIDR: a request, an answer, and no more; nobody is told that the other end has gone. */
void datagrams(void)
{
    struct rdma_event_channel *c = channel(), *passive = channel();
    struct rdma_cm_id *l = listener_in(passive, "127.0.0.1", RDMA_PS_UDP), *id, *tcp;
    struct rdma_conn_param param = {.private_data = "yes", .private_data_len = 4, .qp_num = 4321};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
    int port = ntohs(rdma_get_src_port(l)), mask;
    struct rdma_cm_event *e;

    NEED(bound_port("127.0.0.1", port, false, &tcp) == 0); /* another space */
    id = routed_in(c, "127.0.0.1", port, RDMA_PS_UDP);
    NEED(rdma_init_qp_attr(id, &attr, &mask) == 0 && (mask & IBV_QP_QKEY) && attr.qkey == RDMA_UDP_QKEY);
    ask(id);
    e = next(passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    NEED(e->listen_id == l && strcmp(e->param.ud.private_data, "ask") == 0);
    NEED(rdma_accept(e->id, &param) == 0 && rdma_ack_cm_event(e) == 0 && rdma_destroy_id(l) == 0);
    e = next(c, RDMA_CM_EVENT_ESTABLISHED, 0);
    NEED(e->param.ud.qp_num == 4321 && e->param.ud.qkey == RDMA_UDP_QKEY && e->param.ud.ah_attr.port_num == 1);
    NEED(strcmp(e->param.ud.private_data, "yes") == 0 && rdma_ack_cm_event(e) == 0);
    NEED(rdma_destroy_id(id) == 0 && nothing(passive) && nothing(c));
    id = routed_in(c, "127.0.0.1", port, RDMA_PS_UDP);
    ask(id);
    pass(c, RDMA_CM_EVENT_UNREACHABLE, SIDR_UNSUPPORTED);
    NEED(rdma_destroy_id(id) == 0);

    l = listener_in(passive, "0.0.0.0", RDMA_PS_UDP);
    id = routed_in(c, "127.0.0.1", ntohs(rdma_get_src_port(l)), RDMA_PS_UDP);
    ask(id);
    e = next(passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    NEED(rdma_reject(e->id, "no", 3) == 0 && rdma_ack_cm_event(e) == 0);
    pass(c, RDMA_CM_EVENT_UNREACHABLE, SIDR_REJECTED);
    NEED(rdma_destroy_id(id) == 0 && rdma_destroy_id(l) == 0);
    l = listener_in(passive, "0.0.0.0", RDMA_PS_UDP);
    id = routed_in(c, "127.0.0.1", ntohs(rdma_get_src_port(l)), RDMA_PS_UDP);
    ask(id);
    e = next(passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    tcp = e->id;
    NEED(rdma_ack_cm_event(e) == 0 && rdma_destroy_id(tcp) == 0);
    pass(c, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
}
#else
typedef int nothing_to_build;
#endif
