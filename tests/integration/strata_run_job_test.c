/* strata-run's judgement of ranks that have ended: who is in doubt, what ends the doubt, and that the caller of
 * job_tick does not go to sleep on the last one. */
#include <check.h>
#include <string.h>
#include "support/run_suite.h"
#include "tools/strata-run/job.c" /* NOLINT(bugprone-suspicious-include): its static functions are tested */

static int reported;

void strays_kill(pid_t launcher, pid_t session)
{
    (void)launcher, (void)session;
}

void report_rank_failed(const struct job *job, int rank)
{
    (void)job, (void)rank;
    reported++;
}
void report_abort(const struct job *job, int rank, int status, const char *reason)
{
    (void)job, (void)rank, (void)status, (void)reason;
}
void report_timeout(const struct job *job)
{
    (void)job;
}
void server_tell_failed(const struct job *job, int rank)
{
    (void)job, (void)rank;
}

/* Two ranks that have joined; no process behind them. */
static void begin(struct run_options *options, struct job *job)
{
    memset(options, 0, sizeof *options);
    options->n = 2;
    reported = 0;
    ck_assert_int_eq(job_create(options, job), 0);
    job->n_started = 2;
    job->ranks[0].joined = job->ranks[1].joined = true;
}

START_TEST(a_word_that_comes_late_ends_the_wait)
{
    struct run_options options;
    struct job job;

    begin(&options, &job);
    job.ranks[0].finalized = true;
    job_rank_ended(&job, 0, 0);
    ck_assert_int_eq(job.n_ended, 1);
    job_rank_ended(&job, 1, 0);
    ck_assert_int_eq(job.n_ended, 1); /* in doubt */
    ck_assert_int_gt(job_tick(&job), 0);
    job.ranks[1].finalized = true;
    ck_assert_int_eq(job_tick(&job), 0); /* and not -1, which would be a sleep without end */
    ck_assert_int_eq(job.n_ended, 2);
    ck_assert_int_eq(job_tick(&job), -1);
    ck_assert(!job.failed);
    ck_assert_int_eq(reported, 0);
    free(job.ranks);
}
END_TEST

START_TEST(a_lost_connection_is_an_end_before_finalize)
{
    struct run_options options;
    struct job job;

    begin(&options, &job);
    job_rank_ended(&job, 1, 0);
    ck_assert_int_eq(job.n_ended, 0);
    job.ranks[1].lost = true;
    ck_assert_int_eq(job_tick(&job), 0);
    ck_assert_int_eq(job.n_ended, 1);
    ck_assert_int_eq(reported, 1);
    ck_assert_int_eq(job.exit_status, RUN_FAILED);
    ck_assert(job.ending);
    free(job.ranks);
}
END_TEST

START_TEST(a_bad_end_is_judged_at_once)
{
    struct run_options options;
    struct job job;

    begin(&options, &job);
    job_rank_ended(&job, 0, 3 << 8); /* exit status 3 */
    ck_assert_int_eq(job.n_ended, 1);
    ck_assert_int_eq(job.exit_status, 3);
    job_rank_ended(&job, 1, SIGKILL); /* by ourselves, since the job is ending */
    ck_assert_int_eq(job.n_ended, 2);
    ck_assert_int_eq(job.exit_status, 3);
    ck_assert_int_eq(reported, 1);
    free(job.ranks);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("strata-run's job");
    TCase *tc = tcase_create("judged");

    tcase_add_test(tc, a_word_that_comes_late_ends_the_wait);
    tcase_add_test(tc, a_lost_connection_is_an_end_before_finalize);
    tcase_add_test(tc, a_bad_end_is_judged_at_once);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
