/* Log lines: prefix, levels, length, help topics, one write each. */
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "framework/base/context.h"
#include "framework/base/log.h"
#include "support/fake_stack.h"
#include "support/run_suite.h"

FAKE_STACK_TABLE;

static char text[8192];
static int lines, last_level;

static void take(void *user, int level, const char *line)
{
    (void)user;
    lines++;
    last_level = level;
    snprintf(text, sizeof(text), "%s", line);
}

static struct st_base_config base = {.verbose = ST_LOG_WARN};
static strata_host_t host = {.size = sizeof(host), .host_name = "node7.example.org", .log = take};
static strata_t context = {.base = &base, .host = &host};

START_TEST(levels_and_prefix)
{
    st_log(&context, ST_LOG_WARN, "btl_x", "answer %d\n", 42);
    ck_assert_str_eq(text, "strata[node7:-] btl_x: warning: answer 42");
    ck_assert_int_eq(last_level, ST_LOG_WARN);
    st_log(&context, ST_LOG_INFO, "btl_x", "dropped");
    ck_assert_int_eq(lines, 1);
    base.verbose = ST_LOG_DEBUG;
    st_log(&context, ST_LOG_DEBUG, NULL, "shown");
    ck_assert_str_eq(text, "strata[node7:-]: shown");
    st_log_plain(&context, "as it is");
    ck_assert_str_eq(text, "as it is");
}
END_TEST

START_TEST(long_lines_end)
{
    char big[5000];
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    st_log(&context, ST_LOG_ERROR, "pml_y", "%s", big);
    ck_assert_uint_ge(strlen(text), 1000);
    ck_assert_uint_lt(strlen(text), 5000);
}
END_TEST

START_TEST(help_topics)
{
    static const struct st_help_topic topics[] = {{"small", "/dev/shm has %d bytes\ngive it more"}};
    struct st_component c = {ST_COMPONENT_HEAD("btl", "z", "1", "z"), .help = topics, .n_help = 1};
    st_help(&context, &c, "small", 12);
    ck_assert_str_eq(text, "strata[node7:-] btl_z: error: /dev/shm has 12 bytes\ngive it more");
    st_help(&context, &c, "nosuch");
    ck_assert_ptr_nonnull(strstr(text, "nosuch"));
    st_help(&context, NULL, "nosuch");
    ck_assert_ptr_nonnull(strstr(text, "base: error: nosuch"));
}
END_TEST

START_TEST(stderr_gets_whole_lines)
{
    int ends[2], keep = dup(STDERR_FILENO);
    char got[512];
    ck_assert_int_eq(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    st_log(NULL, ST_LOG_ERROR, "mca", "before a context");
    st_log(NULL, ST_LOG_INFO, "mca", "not shown");
    dup2(keep, STDERR_FILENO);
    close(ends[1]);
    ssize_t n = read(ends[0], got, sizeof(got) - 1);
    ck_assert_int_gt(n, 0);
    got[n] = '\0';
    ck_assert_ptr_nonnull(strstr(got, ":-] mca: error: before a context\n"));
    ck_assert_ptr_null(strstr(got, "not shown"));
    close(ends[0]);
    close(keep);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("log");
    TCase *t = tcase_create("all");
    tcase_add_test(t, levels_and_prefix);
    tcase_add_test(t, long_lines_end);
    tcase_add_test(t, help_topics);
    tcase_add_test(t, stderr_gets_whole_lines);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
