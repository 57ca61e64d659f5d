/* Files of one entry a line: comments, lines of any length, what cannot be read. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <strata/sdk/line_file.h>
#include "support/run_suite.h"

static char path[] = "/tmp/strata-line-file-XXXXXX";
static size_t n_taken, length; /* lines, and bytes of the last one */

static void make_file(void)
{
    strcpy(path + strlen(path) - 6, "XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    n_taken = length = 0;
}

static void drop_file(void)
{
    unlink(path);
}

static bool take(void *arg, const char *line)
{
    (void)arg;
    n_taken++;
    length = strlen(line);
    return strstr(line, "wrong") == NULL;
}

/* Lines with a long one of `fill` in the middle. */
static void write_lines(const char *before, char fill, size_t n, const char *after)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(before, f);
    for (size_t i = 0; i < n; i++)
        fputc(fill, f);
    fputs(after, f);
    ck_assert_int_eq(fclose(f), 0);
}

static int read_lines(const char *name, char why[256])
{
    why[0] = 0;
    return st_line_file_read(name, take, NULL, "a line that there is", why, 256);
}

START_TEST(comments)
{
    char why[256];
    write_lines("# all\none\n \t\n\n  # some\ntwo # three\n#", 'x', 5000, "\nfour");
    ck_assert_msg(read_lines(path, why) == STRATA_OK, "%s", why);
    ck_assert_uint_eq(n_taken, 3);
    ck_assert_uint_eq(length, 4);
}
END_TEST

START_TEST(long_lines)
{
    char why[256];
    write_lines("one\n", 'x', 5000, " # a comment\n");
    ck_assert_msg(read_lines(path, why) == STRATA_OK, "%s", why);
    ck_assert_uint_eq(n_taken, 2);
    ck_assert_uint_eq(length, 5001);
}
END_TEST

START_TEST(number_of_a_wrong_line)
{
    char why[256];
    write_lines("#", 'x', 5000, "\n\nwrong\nanother\n");
    ck_assert_int_eq(read_lines(path, why), STRATA_ERR_PARAM);
    ck_assert_ptr_nonnull(strstr(why, ", line 3: not a line that there is"));
    ck_assert_uint_eq(n_taken, 1);
}
END_TEST

START_TEST(unreadable)
{
    char why[256];
    ck_assert_int_eq(read_lines("/tmp", why), STRATA_ERR_PARAM);
    ck_assert_str_eq(why, "/tmp cannot be read");
    ck_assert_int_eq(read_lines("/nowhere/at/all", why), STRATA_ERR_PARAM);
    ck_assert_str_eq(why, "/nowhere/at/all cannot be read");
    ck_assert_uint_eq(n_taken, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("line_file");
    TCase *c = tcase_create("all");
    tcase_add_checked_fixture(c, make_file, drop_file);
    tcase_add_test(c, comments);
    tcase_add_test(c, long_lines);
    tcase_add_test(c, number_of_a_wrong_line);
    tcase_add_test(c, unreadable);
    suite_add_tcase(s, c);
    return run_suite(s);
}
