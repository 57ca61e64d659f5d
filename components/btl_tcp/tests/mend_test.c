/* Connections that break and are made again. */
/* one thread */
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include "raw_peer.h"
#include "support/random.h"

static void setup(void)
{
    memset(rig_card, 0, sizeof rig_card);
    rig_mends = true;
    rig_open(0);
    rig_open(1);
}

static void teardown(void)
{
    for (int i = 0; i < RANKS; i++)
        rig_close(i);
}

static struct tcp_peer *peer_of(int rank, int peer)
{
    return st_rank_table_get(&rig[rank].m->peers, (uint32_t)peer);
}

static bool is_up(int rank, int peer)
{
    struct tcp_peer *p = peer_of(rank, peer);

    return p && p->conn && p->conn->state == TCP_UP;
}

static void link_both(void)
{
    AWAIT(rig_send(rig_connect(0, 1), 1, NULL, 0) == STRATA_OK, rig_poll());
    AWAIT(rig[1].arrived == 1 && is_up(0, 1) && is_up(1, 0), rig_poll());
}

/* As a device between the two does it: RST. */
static void reset(int rank, int peer)
{
    struct sockaddr none = {.sa_family = AF_UNSPEC};

    ck_assert_int_eq(connect(peer_of(rank, peer)->conn->fd, &none, sizeof none), 0);
}

static void carries(int from, int to)
{
    struct st_btl_endpoint *ep = rig_connect(from, to);
    unsigned before = rig[to].arrived;

    AWAIT(rig_send(ep, 77, "abc", 3) == STRATA_OK, rig_poll());
    AWAIT(rig[to].arrived == before + 1, rig_poll());
    ck_assert_uint_eq(rig[to].last[from], 77);
}

/* The endpoint is the same, refuses sends until the next connect, and carries again, in both directions. */
START_TEST(reset_by_the_network)
{
    int first = _i & 1, again = _i >> 1;
    struct st_btl_endpoint *ep;

    link_both();
    ep = rig_connect(first, 1 - first);
    for (uint32_t round = 1; round <= 5; round++) {
        reset(first, 1 - first);
        AWAIT(rig[0].lost == round && rig[1].lost == round, rig_poll());
        ck_assert_int_eq(rig_send(ep, 1, NULL, 0), STRATA_ERR_PEER);
        ck_assert_ptr_eq(rig_connect(first, 1 - first), ep);
        if (again)
            (void)rig_connect(1 - first, first); /* both dial */
        carries(first, 1 - first);
        carries(1 - first, first);
        ck_assert_uint_eq(peer_of(0, 1)->epoch, round);
        ck_assert_uint_eq(peer_of(1, 0)->epoch, round);
        ck_assert_uint_eq(rig[0].m->n_conns, 1);
        ck_assert_uint_eq(rig[1].m->n_conns, 1);
    }
    ck_assert_uint_eq(rig[0].m->count.broken, 5);
}
END_TEST

/* Messages that came before a reset are delivered, also where a send notices the reset first, or the peer's next
 * connection is there before. */
START_TEST(arrived_before_the_reset)
{
    struct st_btl_endpoint *ep;

    link_both();
    ep = rig_connect(0, 1);
    ck_assert_ptr_eq(rig_connect(1, 0), &peer_of(1, 0)->ep);
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_int_eq(rig_send(ep, 10 + i, "abc", 3), STRATA_OK);
    reset(0, 1);
    if (_i == 0) {
        AWAIT(rig_send(&peer_of(1, 0)->ep, 1, NULL, 0) == STRATA_ERR_PEER, (void)0);
        (void)rig_connect(1, 0);
    } else {
        AWAIT(rig[0].lost == 1, rig[0].m->btl.ops->progress(&rig[0].m->btl));
        (void)rig_connect(0, 1);
        for (int i = 0; i < 100; i++) /* it dials, while rank 1 does not look */
            (void)rig[0].m->btl.ops->progress(&rig[0].m->btl);
    }
    AWAIT(rig[1].lost == 1, rig_poll());
    ck_assert_uint_eq(rig[1].arrived, 1 + 3);
    ck_assert_uint_eq(rig[1].last[0], 12);
}
END_TEST

/* Only one end knows that the connection is over. The other one is told by the new connection, and tells its layer
 * above, whose messages may have been lost. */
START_TEST(one_end_knows)
{
    int knows = _i, other = 1 - _i, gone[2], kept;
    struct tcp_conn *c;

    link_both();
    c = peer_of(knows, other)->conn;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, gone), 0);
    kept = dup(c->fd); /* so the other end hears nothing */
    ck_assert_int_ge(kept, 0);
    ck_assert_int_eq(epoll_ctl(rig[knows].m->events, EPOLL_CTL_DEL, c->fd, NULL), 0);
    ck_assert_int_ge(dup2(gone[0], c->fd), 0);
    tcp_conn_lost(rig[knows].m, c, "test");
    ck_assert_uint_eq(rig[knows].lost, 1);
    for (int i = 0; i < 100; i++)
        (void)rig[other].m->btl.ops->progress(&rig[other].m->btl);
    ck_assert_uint_eq(rig[other].lost, 0);
    ck_assert(is_up(other, knows));
    carries(knows, other);
    ck_assert_uint_eq(rig[other].lost, 1);
    carries(other, knows);
    ck_assert_uint_eq(rig[0].m->n_conns, 1);
    ck_assert_uint_eq(rig[1].m->n_conns, 1);
    close(kept);
    close(gone[0]);
    close(gone[1]);
}
END_TEST

/* A peer has called, and its connection was found broken before this end's first connect: that is not refused, as the
 * layer above would do without the path for ever. */
START_TEST(broken_before_the_first_connect)
{
    int listener = raw_listen_as(3), fd = raw_join(3, 0);
    struct st_btl_endpoint *ep = NULL;

    memcpy(rig_card[1].key, rig_card[3].key, TCP_KEY); /* that raw peers prove themselves by */
    AWAIT(is_up(0, 3), rig_poll());
    tcp_send_broken(rig[0].m, peer_of(0, 3)->conn, "by an answer to a put");
    ck_assert_int_eq(rig[0].m->btl.ops->connect(&rig[0].m->btl, 3, &ep), STRATA_OK);
    ck_assert_int_eq(rig_send(ep, 1, NULL, 0), STRATA_ERR_AGAIN);
    ck_assert_int_eq(rig[0].m->btl.ops->connect(&rig[0].m->btl, 3, &ep), STRATA_ERR_AGAIN);
    AWAIT(!peer_of(0, 3)->conn, rig_poll());
    ck_assert_int_eq(rig_send(ep, 1, NULL, 0), STRATA_ERR_PEER);
    ck_assert_ptr_eq(rig_connect(0, 3), ep);
    close(fd);
    fd = raw_accept(listener, ep);
    raw_meet(fd);
    AWAIT(rig_send(ep, 1, NULL, 0) == STRATA_OK, rig_poll());
    close(fd);
    close(listener);
}
END_TEST

/* Resets at any time, also in the handshake, by either end; afterwards all carries. */
START_TEST(resets_at_random)
{
    struct rnd rnd = {(uint64_t)_i + 3};

    link_both();
    for (int i = 0; i < 300; i++) {
        int rank = (int)rnd_below(&rnd, 2);
        uint32_t what = rnd_below(&rnd, 20);
        struct tcp_peer *p = peer_of(rank, 1 - rank);
        if (what == 0 && p->conn && !p->conn->broken)
            reset(rank, 1 - rank);
        else if (what == 1)
            (void)rig_send(&p->ep, 5, "x", 1);
        else if (what < 5)
            (void)rig_connect(rank, 1 - rank);
        else
            (void)rig[rank].m->btl.ops->progress(&rig[rank].m->btl);
    }
    for (int i = 0; i < 2; i++) /* a last reset may be noticed after the first message is taken */
        AWAIT(is_up(0, 1) && is_up(1, 0) && peer_of(0, 1)->epoch == peer_of(1, 0)->epoch, (void)rig_connect(0, 1);
              (void)rig_connect(1, 0); rig_poll());
    carries(0, 1);
    carries(1, 0);
    ck_assert(!peer_of(0, 1)->gone && !peer_of(1, 0)->gone);
}
END_TEST

/* The process is dead: all its addresses refuse, and it has failed for good. */
START_TEST(nobody_comes_back)
{
    struct st_btl_endpoint *ep = NULL;
    int fd = raw_join(3, 0);

    rig_card[3] = rig_card[1];
    rig_close(1);
    close(fd);
    AWAIT(rig[0].lost == 1, rig_poll());
    ck_assert_int_eq(rig[0].m->btl.ops->connect(&rig[0].m->btl, 3, &ep), STRATA_OK);
    AWAIT(rig[0].lost == 2, rig_poll());
    ck_assert_ptr_nonnull(strstr(rig[0].why, "refused"));
    ck_assert_int_eq(rig[0].m->btl.ops->connect(&rig[0].m->btl, 3, &ep), STRATA_ERR_PEER);
}
END_TEST

/* A peer that said goodbye is not connected again. */
START_TEST(goodbye_stays)
{
    struct st_btl_endpoint *ep;

    link_both();
    rig_close(1);
    AWAIT(rig[0].m->n_conns == 0, rig_poll());
    ck_assert_int_eq(rig[0].m->btl.ops->connect(&rig[0].m->btl, 1, &ep), STRATA_ERR_PEER);
}
END_TEST

/* Without the parameter a broken connection is the end, for both. */
START_TEST(not_wanted)
{
    struct st_btl_endpoint *ep;

    rig_close(0);
    rig_close(1);
    rig_mends = false;
    rig_open(0);
    rig_open(1);
    link_both();
    reset(0, 1);
    AWAIT(rig[0].lost == 1 && rig[1].lost == 1, rig_poll());
    ck_assert_int_eq(rig[0].m->btl.ops->connect(&rig[0].m->btl, 1, &ep), STRATA_ERR_PEER);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tcp connections made again");
    TCase *tc = tcase_create("mend");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, reset_by_the_network, 0, 4);
    tcase_add_loop_test(tc, arrived_before_the_reset, 0, 2);
    tcase_add_loop_test(tc, one_end_knows, 0, 2);
    tcase_add_test(tc, broken_before_the_first_connect);
    tcase_add_loop_test(tc, resets_at_random, 0, 40);
    tcase_add_test(tc, nobody_comes_back);
    tcase_add_test(tc, goodbye_stays);
    tcase_add_test(tc, not_wanted);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
