/* What the environment says of the launcher: which jobs are mpirun's and of one machine. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "plugin/launcher.h"
#include "support/run_suite.h"

static char folder[] = "/tmp/launcher_test.XXXXXX";
static struct rte_pmix_job job;

/* As mpirun has it for rank 2 of 4. */
static void as_mpirun(void)
{
    static const char *const rows[][2] = {{"PMIX_NAMESPACE", "1571487745"},
                                          {"OMPI_MCA_ess_base_jobid", "1571487745"},
                                          {"PMIX_RANK", "2"},
                                          {"OMPI_COMM_WORLD_RANK", "2"},
                                          {"OMPI_COMM_WORLD_SIZE", "4"},
                                          {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                          {"PMIX_SERVER_URI2", "1.0;tcp4:"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        setenv(rows[i][0], rows[i][1], 1);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    setenv("PMIX_SERVER_TMPDIR", folder, 1);
}

static void remove_folder(void)
{
    ck_assert_int_eq(rmdir(folder), 0);
}

START_TEST(a_job_of_one_machine)
{
    ck_assert(rte_pmix_launched());
    ck_assert(rte_pmix_one_machine(&job));
    ck_assert_int_eq(job.rank, 2);
    ck_assert_int_eq(job.size, 4);
    ck_assert_str_eq(job.name, "1571487745");
    ck_assert_str_eq(job.folder, folder);
}
END_TEST

/* Ranks on other machines; another launcher's; strata-run inside a job of mpirun's; a folder that is not there, or that
 * others may write to. */
static const char *const others[][2] = {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                        {"OMPI_COMM_WORLD_LOCAL_SIZE", NULL},
                                        {"OMPI_MCA_ess_base_jobid", NULL},
                                        {"PMIX_NAMESPACE", "strata-1-2"},
                                        {"PMIX_NAMESPACE", NULL},
                                        {"OMPI_COMM_WORLD_RANK", "1"},
                                        {"PMIX_SERVER_TMPDIR", NULL},
                                        {"PMIX_SERVER_TMPDIR", "/nonexistent"},
                                        {"PMIX_SERVER_TMPDIR", "/tmp"}};

START_TEST(other_jobs)
{
    if (others[_i][1])
        setenv(others[_i][0], others[_i][1], 1);
    else
        unsetenv(others[_i][0]);
    ck_assert(!rte_pmix_one_machine(&job));
}
END_TEST

START_TEST(damaged_numbers)
{
    static const char *const bad[] = {"", "-1", "4", "x", "2x", "99999999999"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        setenv("PMIX_RANK", bad[i], 1);
        setenv("OMPI_COMM_WORLD_RANK", bad[i], 1);
        ck_assert_msg(!rte_pmix_one_machine(&job), "rank \"%s\"", bad[i]);
    }
}
END_TEST

START_TEST(a_folder_of_many)
{
    ck_assert_int_eq(chmod(folder, 0770), 0);
    ck_assert(!rte_pmix_one_machine(&job));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("launcher");
    TCase *t = tcase_create("launcher");

    tcase_add_checked_fixture(t, as_mpirun, remove_folder);
    tcase_add_test(t, a_job_of_one_machine);
    tcase_add_loop_test(t, other_jobs, 0, sizeof(others) / sizeof(others[0]));
    tcase_add_test(t, damaged_numbers);
    tcase_add_test(t, a_folder_of_many);
    suite_add_tcase(s, t);
    return run_suite(s);
}
