/* The second connection of a pair: what it is for, who makes it, what it has in common with the first. */
/* one thread */
#include <strata/sdk/btl_hints.h>
#include <sys/epoll.h>
#include "raw_socket.h"
#include "rdma_rig.h"
#include "support/random.h"

enum { AREA = 64 << 20, SMALL = 2 << 20 };

static void setup(void)
{
    rdma_setup(SMALL);
}

static void setup_long(void)
{
    rdma_setup(AREA);
}

static void put_all(int from, size_t at, size_t len)
{
    struct st_btl_endpoint *ep = rig_connect(from, 1 - from);
    char *data = malloc(len);
    struct op op;
    int rc;

    pattern_fill(data, len, at);
    AWAIT((rc = begin(ep, false, data, at, len, &op)) != STRATA_ERR_AGAIN, rig_poll());
    ck_assert_int_eq(rc, STRATA_OK);
    AWAIT(op.calls, rig_poll());
    ck_assert_int_eq(op.rc, STRATA_OK);
    ck_assert_int_eq(pattern_check(memory[1 - from] + at, len, at), -1);
    free(data);
}

/* Bytes of rank 0's put to the beginning of rank 1's memory that rank 1 has read. */
static size_t taken(void)
{
    const struct tcp_take *t = &peer_of(1, 0)->rdma->take;

    return (size_t)(t->move.address - (uint64_t)(uintptr_t)memory[1]) + t->have;
}

static size_t gone(void)
{
    const struct tcp_rdma *r = peer_of(0, 1)->rdma;
    const struct tcp_job *job = ST_CONTAINER(r->out.next, struct tcp_job, node);

    return job->at;
}

/* A message is sent behind 64 MiB of which as much is on its way as the kernels hold: it is taken at once, and arrives
 * before that has been read. */
START_TEST(short_passes_long)
{
    struct st_btl_endpoint *ep = link_both();
    char *out = malloc(AREA);
    struct op op;
    size_t before = 0;

    put_all(0, 0, 4096);
    pattern_fill(out, AREA, 7);
    ck_assert_int_eq(begin(ep, false, out, 0, AREA, &op), STRATA_OK);
    for (int still = 0; still < 1000; still = gone() == before ? still + 1 : 0) {
        before = gone();
        (void)rig[0].m->btl.ops->progress(&rig[0].m->btl);
    }
    ck_assert_uint_lt(before, AREA);
    ck_assert_int_eq(rig_send(ep, 5, "abc", 3), STRATA_OK);
    AWAIT(rig[1].arrived == 2, (void)rig[1].m->btl.ops->progress(&rig[1].m->btl));
    ck_assert_uint_lt(taken() + (64u << 10), before);
    AWAIT(op.calls, rig_poll());
    ck_assert_int_eq(op.rc, STRATA_OK);
    ck_assert_int_eq(pattern_check(memory[1], AREA, 7), -1);
    free(out);
}
END_TEST

/* ---- parts of long messages ---- */

enum { PART = 4096, SHORT = 0xabcdef };
static size_t part_bytes, passed_at;
static unsigned n_short;

static void take_part(void *arg, const struct st_frag *frag)
{
    uint32_t number;

    (void)arg;
    memcpy(&number, frag->hdr, sizeof number);
    if (number == SHORT) {
        n_short++;
        passed_at = part_bytes;
        return;
    }
    ck_assert_uint_eq(frag->len, PART);
    ck_assert_int_eq(pattern_check(frag->data, PART, number), -1);
    part_bytes += PART;
}

static int send_part(struct st_btl_endpoint *ep, uint32_t number)
{
    static char data[PART];
    const strata_data_t flat = {.kind = STRATA_CONTIGUOUS, .length = PART, .u.buffer = data};
    struct st_payload part = {&flat, 0, PART};
    uint32_t hdr[2] = {number, 0};

    pattern_fill(data, PART, number);
    return ep->btl->hints->send_bulk(ep, ST_AM_TEST, hdr, sizeof hdr, &part);
}

/* Until rank 0's kernel takes no more of what rank 1 does not read; parts in all. */
static uint32_t fill_with_parts(struct st_btl_endpoint *ep, uint32_t n)
{
    for (int quiet = 0; quiet < 1000; quiet++) {
        if (send_part(ep, n) == STRATA_OK)
            n++, quiet = 0;
        (void)rig[0].m->btl.ops->progress(&rig[0].m->btl);
    }
    return n;
}

/* A message is sent behind parts, of which as many are on their way as the kernels hold. It is taken at once, and
 * arrives before what one read takes of them; by the first connection, where one end has no second, it is refused. */
START_TEST(message_passes_parts)
{
    struct st_btl_endpoint *ep = link_both();
    uint32_t n = 0;
    size_t before;

    part_bytes = n_short = 0;
    rig[1].m->btl.am[ST_AM_TEST].fn = take_part;
    rig[0].par.bulk = rig[1].par.bulk = _i == 0;
    while (part_bytes < 100 * PART || rig[0].m->count.bulk < (_i == 0)) { /* meanwhile they go by the first one */
        n += send_part(ep, n) == STRATA_OK;
        rig_poll();
    }
    AWAIT(part_bytes == n * (size_t)PART, rig_poll());
    before = part_bytes;
    n = fill_with_parts(ep, n);
    ck_assert_uint_gt(n * (size_t)PART, before + 2 * rig[1].m->rx_size);
    ck_assert_int_eq(rig_send(ep, SHORT, "abc", 3), _i ? STRATA_ERR_AGAIN : STRATA_OK);
    AWAIT(part_bytes == n * (size_t)PART && n_short == (_i == 0), rig_poll());
    if (_i == 0)
        ck_assert_uint_le(passed_at, before + rig[1].m->rx_size);
    ck_assert_uint_eq(rig[0].lost + rig[1].lost, 0);
}
END_TEST

/* Parts and pieces of puts share the second connection, and neither waits for the end of the other. */
START_TEST(parts_between_pieces)
{
    struct st_btl_endpoint *ep = link_both();
    uint32_t n = 0, behind = 0;
    struct op op;

    part_bytes = n_short = 0;
    rig[1].m->btl.am[ST_AM_TEST].fn = take_part;
    put_all(0, 0, 4096);
    ck_assert_int_eq(begin(ep, false, memory[0], 0, AREA, &op), STRATA_OK);
    while (!op.calls) {
        uint32_t taken_now = send_part(ep, n) == STRATA_OK;
        n += taken_now;
        behind += taken_now && !st_list_empty(&peer_of(0, 1)->rdma->out);
        rig_poll();
    }
    ck_assert_int_eq(op.rc, STRATA_OK);
    ck_assert_uint_ge(behind, 10);
    AWAIT(part_bytes == n * (size_t)PART, rig_poll());
    ck_assert_int_eq(pattern_check(memory[1], AREA, 0), -1);
    ck_assert_uint_eq(rig[0].lost + rig[1].lost, 0);
}
END_TEST

/* Parts that were sent before a goodbye arrive, though that comes by the first connection. */
START_TEST(parts_before_goodbye)
{
    struct st_btl_endpoint *ep = link_both();
    uint32_t n = 0;

    part_bytes = n_short = 0;
    rig[1].m->btl.am[ST_AM_TEST].fn = take_part;
    while (rig[1].m->count.bulk == 0) {
        n += send_part(ep, n) == STRATA_OK;
        rig_poll();
    }
    for (int i = 0; i < 10; i++)
        n += send_part(ep, n) == STRATA_OK;
    rig_close(0);
    AWAIT(rig[1].m->n_conns == 0, rig_poll());
    ck_assert_uint_eq(part_bytes, n * (size_t)PART);
    ck_assert_uint_eq(rig[1].lost, 0);
}
END_TEST

/* One of them is made, by the first piece of either end or of both at once, and serves both. */
START_TEST(one_is_made)
{
    struct st_btl_endpoint *ep = link_both(), *back = &peer_of(1, 0)->ep;
    struct op ops[3];

    ck_assert_uint_eq(rig[0].m->n_conns, 1);
    if (_i != 1)
        ck_assert_int_eq(begin(ep, false, memory[0], 0, 100000, &ops[0]), STRATA_OK);
    if (_i > 0)
        ck_assert_int_eq(begin(back, false, memory[1] + 200000, 200000, 100000, &ops[1]), STRATA_OK);
    AWAIT((_i == 1 || ops[0].calls) && (_i == 0 || ops[1].calls), rig_poll());
    put_all(0, 300000, 5000);
    put_all(1, 400000, 5000);
    ck_assert_int_eq(begin(ep, true, memory[0] + 700000, 700000, 100000, &ops[2]), STRATA_OK);
    AWAIT(ops[2].calls, rig_poll());
    ck_assert_int_eq(pattern_check_at(memory[0] + 700000, 700000, 100000, 1), -1);
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(rig[i].m->n_conns, 2);
        ck_assert_uint_eq(rig[i].m->count.bulk, 1);
        ck_assert_uint_eq(rig[i].lost, 0);
    }
}
END_TEST

/* Where one end will not have it, or it cannot be made, puts and answers go by the first connection. */
START_TEST(none_is_made)
{
    struct st_btl_endpoint *ep = link_both(), *back = &peer_of(1, 0)->ep;
    struct op op;

    if (_i < 2)
        rig[_i].par.bulk = false;
    else
        rig_card[1].port = 1; /* nobody listens there */
    put_all(0, 0, 100000);
    put_all(1, 200000, 100000);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(begin(i ? back : ep, true, memory[i] + 400000, 400000, 100000, &op), STRATA_OK);
        AWAIT(op.calls, rig_poll());
        ck_assert_int_eq(op.rc, STRATA_OK);
        ck_assert_uint_eq(rig[i].m->n_conns, 1);
        ck_assert_uint_eq(rig[i].lost, 0);
    }
}
END_TEST

static void reset(struct tcp_conn *c)
{
    struct sockaddr none = {.sa_family = AF_UNSPEC};

    if (c && c->fd >= 0)
        (void)connect(c->fd, &none, sizeof none);
}

/* The pair's connection is over when either of the two breaks, at both ends; the next one carries all. */
START_TEST(breaks)
{
    struct st_btl_endpoint *ep = link_both();
    struct op op;

    put_all(0, 0, 100000);
    for (uint32_t round = 1; round <= 3; round++) {
        ck_assert_int_eq(begin(ep, false, memory[0], 0, SMALL, &op), STRATA_OK);
        rig_poll();
        reset(_i ? peer_of(0, 1)->bulk : peer_of(1, 0)->bulk);
        AWAIT(rig[0].lost == round && rig[1].lost == round, rig_poll());
        rig_poll();
        ck_assert_int_eq(op.calls, 1);
        ck_assert_int_eq(op.rc, STRATA_ERR_PEER);
        ck_assert_ptr_eq(rig_connect(0, 1), ep);
        (void)rig_connect(1, 0);
        put_all(_i, 500000, 100000);
        AWAIT(rig_send(ep, 9, "x", 1) == STRATA_OK, rig_poll());
        AWAIT(rig[1].last[0] == 9, rig_poll());
        ck_assert_uint_eq(rig[0].m->n_conns, 2);
        ck_assert_uint_eq(rig[1].m->n_conns, 2);
    }
}
END_TEST

/* Resets of either at any time, also in handshakes. Each operation ends once, and afterwards all carries. */
START_TEST(breaks_at_random)
{
    struct rnd rnd = {(uint64_t)_i + 5};
    static struct op ops[400];
    bool began[400] = {false};

    (void)link_both();
    for (int i = 0; i < 400; i++) {
        int rank = (int)rnd_below(&rnd, 2);
        uint32_t what = rnd_below(&rnd, 40);
        struct tcp_peer *p = peer_of(rank, 1 - rank);
        if (what == 0 && p->conn && !p->conn->broken)
            reset(p->conn);
        else if (what < 3)
            reset(p->bulk);
        else if (what < 10)
            began[i] = begin(&p->ep, what % 2, memory[rank] + SMALL / 2, SMALL / 2, 100000, &ops[i]) == STRATA_OK;
        else if (what < 14)
            (void)rig[rank].m->btl.ops->connect(&rig[rank].m->btl, 1 - rank, &(struct st_btl_endpoint *){NULL});
        else
            (void)rig[rank].m->btl.ops->progress(&rig[rank].m->btl);
    }
    for (int i = 0; i < 2; i++)
        AWAIT(peer_of(0, 1)->conn && peer_of(1, 0)->conn && peer_of(0, 1)->epoch == peer_of(1, 0)->epoch,
              (void)rig_connect(0, 1);
              (void)rig_connect(1, 0); rig_poll());
    put_all(0, 0, 100000);
    put_all(1, 0, 100000);
    for (int i = 0; i < 400; i++)
        if (began[i])
            AWAIT(ops[i].calls == 1, rig_poll());
    ck_assert_uint_le(rig[0].m->n_conns, 2); /* 1: the handshake of the second was cut */
    ck_assert(!peer_of(0, 1)->gone && !peer_of(1, 0)->gone);
}
END_TEST

/* What was put before a goodbye arrives, though the first connection, by which the goodbye comes, is read before. */
START_TEST(goodbye_comes_last)
{
    struct st_btl_endpoint *back;
    struct tcp_peer *p;
    struct op op = {.op.done = done};
    static char data[100000];

    (void)link_both();
    put_all(1, 0, 4096);
    back = &peer_of(1, 0)->ep;
    p = peer_of(0, 1);
    pattern_fill(data, sizeof data, 3);
    ck_assert_int_eq(tcp_rdma_ops.put_notify(back, data, (uint64_t)(uintptr_t)memory[0], reg[0].key, sizeof data, NULL,
                                             NOTICE, &op.op),
                     STRATA_OK);
    AWAIT(st_list_empty(&peer_of(1, 0)->rdma->out), (void)rig[1].m->btl.ops->progress(&rig[1].m->btl));
    rig_close(1);
    for (int i = 0; i < 10; i++)
        (void)tcp_receive(rig[0].m, p->conn);
    ck_assert(p->conn && p->conn->held && !p->left);
    AWAIT(rig[0].m->n_conns == 0, rig_poll());
    ck_assert(p->left);
    ck_assert_uint_eq(noticed, 1);
    ck_assert_int_eq(pattern_check(memory[0], sizeof data, 3), -1);
    ck_assert_uint_eq(rig[0].lost, 0);
}
END_TEST

/* Puts that came before a reset are written, and their notifications delivered: where the end of the first connection
 * is read before them, a send or a put notices the reset first, or the peer's next connection is there before. */
START_TEST(arrived_before_the_reset)
{
    static char data[20000];
    struct st_btl_endpoint *ep = link_both(), *back = &peer_of(1, 0)->ep;
    struct op op = {.op.done = done}, other = {.calls = 0};

    put_all(0, 0, 4096);
    AWAIT(rig[1].m->n_hot == 0, rig_poll()); /* what is not hot is read when epoll names it */
    pattern_fill(data, sizeof data, 3);
    ck_assert_int_eq(tcp_rdma_ops.put_notify(ep, data, (uint64_t)(uintptr_t)memory[1], reg[1].key, sizeof data, NULL,
                                             NOTICE, &op.op),
                     STRATA_OK);
    AWAIT(st_list_empty(&peer_of(0, 1)->rdma->out), (void)rig[0].m->btl.ops->progress(&rig[0].m->btl));
    reset(peer_of(0, 1)->bulk);
    reset(peer_of(0, 1)->conn);
    if (_i == 0) {
        AWAIT(!peer_of(1, 0)->conn, (void)tcp_receive(rig[1].m, peer_of(1, 0)->conn));
    } else if (_i == 1) {
        AWAIT(rig_send(back, 1, NULL, 0) == STRATA_ERR_PEER, (void)0);
    } else if (_i == 2) {
        ck_assert_int_eq(begin(back, false, memory[1], 0, 4096, &other), STRATA_OK);
        AWAIT(peer_of(1, 0)->failed, (void)tcp_rdma_progress(rig[1].m));
    } else {
        ck_assert_int_eq(epoll_ctl(rig[1].m->events, EPOLL_CTL_DEL, peer_of(1, 0)->bulk->fd, NULL), 0);
        ck_assert_int_eq(epoll_ctl(rig[1].m->events, EPOLL_CTL_DEL, peer_of(1, 0)->conn->fd, NULL), 0);
        AWAIT(rig[0].lost == 1, (void)rig[0].m->btl.ops->progress(&rig[0].m->btl));
        (void)rig_connect(0, 1);
        for (int i = 0; i < 100; i++) /* it dials, while rank 1 does not look */
            (void)rig[0].m->btl.ops->progress(&rig[0].m->btl);
    }
    AWAIT(rig[1].lost == 1 && (_i == 3 || !peer_of(1, 0)->conn), rig_poll());
    ck_assert_uint_eq(noticed, 1);
    ck_assert_int_eq(pattern_check(memory[1], sizeof data, 3), -1);
    rig_poll();
    ck_assert_int_eq(other.calls, _i == 2);
    (void)rig_connect(0, 1);
    (void)rig_connect(1, 0);
    put_all(0, 500000, 100000);
    put_all(1, 500000, 100000);
    ck_assert_uint_eq(rig[0].m->n_conns, 2);
    ck_assert_uint_eq(rig[1].m->n_conns, 2);
}
END_TEST

/* A caller that belongs to the job, and asks for a second connection where there is no place for one: none of the pair,
 * one of another epoch; or for a third, or a role that there is not. */
START_TEST(refused)
{
    int first = _i > 0 ? raw_join(3, 0) : -1, fd = raw_dial(0), second = -1;
    struct tcp_said said;
    struct tcp_head head;

    if (_i == 2) {
        second = raw_dial(0);
        raw_hello_of(second, 3, 0, TCP_BULK, 0, &said);
        ck_assert(raw_respond(second, &said, TCP_ACCEPT, rig_card[0].key));
        ck_assert(raw_read(second, &head, sizeof head) && head.kind == TCP_READY);
    }
    raw_hello_of(fd, 3, 0, _i == 3 ? TCP_ROLES : TCP_BULK, _i == 1 ? 7 : 0, &said);
    if (_i < 3)
        ck_assert(raw_respond(fd, &said, TCP_ACCEPT, rig_card[0].key));
    raw_await_close(fd);
    ck_assert_uint_eq(rig[0].m->n_conns, (unsigned)((first >= 0) + (second >= 0)));
    ck_assert_uint_eq(rig[0].lost, 0);
    if (first >= 0)
        close(first);
    if (second >= 0)
        close(second);
}
END_TEST

/* Frames that have no business where they come: the pair's connection ends. */
START_TEST(lies)
{
    static const char *why[] = {"belongs to the first", "belongs to the first", "two connections", "like the other"};
    int first = raw_join(3, 0), second = raw_dial(0);
    struct {
        struct tcp_frame frame;
        struct tcp_move move;
        char data[64];
    } f = {.frame = {.kind = TCP_PUT, .hdr_len = sizeof f.move, .len = 640},
           .move = {.address = (uint64_t)(uintptr_t)memory[0], .what = TCP_LAST}};
    union {
        struct tcp_frame frame;
        char whole[TCP_ALIGN];
    } small = {.frame = {.kind = _i == 0 ? TCP_DONE : _i == 1 ? TCP_NO_BULK : TCP_ASK_BULK}};
    struct tcp_said said;
    struct tcp_head head;

    raw_hello_of(second, 3, 0, TCP_BULK, 0, &said);
    ck_assert(raw_respond(second, &said, TCP_ACCEPT, rig_card[0].key));
    ck_assert(raw_read(second, &head, sizeof head) && head.kind == TCP_READY);
    if (_i == 2) { /* a piece that has not come to its end, and another one */
        memcpy(&f.move.key, reg[0].key, sizeof f.move.key);
        raw_write(first, &f, sizeof f);
        AWAIT(peer_of(0, 3)->rdma && peer_of(0, 3)->rdma->taker, rig_poll());
        raw_write(second, &f, sizeof f);
    } else {
        raw_write(_i == 3 ? first : second, &small, sizeof small);
    }
    AWAIT(rig[0].lost == 1, rig_poll());
    ck_assert_ptr_nonnull(strstr(rig[0].why, why[_i]));
    raw_await_close(first);
    raw_await_close(second);
}
END_TEST

/* A goodbye waits for the end of the second connection, and the peer, which is not through with that, connects anew. */
START_TEST(goodbye_and_back)
{
    union {
        struct tcp_frame frame;
        char whole[TCP_ALIGN];
    } goodbye = {.frame = {.kind = TCP_GOODBYE}};
    int first = raw_join(3, 0), second = raw_dial(0), again = raw_dial(0);
    struct tcp_said said;
    struct tcp_head head;

    raw_hello_of(second, 3, 0, TCP_BULK, 0, &said);
    ck_assert(raw_respond(second, &said, TCP_ACCEPT, rig_card[0].key));
    ck_assert(raw_read(second, &head, sizeof head) && head.kind == TCP_READY);
    raw_write(first, &goodbye, sizeof goodbye);
    AWAIT(peer_of(0, 3)->conn->held, rig_poll());
    raw_hello_of(again, 3, 0, TCP_FIRST, 1, &said);
    ck_assert(raw_respond(again, &said, TCP_NONE, rig_card[0].key));
    ck_assert(raw_read(again, &head, sizeof head) && head.verdict == TCP_ACCEPT);
    raw_await_close(first);
    raw_await_close(second);
    ck_assert_uint_eq(rig[0].lost, 1);
    ck_assert_uint_eq(peer_of(0, 3)->conn->state, TCP_CHOSEN);
    close(again);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tcp second connections");
    TCase *tc = tcase_create("bulk"), *behind = tcase_create("behind");

    tcase_add_checked_fixture(behind, setup_long, rdma_teardown);
    tcase_add_test(behind, short_passes_long);
    tcase_add_test(behind, parts_between_pieces);
    suite_add_tcase(s, behind);
    tcase_add_checked_fixture(tc, setup, rdma_teardown);
    tcase_add_loop_test(tc, one_is_made, 0, 3);
    tcase_add_loop_test(tc, none_is_made, 0, 3);
    tcase_add_loop_test(tc, breaks, 0, 2);
    tcase_add_loop_test(tc, breaks_at_random, 0, 20);
    tcase_add_test(tc, goodbye_comes_last);
    tcase_add_loop_test(tc, arrived_before_the_reset, 0, 4);
    tcase_add_loop_test(tc, message_passes_parts, 0, 2);
    tcase_add_test(tc, parts_before_goodbye);
    tcase_add_loop_test(tc, refused, 0, 4);
    tcase_add_loop_test(tc, lies, 0, 4);
    tcase_add_test(tc, goodbye_and_back);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
