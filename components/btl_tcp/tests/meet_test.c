/* Connections between modules, and callers that do not belong to the job. */
/* one thread */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include "dial.h"
#include "raw_socket.h"
#include "support/form.h"
#include "support/random.h"

static void setup(void)
{
    memset(rig_card, 0, sizeof rig_card);
    rig_open(0);
    rig_open(1);
}

static void teardown(void)
{
    for (int i = 0; i < RANKS; i++)
        rig_close(i);
}

static struct tcp_conn *conn_of(int rank, int peer)
{
    struct tcp_peer *p = st_rank_table_get(&rig[rank].m->peers, (uint32_t)peer);

    return p ? p->conn : NULL;
}

static bool is_up(int rank, int peer)
{
    struct tcp_conn *c = conn_of(rank, peer);

    return c && c->state == TCP_UP;
}

/* ---- modules ---- */

/* The first sends are refused until the connection is up; nothing is lost or doubled, in either direction. */
START_TEST(one_dials)
{
    int from = _i, to = 1 - _i;
    struct st_btl_endpoint *ep = rig_connect(from, to), *back;
    unsigned sent = 0;

    ck_assert_int_eq(rig_send(ep, 1, NULL, 0), STRATA_ERR_AGAIN);
    AWAIT(sent == 100, sent += rig_send(ep, sent + 1, "abc", 3) == STRATA_OK; rig_poll());
    AWAIT(rig[to].arrived == 100, rig_poll());
    ck_assert_uint_eq(rig[to].last[from], 100);
    ck_assert_uint_eq(rig[to].bytes, 300);
    back = rig_connect(to, from);
    AWAIT(rig_send(back, 7, NULL, 0) == STRATA_OK, rig_poll());
    AWAIT(rig[from].arrived == 1, rig_poll());
    ck_assert_uint_eq(rig[0].m->n_conns, 1);
    ck_assert_uint_eq(rig[1].m->n_conns, 1);
    ck_assert_uint_eq(rig[0].lost + rig[1].lost, 0);
}
END_TEST

/* In all orders of progress one connection results, over which everything goes. */
START_TEST(both_dial)
{
    struct rnd rnd = {(uint64_t)_i};
    struct st_btl_endpoint *ep[2] = {rig_connect(0, 1), rig_connect(1, 0)};
    uint32_t sent[2] = {0, 0};

    while (sent[0] < 20 || sent[1] < 20 || rig[0].arrived < 20 || rig[1].arrived < 20) {
        uint32_t i = rnd_below(&rnd, 2);
        if (sent[i] < 20 && rig_send(ep[i], sent[i] + 1, NULL, 0) == STRATA_OK)
            sent[i]++;
        i = rnd_below(&rnd, 2);
        (void)rig[i].m->btl.ops->progress(&rig[i].m->btl);
    }
    for (int i = 0; i < 100; i++)
        rig_poll();
    ck_assert_uint_eq(rig[0].arrived, 20);
    ck_assert_uint_eq(rig[1].arrived, 20);
    ck_assert_uint_eq(rig[0].m->n_conns, 1);
    ck_assert_uint_eq(rig[1].m->n_conns, 1);
    ck_assert_uint_eq(rig[0].lost + rig[1].lost, 0);
}
END_TEST

/* Without the pause between two rounds. */
static void dial_now(struct st_btl_endpoint *ep)
{
    struct tcp_dial *d = ((struct tcp_peer *)ep)->dial;

    if (d)
        d->next_at = tcp_of(ep->btl)->dial_at = 0;
}

/* The address that comes first leads to somebody else. */
START_TEST(stranger_at_the_first_address)
{
    struct st_btl_endpoint *ep;

    rig_open(2); /* another job's, at the same port of another address */
    rig_card[1].n = 2;
    rig_card[1].address[1] = rig_card[1].address[0];
    rig_card[1].address[0].ip[15] = 77; /* 127.0.0.77: nobody listens there */
    ep = rig_connect(0, 1);
    AWAIT(rig_send(ep, 1, NULL, 0) == STRATA_OK, rig_poll());
    AWAIT(rig[1].arrived == 1, rig_poll());
    ck_assert_uint_ge(rig[0].m->count.dials, 2);
    rig_card[3] = rig_card[2];
    memset(rig_card[3].key, 1, TCP_KEY);
    rig[0].par.connect_timeout_ms = 1;
    rig_card[3].magic = TCP_MAGIC;
    ep = rig_connect(0, 3); /* module 2 is there, with another key, and for another rank */
    AWAIT(rig[0].lost == 1, dial_now(ep); rig_poll());
    ck_assert_int_eq(rig_send(ep, 1, NULL, 0), STRATA_ERR_PEER);
    ck_assert_uint_ge(rig[2].m->count.refused, TCP_HANG_UPS); /* which may be the peer's: its age alone says nothing */
}
END_TEST

START_TEST(nobody_listens)
{
    struct st_btl_endpoint *ep;

    rig_open(2);
    rig_close(2);
    ep = rig_connect(0, 2);
    AWAIT(rig_send(ep, 1, NULL, 0) == STRATA_ERR_PEER, rig_poll());
    ck_assert_uint_eq(rig[0].lost, 1);
    ck_assert_ptr_nonnull(strstr(rig[0].why, "refused"));
    ck_assert_int_eq(rig[0].m->btl.ops->connect(&rig[0].m->btl, 3, &ep), STRATA_ERR_UNREACHABLE); /* no card */
}
END_TEST

/* The time in which the dialling process does not look is not the peer's: the limit of 60 s is not over. */
START_TEST(busy_dialler)
{
    struct st_btl_endpoint *ep;
    struct tcp_dial *d;
    uint32_t rounds = 0;

    rig_open(2);
    rig_close(2);
    rig_poll();
    ep = rig_connect(0, 2);
    d = ((struct tcp_peer *)ep)->dial;
    ck_assert_ptr_nonnull(d);
    d->began -= 100000 * TCP_MS;
    rig[0].m->looked -= 100000 * TCP_MS;
    AWAIT(rig[0].lost == 1, rounds = d->rounds; rig_poll(); d = ((struct tcp_peer *)ep)->dial);
    ck_assert_uint_ge(rounds, TCP_REFUSALS - 1);
}
END_TEST

static void link_both(void)
{
    struct st_btl_endpoint *ep = rig_connect(0, 1);

    AWAIT(rig_send(ep, 1, NULL, 0) == STRATA_OK, rig_poll());
    AWAIT(rig[1].arrived == 1, rig_poll());
    AWAIT(is_up(0, 1) && is_up(1, 0), rig_poll());
}

/* What was sent before the end arrives, and the end is no failure; who sends after it is told. */
START_TEST(goodbye)
{
    struct st_btl_endpoint *back;

    link_both();
    AWAIT(rig_send(rig_connect(1, 0), 9, "x", 1) == STRATA_OK, rig_poll());
    rig_close(1);
    AWAIT(rig[0].m->n_conns == 0, rig_poll());
    ck_assert_uint_eq(rig[0].arrived, 1);
    ck_assert_uint_eq(rig[0].lost, 0);
    back = &((struct tcp_peer *)st_rank_table_get(&rig[0].m->peers, 1))->ep;
    ck_assert_int_eq(rig_send(back, 1, NULL, 0), STRATA_ERR_PEER);
    ck_assert_uint_eq(rig[0].lost, 1);
    ck_assert_ptr_nonnull(strstr(rig[0].why, "left"));
}
END_TEST

/* A reset, and an end without a goodbye. */
START_TEST(broken)
{
    struct linger now = {1, 0};
    int fd = raw_join(1, 0);

    rig_close(1);
    AWAIT(is_up(0, 1), rig_poll());
    if (_i)
        ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    close(fd);
    AWAIT(rig[0].lost == 1, rig_poll());
    ck_assert_str_ne(rig[0].why, "");
    ck_assert_uint_eq(rig[0].m->n_conns, 0);
}
END_TEST

/* A receiver that reads nothing: the sender is refused, with a bounded amount kept, and all that it sent arrives. */
START_TEST(back_pressure)
{
    static char data[4096];
    struct st_btl_endpoint *ep;
    unsigned sent = 0;

    link_both();
    ep = rig_connect(0, 1);
    for (int quiet = 0; quiet < 1000; quiet++) {
        if (rig_send(ep, sent + 2, data, sizeof data) == STRATA_OK)
            sent++, quiet = 0;
        (void)rig[0].m->btl.ops->progress(&rig[0].m->btl);
    }
    ck_assert_uint_gt(rig[0].m->count.blocked, 0);
    ck_assert_uint_le(rig[0].m->n_out, 1);
    AWAIT(rig[1].arrived == sent + 1, rig_poll());
    ck_assert_uint_eq(rig[1].last[0], sent + 1);
    ck_assert_uint_eq(rig[1].bytes, (size_t)sent * sizeof data);
    AWAIT(rig_send(ep, 1, NULL, 0) == STRATA_OK, rig_poll());
    ck_assert_uint_eq(rig[0].m->n_out, 0);
}
END_TEST

/* A connection from which something came is read without asking epoll each time, until it has been quiet for long. */
START_TEST(hot_and_cold)
{
    struct tcp_module *m = rig[0].m;
    struct st_btl_endpoint *back;
    uint32_t turn;

    link_both();
    back = rig_connect(1, 0);
    for (unsigned round = 1; round <= 2; round++) {
        ck_assert_uint_eq(m->n_hot, 0);
        AWAIT(rig_send(back, round, NULL, 0) == STRATA_OK, rig_poll());
        AWAIT(rig[0].arrived == round, rig_poll());
        ck_assert(conn_of(0, 1)->hot);
        turn = m->turn;
        for (unsigned i = 0; i < 100; i++)
            (void)m->btl.ops->progress(&m->btl);
        ck_assert_uint_eq(m->turn, turn + 100); /* of these every 32nd asks */
        for (unsigned i = 0; i < 1000; i++)
            (void)m->btl.ops->progress(&m->btl);
        ck_assert(!conn_of(0, 1)->hot);
    }
}
END_TEST

/* Probes of many ranks of one machine would fill the kernel's queues, and tell nothing. */
START_TEST(nobody_here_is_probed)
{
    int on = 7;
    socklen_t n = sizeof on;

    rig_local = _i == 0;
    link_both();
    for (int rank = 0; rank < 2; rank++) {
        ck_assert_int_eq(getsockopt(conn_of(rank, 1 - rank)->fd, SOL_SOCKET, SO_KEEPALIVE, &on, &n), 0);
        ck_assert_int_eq(on != 0, _i);
    }
    rig_local = true;
}
END_TEST

/* Dialling without a descriptor goes on until there is one. */
START_TEST(descriptors_exhausted)
{
    struct rlimit limit, old;
    struct st_btl_endpoint *ep;
    int next = dup(0);

    close(next);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    limit = (struct rlimit){(rlim_t)next, old.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ep = rig_connect(0, 1);
    for (int i = 0; i < 100; i++)
        rig_poll();
    ck_assert_int_eq(rig_send(ep, 1, NULL, 0), STRATA_ERR_AGAIN);
    ck_assert_ptr_nonnull(strstr(((struct tcp_peer *)ep)->dial->why, "descriptor"));
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    AWAIT(rig_send(ep, 1, NULL, 0) == STRATA_OK, rig_poll());
    AWAIT(rig[1].arrived == 1, rig_poll());
}
END_TEST

/* A caller that finds no descriptor waits in the kernel's queue; the listener does not ask in each round. */
START_TEST(descriptors_exhausted_accepting)
{
    struct rlimit limit, old;
    int fd = raw_dial(0);

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    limit = (struct rlimit){(rlim_t)fd + 1, old.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    AWAIT(rig[0].m->accept_at != 0, rig_poll());
    for (int i = 0; i < 100; i++)
        rig_poll();
    ck_assert_uint_eq(rig[0].m->n_strangers, 0);
    ck_assert(rig[0].m->told_exhausted);
    ck_assert(!raw_is_closed(fd));
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    AWAIT(rig[0].m->n_strangers == 1, rig_poll());
    ck_assert_uint_eq(rig[0].m->accept_at, 0);
    close(fd);
    AWAIT(rig[0].m->n_strangers == 0, rig_poll());
}
END_TEST

/* ---- callers ---- */

START_TEST(wrong_key)
{
    uint8_t key[TCP_KEY] = {1};
    int fd = raw_dial(0);

    ck_assert(!raw_prove(fd, 1, 0, key));
    raw_await_close(fd);
    ck_assert_uint_eq(rig[0].m->n_peers, 0);
    ck_assert_uint_eq(rig[0].m->count.refused, 1);
    ck_assert_uint_eq(rig[0].lost, 0);
}
END_TEST

/* All that a member has ever sent, sent again, proves nothing. */
START_TEST(replay)
{
    struct tcp_said said;
    struct tcp_challenge challenge;
    struct tcp_response r = {.head = {TCP_MAGIC, TCP_RESPONSE, TCP_NONE}};
    int fd = raw_dial(0);

    raw_hello(fd, 1, 0, &said);
    ck_assert(raw_read(fd, &challenge, sizeof challenge));
    said.listener_max_send = challenge.max_send;
    memcpy(said.listener, challenge.nonce, TCP_NONCE);
    tcp_prove(rig_card[0].key, true, &said, r.proof);
    close(fd);
    fd = raw_dial(0);
    raw_hello(fd, 1, 0, &said);
    ck_assert(raw_read(fd, &challenge, sizeof challenge));
    raw_write(fd, &r, sizeof r);
    raw_await_close(fd);
    /* The listener's own proof is none of a dialler's either. */
    fd = raw_dial(0);
    raw_hello(fd, 1, 0, &said);
    ck_assert(raw_read(fd, &challenge, sizeof challenge));
    memcpy(r.proof, challenge.proof, TCP_PROOF);
    raw_write(fd, &r, sizeof r);
    raw_await_close(fd);
    ck_assert_uint_eq(rig[0].m->n_peers, 0);
}
END_TEST

START_TEST(wrong_hellos)
{
    struct tcp_hello hello = {.head = {TCP_MAGIC, TCP_HELLO, 0}, .from = 1, .to = 0, .max_send = 4096};

    for (int what = 0; what < 6; what++) {
        struct tcp_hello h = hello;
        int fd = raw_dial(0);
        h.head.magic ^= what == 0;
        h.head.kind = what == 1 ? TCP_READY : TCP_HELLO;
        h.from = what == 2 ? RANKS : what == 3 ? 0xffffffff : what == 4 ? 0 : 1;
        h.to += what == 5;
        raw_write(fd, &h, what < 2 ? 8 : sizeof h); /* told from the head alone */
        raw_await_close(fd);
    }
    ck_assert_uint_eq(rig[0].m->count.refused, 6);
    ck_assert_uint_eq(rig[0].m->n_strangers, 0);
}
END_TEST

/* Callers that say nothing, or a part: they are sent away in time, are bounded in number, and others get through. */
START_TEST(silent_callers)
{
    enum { CALLERS = 30 };
    struct tcp_head head = {TCP_MAGIC, TCP_HELLO, 0};
    struct st_btl_endpoint *ep;
    int fd[CALLERS];

    rig[0].par.handshake_timeout_ms = 1;
    for (int i = 0; i < CALLERS; i++) {
        fd[i] = raw_dial(0);
        if (i % 2)
            raw_write(fd[i], &head, sizeof head - (size_t)i % 7);
    }
    ep = rig_connect(1, 0);
    AWAIT(rig_send(ep, 1, NULL, 0) == STRATA_OK, rig_poll(); ck_assert_uint_le(rig[0].m->n_strangers, 8));
    AWAIT(rig[0].arrived == 1, rig_poll());
    for (int i = 0; i < CALLERS; i++)
        raw_await_close(fd[i]);
    ck_assert_uint_eq(rig[0].m->n_strangers, 0);
    ck_assert_uint_eq(rig[0].m->n_conns, 1);
}
END_TEST

/* A member that sends what is no frame has failed; nothing is allocated for what it announces. */
START_TEST(wrong_frames)
{
    static const struct tcp_frame wrong[] = {{.kind = TCP_DATA, .am = ST_AM_TEST, .len = 0xffffffff},
                                             {.kind = TCP_DATA, .am = ST_AM_TEST, .len = 4096 + 41, .hdr_len = 8},
                                             {.kind = TCP_DATA, .am = ST_AM_TEST, .hdr_len = ST_BTL_HDR_MAX + 1},
                                             {.kind = TCP_DATA, .am = ST_AM_COUNT},
                                             {.kind = 0, .am = ST_AM_TEST}};
    int fd = raw_join(1, 0);

    raw_write(fd, &wrong[_i], sizeof wrong[_i]);
    AWAIT(rig[0].lost == 1, rig_poll());
    ck_assert_uint_eq(rig[0].arrived, 0);
    ck_assert_uint_eq(rig[0].m->n_conns, 0);
    close(fd);
}
END_TEST

/* Frames that come in pieces of any size. */
START_TEST(pieces)
{
    static char stream[40000];
    struct rnd rnd = {(uint64_t)_i + 1};
    size_t n = 0, at = 0;
    uint32_t frames = 0, bytes = 0;
    int fd = raw_join(1, 0);

    for (; n + 4096 + 128 < sizeof stream; frames++) {
        struct tcp_frame f = {
            .kind = TCP_DATA, .am = ST_AM_TEST, .hdr_len = 8, .len = rnd_below(&rnd, _i == 0 ? 20 : 4096)};
        uint32_t number = frames + 1;
        memcpy(stream + n, &f, sizeof f);
        memcpy(stream + n + sizeof f, &number, 4);
        n += tcp_frame_bytes(f.hdr_len, f.len);
        bytes += f.len;
    }
    while (at < n) {
        size_t piece = 1 + rnd_below(&rnd, _i == 0 ? 3 : 3000);
        piece = piece < n - at ? piece : n - at;
        raw_write(fd, stream + at, piece);
        at += piece;
        rig_poll();
    }
    AWAIT(rig[0].arrived == frames, rig_poll());
    ck_assert_uint_eq(rig[0].last[1], frames);
    ck_assert_uint_eq(rig[0].bytes, bytes);
    ck_assert_uint_eq(rig[0].m->n_rx, 0);
    close(fd);
}
END_TEST

/* Random bytes and damaged handshakes, at any stage; afterwards a member still gets through. */
START_TEST(fuzz)
{
    enum { SHORT = 40, FULL = 150 };
    unsigned long seed = (unsigned long)_i * 1000 + 7, rounds = test_quick_form(SHORT, FULL);
    struct rnd rnd = {seed};
    struct st_btl_endpoint *ep;

    test_form_print(seed, rounds, FULL, "callers");
    rig[0].par.handshake_timeout_ms = 1;
    for (unsigned long round = 0; round < rounds; round++) {
        struct tcp_said said;
        struct tcp_challenge challenge;
        uint8_t bytes[300];
        uint32_t n = 1 + rnd_below(&rnd, sizeof bytes);
        int fd = raw_dial(0);
        if (rnd_below(&rnd, 2)) { /* up to the proof it is right */
            raw_hello(fd, 1 + (int)rnd_below(&rnd, RANKS - 1), 0, &said);
            if (!raw_read(fd, &challenge, sizeof challenge)) {
                close(fd);
                continue;
            }
        }
        for (uint32_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)rnd_next(&rnd);
        if (rnd_below(&rnd, 2)) {
            struct tcp_head head = {TCP_MAGIC, (uint16_t)(1 + rnd_below(&rnd, 5)), (uint16_t)rnd_below(&rnd, 4)};
            memcpy(bytes, &head, n < sizeof head ? n : sizeof head);
        }
        (void)send(fd, bytes, n, MSG_NOSIGNAL);
        rig_poll();
        close(fd);
        rig_poll();
    }
    ck_assert_uint_eq(rig[0].m->n_peers, 0);
    ck_assert_uint_eq(rig[0].arrived, 0);
    rig[0].par.handshake_timeout_ms = 60000;
    ep = rig_connect(1, 0);
    AWAIT(rig_send(ep, 1, NULL, 0) == STRATA_OK, rig_poll());
    AWAIT(rig[0].arrived == 1, rig_poll());
    AWAIT(rig[0].m->n_conns == 1, rig_poll());
    ck_assert_uint_eq(rig[0].m->n_strangers, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tcp connections");
    TCase *tc = tcase_create("connections");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, one_dials, 0, 2);
    tcase_add_loop_test(tc, both_dial, 0, 30);
    tcase_add_test(tc, stranger_at_the_first_address);
    tcase_add_test(tc, nobody_listens);
    tcase_add_test(tc, busy_dialler);
    tcase_add_test(tc, goodbye);
    tcase_add_loop_test(tc, broken, 0, 2);
    tcase_add_test(tc, back_pressure);
    tcase_add_test(tc, hot_and_cold);
    tcase_add_loop_test(tc, nobody_here_is_probed, 0, 2);
    tcase_add_test(tc, descriptors_exhausted);
    tcase_add_test(tc, descriptors_exhausted_accepting);
    tcase_add_test(tc, wrong_key);
    tcase_add_test(tc, replay);
    tcase_add_test(tc, wrong_hellos);
    tcase_add_test(tc, silent_callers);
    tcase_add_loop_test(tc, wrong_frames, 0, 5);
    tcase_add_loop_test(tc, pieces, 0, 4);
    tcase_add_loop_test(tc, fuzz, 0, 4);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
