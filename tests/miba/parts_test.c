/* Parts of strata-miba without a device: quartiles, settings and their comparison, thresholds, cases, the use of
 * buffers and of processors. */
#include "config.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<infiniband/verbs.h>)

/* The tool is a program: its parts are compiled into this one. The tests of the table are this file's. */
/* NOLINTBEGIN(bugprone-suspicious-include) */
#include "tools/strata-miba/case.c"
#include "tools/strata-miba/endpoint_connect.c"
#include "tools/shared/spare_memory.c"
#include "tools/strata-miba/machine.c"
#include "tools/strata-miba/names.c"
#include "tools/strata-miba/settings.c"
#include "tools/strata-miba/stats.c"
#include "tools/strata-miba/status.c"
#include "tools/strata-miba/thresholds.c"
/* NOLINTEND(bugprone-suspicious-include) */
#include "tools/strata-miba/post_inl.h"

static const uint64_t values[] = {1, 2};
static const char *const kinds[] = {"a", "b", NULL};
static const struct miba_test moving = {.name = "moving",
                                        .x_name = "size",
                                        .values = values,
                                        .n_values = 2,
                                        .variants = kinds,
                                        .ops = BIT(OP_SEND) | BIT(OP_READ),
                                        .transports = BIT(RC) | BIT(UD)};
static const struct miba_test local = {
    .name = "local", .x_name = "entries", .values = values, .n_values = 2, .values_fixed = true};

/* thresholds.c prints by it (print.c). */
void print_value(double value, enum unit unit, char *text, size_t size)
{
    snprintf(text, size, "%.0f of unit %d", value, (int)unit);
}

static struct samples samples;

START_TEST(quartiles)
{
    samples.n = 0;
    ck_assert_uint_eq(samples_summary(&samples).n, 0);
    for (int i = 5; i >= 1; i--)
        samples_add(&samples, i);
    struct summary s = samples_summary(&samples);
    ck_assert_double_eq(s.median, 3);
    ck_assert_double_eq(s.q1, 2);
    ck_assert_double_eq(s.q3, 4);
    ck_assert_double_eq(s.min, 1);
    ck_assert_double_eq(s.max, 5);
    samples_add(&samples, 100);
    s = samples_summary(&samples);
    ck_assert_double_eq(s.median, 3.5);
    ck_assert_double_eq_tol(s.q3, 4.75, 1e-9);
    samples.n = 0;
    for (unsigned i = 0; i < MOST_SAMPLES + 10; i++)
        samples_add(&samples, 7);
    s = samples_summary(&samples);
    ck_assert_uint_eq(s.n, MOST_SAMPLES);
    ck_assert_double_eq(s.q1, 7);
}
END_TEST

/* Differences of no time stay in their place among the samples: without them the median would be a slower one. */
START_TEST(rates)
{
    const double few[] = {-3, 0, 1, 2, 4}, many[] = {-3, 0, -1, 2, 4};

    samples.n = 0;
    for (unsigned i = 0; i < 5; i++)
        samples_add(&samples, few[i]);
    ck_assert(samples_to_rate(&samples, 8));
    struct summary s = samples_summary(&samples);
    ck_assert_uint_eq(s.n, 5);
    ck_assert_double_eq(s.median, 8000);
    ck_assert_double_eq(s.q1, 4000);
    ck_assert_double_eq(s.q3, 8000);
    ck_assert_double_eq(s.min, 2000);
    samples.n = 0;
    for (unsigned i = 0; i < 5; i++)
        samples_add(&samples, many[i]);
    ck_assert(!samples_to_rate(&samples, 8));
    ck_assert_uint_eq(samples.n, 5);
    /* Fractions of such times are of the same. */
    samples.n = 0;
    for (unsigned i = 0; i < 5; i++)
        samples_add(&samples, few[i]);
    ck_assert(samples_positive(&samples));
    ck_assert_double_eq(samples.value[0], 1);
    ck_assert_double_eq(samples.value[4], 4);
    ck_assert_double_eq(samples_summary(&samples).median, 1);
    samples.n = 0;
    samples_add(&samples, -1);
    ck_assert(!samples_to_rate(&samples, 1));
    ck_assert_uint_eq(samples.n, 0);
}
END_TEST

static unsigned row_of(const char *name)
{
    for (unsigned row = 0; row < miba_settings_count(); row++)
        if (strcmp(miba_settings[row].name, name) == 0)
            return row;
    ck_abort_msg("no setting %s", name);
}

START_TEST(each_setting_takes_its_range)
{
    static const struct {
        const char *name, *good, *bad;
    } rows[] = {{"op", "send,read", "send,fly"},
                {"transport", "rc,UD", "RD"},
                {"values", "8,4k,1m", "8,"},
                {"samples", "1001", "1002"},
                {"time", "1", "0"},
                {"count", "0", "-1"},
                {"window", "8192", "8193"},
                {"size", "8,1g", "8,2g"},
                {"size", "1", "0"},
                {"buffers", "65536", "65537"},
                {"qps", "64", "65"},
                {"burst", "8192", "0"},
                {"mtu", "0", "128"},
                {"mtu", "4096", "3000"},
                {"sl", "15", "16"},
                {"pkey-index", "127", "128"},
                {"memfd", "1", "2"},
                {"one-cq", "1", "2"},
                {"stamps", "1", "2"},
                {"timeout", "1", "0"},
                {"port", "255", "0"},
                {"gid-index", "255", "256"},
                {"cpu", "1023", "1024"},
                {"samples", "7", "7x"},
                {"values", "18446744073709551615", "18446744073709551615k"}};
    struct settings s;

    settings_defaults(&s);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const unsigned row = row_of(rows[i].name);
        ck_assert_msg(!settings_set(&s, row, rows[i].good), "%s %s", rows[i].name, rows[i].good);
        ck_assert(s.given >> row & 1);
        const struct settings before = s;
        ck_assert_msg(settings_set(&s, row, rows[i].bad) != NULL, "%s %s", rows[i].name, rows[i].bad);
        ck_assert_uint_eq(before.given, s.given);
    }
    ck_assert_ptr_null(settings_set(&s, row_of("device"), "d"));
    ck_assert_ptr_null(settings_set(&s, row_of("cm-address"), "a"));
    ck_assert_str_eq(s.device, "d");
    ck_assert_str_eq(s.cm_address, "a");
}
END_TEST

START_TEST(sides_agree)
{
    struct settings client, server;
    struct miba_why why;

    settings_defaults(&client);
    settings_defaults(&server);
    ck_assert_ptr_null(settings_set(&client, row_of("window"), "16"));
    ck_assert_ptr_null(settings_set(&client, row_of("values"), "8,64"));
    ck_assert_ptr_null(settings_set(&client, row_of("op"), "read"));
    ck_assert_ptr_null(settings_set(&client, row_of("port"), "2"));
    json_t *said = settings_json(&client, true);
    ck_assert_ptr_null(json_object_get(said, "port"));
    ck_assert_int_eq(settings_agree(&server, said, &why), MIBA_OK);
    ck_assert_int_eq(server.window, 16);
    ck_assert_uint_eq(server.n_values, 2);
    ck_assert_uint_eq(server.values[1], 64);
    ck_assert_uint_eq(server.ops & ~BIT(OP_NONE), BIT(OP_READ));
    ck_assert_int_eq(server.port, 1);
    /* What the server was given itself has to be the same. */
    ck_assert_ptr_null(settings_set(&server, row_of("window"), "16"));
    ck_assert_int_eq(settings_agree(&server, said, &why), MIBA_OK);
    ck_assert_ptr_null(settings_set(&server, row_of("window"), "8"));
    ck_assert_int_eq(settings_agree(&server, said, &why), MIBA_BROKEN);
    ck_assert_ptr_nonnull(strstr(why.text, "--window is 8 at the server and 16 at the client"));
    /* Another version, and nonsense. */
    settings_defaults(&server);
    json_object_set_new(said, "samples", json_string("many"));
    ck_assert_int_eq(settings_agree(&server, said, &why), MIBA_BROKEN);
    json_object_del(said, "samples");
    ck_assert_int_eq(settings_agree(&server, said, &why), MIBA_BROKEN);
    ck_assert_int_eq(settings_agree(&server, NULL, &why), MIBA_BROKEN);
    json_decref(said);
}
END_TEST

static struct result results_of[3];

START_TEST(thresholds)
{
    struct threshold t[2];
    struct results r = {.all = results_of, .n = 3};

    results_of[0] = (struct result){
        .c = {.test = &moving, .op = OP_SEND, .transport = RC, .x = 65536}, .figure = "fast", .sum = {.median = 2000}};
    results_of[1] = (struct result){
        .c = {.test = &moving, .op = OP_SEND, .transport = RC, .x = 8}, .figure = "fast", .sum = {.median = 900}};
    results_of[2] = (struct result){.c = {.test = &local, .x = 8}, .figure = "local", .status = MIBA_SKIPPED};
    static const struct {
        const char *text;
        bool most;
        unsigned beyond;
    } rows[] = {{"fast.64k=2us", true, 0}, {"fast.64k=1999ns", true, 1}, {"moving=2us", true, 0},
                {"moving=1us", true, 1},   {"moving.8=900", false, 0},   {"moving.8=0.901us", false, 1},
                {"fast.9=1s", true, 1},    {"local.8=1s", true, 1},      {"fast.8=1MB/s", false, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_ptr_null(threshold_take(&t[0], rows[i].text, rows[i].most));
        ck_assert_msg(thresholds_check(t, 1, &r) == rows[i].beyond, "%s", rows[i].text);
    }
    /* What is marked shows nothing: less than the noise is no short time, and the rate of messages that were lost no
     * high one. */
    results_of[0].marked = true;
    results_of[0].sum.median = -5;
    ck_assert_ptr_null(threshold_take(&t[0], "fast.64k=2us", true));
    ck_assert_uint_eq(thresholds_check(t, 1, &r), 1);
    ck_assert_ptr_null(threshold_take(&t[0], "fast.64k=0ns", false));
    ck_assert_uint_eq(thresholds_check(t, 1, &r), 1);
    results_of[0].marked = false;
    static const char *const bad[] = {
        "fast", "=1us", "fast.=1us", "fast.x=1us", "fast=", "fast=us", "fast=1h", "fast=-1us", "fast=nan"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(threshold_take(&t[0], bad[i], true) != NULL, "%s", bad[i]);
}
END_TEST

static char seen[1024];

static int note(void *arg, const struct miba_case *c)
{
    char text[128];

    (void)arg;
    case_text(c, text, sizeof text);
    strcat(strcat(seen, text), ";");
    return strlen(seen) > 900;
}

START_TEST(cases)
{
    struct settings s;

    settings_defaults(&s);
    seen[0] = 0;
    ck_assert_int_eq(cases_visit(&moving, &s, note, NULL), 0);
    /* UD has no reads. */
    ck_assert_str_eq(
        seen, "moving send RC a size 1;moving send RC a size 2;moving send RC b size 1;moving send RC b size 2;"
              "moving send UD a size 1;moving send UD a size 2;moving send UD b size 1;moving send UD b size 2;"
              "moving read RC a size 1;moving read RC a size 2;moving read RC b size 1;moving read RC b size 2;");
    ck_assert_ptr_null(settings_set(&s, row_of("op"), "read"));
    ck_assert_ptr_null(settings_set(&s, row_of("values"), "4k"));
    seen[0] = 0;
    cases_visit(&moving, &s, note, NULL);
    cases_visit(&local, &s, note, NULL);
    ck_assert_str_eq(seen, "moving read RC a size 4096;moving read RC b size 4096;local entries 1;local entries 2;");
    ck_assert_ptr_null(settings_set(&s, row_of("op"), "write"));
    seen[0] = 0;
    cases_visit(&moving, &s, note, NULL);
    ck_assert_str_eq(seen, "");
}
END_TEST

/* A test that varies something else: all its sizes over RC, one over UD, and those that the settings have over both. */
START_TEST(sizes_of_cases)
{
    const uint64_t sizes[] = {16, 32};
    const struct miba_test sized = {.name = "sized",
                                    .x_name = "qps",
                                    .values = values,
                                    .n_values = 1,
                                    .sizes = sizes,
                                    .n_sizes = 2,
                                    .ops = BIT(OP_SEND),
                                    .transports = BIT(RC) | BIT(UD)};
    struct settings s;

    settings_defaults(&s);
    seen[0] = 0;
    cases_visit(&sized, &s, note, NULL);
    ck_assert_str_eq(
        seen, "sized send RC of 16 bytes qps 1;sized send RC of 32 bytes qps 1;sized send UD of 16 bytes qps 1;");
    ck_assert_ptr_null(settings_set(&s, row_of("size"), "4k,1"));
    seen[0] = 0;
    cases_visit(&sized, &s, note, NULL);
    ck_assert_str_eq(seen, "sized send RC of 4096 bytes qps 1;sized send RC of 1 bytes qps 1;"
                           "sized send UD of 4096 bytes qps 1;sized send UD of 1 bytes qps 1;");
}
END_TEST

/* The paper's example: ten buffers, a quarter of the messages uses buffer 0. */
START_TEST(buffers_in_turn)
{
    const uint32_t scheme_1[] = {0, 1, 2, 3, 0, 1, 2, 3}, scheme_2[] = {0, 1, 2, 3, 0, 4, 5, 6, 0, 7, 8, 9, 0, 1};
    const struct traffic one = {.buffers = 1, .reuse_period = 1}, four = {.buffers = 4, .burst = 1},
                         in_bursts = {.buffers = 4, .burst = 3}, ten = {.buffers = 10, .reuse_period = 4};

    for (uint32_t i = 0; i < 8; i++) {
        ck_assert_uint_eq(traffic_buffer(&four, i), scheme_1[i]);
        for (uint32_t k = 0; k < 3; k++)
            ck_assert_uint_eq(traffic_buffer(&in_bursts, 3 * i + k), scheme_1[i]);
    }
    for (uint32_t i = 0; i < 14; i++)
        ck_assert_uint_eq(traffic_buffer(&ten, i), scheme_2[i]);
    ck_assert_uint_eq(traffic_buffer(&one, 77), 0);
}
END_TEST

/* Buffers do not overlap, and those of short messages go to different sets of the processor's caches. */
START_TEST(buffers_have_pages_of_their_own)
{
    static const struct {
        uint32_t size;
        enum miba_transport transport;
        uint64_t stride;
        uint32_t places;
    } of[] = {{8, RC, 4096, 64},   {0, RC, 4096, 64},    {64, RC, 4096, 64},    {2048, RC, 4096, 32},
              {4096, RC, 4096, 1}, {4096, UD, 8192, 64}, {65536, RC, 65536, 1}, {5000, RC, 8192, 32}};

    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        struct endpoint *e = calloc(1, sizeof *e);
        ck_assert_ptr_nonnull(e);
        e->t = (struct traffic){.size = of[k].size, .transport = of[k].transport, .buffers = 100};
        endpoint_lay_out(e);
        ck_assert_uint_eq(e->stride, of[k].stride);
        ck_assert_uint_eq(e->places, of[k].places);
        for (uint32_t i = 0; i < e->t.buffers; i++) {
            const uint64_t at = endpoint_offset(e, i), grh = of[k].transport == UD ? ENDPOINT_GRH_BYTES : 0;
            ck_assert_uint_eq(at / e->stride, i);
            ck_assert_uint_le(at + of[k].size + grh, e->stride * (i + 1));
            ck_assert(e->places == 1 || (at - endpoint_offset(e, i ? i - 1 : 1)) % 4096 != 0);
        }
        free(e);
    }
}
END_TEST

/* The word of the other side begins with 0. */
START_TEST(each_swap_is_one)
{
    struct endpoint *e = calloc(1, sizeof *e);
    uint64_t word = 0;

    ck_assert_ptr_nonnull(e);
    e->t = (struct traffic){.op = OP_COMPARE_SWAP, .transport = RC, .buffers = 1, .signal_every = 1};
    for (uint32_t i = 0; i < 5; i++) {
        post_aim(e, 0, i, 0, false);
        ck_assert_uint_eq(e->wr[0].wr.atomic.compare_add, word);
        ck_assert_uint_ne(e->wr[0].wr.atomic.swap, word);
        word = e->wr[0].wr.atomic.swap;
    }
    e->t.op = OP_FETCH_ADD;
    post_aim(e, 0, 5, 0, false);
    ck_assert_uint_eq(e->wr[0].wr.atomic.compare_add, 1);
    free(e);
}
END_TEST

/* The device of this file: what its queue pairs were asked for last, by their state. */
static struct ibv_qp_attr asked[IBV_QPS_RTS + 1];

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    (void)qp, (void)mask;
    asked[attr->qp_state] = *attr;
    return 0;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    (void)pd, (void)attr;
    return NULL;
}

enum ibv_mtu device_mtu_code(unsigned mtu)
{
    (void)mtu;
    return IBV_MTU_1024;
}

enum miba_status endpoint_arm(struct endpoint *e, struct event_queue *q)
{
    (void)e, (void)q;
    return MIBA_OK;
}

/* No side sends more reads at once than the other one answers, whatever its own device can. */
START_TEST(reads_of_both_sides)
{
    static const struct {
        int own, theirs;
        uint8_t out;
    } of[] = {{16, 16, 16}, {16, 1, 1}, {4, 16, 4}, {255, 128, 16}, {16, 0, 0}};
    static struct miba sides[2];
    static char memory[8192];
    struct ibv_qp qp = {.qp_num = 7};
    struct ibv_mr mr = {.rkey = 9};
    struct endpoint *e[2] = {calloc(1, sizeof *e[0]), calloc(1, sizeof *e[1])};
    char line[512];

    for (int i = 0; i < 2; i++) {
        ck_assert_ptr_nonnull(e[i]);
        *e[i] = (struct endpoint){.m = &sides[i], .memory = memory, .mr = &mr, .pairs = 1, .qp = {&qp}};
        e[i]->t = (struct traffic){.op = OP_READ, .transport = RC, .mtu = 1024, .buffers = 1};
    }
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        sides[0].dev.attr.max_qp_init_rd_atom = of[i].own;
        sides[1].dev.attr.max_qp_rd_atom = of[i].theirs;
        endpoint_info(e[1], line, sizeof line);
        ck_assert(endpoint_take_info(e[0], line));
        ck_assert_uint_eq(e[0]->remote.qpn[0], 7);
        ck_assert_int_eq(endpoint_connect(e[0]), MIBA_OK);
        ck_assert_uint_eq(asked[IBV_QPS_RTS].max_rd_atomic, of[i].out);
    }
    free(e[0]);
    free(e[1]);
}
END_TEST

static cpu_set_t processors_of(const char *list)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    for (; *list; list++)
        CPU_SET((size_t)(*list - '0'), &set);
    return set;
}

/* Both sides here never share a processor, whichever the process may use. */
START_TEST(processors_of_sides)
{
    const cpu_set_t all = processors_of("0123"), odd = processors_of("257"), one = processors_of("3");

    ck_assert_int_eq(machine_processor(&all, -1), 0);
    ck_assert_int_eq(machine_processor(&all, 0), 1);
    ck_assert_int_eq(machine_processor(&all, 1), 0);
    ck_assert_int_eq(machine_processor(&odd, 5), 2);
    ck_assert_int_eq(machine_processor(&odd, 2), 5);
    ck_assert_int_eq(machine_processor(&one, 3), -1);
}
END_TEST

START_TEST(processors_of_loaders)
{
    static const struct {
        const char *permitted;
        int own, other;
        bool own_sleeps;
        const char *left;
    } of[] = {{"01234567", 1, 0, false, "234567"},
              {"01234567", 1, 0, true, "1234567"},
              {"01", 1, 0, false, "1"},
              {"01", 1, 0, true, "1"},
              {"0123", 2, -1, false, "013"},
              {"0123", -1, -1, false, "0123"},
              {"0", -1, 0, false, "0"}};

    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const cpu_set_t permitted = processors_of(of[i].permitted), wanted = processors_of(of[i].left);
        const cpu_set_t left = machine_loaders(&permitted, of[i].own, of[i].other, of[i].own_sleeps);
        ck_assert_msg(CPU_EQUAL(&left, &wanted), "row %zu", i);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("strata-miba parts");
    TCase *c = tcase_create("parts");

    tcase_add_test(c, quartiles);
    tcase_add_test(c, rates);
    tcase_add_test(c, each_setting_takes_its_range);
    tcase_add_test(c, sides_agree);
    tcase_add_test(c, thresholds);
    tcase_add_test(c, cases);
    tcase_add_test(c, sizes_of_cases);
    tcase_add_test(c, buffers_in_turn);
    tcase_add_test(c, buffers_have_pages_of_their_own);
    tcase_add_test(c, each_swap_is_one);
    tcase_add_test(c, reads_of_both_sides);
    tcase_add_test(c, processors_of_sides);
    tcase_add_test(c, processors_of_loaders);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    SRunner *r = srunner_create(suite());

    srunner_run_all(r, CK_NORMAL);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#else

int main(void)
{
    puts("SKIP: built without libibverbs (Debian: libibverbs-dev)");
    return 77;
}

#endif
