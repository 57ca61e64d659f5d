/* Distance of devices in a machine made up here: two packages, a device at each, and one that is not known. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "device/distance.h"
#include "support/run_suite.h"

/* A synthetic machine as XML, with an OpenFabrics device put into each package. */
static hwloc_topology_t machine(void)
{
    static const char device[] = "<object type=\"OSDev\" gp_index=\"90%d\" name=\"dev%d\" osdev_type=\"3\"/>\n";
    hwloc_topology_t plain, t;
    char *xml, *with = NULL;
    int length, n = 0;
    size_t size = 0;
    FILE *f = open_memstream(&with, &size);

    ck_assert_int_eq(hwloc_topology_init(&plain), 0);
    ck_assert_int_eq(hwloc_topology_set_synthetic(plain, "pack:2 [numa] core:2 pu:1"), 0);
    ck_assert_int_eq(hwloc_topology_load(plain), 0);
    ck_assert_int_eq(hwloc_topology_export_xmlbuffer(plain, &xml, &length, 0), 0);
    /* A package ends with the tag that closes it: the third level of indentation is its own. */
    for (char *line = xml, *next; *line; line = next) {
        next = strchr(line, '\n');
        next = next ? next + 1 : line + strlen(line);
        if (strncmp(line, "    </object>", 13) == 0) {
            fprintf(f, device, n, n);
            n++;
        }
        fwrite(line, 1, (size_t)(next - line), f);
    }
    fclose(f);
    ck_assert_int_eq(n, 2);
    ck_assert_int_eq(hwloc_topology_init(&t), 0);
    ck_assert_int_eq(hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_ALL), 0);
    ck_assert_int_eq(hwloc_topology_set_xmlbuffer(t, with, (int)size + 1), 0);
    ck_assert_int_eq(hwloc_topology_load(t), 0);
    hwloc_free_xmlbuffer(plain, xml);
    hwloc_topology_destroy(plain);
    free(with);
    return t;
}

START_TEST(nearest_by_binding)
{
    hwloc_topology_t t = machine();
    hwloc_bitmap_t bound = hwloc_bitmap_alloc();

    hwloc_bitmap_only(bound, 0); /* in the first package */
    ck_assert_int_eq(ib_distance_in(t, bound, "dev0"), 0);
    ck_assert_int_gt(ib_distance_in(t, bound, "dev1"), 0);
    hwloc_bitmap_only(bound, 3); /* in the second */
    ck_assert_int_gt(ib_distance_in(t, bound, "dev0"), 0);
    ck_assert_int_eq(ib_distance_in(t, bound, "dev1"), 0);
    hwloc_bitmap_set_range(bound, 0, 3); /* anywhere */
    ck_assert_int_eq(ib_distance_in(t, bound, "dev0"), 0);
    ck_assert_int_eq(ib_distance_in(t, bound, "dev1"), 0);
    ck_assert_int_eq(ib_distance_in(t, bound, "soft0"), -1);
    hwloc_bitmap_free(bound);
    hwloc_topology_destroy(t);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("openib_distance");
    TCase *tc = tcase_create("distance");
    tcase_add_test(tc, nearest_by_binding);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
