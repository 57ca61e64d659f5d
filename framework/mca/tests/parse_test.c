/* Text to typed values, and the words a user gets when it is not one. */
#include "framework/mca/internal.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "support/run_suite.h"

static const char *const moods[] = {"spin", "yield", "sleep", NULL};

static struct st_param row_of(enum st_param_type type)
{
    return (struct st_param){.name = "x", .type = type, .dflt = "0", .help = "Help.", .level = 1, .choices = moods};
}

static int parse(const struct st_param *row, const char *text, union st_value *v)
{
    char why[600];
    return st_param_parse(row, text, v, why, sizeof(why));
}

START_TEST(bools)
{
    static const char *const yes[] = {"1", "true", "YES", "On"}, *const no[] = {"0", "false", "no", "OFF"},
                             *const bad[] = {"", "2", "ja", "true ", "10"};
    struct st_param row = row_of(ST_PARAM_BOOL);
    union st_value v;
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(parse(&row, yes[i], &v), 0);
        ck_assert(v.b);
        ck_assert_int_eq(parse(&row, no[i], &v), 0);
        ck_assert(!v.b);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ck_assert_int_eq(parse(&row, bad[i], &v), STRATA_ERR_PARAM);
}
END_TEST

START_TEST(ints)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {
        {"0", 0}, {"-1", -1}, {"+7", 7}, {"0x10", 16}, {"-0x10", -16}, {"010", 10}, {"9223372036854775807", INT64_MAX}};
    static const char *const bad[] = {"", "-", "1k", "1.5", " 1", "1 ", "0x", "9223372036854775808", "one", "--1"};
    struct st_param row = row_of(ST_PARAM_INT);
    union st_value v;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        ck_assert_msg(!parse(&row, good[i].text, &v), "%s", good[i].text);
        ck_assert_int_eq(v.i, good[i].value);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ck_assert_msg(parse(&row, bad[i], &v) == STRATA_ERR_PARAM, "%s", bad[i]);
}
END_TEST

START_TEST(sizes)
{
    static const struct {
        const char *text;
        size_t value;
    } good[] = {{"0", 0},
                {"32k", 32768},
                {"4K", 4096},
                {"2m", 2u << 20},
                {"1G", 1u << 30},
                {"0x40", 64},
                {"18446744073709551615", SIZE_MAX},
                {"17179869183g", 17179869183ull << 30}};
    static const char *const bad[] = {
        "", "-1", "k", "1kb", "1 k", "1.5k", "1t", "18446744073709551616", "17179869184g", "+1"};
    struct st_param row = row_of(ST_PARAM_SIZE);
    union st_value v;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        ck_assert_msg(!parse(&row, good[i].text, &v), "%s", good[i].text);
        ck_assert(v.z == good[i].value);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ck_assert_msg(parse(&row, bad[i], &v) == STRATA_ERR_PARAM, "%s", bad[i]);
}
END_TEST

START_TEST(doubles_strings_enums)
{
    struct st_param d = row_of(ST_PARAM_DOUBLE), s = row_of(ST_PARAM_STRING), e = row_of(ST_PARAM_ENUM);
    union st_value v;
    ck_assert_int_eq(parse(&d, "2.5", &v), 0);
    ck_assert(v.d > 2.49 && v.d < 2.51);
    ck_assert_int_eq(parse(&d, "nan", &v), STRATA_ERR_PARAM);
    ck_assert_int_eq(parse(&d, "inf", &v), STRATA_ERR_PARAM);
    ck_assert_int_eq(parse(&d, "1e999", &v), STRATA_ERR_PARAM);
    ck_assert_int_eq(parse(&d, "", &v), STRATA_ERR_PARAM);
    ck_assert_int_eq(parse(&d, "1x", &v), STRATA_ERR_PARAM);
    const char *text = "any # thing";
    ck_assert_int_eq(parse(&s, text, &v), 0);
    ck_assert_ptr_eq(v.s, text);
    ck_assert_int_eq(parse(&e, "Yield", &v), 0);
    ck_assert_int_eq(v.e, 1);
    ck_assert_int_eq(parse(&e, "", &v), STRATA_ERR_PARAM);
}
END_TEST

START_TEST(ranges)
{
    struct st_param row = row_of(ST_PARAM_SIZE);
    union st_value v = {.z = 99};
    char why[600];
    row.min = 64;
    row.max = 1 << 20;
    row.unit = "bytes";
    ck_assert_int_eq(parse(&row, "64", &v), 0);
    ck_assert_int_eq(parse(&row, "1m", &v), 0);
    v.z = 99;
    ck_assert_int_eq(st_param_parse(&row, "63", &v, why, sizeof(why)), STRATA_ERR_PARAM);
    ck_assert_str_eq(why, "out of range; allowed: 64 .. 1m bytes");
    ck_assert_int_eq(st_param_parse(&row, "2m", &v, why, sizeof(why)), STRATA_ERR_PARAM);
    ck_assert_uint_eq(v.z, 99); /* untouched by a failure */
    row = row_of(ST_PARAM_INT);
    row.min = -5;
    row.max = 0;
    ck_assert_int_eq(parse(&row, "-5", &v), 0);
    ck_assert_int_eq(parse(&row, "1", &v), STRATA_ERR_PARAM);
}
END_TEST

START_TEST(messages)
{
    struct st_param e = row_of(ST_PARAM_ENUM), z = row_of(ST_PARAM_SIZE), b = row_of(ST_PARAM_BOOL);
    union st_value v;
    char why[600];
    st_param_parse(&e, "yeild", &v, why, sizeof(why));
    ck_assert_str_eq(why, "not a valid enum; allowed: one of spin, yield, sleep; did you mean \"yield\"?");
    st_param_parse(&z, "banana", &v, why, sizeof(why));
    ck_assert_str_eq(why, "not a valid size; allowed: a number of bytes, with k, m or g if you like");
    st_param_parse(&b, "maybe", &v, why, sizeof(why));
    ck_assert_str_eq(why, "not a valid bool; allowed: 0, 1, true, false, yes, no, on, off");
}
END_TEST

START_TEST(storing)
{
    struct {
        bool b;
        int64_t i;
        size_t z;
        double d;
        const char *s;
        int e;
        unsigned char guard;
    } config = {.guard = 0x5a};
    static const char *const text[] = {"yes", "-3", "4k", "0.5", "word", "sleep"};
    const size_t offset[] = {offsetof(typeof(config), b), offsetof(typeof(config), i), offsetof(typeof(config), z),
                             offsetof(typeof(config), d), offsetof(typeof(config), s), offsetof(typeof(config), e)};
    for (int t = ST_PARAM_BOOL; t <= ST_PARAM_ENUM; t++) {
        struct st_param row = row_of((enum st_param_type)t);
        union st_value v;
        row.offset = offset[t];
        ck_assert_int_eq(parse(&row, text[t], &v), 0);
        st_param_store(&row, &v, &config);
    }
    ck_assert(config.b && config.i == -3 && config.z == 4096 && config.d > 0.49 && config.e == 2);
    ck_assert_str_eq(config.s, "word");
    ck_assert_uint_eq(config.guard, 0x5a);
}
END_TEST

START_TEST(incomplete_rows)
{
    char why[700];
    const struct st_param good = {.name = "x", .type = ST_PARAM_INT, .dflt = "1", .help = "Help.", .level = 1};
    ck_assert_int_eq(st_param_check_row(&good, 8, why, sizeof(why)), 0);
    struct st_param bad[11];
    for (size_t i = 0; i < 11; i++)
        bad[i] = good;
    bad[0].name = NULL;
    bad[1].name = "Upper";
    bad[2].help = NULL;
    bad[3].help = "";
    bad[4].level = 0;
    bad[5].dflt = NULL;
    bad[6].dflt = "many";
    bad[7].min = 2, bad[7].max = 3; /* the default is out of range */
    bad[8].offset = 4;              /* beyond the config struct */
    bad[9].type = ST_PARAM_ENUM;    /* no choices */
    bad[10].type = (enum st_param_type)77;
    for (size_t i = 0; i < 11; i++) {
        why[0] = '\0';
        ck_assert_msg(st_param_check_row(&bad[i], 8, why, sizeof(why)) == STRATA_ERR_PARAM, "row %zu", i);
        ck_assert_msg(why[0], "row %zu", i);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("parse");
    TCase *t = tcase_create("parse");
    tcase_add_test(t, bools);
    tcase_add_test(t, ints);
    tcase_add_test(t, sizes);
    tcase_add_test(t, doubles_strings_enums);
    tcase_add_test(t, ranges);
    tcase_add_test(t, messages);
    tcase_add_test(t, storing);
    tcase_add_test(t, incomplete_rows);
    suite_add_tcase(s, t);
    return run_suite(s);
}
