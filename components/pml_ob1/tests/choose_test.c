/* The protocol chooser: every combination of its inputs around every boundary, against what must always hold. */
#include <check.h>
#include <stdlib.h>
#include "choose.h"
#include "support/run_suite.h"

static const uint32_t caps_list[] = {0,
                                     ST_BTL_GET,
                                     ST_BTL_PUT,
                                     ST_BTL_GET | ST_BTL_PUT,
                                     ST_BTL_NEEDS_REG,
                                     ST_BTL_GET | ST_BTL_NEEDS_REG,
                                     ST_BTL_PUT | ST_BTL_NEEDS_REG,
                                     ST_BTL_GET | ST_BTL_PUT | ST_BTL_NEEDS_REG,
                                     ST_BTL_GET | ST_BTL_PUT | ST_BTL_NEEDS_REG | ST_BTL_REG_CHEAP,
                                     ST_BTL_GET | ST_BTL_PUT | ST_BTL_NEEDS_REG | ST_BTL_REG_KEPT};
static const uint32_t at_once = ST_BTL_REG_KEPT | ST_BTL_REG_CHEAP; /* the whole message is registered */
#define N_CAPS (sizeof(caps_list) / sizeof(caps_list[0]))

START_TEST(sender)
{
    const uint64_t limits[] = {0, 64, 4096};
    long n = 0;
    for (size_t caps = 0; caps < N_CAPS; caps++)
        for (int bits = 0; bits < 2 * 4 * 5 * 3 * 3; bits++) {
            int b = bits;
            struct ob1_choice c = {.caps = caps_list[caps]};
            c.contiguous = b % 2, b /= 2;
            c.mode = (strata_mode_t)(b % 4), b /= 4;
            c.wanted = (enum ob1_rndv)(b % 5), b /= 5;
            c.eager_limit = limits[b % 3], b /= 3;
            c.stream_limit = limits[b];
            const uint64_t edges[] = {
                0, 1, c.eager_limit, c.eager_limit + 1, c.stream_limit, c.stream_limit + 1, UINT64_MAX};
            for (size_t e = 0; e < 7; e++, n++) {
                c.length = edges[e];
                enum ob1_protocol p = ob1_choose(&c);
                bool sync = c.mode == STRATA_SYNCHRONOUS;
                bool rdma = c.contiguous && (c.caps & (ST_BTL_GET | ST_BTL_PUT));
                if (c.length <= c.eager_limit)
                    ck_assert_int_eq(p, sync ? OB1_P_EAGER_SYNC : OB1_P_EAGER);
                else if (c.length <= c.stream_limit && !sync)
                    ck_assert_int_eq(p, OB1_P_STREAM);
                else if (!rdma)
                    ck_assert_int_eq(p, OB1_P_RNDV);
                else
                    ck_assert(p == OB1_P_RNDV_EXPOSED || p == OB1_P_RNDV_KEY);
                if (p == OB1_P_RNDV_KEY) {
                    ck_assert(c.caps & ST_BTL_NEEDS_REG);
                    ck_assert(c.caps & ST_BTL_GET);
                    ck_assert(!(c.caps & ST_BTL_PUT) || c.wanted == OB1_RNDV_GET || c.wanted == OB1_RNDV_SPLIT ||
                              (c.wanted == OB1_RNDV_AUTO && (c.caps & at_once)));
                } else if (c.length > c.eager_limit && c.length > c.stream_limit && rdma) {
                    ck_assert(!(c.caps & at_once) || c.wanted != OB1_RNDV_AUTO);
                }
            }
        }
    ck_assert_int_gt(n, 10000);
}
END_TEST

START_TEST(receiver)
{
    for (size_t caps = 0; caps < N_CAPS; caps++)
        for (int bits = 0; bits < 8 * 5 * 3 * 3; bits++) {
            int b = bits;
            const uint64_t limits[] = {0, 1000, 5000};
            struct ob1_choice c = {.matched = true, .caps = caps_list[caps]};
            c.contiguous = b % 2, b /= 2;
            c.peer_exposed = b % 2, b /= 2;
            c.peer_key = b % 2, b /= 2;
            c.wanted = (enum ob1_rndv)(b % 5), b /= 5;
            c.rdma_min = limits[b % 3], b /= 3;
            c.split_min = limits[b];
            const uint64_t edges[] = {0, 1, 2, 999, 1000, 1001, 4999, 5000, 5001, UINT64_MAX};
            for (size_t e = 0; e < 10; e++) {
                c.length = edges[e];
                enum ob1_protocol p = ob1_choose(&c);
                bool direct = c.contiguous && c.peer_exposed;
                bool reg = c.caps & ST_BTL_NEEDS_REG;
                bool get = direct && (c.caps & ST_BTL_GET) && (!reg || c.peer_key);
                bool put = direct && (c.caps & ST_BTL_PUT);
                if (c.length == 0) {
                    ck_assert_int_eq(p, OB1_P_NOTHING);
                    continue;
                }
                ck_assert(p == OB1_P_GET || p == OB1_P_PUT || p == OB1_P_SPLIT || p == OB1_P_PIPELINE);
                if (p == OB1_P_GET)
                    ck_assert(get);
                if (p == OB1_P_PUT)
                    ck_assert(put);
                if (p == OB1_P_SPLIT)
                    ck_assert(get && put && c.length > 1);
                if (c.wanted == OB1_RNDV_PIPELINE || (!get && !put))
                    ck_assert_int_eq(p, OB1_P_PIPELINE);
                if (c.wanted == OB1_RNDV_GET && get)
                    ck_assert_int_eq(p, OB1_P_GET);
                if (c.wanted == OB1_RNDV_PUT && put)
                    ck_assert_int_eq(p, OB1_P_PUT);
                if (c.wanted != OB1_RNDV_AUTO)
                    continue;
                if (c.length < c.rdma_min)
                    ck_assert_int_eq(p, OB1_P_PIPELINE);
                else if (get || put)
                    ck_assert_int_ne(p, OB1_P_PIPELINE);
                if (p == OB1_P_SPLIT)
                    ck_assert(c.split_min && c.length >= c.split_min);
                else if (get && put && c.split_min && c.length > 1)
                    ck_assert_uint_lt(c.length, c.split_min > c.rdma_min ? c.split_min : c.rdma_min);
            }
        }
}
END_TEST

START_TEST(names)
{
    for (int p = 0; p < OB1_P_COUNT; p++)
        ck_assert_str_ne(ob1_protocol_name((enum ob1_protocol)p), "?");
    ck_assert_str_eq(ob1_protocol_name(OB1_P_COUNT), "?");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ob1_choose");
    TCase *tc = tcase_create("choose");
    tcase_add_test(tc, sender);
    tcase_add_test(tc, receiver);
    tcase_add_test(tc, names);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
