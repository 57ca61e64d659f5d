/* Handshakes that stop in the middle: each step has a limit, after which the connection is given up and dialled again.
 * A peer is not given up for that: it may compute. */
#define _GNU_SOURCE 1
#include <poll.h>
#include <strata/sdk/btl_hints.h>
#include <strata/sdk/clock.h>
#include "bulk.h"
#include "raw_peer.h"

static void setup(void)
{
    memset(rig_card, 0, sizeof rig_card);
    rig_mends = false; /* a path that was up, and is lost, fails the peer */
    rig_open(0);
}

static void teardown(void)
{
    for (int i = 0; i < RANKS; i++)
        rig_close(i);
}

static struct tcp_conn *conn_in(int rank, enum tcp_state state)
{
    for (struct st_node *n = rig[rank].m->conns.next; n != &rig[rank].m->conns; n = n->next)
        if (ST_CONTAINER(n, struct tcp_conn, node)->state == state)
            return ST_CONTAINER(n, struct tcp_conn, node);
    return NULL;
}

/* The limit of module 0's only connection in that state is over. */
static void expire(enum tcp_state state)
{
    AWAIT(conn_in(0, state), rig_poll());
    ck_assert_uint_gt(conn_in(0, state)->deadline, st_now_ns());
    conn_in(0, state)->deadline = 1;
    rig[0].m->swept = 0;
}

/* A listener at another address of the same port. */
static int listen_beside(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(rig_card[1].port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    ck_assert_int_eq(inet_pton(AF_INET, "127.0.0.77", &at.sin_addr), 1);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(fd, 8), 0);
    rig_card[1].address[1] = rig_card[1].address[0];
    rig_card[1].address[0].ip[15] = 77;
    rig_card[1].n = 2;
    return fd;
}

/* The address that comes first takes the call and is silent for ever. The other one is called again when its handshake
 * breaks. */
START_TEST(silent_address)
{
    int listener = raw_listen(), beside = listen_beside(), silent, fd;
    struct st_btl_endpoint *ep = rig_connect(0, 1);

    silent = raw_accept(beside, ep);
    fd = raw_accept(listener, ep);
    for (int i = 0; i < 3; i++) {
        close(fd);
        fd = raw_accept(listener, ep);
    }
    ck_assert_int_lt(accept(beside, NULL, NULL), 0); /* it was called once */
    ck_assert(!raw_is_closed(silent));
    raw_meet(fd);
    AWAIT(rig_send(ep, 1, NULL, 0) == STRATA_OK, rig_poll());
    raw_await_close(silent);
    ck_assert_uint_eq(rig[0].lost, 0);
    ck_assert_uint_eq(rig[0].m->n_conns, 1);
    close(fd);
    close(beside);
    close(listener);
}
END_TEST

/* The address that comes first drops all calls. The other one is called again when its handshake breaks, and is enough
 * for the peer; when it refuses, the peer has failed in its time. */
START_TEST(dark_address)
{
    int listener = raw_listen(), beside = listen_beside(), fds[16], n, fd;
    struct st_btl_endpoint *ep;

    ck_assert_int_eq(listen(beside, 0), 0); /* from now on */
    n = fill_queue(rig_card[1].address[0].ip, fds, 16);
    ep = rig_connect(0, 1);
    for (int i = 0; i < 3; i++) {
        AWAIT((fd = accept(listener, NULL, NULL)) >= 0, rig_poll());
        ck_assert_ptr_nonnull(conn_in(0, TCP_DIALLED));
        close(fd);
    }
    AWAIT((fd = accept(listener, NULL, NULL)) >= 0, rig_poll());
    if (_i == 0) {
        raw_meet(fd);
        AWAIT(rig_send(ep, 1, NULL, 0) == STRATA_OK, rig_poll());
        ck_assert_uint_eq(rig[0].m->n_conns, 1);
        close(fd);
        close(listener);
    } else {
        close(listener);
        close(fd);
        AWAIT(strstr(dial_of(ep)->why, "refused"), rig_poll());
        ck_assert_uint_eq(rig[0].lost, 0);
        dial_of(ep)->n_hung_up = 0;
        dial_of(ep)->began = 1;
        AWAIT(rig[0].lost == 1, rig_poll());
        ck_assert_ptr_nonnull(strstr(rig[0].why, "refused"));
    }
    for (int i = 0; i < n; i++)
        close(fds[i]);
    close(beside);
}
END_TEST

/* The module closes when the chosen connection has been reset and another address is still dialled. */
START_TEST(reset_at_the_end)
{
    int listener = raw_listen(), beside = listen_beside(), fds[16], n, fd;
    struct linger now = {.l_onoff = 1};
    struct st_btl_endpoint *ep;
    struct tcp_response response;
    struct tcp_said said;

    ck_assert_int_eq(listen(listener, 0), 0); /* from now on */
    n = fill_queue(rig_card[1].address[1].ip, fds, 16);
    ep = rig_connect(0, 1);
    fd = raw_accept(beside, ep);
    AWAIT(conn_in(0, TCP_SAID_HELLO) && conn_in(0, TCP_DIALLED), rig_poll());
    raw_challenge(fd, &said);
    ck_assert(raw_read(fd, &response, sizeof response));
    ck_assert(conn_in(0, TCP_CHOSEN) && conn_in(0, TCP_DIALLED));
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    close(fd);
    rig_close(0);
    for (int i = 0; i < n; i++)
        close(fds[i]);
    close(beside);
    close(listener);
}
END_TEST

/* A call within the machine waits for room in the peer's queue, however long that takes. */
START_TEST(queue_is_full)
{
    int listener = raw_listen(), fds[16], fd, n;
    struct st_btl_endpoint *ep;

    ck_assert_int_eq(listen(listener, 0), 0); /* from now on */
    n = fill_queue(rig_card[1].address[0].ip, fds, 16);
    ep = rig_connect(0, 1);
    for (int i = 0; i < 3; i++) {
        dial_of(ep)->began = 1;
        expire(TCP_DIALLED);
        dial_at_once(ep);
        for (int k = 0; k < 10; k++)
            rig_poll();
        ck_assert_msg(rig[0].lost == 0, "%s", rig[0].why);
        dial_at_once(ep);
    }
    for (int i = 0; i < n; i++)
        close(fds[i]);
    while ((fd = accept(listener, NULL, NULL)) >= 0)
        close(fd);
    expire(TCP_DIALLED);
    fd = raw_accept(listener, ep);
    raw_meet(fd);
    AWAIT(rig_send(ep, 1, NULL, 0) == STRATA_OK, rig_poll());
    close(fd);
    close(listener);
}
END_TEST

/* Called again, and given more time. */
START_TEST(hello_is_not_answered)
{
    uint64_t limit = (uint64_t)rig[0].par.connect_timeout_ms * TCP_MS;
    int listener = raw_listen(), fd;
    struct st_btl_endpoint *ep = rig_connect(0, 1);

    for (unsigned i = 0; i < 2 * TCP_PATIENCE; i++) {
        fd = raw_accept(listener, ep);
        dial_of(ep)->began = 1; /* long ago */
        AWAIT(conn_in(0, TCP_SAID_HELLO), rig_poll());
        ck_assert_uint_gt(conn_in(0, TCP_SAID_HELLO)->deadline,
                          st_now_ns() + (limit << (i < TCP_PATIENCE ? i : TCP_PATIENCE)) / 2);
        expire(TCP_SAID_HELLO);
        raw_await_close(fd);
    }
    fd = raw_accept(listener, ep);
    raw_meet(fd);
    AWAIT(rig_send(ep, 1, NULL, 0) == STRATA_OK, rig_poll());
    ck_assert_uint_eq(rig[0].lost, 0);
    ck_assert_uint_eq(((struct tcp_peer *)ep)->silent, 0);
    close(fd);
    close(listener);
}
END_TEST

/* The pause before the next call is not the peer's, however short the limit. */
START_TEST(pauses_do_not_count)
{
    int listener = raw_listen(), fd;
    struct st_btl_endpoint *ep;

    rig[0].par.connect_timeout_ms = 20;
    ep = rig_connect(0, 1);
    for (int i = 0; i < 4; i++) {
        AWAIT((fd = accept(listener, NULL, NULL)) >= 0 || rig[0].lost, rig_poll());
        ck_assert_msg(rig[0].lost == 0, "%s", rig[0].why);
        raw_await_close(fd);
    }
    ck_assert_int_eq(rig_send(ep, 1, NULL, 0), STRATA_ERR_AGAIN);
    close(listener);
}
END_TEST

/* The lower rank has chosen, and the higher one does not say READY. */
START_TEST(choice_is_not_answered)
{
    const struct tcp_peer *p;
    int fd = raw_dial(0);

    ck_assert(raw_prove(fd, 3, 0, rig_card[0].key));
    p = st_rank_table_get(&rig[0].m->peers, 3);
    ck_assert_int_eq(p->conn->state, TCP_CHOSEN);
    expire(TCP_CHOSEN);
    raw_await_close(fd);
    ck_assert_ptr_null(p->conn);
    fd = raw_join(3, 0);
    AWAIT(p->conn && p->conn->state == TCP_UP, rig_poll());
    ck_assert_uint_eq(p->epoch, 1);
    ck_assert_uint_eq(rig[0].lost, 0);
    close(fd);
}
END_TEST

/* The kernel has what the other end has said, and that it has closed the connection. */
static void await_end(const struct tcp_conn *c)
{
    struct pollfd p = {.events = POLLRDHUP};

    ck_assert_ptr_nonnull(c);
    p.fd = c->fd;
    AWAIT(poll(&p, 1, 0) == 1 && p.revents & POLLRDHUP, (void)0);
}

/* A connection that the other end has given up does not come up at the end that is late: whether this end has dialled
 * and is chosen, was dialled and is chosen, or was dialled and would choose. */
START_TEST(given_up)
{
    struct tcp_head verdict = {TCP_MAGIC, TCP_VERDICT, TCP_ACCEPT};
    int to = _i < 2 ? 2 : 0, listener = raw_listen(), fd;
    struct st_btl_endpoint *ep = NULL;
    struct tcp_response response;
    struct tcp_said said;

    rig_open(2);
    if (_i == 0) {
        ep = rig_connect(2, 1);
        fd = raw_accept(listener, ep);
        raw_challenge(fd, &said);
        ck_assert(raw_read(fd, &response, sizeof response));
        raw_write(fd, &verdict, sizeof verdict);
    } else {
        fd = raw_dial(to);
        raw_hello(fd, 1, to, &said);
        ck_assert(raw_respond(fd, &said, _i == 1 ? TCP_ACCEPT : TCP_NONE, rig_card[to].key));
    }
    close(fd);
    await_end(conn_in(to, _i == 0 ? TCP_ANSWERED : TCP_CHALLENGED));
    AWAIT(rig[to].m->n_conns == 0 || conn_in(to, TCP_SAID_HELLO), rig_poll());
    ck_assert_uint_eq(rig[to].lost, 0);
    ck_assert_uint_eq(((const struct tcp_peer *)st_rank_table_get(&rig[to].m->peers, 1))->epoch, 0);
    if (_i == 0) {
        fd = raw_accept(listener, ep);
        close(fd);
    }
    close(listener);
}
END_TEST

/* The second connection of a pair is dialled again as well, and the first one stays. */
START_TEST(second_is_not_answered)
{
    strata_data_t data = {.kind = STRATA_CONTIGUOUS, .length = 9, .u.buffer = (char[]){"123456789"}};
    struct st_payload part = {&data, 0, 9};
    int listener = raw_listen(), first, fd;
    struct st_btl_endpoint *ep = rig_connect(0, 1);
    struct tcp_response response;
    struct tcp_said said;

    first = raw_accept(listener, ep);
    raw_meet(first);
    AWAIT(rig_send(ep, 1, NULL, 0) == STRATA_OK, rig_poll());
    ck_assert_int_eq(tcp_hints.send_bulk(ep, ST_AM_TEST, NULL, 0, &part), STRATA_ERR_AGAIN);
    fd = raw_accept(listener, ep);
    expire(TCP_SAID_HELLO);
    raw_await_close(fd);
    fd = raw_accept(listener, ep);
    raw_challenge(fd, &said);
    ck_assert(raw_read(fd, &response, sizeof response));
    expire(TCP_CHOSEN);
    raw_await_close(fd);
    fd = raw_accept(listener, ep);
    raw_meet(fd);
    AWAIT(tcp_hints.send_bulk(ep, ST_AM_TEST, NULL, 0, &part) == STRATA_OK, rig_poll());
    ck_assert_uint_eq(rig[0].m->count.bulk, 1);
    ck_assert_uint_eq(rig[0].m->n_conns, 2);
    ck_assert_uint_eq(rig[0].lost, 0);
    ck_assert(!raw_is_closed(first));
    close(first);
    close(fd);
    close(listener);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tcp handshakes that stop");
    TCase *tc = tcase_create("patience");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, silent_address);
    tcase_add_loop_test(tc, dark_address, 0, 2);
    tcase_add_test(tc, reset_at_the_end);
    tcase_add_test(tc, queue_is_full);
    tcase_add_test(tc, hello_is_not_answered);
    tcase_add_test(tc, pauses_do_not_count);
    tcase_add_test(tc, choice_is_not_answered);
    tcase_add_loop_test(tc, given_up, 0, 3);
    tcase_add_test(tc, second_is_not_answered);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
