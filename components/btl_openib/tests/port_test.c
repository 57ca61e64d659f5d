/* What follows from a port's attributes alone: its bandwidth, the length of RDMA requests, who moves the
 * bytes. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "device/port_choice.h"
#include "support/run_suite.h"

static const struct {
    uint8_t width, speed;
    uint32_t mbs;
    const char *name;
} ports[] = {
    {2, 4, 4000, "4x QDR"},          {2, 16, 6800, "4x FDR"},        {1, 32, 3125, "1x EDR, 25 Gb/s"},
    {2, 32, 12500, "4x EDR"},        {2, 64, 25000, "4x HDR"},       {16, 64, 12500, "2x HDR, called HDR100"},
    {2, 128, 50000, "4x NDR"},       {16, 128, 25000, "2x NDR"},     {8, 1, 3000, "12x SDR"},
    {4, 32, 25000, "8x EDR"},        {2, 0, 1000, "no speed said"},  {0, 32, 1000, "no width said"},
    {2, 255, 1000, "no such speed"}, {3, 32, 1000, "no such width"},
};

START_TEST(bandwidth)
{
    struct ibv_port_attr a = {.active_width = ports[_i].width, .active_speed = ports[_i].speed};

    ck_assert_msg(ib_bandwidth(&a) == ports[_i].mbs, "%s: %u MB/s, not %u", ports[_i].name, ib_bandwidth(&a),
                  ports[_i].mbs);
}
END_TEST

START_TEST(longest_rdma)
{
    /* asked for, or by the link layer; what the device can; never less than the least */
    ck_assert_uint_eq(ib_longest_rdma(0, true, 1u << 31), IB_RDMA_ON_ETHERNET);
    ck_assert_uint_eq(ib_longest_rdma(0, false, 1u << 31), 1u << 31);
    ck_assert_uint_eq(ib_longest_rdma(0, false, 0), 1u << 30);
    ck_assert_uint_eq(ib_longest_rdma(1 << 20, true, 1u << 31), 1u << 20);
    ck_assert_uint_eq(ib_longest_rdma(1 << 20, true, 1u << 16), 1u << 16);
    ck_assert_uint_eq(ib_longest_rdma(1, false, 1u << 31), IB_RDMA_LEAST);
    ck_assert_uint_eq(ib_longest_rdma(1, false, 1024), 1024);
}
END_TEST

START_TEST(split)
{
    ck_assert_uint_eq(ib_split_min(0, true, true), IB_SPLIT_ON_ETHERNET);
    ck_assert_uint_eq(ib_split_min(0, true, false), IB_SPLIT_ON_INFINIBAND);
    ck_assert_uint_eq(ib_split_min(0, false, true), 0);
    ck_assert_uint_eq(ib_split_min(0, false, false), 0);
    ck_assert_uint_eq(ib_split_min(4096, false, false), 4096);
    ck_assert_uint_eq(ib_split_min(4096, true, true), 4096);
}
END_TEST

START_TEST(inlined)
{
    ck_assert_uint_eq(ib_max_inline(0, true, false), 3 * IB_MAX_INLINE);
    ck_assert_uint_eq(ib_max_inline(0, true, true), IB_MAX_INLINE);
    ck_assert_uint_eq(ib_max_inline(0, false, false), IB_MAX_INLINE);
    ck_assert_uint_eq(ib_max_inline(1, true, false), 1);
}
END_TEST

START_TEST(stream)
{
    ck_assert_uint_eq(ib_stream_limit(0, true, false), 2 * IB_STREAM_LIMIT);
    ck_assert_uint_eq(ib_stream_limit(0, true, true), IB_STREAM_LIMIT);
    ck_assert_uint_eq(ib_stream_limit(0, false, false), IB_STREAM_LIMIT);
    ck_assert_uint_eq(ib_stream_limit(4096, true, false), 4096);
}
END_TEST

/* A send of 500 ns and copies of 16 bytes a ns: asking costs as much as copying 16 KB. */
static const struct ib_port_times quick = {500, 2000, 6000, 5500, 4096, 3000};

START_TEST(costs_follow_times)
{
    struct ib_port_costs kept = ib_port_costs(&quick, true, true), each = ib_port_costs(&quick, false, true);
    struct ib_port_times t = quick;

    ck_assert_uint_eq(kept.ask, IB_ASK_LEAST); /* 16,000 bytes: a buffer holds more */
    ck_assert_uint_eq(kept.alone, 8192);       /* 8,000 */
    ck_assert_uint_eq(kept.rdma, IB_ASK_LEAST);
    ck_assert_uint_eq(each.rdma, 64000); /* 1 us to ask, 3 to register */
    ck_assert_uint_eq(each.alone, each.rdma);
    t.sends = 2000; /* dear messages */
    ck_assert_uint_eq(ib_port_costs(&t, true, true).ask, 64000);
    ck_assert_uint_eq(ib_port_costs(&t, true, true).alone, 32000);
    t.copies_64k = 40960; /* and dear copies */
    ck_assert_uint_eq(ib_port_costs(&t, true, true).ask, IB_ASK_LEAST);
}
END_TEST

START_TEST(hardware_does_not_split)
{
    struct ib_port_times t = quick;

    ck_assert_uint_eq(ib_port_costs(&t, true, false).split, 0);
    ck_assert_uint_ge(ib_port_costs(&t, true, true).split, IB_SPLIT_ON_ETHERNET);
    t.posts_64k = 300; /* somebody else moves the bytes */
    ck_assert_uint_eq(ib_port_costs(&t, true, true).split, 0);
}
END_TEST

/* Whatever a device says, thresholds stay within their bounds. */
START_TEST(costs_have_bounds)
{
    const struct ib_port_times nothing = {0}, slow = {1u << 30, 1u << 30, 1u << 30, 1u << 30, 1, 1u << 30};

    for (int i = 0; i < 4; i++) {
        struct ib_port_costs c = ib_port_costs(i & 1 ? &nothing : &slow, i & 2, true);
        ck_assert_uint_ge(c.ask, IB_ASK_LEAST);
        ck_assert_uint_le(c.ask, IB_ASK_MOST);
        ck_assert_uint_ge(c.alone, IB_ALONE_LEAST);
        ck_assert_uint_le(c.rdma, IB_RDMA_MOST);
    }
}
END_TEST

/* In sysfs hardware has a `device`, what it is on its bus; software has none. */
START_TEST(software)
{
    struct ibv_device d = {.name = "one"};
    char folder[] = "/tmp/strata-port.XXXXXX", device[sizeof folder + sizeof "/device"];

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(d.ibdev_path, sizeof d.ibdev_path, "%s", folder);
    snprintf(device, sizeof device, "%s/device", folder);
    ck_assert(ib_is_software(&d));
    ck_assert_int_eq(mkdir(device, 0700), 0);
    ck_assert(!ib_is_software(&d));
    ck_assert_int_eq(rmdir(device), 0);
    ck_assert_int_eq(rmdir(folder), 0);
    ck_assert(ib_is_software(&d));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("port");
    TCase *t = tcase_create("all");

    tcase_add_loop_test(t, bandwidth, 0, (int)(sizeof ports / sizeof *ports));
    tcase_add_test(t, longest_rdma);
    tcase_add_test(t, split);
    tcase_add_test(t, stream);
    tcase_add_test(t, inlined);
    tcase_add_test(t, costs_follow_times);
    tcase_add_test(t, hardware_does_not_split);
    tcase_add_test(t, costs_have_bounds);
    tcase_add_test(t, software);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
