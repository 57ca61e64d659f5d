/* Payloads that are sent with MSG_ZEROCOPY. Over loopback the kernel copies them, and says so. */
/* one thread */
#include "rdma_rig.h"

enum { AREA = 16 << 20 };

static void setup(void)
{
    rdma_setup(AREA);
}

static void teardown(void)
{
    rdma_teardown();
    rig_zerocopy = "off";
    rig_piece = 4032;
}

/* Puts, and answers to gets, of rank 1's memory. */
static void moves(bool get, size_t len, uint64_t seed)
{
    struct st_btl_endpoint *ep = rig_connect(0, 1);
    char *data = calloc(1, len);
    struct op op;
    int rc;

    pattern_fill(get ? memory[1] : data, len, seed);
    AWAIT((rc = begin(ep, get, data, 0, len, &op)) != STRATA_ERR_AGAIN, rig_poll());
    ck_assert_int_eq(rc, STRATA_OK);
    AWAIT(op.calls, rig_poll());
    ck_assert_int_eq(op.rc, STRATA_OK);
    ck_assert_int_eq(pattern_check(get ? data : memory[1], len, seed), -1);
    free(data);
}

static const struct tcp_zerocopy *of(int rank)
{
    return &peer_of(rank, 1 - rank)->rdma->zerocopy;
}

START_TEST(lengths)
{
    static const struct {
        const char *text;
        bool good;
        size_t shortest;
    } t[] = {{"off", true, TCP_ZEROCOPY_OFF},
             {"", true, TCP_ZEROCOPY_OFF},
             {"auto", true, 0},
             {"4096", true, 4096},
             {"64k", true, 64 << 10},
             {"2m", true, 2 << 20},
             {"0", false, 0},
             {"-1", false, 0},
             {"64q", false, 0},
             {"on", false, 0},
             {"64kk", false, 0},
             {"99999999999999999999", false, 0}};

    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        size_t shortest = 1;
        ck_assert_msg(tcp_zerocopy_parse(t[i].text, &shortest) == t[i].good, "%s", t[i].text);
        ck_assert(!t[i].good || shortest == t[i].shortest);
    }
}
END_TEST

/* By length: used until the kernel says that it copies; all arrives before, meanwhile and after. */
START_TEST(copied_is_noticed)
{
    int sender = _i;

    rdma_teardown();
    rig_zerocopy = "1k";
    setup();
    (void)link_both();
    moves(sender == 1, AREA, 11);
    AWAIT(of(sender)->mode == TCP_ZEROCOPY_NOT, rig_poll());
    ck_assert_uint_ge(rig[sender].m->count.zerocopy, 1);
    ck_assert_uint_ge(rig[sender].m->count.copied, 1);
    AWAIT(of(sender)->pending == 0, rig_poll()); /* or the error queue would wake each sleep */
    for (size_t len = 1; len < AREA; len = 3 * len + 1)
        moves(sender == 1, len, len);
    ck_assert_uint_eq(rig[0].lost + rig[1].lost, 0);
}
END_TEST

/* The default uses it never, nor does auto for longer than it takes to see that the kernel copies. */
START_TEST(others)
{
    rdma_teardown();
    rig_zerocopy = _i ? "auto" : "off";
    rig_piece = 128 << 10; /* payloads of a length that auto tries */
    setup();
    (void)link_both();
    for (uint64_t i = 0; i < 3; i++)
        moves(false, AREA, i);
    AWAIT(of(0)->pending == 0, rig_poll());
    ck_assert_int_eq(of(0)->mode, TCP_ZEROCOPY_NOT);
    ck_assert(_i ? rig[0].m->count.copied > 0 : rig[0].m->count.zerocopy == 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tcp without copies");
    TCase *tc = tcase_create("zerocopy");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, lengths);
    tcase_add_loop_test(tc, copied_is_noticed, 0, 2);
    tcase_add_loop_test(tc, others, 0, 2);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
