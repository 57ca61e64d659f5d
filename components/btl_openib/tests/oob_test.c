/* Parameter connect, and what two processes choose. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "methods/oob.h"
#include "support/run_suite.h"

static const struct {
    const char *text, *why;
} bad[] = {
    {"", "btl_openib_connect: expected ud, tcp or rdmacm at the end"},
    {"udp", "btl_openib_connect: expected ud, tcp or rdmacm at 'udp'"},
    {"u", "btl_openib_connect: expected ud, tcp or rdmacm at 'u'"},
    {"UD", "btl_openib_connect: expected ud, tcp or rdmacm at 'UD'"},
    {"ud,", "btl_openib_connect: expected ud, tcp or rdmacm at the end"},
    {",ud", "btl_openib_connect: expected ud, tcp or rdmacm at ',ud'"},
    {"ud tcp", "btl_openib_connect: expected ud, tcp or rdmacm at 'ud tcp'"},
    {"tcp,ud,xoob,a-very-long-name-indeed", "btl_openib_connect: expected ud, tcp or rdmacm at 'xoob,a-very-long-nam'"},
    {"ud,tcp,ud", "btl_openib_connect: ud is there twice"},
    {"tcp,rdmacm,ud,tcp", "btl_openib_connect: tcp is there twice"},
};

START_TEST(mistakes)
{
    uint8_t list[IB_METHODS] = {9, 9, 9};
    char why[128] = "";

    ck_assert(!ib_methods_parse(bad[_i].text, list, why, sizeof why));
    ck_assert_str_eq(why, bad[_i].why);
    ck_assert(list[0] == 9 && list[2] == 9);
}
END_TEST

static const char *const good[] = {"ud",         "tcp",           "rdmacm",        "ud,tcp",
                                   "tcp,ud",     "rdmacm,tcp",    "ud,tcp,rdmacm", "rdmacm,tcp,ud",
                                   "tcp,rdmacm", "ud,rdmacm,tcp", "tcp,ud,rdmacm"};
#define N_GOOD (int)(sizeof good / sizeof *good)

START_TEST(good_ones)
{
    uint8_t list[IB_METHODS];
    char why[128] = "", text[32], narrow[6];

    ck_assert(ib_methods_parse(good[_i], list, why, sizeof why));
    ck_assert_str_eq(ib_methods_text(list, text, sizeof text), good[_i]);
    ck_assert_int_eq(strncmp(ib_methods_text(list, narrow, sizeof narrow), good[_i], 5), 0);
}
END_TEST

/* For every two lists both sides get the same answer: one that both have, and none only when there is none. */
START_TEST(both_agree)
{
    for (int i = 0; i < N_GOOD; i++)
        for (int j = 0; j < N_GOOD; j++) {
            uint8_t a[IB_METHODS], b[IB_METHODS];
            uint32_t ab, ba;
            bool common = false;
            ck_assert(ib_methods_parse(good[i], a, NULL, 0) && ib_methods_parse(good[j], b, NULL, 0));
            ab = ib_method_choose(a, b, true);
            ba = ib_method_choose(b, a, false);
            ck_assert_uint_eq(ab, ba);
            for (int k = 0; k < IB_METHODS; k++)
                common |= a[k] && memchr(b, a[k], sizeof b);
            ck_assert(common == (ab != 0));
            ck_assert(!common || (memchr(a, (int)ab, sizeof a) && memchr(b, (int)ab, sizeof b)));
            if (memchr(b, a[0], sizeof b))
                ck_assert_uint_eq(ab, a[0]);
        }
}
END_TEST

/* A card may hold anything. */
START_TEST(random_cards)
{
    srand(5);
    for (int round = 0; round < 100000; round++) {
        uint8_t mine[IB_METHODS] = {IB_METHOD_UD, IB_METHOD_TCP}, theirs[IB_METHODS];
        uint32_t got;
        for (int k = 0; k < IB_METHODS; k++)
            theirs[k] = (uint8_t)(rand() % 3 ? rand() % 5 : rand());
        got = ib_method_choose(mine, theirs, round % 2);
        ck_assert(got == 0 || got == IB_METHOD_UD || got == IB_METHOD_TCP);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("methods of connecting");
    TCase *t = tcase_create("all");

    tcase_add_loop_test(t, mistakes, 0, (int)(sizeof bad / sizeof *bad));
    tcase_add_loop_test(t, good_ones, 0, N_GOOD);
    tcase_add_test(t, both_agree);
    tcase_add_test(t, random_cards);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
