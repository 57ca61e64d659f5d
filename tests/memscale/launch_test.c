/* strata-memscale's command lines: words that find no room are an error, and are not written past the end. */
#define _GNU_SOURCE 1
#include <check.h>
#include "support/run_suite.h"
#include "tools/shared/processes.c"       /* NOLINT(bugprone-suspicious-include) */
#include "tools/strata-memscale/launch.c" /* NOLINT(bugprone-suspicious-include): its static functions are tested */

/* launch.c calls it for the jobs of MPIs. */
bool peer_rank_program(enum library l, char *path, size_t size, char *why, size_t why_size)
{
    (void)l, (void)path, (void)size, (void)why, (void)why_size;
    return false;
}

static const struct transport sm = {"sm", LIB_STRATA, "sm,self", false};

/* The most parameters that a configuration may have. */
static struct config full_config(void)
{
    struct config c = {.name = "full", .transport = &sm, .n = MOST_SETTINGS};

    for (size_t i = 0; i < c.n; i++) {
        snprintf(c.set[i].name, sizeof c.set[i].name, "p%zu", i);
        strcpy(c.set[i].value, "1");
    }
    return c;
}

/* "x x ... %n", `n` words. */
static void make_launcher(char *text, size_t n)
{
    for (*text = '\0'; n > 1; n--)
        strcat(text, "x ");
    strcat(text, "%n");
}

static void free_set(struct command *cmd)
{
    for (size_t i = 0; i < cmd->n_set; i++)
        free(cmd->set[i]);
}

START_TEST(longest_launcher_has_room)
{
    const struct config c = full_config();
    const char *const what[] = {"rank", "alltoall", "folder", "1000000", "4", NULL};
    struct command cmd = {.count = "4"};
    char launcher[2000], why[80];

    make_launcher(launcher, MOST_LAUNCHER_WORDS);
    ck_assert(launcher_fits(launcher, why, sizeof why));
    launcher_words(&cmd, &c, launcher);
    words(&cmd, what);
    ck_assert_int_eq(cmd.error, 0);
    ck_assert_uint_eq(cmd.n, MOST_LAUNCHER_WORDS + 2 + MOST_SETTINGS + 5); /* env, the btl, and the parameters */
    ck_assert_str_eq(cmd.argv[MOST_LAUNCHER_WORDS - 1], "4");
    ck_assert_str_eq(cmd.argv[cmd.n - 6], "STRATA_MCA_p15=1");
    free_set(&cmd);
}
END_TEST

START_TEST(longer_launchers_do_not_fit)
{
    char launcher[2000], why[80];

    make_launcher(launcher, MOST_LAUNCHER_WORDS + 1);
    ck_assert(!launcher_fits(launcher, why, sizeof why));
    ck_assert_str_eq(why, "--launcher has more than 128 words");
    snprintf(launcher, sizeof launcher, "%%n %01100d", 0);
    ck_assert(!launcher_fits(launcher, why, sizeof why));
    ck_assert_str_eq(why, "--launcher has more than 1023 characters");
}
END_TEST

/* Any number of words leaves the last place for the NULL. */
START_TEST(too_many_words_are_an_error)
{
    const struct config c = full_config();
    char launcher[2000];

    for (size_t n = MOST_WORDS - MOST_SETTINGS - 4; n <= 500; n++) {
        struct command cmd = {.count = "4"};
        make_launcher(launcher, n);
        launcher_words(&cmd, &c, launcher);
        ck_assert_uint_lt(cmd.n, MOST_WORDS);
        ck_assert_int_eq(cmd.error, n + 2 + MOST_SETTINGS < MOST_WORDS ? 0 : E2BIG);
        free_set(&cmd);
    }
}
END_TEST

/* Standard input belongs to the user, as in a loop that reads lines. */
START_TEST(jobs_have_no_input)
{
    const struct command cmd = {.argv = {"sh", "-c", "! read -r line"}, .n = 3};
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], "line\n", 5), 5);
    ck_assert_int_eq(dup2(ends[0], 0), 0);
    close(ends[1]);
    ck_assert_int_eq(run(&cmd, 60), 0);
    char left[5];
    ck_assert_int_eq(read(0, left, sizeof left), 5);
    close(ends[0]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memscale_launch");
    TCase *tc = tcase_create("launch");

    tcase_add_test(tc, longest_launcher_has_room);
    tcase_add_test(tc, longer_launchers_do_not_fit);
    tcase_add_test(tc, too_many_words_are_an_error);
    tcase_add_test(tc, jobs_have_no_input);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
