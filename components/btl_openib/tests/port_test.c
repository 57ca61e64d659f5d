/* What follows from a port's attributes alone: its bandwidth, the length of RDMA requests, who moves the
 * bytes. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "device/device.h"
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
    /* asked for, or what the device can; never less than the least, but what the device can */
    ck_assert_uint_eq(ib_longest_rdma(0, 1u << 31), 1u << 31);
    ck_assert_uint_eq(ib_longest_rdma(0, 0), 1u << 30);
    ck_assert_uint_eq(ib_longest_rdma(1 << 20, 1u << 31), 1u << 20);
    ck_assert_uint_eq(ib_longest_rdma(1 << 20, 1u << 16), 1u << 16);
    ck_assert_uint_eq(ib_longest_rdma(1, 1u << 31), IB_RDMA_LEAST);
    ck_assert_uint_eq(ib_longest_rdma(1, 1024), 1024);
}
END_TEST

/* Only software on InfiniBand differs but for splits; only Ethernet has short requests. */
START_TEST(limits)
{
    for (int i = 0; i < 4; i++) {
        bool software = i & 1, ethernet = i & 2;
        const struct ib_limits *l = ib_limits(software, ethernet);
        ck_assert_uint_eq(l->rdma_request, ethernet ? 32768 : 0);
        ck_assert_uint_eq(l->rdma_reads, ethernet ? 4 : 16);
        ck_assert_uint_eq(l->split_min, !software ? 0 : ethernet ? 65536 : 131072);
        ck_assert_uint_eq(l->stream_limit, software && !ethernet ? 65536 : 32768);
        ck_assert_uint_eq(l->max_inline, software && !ethernet ? 576 : 192);
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
    tcase_add_test(t, limits);
    tcase_add_test(t, software);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
