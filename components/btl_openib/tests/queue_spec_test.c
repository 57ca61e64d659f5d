/* receive_queues: what is taken, and what is said of every kind of mistake. */
/* one thread */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "queues/queue.h"
#include "support/run_suite.h"

#define LOW "S,32k,1024,8,16"

static const struct {
    const char *text, *why;
} bad[] = {
    {"", "btl_openib_receive_queues, high priority: expected S or P at the end"},
    {"X,8k,64,16,32:" LOW, "btl_openib_receive_queues, high priority: expected S or P at 'X,8k,64,16,32:S,32k,'"},
    {"s,8k,64,16,32:" LOW, "btl_openib_receive_queues, high priority: expected S or P at 's,8k,64,16,32:S,32k,'"},
    {"S", "btl_openib_receive_queues, high priority: expected ',' and SIZE at the end"},
    {"S8k,64", "btl_openib_receive_queues, high priority: expected ',' and SIZE at '8k,64'"},
    {"S,8k", "btl_openib_receive_queues, high priority: expected ',' and COUNT at the end"},
    {"S,8k,64:" LOW, "btl_openib_receive_queues, high priority: expected ',' and LOW at ':S,32k,1024,8,16'"},
    {"S,8k,64,16:" LOW, "btl_openib_receive_queues, high priority: expected ',' and CREDITS at ':S,32k,1024,8,16'"},
    {"S,8192g,64,16,32:" LOW,
     "btl_openib_receive_queues, high priority: expected ',' and COUNT at 'g,64,16,32:S,32k,102'"},
    {"S,,64,16,32:" LOW, "btl_openib_receive_queues, high priority: SIZE must be a number from 512 to 16777216, not "
                         "',64,16,32:S,32k,1024'"},
    {"S,-8,64,16,32:" LOW, "btl_openib_receive_queues, high priority: SIZE must be a number from 512 to 16777216, not "
                           "'-8,64,16,32:S,32k,10'"},
    {"S, 8k,64,16,32:" LOW, "btl_openib_receive_queues, high priority: SIZE must be a number from 512 to 16777216, not "
                            "' 8k,64,16,32:S,32k,1'"},
    {"S,8k,", "btl_openib_receive_queues, high priority: COUNT must be a number from 4 to 65536, not the end"},
    {"S,511,64,16,32:" LOW, "btl_openib_receive_queues, high priority: SIZE must be a number from 512 to 16777216, not "
                            "'511,64,16,32:S,32k,1'"},
    {"S,17m,64,16,32:" LOW, "btl_openib_receive_queues, high priority: SIZE must be a number from 512 to 16777216, not "
                            "'17m,64,16,32:S,32k,1'"},
    {"S,99999999999999999999999,64", "btl_openib_receive_queues, high priority: SIZE must be a number from 512 to "
                                     "16777216, not '99999999999999999999'"},
    {"S,4294967808,64",
     "btl_openib_receive_queues, high priority: SIZE must be a number from 512 to 16777216, not '4294967808,64'"},
    {"S,8k,3,1,2:" LOW,
     "btl_openib_receive_queues, high priority: COUNT must be a number from 4 to 65536, not '3,1,2:S,32k,1024,8,1'"},
    {"S,8k,64,0,32:" LOW,
     "btl_openib_receive_queues, high priority: LOW must be a number from 1 to 32768, not '0,32:S,32k,1024,8,16'"},
    {"S,8k,64,16,1:" LOW,
     "btl_openib_receive_queues, high priority: CREDITS must be a number from 2 to 16384, not '1:S,32k,1024,8,16'"},
    {"S,8k,64,64,32:" LOW, "btl_openib_receive_queues, high priority: LOW (64) must be less than COUNT (64)"},
    {"P,8k,23,1,16:" LOW,
     "btl_openib_receive_queues, high priority: COUNT (23) must be 24 at least: CREDITS (16) and 8 "
     "for what needs none"},
    {"P,8k,4,1,16384:" LOW,
     "btl_openib_receive_queues, high priority: COUNT (4) must be 16392 at least: CREDITS (16384) "
     "and 8 for what needs none"},
    {"S,8k,64,16,32", "btl_openib_receive_queues: expected ':' and the queue of low priority at the end"},
    {"S,8k,64,16,32;" LOW,
     "btl_openib_receive_queues: expected ':' and the queue of low priority at ';S,32k,1024,8,16'"},
    {"S,8k,64,16,32:", "btl_openib_receive_queues, low priority: expected S or P at the end"},
    {"S,8k,64,16,32:S,32k,1024,8", "btl_openib_receive_queues, low priority: expected ',' and CREDITS at the end"},
    {"S,8k,64,16,32:S,32k,8,8,4", "btl_openib_receive_queues, low priority: LOW (8) must be less than COUNT (8)"},
    {"S,8k,64,16,32:P,32k,8,1,9",
     "btl_openib_receive_queues, low priority: COUNT (8) must be 10 at least: CREDITS (9) and 1 for what needs none"},
    {"S,8k,64,16,32:" LOW ":" LOW,
     "btl_openib_receive_queues: something follows the queue of low priority: ':S,32k,1024,8,16'"},
    {"S,8k,64,16,32:" LOW " ", "btl_openib_receive_queues: something follows the queue of low priority: ' '"},
    {"S,64k,64,16,32:" LOW,
     "btl_openib_receive_queues: buffers of high priority (65536 bytes) are larger than those of low (32768)"},
};

START_TEST(mistakes)
{
    struct ib_queue_spec q[2];
    char why[256] = "";

    ck_assert(!ib_queue_spec_parse(bad[_i].text, q, why, sizeof why));
    ck_assert_str_eq(why, bad[_i].why);
}
END_TEST

/* Every proper beginning of a good text is a mistake with a reason that fits any space, except where the last number
 * only becomes a smaller one. */
START_TEST(beginnings)
{
    static const char good[] = "S,8k,4096,16,32:P,32k,1024,8,20";
    struct ib_queue_spec q[2];

    for (size_t n = 0; n < sizeof good - 2; n++) {
        char *text = strndup(good, n), why[24] = "";
        ck_assert(!ib_queue_spec_parse(text, q, why, sizeof why));
        ck_assert_uint_gt(strlen(why), 10);
        ck_assert_uint_lt(strlen(why), sizeof why);
        free(text);
    }
}
END_TEST

/* Random changes of a good text: refused with a reason, or all within what is promised. */
START_TEST(random_changes)
{
    static const char good[] = "S,8k,4096,16,32:P,32k,1024,8,16", letters[] = "SPXsp0123456789kKmM,:;- \xff";

    srand(7);
    for (int round = 0; round < 200000; round++) {
        struct ib_queue_spec q[2];
        char text[sizeof good], why[256] = "";
        memcpy(text, good, sizeof text);
        for (int i = 0; i <= round % 4; i++)
            text[(size_t)rand() % (sizeof good - 1)] = letters[(size_t)rand() % (sizeof letters - 1)];
        if (!ib_queue_spec_parse(text, q, why, sizeof why)) {
            ck_assert_uint_gt(strlen(why), 10);
            continue;
        }
        for (int i = 0; i < 2; i++) {
            ck_assert(q[i].size >= 512 && q[i].size <= 1u << 24);
            ck_assert(q[i].count >= 4 && q[i].count <= 1u << 16);
            ck_assert(q[i].shared ? q[i].low < q[i].count : q[i].credits + q[i].beyond <= q[i].count);
            ck_assert(q[i].credits >= 2 && q[i].credits <= 1u << 14);
        }
        ck_assert(q[0].size <= q[1].size);
    }
}
END_TEST

START_TEST(good_ones)
{
    struct ib_queue_spec q[2];
    char why[256] = "";

    ck_assert(ib_queue_spec_parse("S,8k,4096,16,32:P,1M,65,1,64", q, why, sizeof why));
    ck_assert_str_eq(why, "");
    ck_assert(q[0].shared && !q[1].shared);
    ck_assert(q[0].size == 8192 && q[0].count == 4096 && q[0].low == 16 && q[0].credits == 32);
    ck_assert(q[1].size == 1u << 20 && q[1].count == 65 && q[1].low == 1 && q[1].credits == 64);
    ck_assert(ib_queue_spec_parse("P,8k,24,1,16:P,32k,7,1,6", q, why, sizeof why));
    ck_assert(!q[0].shared && q[0].count == 24 && q[0].credits == 16 && q[0].beyond == 8 && q[1].beyond == 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("receive_queues");
    TCase *t = tcase_create("all");

    tcase_add_loop_test(t, mistakes, 0, (int)(sizeof bad / sizeof *bad));
    tcase_add_test(t, beginnings);
    tcase_add_test(t, random_changes);
    tcase_add_test(t, good_ones);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
