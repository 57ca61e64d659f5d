/* Puts and gets: what peers may name, frames that lie, connections that break, messages between pieces. */
#include "raw_socket.h"
#include "rdma_rig.h"

enum { AREA = 1 << 20 };

static void setup(void)
{
    rdma_setup(AREA);
}

/* Lengths of less than a piece and of many, at odd places; both ways at once, with messages in between. */
START_TEST(moves)
{
    static const size_t lens[] = {1, 63, 64, 4000, 4096, 10007, 300001};
    struct st_btl_endpoint *ep = link_both();
    char *out = malloc(AREA), *in = malloc(AREA);

    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        size_t len = lens[i], at = 5 * i;
        struct op put, get;
        unsigned arrived = rig[1].arrived, sent = 0;
        pattern_fill(out, len, 40 + i);
        ck_assert_int_eq(begin(ep, false, out, at, len, &put), STRATA_OK);
        ck_assert_int_eq(begin(ep, true, in + i, 500000 + at, len, &get), STRATA_OK);
        AWAIT(put.calls && get.calls && sent >= 20, rig_poll(); sent += rig_send(ep, 7, "abc", 3) == STRATA_OK);
        AWAIT(rig[1].arrived == arrived + sent, rig_poll());
        ck_assert_int_eq(put.rc, STRATA_OK);
        ck_assert_int_eq(get.rc, STRATA_OK);
        ck_assert_int_eq(pattern_check(memory[1] + at, len, 40 + i), -1);
        ck_assert_int_eq(pattern_check_at(in + i, 500000 + at, len, 1), -1);
        ck_assert(put.calls == 1 && get.calls == 1);
    }
    free(out);
    free(in);
}
END_TEST

/* A message that is sent while a long get is answered does not wait for its end. */
START_TEST(messages_pass)
{
    struct st_btl_endpoint *ep = link_both(), *back = &peer_of(1, 0)->ep;
    char *in = malloc(AREA);
    struct op get;

    ck_assert_int_eq(begin(ep, true, in, 0, AREA, &get), STRATA_OK);
    AWAIT(get.calls, (void)rig_send(back, 3, "abc", 3); rig_poll());
    ck_assert_uint_ge(rig[0].arrived, 2); /* the first went before all pieces */
    ck_assert_int_eq(pattern_check(in, AREA, 1), -1);
    free(in);
}
END_TEST

/* A notice comes once, after its data; the put ends after that. */
START_TEST(notice)
{
    struct st_btl_endpoint *ep = link_both();
    char data[10000];
    struct op op = {.op.done = done};

    pattern_fill(data, sizeof data, 9);
    ck_assert_int_eq(tcp_rdma_ops.put_notify(ep, data, (uint64_t)(uintptr_t)memory[1], reg[1].key, sizeof data, &reg[0],
                                             NOTICE, &op.op),
                     STRATA_OK);
    AWAIT(noticed, ck_assert_int_eq(op.calls, 0); rig_poll());
    ck_assert_int_eq(pattern_check(memory[1], sizeof data, 9), -1);
    AWAIT(op.calls, rig_poll());
    ck_assert_int_eq(op.rc, STRATA_OK);
    ck_assert_uint_eq(noticed, 1);
}
END_TEST

/* No more than a number at a time. */
START_TEST(too_many)
{
    struct st_btl_endpoint *ep = link_both();
    static struct op op[TCP_OPS + 1];
    uint32_t n = 0;

    while (n <= TCP_OPS && begin(ep, n % 2, memory[0] + (size_t)n * 64, (size_t)n * 64, 64, &op[n]) == STRATA_OK)
        n++;
    ck_assert_uint_eq(n, TCP_OPS);
    for (uint32_t i = 0; i < n; i++)
        AWAIT(op[i].calls, rig_poll());
    ck_assert_uint_eq(peer_of(0, 1)->rdma->n_ops, 0);
}
END_TEST

/* A key is of one registration, its bytes and its use. */
START_TEST(keys)
{
    struct tcp_module *m = rig[0].m;
    uint64_t at = (uint64_t)(uintptr_t)memory[0];
    struct st_btl_reg source, again;
    struct tcp_key key, bad;

    memcpy(&key, reg[0].key, sizeof key);
    ck_assert_ptr_eq(tcp_reg_find(m, &key, at, AREA, true), memory[0]);
    ck_assert_ptr_eq(tcp_reg_find(m, &key, at + AREA - 1, 1, true), memory[0] + AREA - 1);
    ck_assert_ptr_null(tcp_reg_find(m, &key, at, AREA + 1, false));
    ck_assert_ptr_null(tcp_reg_find(m, &key, at - 1, 1, false));
    ck_assert_ptr_null(tcp_reg_find(m, &key, at + AREA, 1, false));
    ck_assert_ptr_null(tcp_reg_find(m, &key, at + 1, UINT64_MAX, false));
    bad = key;
    bad.secret ^= 1;
    ck_assert_ptr_null(tcp_reg_find(m, &bad, at, 1, false));
    bad = key;
    bad.index = 1u << 30;
    ck_assert_ptr_null(tcp_reg_find(m, &bad, at, 1, false));
    ck_assert_int_eq(tcp_reg(&m->btl, memory[0], 64, ST_BTL_SOURCE, &source), STRATA_OK);
    memcpy(&bad, source.key, sizeof bad);
    ck_assert_ptr_nonnull(tcp_reg_find(m, &bad, at, 64, false));
    ck_assert_ptr_null(tcp_reg_find(m, &bad, at, 64, true));
    tcp_dereg(&m->btl, &source);
    ck_assert_ptr_null(tcp_reg_find(m, &bad, at, 64, false));
    ck_assert_int_eq(tcp_reg(&m->btl, memory[0], 64, ST_BTL_SOURCE, &again), STRATA_OK); /* the same entry */
    ck_assert_ptr_null(tcp_reg_find(m, &bad, at, 64, false));
    ck_assert_int_eq(tcp_reg(&m->btl, NULL, 64, ST_BTL_SOURCE, &again), STRATA_ERR_ARG);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(tcp_reg(&m->btl, memory[0] + i, 1, ST_BTL_ANY_USE, &again), STRATA_OK);
    ck_assert_ptr_eq(tcp_reg_find(m, &key, at, AREA, true), memory[0]);
}
END_TEST

/* One frame of a raw peer, whose head is spoiled in one way: the connection ends, and no byte is written. */
START_TEST(lies)
{
    int fd = raw_join(3, 0);
    struct {
        struct tcp_frame frame;
        struct tcp_move move;
        char data[64];
    } f = {.frame = {.kind = _i < 7 ? TCP_PUT : TCP_GET, .hdr_len = sizeof f.move, .len = _i < 7 ? 64 : 0},
           .move = {.address = (uint64_t)(uintptr_t)memory[0], .what = TCP_LAST, .length = _i < 7 ? 0 : 64}};
    static const char *why[] = {"registered", "registered", "registered", "nothing", "puts", "frame",
                                "nothing",    "registered", "registered", "frame",   "frame"};

    memset(f.data, 0xee, sizeof f.data);
    memcpy(&f.move.key, reg[0].key, sizeof f.move.key);
    if (_i == 0 || _i == 7)
        f.move.key.secret++;
    else if (_i == 1)
        f.move.address += AREA - 63;
    else if (_i == 2)
        f.move.address -= 1;
    else if (_i == 3)
        f.move.lead = 64;
    else if (_i == 4)
        f.frame.done = 1; /* of no put */
    else if (_i == 5)
        f.frame.len = UINT32_MAX;
    else if (_i == 6)
        f.move.lead = 200;
    else if (_i == 8)
        f.move.length = UINT64_MAX;
    else if (_i == 9)
        f.frame.hdr_len = 40;
    else if (_i == 10)
        f.frame = (struct tcp_frame){.kind = TCP_PUT, .hdr_len = sizeof f.move, .len = TCP_PIECE_MAX + TCP_ALIGN + 1};
    raw_write(fd, &f, sizeof f);
    AWAIT(rig[0].lost == 1, rig_poll());
    ck_assert_ptr_nonnull(strstr(rig[0].why, why[_i]));
    ck_assert_int_eq(pattern_check(memory[0], AREA, 0), -1);
    ck_assert_uint_eq(rig[0].m->count.refused, 1);
    raw_await_close(fd);
}
END_TEST

static void long_pieces(bool bulk)
{
    rdma_teardown();
    rig_piece = 512 << 10;
    rig_bulk = bulk;
    setup();
    rig_piece = 4032;
    rig_bulk = true;
}

/* Pieces are as long as the parameter says, but not by the connection of messages. */
START_TEST(pieces)
{
    uint32_t most[2] = {0, 0};

    long_pieces(_i);
    for (int get = 0; get < 2; get++) {
        struct st_btl_endpoint *ep = get ? rig_connect(0, 1) : link_both();
        char *local = malloc(AREA);
        struct op op;
        pattern_fill(local, AREA, 3);
        ck_assert_int_eq(begin(ep, get, local, 0, AREA, &op), STRATA_OK);
        AWAIT(op.calls, {
            const struct tcp_rdma *r = peer_of(get, 1 - get)->rdma;
            rig_poll();
            most[get] = r && r->len > most[get] ? r->len : most[get];
        });
        ck_assert_int_eq(op.rc, STRATA_OK);
        ck_assert_int_eq(pattern_check(get ? local : memory[1], AREA, 3), -1);
        ck_assert_uint_eq(most[get], _i ? 512u << 10 : TCP_SHARED);
        free(local);
    }
}
END_TEST

/* An operation is given up in the middle of a long piece, or the memory that is got from is not registered any more:
 * the rest of the piece is kept, and the stream goes on. */
START_TEST(left_in_a_long_piece)
{
    struct st_btl_endpoint *ep;
    struct op op;

    long_pieces(true);
    ep = link_both();
    ck_assert_int_eq(begin(ep, false, memory[0], 0, 64, &op), STRATA_OK);
    AWAIT(op.calls, rig_poll()); /* the second connection is up */
    ck_assert_int_eq(begin(ep, _i, memory[0], 0, AREA, &op), STRATA_OK);
    AWAIT(peer_of(_i, 1 - _i)->rdma->sending, (void)rig[_i].m->btl.ops->progress(&rig[_i].m->btl));
    if (_i == 0)
        rig[0].m->btl.ops->disconnect(ep);
    else
        tcp_rdma_ops.dereg(&rig[1].m->btl, &reg[1]);
    ck_assert_ptr_nonnull(peer_of(_i, 1 - _i)->bulk->out);
    ck_assert_ptr_null(peer_of(_i, 1 - _i)->rdma->sending);
    if (_i == 0) {
        AWAIT(op.calls && rig_send(ep, 5, "abc", 3) == STRATA_OK, rig_poll());
        AWAIT(rig[1].arrived == 2, rig_poll());
        ck_assert_uint_eq(rig[0].lost + rig[1].lost, 0);
    } else { /* the key is none any more */
        AWAIT(rig[1].lost == 1 && op.calls, rig_poll());
        ck_assert_ptr_nonnull(strstr(rig[1].why, "not registered"));
        ck_assert_int_eq(op.rc, STRATA_ERR_PEER);
    }
}
END_TEST

/* Memory whose registration ends while a put comes: the rest is not written. */
START_TEST(undone_meanwhile)
{
    int fd = raw_join(3, 0);
    struct {
        struct tcp_frame frame;
        struct tcp_move move;
        char data[64];
    } f = {.frame = {.kind = TCP_PUT, .hdr_len = sizeof f.move, .len = 1024},
           .move = {.address = (uint64_t)(uintptr_t)memory[0], .what = TCP_LAST}};

    memset(f.data, 0xee, sizeof f.data);
    memcpy(&f.move.key, reg[0].key, sizeof f.move.key);
    raw_write(fd, &f, sizeof f);
    AWAIT(memory[0][63] == (char)0xee, rig_poll());
    tcp_rdma_ops.dereg(&rig[0].m->btl, &reg[0]);
    raw_write(fd, f.data, sizeof f.data);
    AWAIT(rig[0].lost == 1, rig_poll());
    ck_assert_int_eq(pattern_check_at(memory[0] + 64, 64, AREA - 64, 0), -1);
    raw_await_close(fd);
}
END_TEST

/* A lost connection ends what is under way, once each, after the path was reported; the next one carries again. */
START_TEST(lost)
{
    struct st_btl_endpoint *ep = link_both();
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    struct op op[8];

    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(begin(ep, i % 2, memory[0] + i * 100000, (size_t)i * 100000, 100000, &op[i]), STRATA_OK);
    for (int i = 0; i < _i; i++)
        rig_poll();
    ck_assert_int_eq(connect(peer_of(0, 1)->conn->fd, &none, sizeof none), 0);
    AWAIT(rig[0].lost == 1 && rig[1].lost == 1, rig_poll());
    rig_poll();
    for (int i = 0; i < 8; i++) {
        ck_assert_int_eq(op[i].calls, 1);
        ck_assert(op[i].rc == STRATA_ERR_PEER || op[i].rc == STRATA_OK);
    }
    ck_assert(_i > 0 || op[7].rc == STRATA_ERR_PEER);
    ck_assert_int_eq(begin(ep, true, memory[0], 0, 100, &op[0]), STRATA_ERR_PEER);
    ep = rig_connect(0, 1);
    int rc;
    AWAIT((rc = begin(ep, true, memory[0], 0, 100000, &op[0])) != STRATA_ERR_AGAIN, rig_poll());
    ck_assert_int_eq(rc, STRATA_OK);
    AWAIT(op[0].calls, rig_poll());
    ck_assert_int_eq(op[0].rc, STRATA_OK);
}
END_TEST

/* After disconnect operations end as well; what is in the middle of a frame leaves the stream whole. */
START_TEST(disconnected)
{
    struct st_btl_endpoint *ep = link_both();
    struct op op[4];
    unsigned arrived = rig[1].arrived;

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(begin(ep, i % 2, memory[0] + i * 250000, (size_t)i * 250000, 250000, &op[i]), STRATA_OK);
    rig[0].m->btl.ops->disconnect(ep);
    AWAIT(op[0].calls && op[1].calls && op[2].calls && op[3].calls, (void)rig[0].m->btl.ops->progress(&rig[0].m->btl));
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(op[i].rc, STRATA_ERR_PEER);
    AWAIT(rig_send(ep, 5, "abc", 3) == STRATA_OK, rig_poll());
    AWAIT(rig[1].arrived == arrived + 1, rig_poll());
    ck_assert_uint_eq(rig[0].lost + rig[1].lost, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tcp puts and gets");
    TCase *tc = tcase_create("rdma");

    tcase_add_checked_fixture(tc, setup, rdma_teardown);
    tcase_add_test(tc, moves);
    tcase_add_test(tc, messages_pass);
    tcase_add_test(tc, notice);
    tcase_add_test(tc, too_many);
    tcase_add_test(tc, keys);
    tcase_add_loop_test(tc, lies, 0, 11);
    tcase_add_loop_test(tc, pieces, 0, 2);
    tcase_add_loop_test(tc, left_in_a_long_piece, 0, 2);
    tcase_add_test(tc, undone_meanwhile);
    tcase_add_loop_test(tc, lost, 0, 4);
    tcase_add_test(tc, disconnected);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
