/* The page that ranks of one machine share: places, fences, ranks that died. Each rank is a process. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <strata/status.h>
#include <sys/wait.h>
#include <unistd.h>
#include "plugin/meeting.h"
#include "support/run_suite.h"

enum { RANKS = 3, FENCES = 200 };

static char folder[] = "/tmp/meeting_test.XXXXXX", path[64];

static void make_folder(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/page", folder);
}

static void remove_folder(void)
{
    (void)unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
}

/* Runs `rank_does` as rank `rank` in a process of its own, which ends with what it returns. */
static pid_t start(int rank, int (*rank_does)(struct rte_pmix_meeting *m))
{
    pid_t pid = fork();
    struct rte_pmix_meeting m;
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        _exit(rte_pmix_meeting_enter(&m, path, rank, RANKS) == STRATA_OK ? rank_does(&m) : 99);
    return pid;
}

static int status_of(pid_t pid)
{
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int many_fences(struct rte_pmix_meeting *m)
{
    for (int i = 0; i < FENCES; i++)
        if (rte_pmix_meeting_fence(m) != STRATA_OK)
            return 1;
    rte_pmix_meeting_leave(m);
    return 0;
}

START_TEST(all_arrive_before_any_leaves)
{
    pid_t pid[RANKS];
    for (int r = 0; r < RANKS; r++)
        pid[r] = start(r, many_fences);
    for (int r = 0; r < RANKS; r++)
        ck_assert_int_eq(status_of(pid[r]), 0);
}
END_TEST

static int fence_fails(struct rte_pmix_meeting *m)
{
    return rte_pmix_meeting_fence(m) == STRATA_ERR_PEER ? 0 : 1;
}

static int dies(struct rte_pmix_meeting *m)
{
    (void)m;
    return raise(SIGKILL);
}

static int leaves(struct rte_pmix_meeting *m)
{
    rte_pmix_meeting_leave(m);
    return 0;
}

/* Rank 2 is gone, dead or not: the others, which wait for it, are told. */
static void without_rank_2(int (*ends)(struct rte_pmix_meeting *m), int status)
{
    pid_t gone = start(2, ends), waits[2];
    for (int r = 0; r < 2; r++)
        waits[r] = start(r, fence_fails);
    ck_assert_int_eq(status_of(gone), status);
    for (int r = 0; r < 2; r++)
        ck_assert_int_eq(status_of(waits[r]), 0);
}

START_TEST(a_fence_without_a_dead_rank_ends)
{
    struct rte_pmix_meeting m;
    without_rank_2(dies, 128 + SIGKILL);
    ck_assert_int_eq(rte_pmix_meeting_enter(&m, path, 2, RANKS), STRATA_ERR_STATE);
}
END_TEST

START_TEST(a_fence_without_a_rank_that_left_ends)
{
    without_rank_2(leaves, 0);
}
END_TEST

START_TEST(who_is_dead_is_told)
{
    struct rte_pmix_meeting m;
    ck_assert_int_eq(rte_pmix_meeting_enter(&m, path, 0, RANKS), STRATA_OK);
    ck_assert_int_eq(status_of(start(1, dies)), 128 + SIGKILL);
    ck_assert_int_eq(status_of(start(2, leaves)), 0);
    ck_assert(rte_pmix_meeting_dead(&m, 1));
    ck_assert(!rte_pmix_meeting_dead(&m, 2));
    ck_assert(!rte_pmix_meeting_dead(&m, 0));
    rte_pmix_meeting_leave(&m);
}
END_TEST

START_TEST(a_rank_enters_once)
{
    struct rte_pmix_meeting m, again;
    ck_assert_int_eq(rte_pmix_meeting_enter(&m, path, 0, RANKS), STRATA_OK);
    rte_pmix_meeting_leave(&m);
    ck_assert_int_eq(rte_pmix_meeting_enter(&again, path, 0, RANKS), STRATA_ERR_STATE);
    ck_assert_int_eq(rte_pmix_meeting_enter(&again, path, 1, RANKS + 1), STRATA_ERR_PROTOCOL);
    ck_assert_int_eq(rte_pmix_meeting_enter(&again, "/nonexistent/page", 1, RANKS), STRATA_ERR_SYSTEM);
    ck_assert_int_eq(again.fd, -1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("meeting");
    TCase *t = tcase_create("meeting");

    tcase_add_checked_fixture(t, make_folder, remove_folder);
    tcase_add_test(t, all_arrive_before_any_leaves);
    tcase_add_test(t, a_fence_without_a_dead_rank_ends);
    tcase_add_test(t, a_fence_without_a_rank_that_left_ends);
    tcase_add_test(t, who_is_dead_is_told);
    tcase_add_test(t, a_rank_enters_once);
    suite_add_tcase(s, t);
    return run_suite(s);
}
