/* The small parts: sequence numbers and the store of what is ahead, header checks, sizes. */
#include <check.h>
#include <stdlib.h>
#include <strata/sdk/btl_rdma.h>
#include "comm.h"
#include "match.h"
#include "message.h"
#include "peer.h"
#include "request.h"
#include "support/random.h"
#include "support/run_suite.h"
#include "want.h"

static struct ob1_msg *const msg = (struct ob1_msg *)0x1000;

static struct ob1_msg *tagged(uint32_t i)
{
    return (struct ob1_msg *)((char *)msg + i);
}

/* Every order within a window comes out in sequence, over the wrap of the 16 bits. */
START_TEST(any_order_in_sequence)
{
    struct rnd rnd = {7};
    struct ob1_cpeer p = {.recv_seq = 65500};
    struct ob1_comm c = {.n_held = 0};
    uint32_t next = 0;
    ck_assert_int_eq(st_rank_table_init(&c.held, 1), STRATA_OK);
    for (int round = 0; round < 300; round++) {
        uint16_t order[100];
        uint32_t n = 1 + rnd_below(&rnd, 100), base = p.recv_seq;
        for (uint32_t i = 0; i < n; i++)
            order[i] = (uint16_t)i;
        for (uint32_t i = n; i-- > 1;) {
            uint32_t k = rnd_below(&rnd, i + 1);
            uint16_t t = order[i];
            order[i] = order[k];
            order[k] = t;
        }
        for (uint32_t i = 0; i < n; i++) {
            uint16_t seq = (uint16_t)(base + order[i]);
            struct ob1_msg *got;
            if (seq != (uint16_t)p.recv_seq) {
                ck_assert_int_eq(ob1_held_insert(&c, &p, seq, tagged(order[i])), STRATA_OK);
                continue;
            }
            ck_assert_uint_eq(order[i], next);
            p.recv_seq++;
            next++;
            while ((got = ob1_held_next(&c, &p)) != NULL)
                ck_assert_ptr_eq(got, tagged(next++));
        }
        ck_assert_uint_eq(next, n);
        ck_assert_uint_eq(c.n_held, 0);
        next = 0;
    }
    st_rank_table_destroy(&c.held);
}
END_TEST

START_TEST(stale_and_repeated_are_refused)
{
    struct ob1_cpeer p = {.recv_seq = 10};
    struct ob1_comm c = {.n_held = 0};
    ck_assert_int_eq(st_rank_table_init(&c.held, 1), STRATA_OK);
    ck_assert_int_eq(ob1_held_insert(&c, &p, 10, msg), STRATA_ERR_PROTOCOL);
    ck_assert_int_eq(ob1_held_insert(&c, &p, 9, msg), STRATA_ERR_PROTOCOL);
    ck_assert_int_eq(ob1_held_insert(&c, &p, (uint16_t)(10 + 32768), msg), STRATA_ERR_PROTOCOL);
    ck_assert_int_eq(ob1_held_insert(&c, &p, (uint16_t)(10 + 32767), msg), STRATA_OK);
    ck_assert_int_eq(ob1_held_insert(&c, &p, (uint16_t)(10 + 32767), msg), STRATA_ERR_PROTOCOL);
    ck_assert_ptr_null(ob1_held_next(&c, &p));
    for (uint32_t i = 1; i < 32767; i++)
        ck_assert_int_eq(ob1_held_insert(&c, &p, (uint16_t)(10 + i), tagged(i)), STRATA_OK);
    p.recv_seq++;
    for (uint32_t i = 1; i < 32767; i++)
        ck_assert_ptr_eq(ob1_held_next(&c, &p), tagged(i));
    ck_assert_ptr_eq(ob1_held_next(&c, &p), msg);
    ck_assert_uint_eq(c.n_held, 0);
    st_rank_table_destroy(&c.held);
}
END_TEST

static int parse(const void *hdr, uint32_t hdr_len, uint32_t len, struct ob1_arrival *a)
{
    static char payload[64];
    struct st_frag frag = {.hdr = hdr, .hdr_len = hdr_len, .data = payload, .len = len, .rank = 3};
    return wire_parse(&frag, a);
}

START_TEST(headers_are_checked)
{
    struct ob1_arrival a;
    struct wire_rndv r = {.match = {.type = OB1_RNDV, .seq = 9, .context = 4, .tag = 5, .src = 6}, .length = 1000};
    struct wire_stream s = {.match = {.type = OB1_STREAM}, .total = 64, .stream = 2};
    ck_assert_int_eq(parse(&r, sizeof(r), 0, &a), STRATA_OK);
    ck_assert(a.length == 1000 && a.seq == 9 && a.context == 4 && a.tag == 5 && a.src == 6 && a.job_rank == 3);
    for (uint32_t n = 0; n < sizeof(r); n++) /* every truncation */
        ck_assert_int_eq(parse(&r, n, 0, &a), STRATA_ERR_PROTOCOL);
    r.match.flags = OB1_F_KEY;
    ck_assert_int_eq(parse(&r, sizeof(r), ST_BTL_KEY_MAX - 1, &a), STRATA_ERR_PROTOCOL);
    ck_assert_int_eq(parse(&r, sizeof(r), ST_BTL_KEY_MAX, &a), STRATA_OK);
    r.length = UINT64_MAX;
    ck_assert_int_eq(parse(&r, sizeof(r), ST_BTL_KEY_MAX, &a), STRATA_ERR_PROTOCOL);
    ck_assert_int_eq(parse(&s, sizeof(s), 64, &a), STRATA_OK);
    ck_assert_uint_eq(a.length, 64);
    s.total = 63;
    ck_assert_int_eq(parse(&s, sizeof(s), 64, &a), STRATA_ERR_PROTOCOL);
    s.total = OB1_STREAM_MAX + 1;
    ck_assert_int_eq(parse(&s, sizeof(s), 64, &a), STRATA_ERR_PROTOCOL);
    for (int type = 0; type < 256; type++) {
        struct wire_sync any = {.match = {.type = (uint8_t)type}};
        bool fine = type == OB1_EAGER || type == OB1_EAGER_SYNC;
        bool stream = type == OB1_STREAM; /* total 0 with no payload is fine */
        ck_assert_int_eq(parse(&any, sizeof(any), 0, &a) == STRATA_OK, fine || stream);
    }
    struct wire_match bad = {.type = OB1_EAGER, .tag = -1};
    ck_assert_int_eq(parse(&bad, sizeof(bad), 0, &a), STRATA_ERR_PROTOCOL);
    bad = (struct wire_match){.type = OB1_EAGER, .src = -1};
    ck_assert_int_eq(parse(&bad, sizeof(bad), 0, &a), STRATA_ERR_PROTOCOL);
}
END_TEST

/* What an object may cost; documented in docs/design/pml_ob1.md. */
START_TEST(budgets)
{
    ck_assert_uint_eq(sizeof(struct ob1_cpeer), 64);
    ck_assert_uint_le(sizeof(struct ob1_peer), 208);
    ck_assert_uint_le(sizeof(struct ob1_req), 288);
    ck_assert_uint_le(sizeof(struct ob1_msg), 320);
    ck_assert_uint_le(sizeof(struct ob1_bin), 48);
    ck_assert_uint_le(sizeof(struct ob1_comm), 384);
}
END_TEST

/* A forged header of zeros is not taken for what was wanted last. */
START_TEST(nothing_is_wanted)
{
    struct ob1_comm c = {.from = &(struct ob1_cpeer){.job_rank = 1}};
    struct ob1_want want = {.hdr_len = sizeof want.w, .w = {0x100, 7}, .comm = &c.head};
    uint64_t header[2] = {0x100, 7}, zero[2] = {0, 7};
    struct st_frag frag = {.rank = 1, .hdr = header, .hdr_len = sizeof header};

    ck_assert(ob1_want_take(&want, &frag));
    ck_assert_uint_eq(want.len, 0);
    ck_assert(!ob1_want_take(&want, &frag));
    frag.hdr = zero;
    ck_assert(!ob1_want_take(&want, &frag));
    ck_assert_uint_eq(c.from->recv_seq, 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ob1_parts");
    TCase *tc = tcase_create("parts");
    tcase_add_test(tc, any_order_in_sequence);
    tcase_add_test(tc, stale_and_repeated_are_refused);
    tcase_add_test(tc, headers_are_checked);
    tcase_add_test(tc, budgets);
    tcase_add_test(tc, nothing_is_wanted);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
