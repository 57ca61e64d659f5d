/* Cards and lists of ranks: what rte_pmix parses, right and wrong. How time is counted while an answer is waited for.
 */
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <strata/status.h>
#include "rte_pmix.h"
#include "support/run_suite.h"

START_TEST(card_round_trip)
{
    struct rte_pmix_card card = {0};
    const void *blob;
    size_t length;
    char big[1000];
    memset(big, 'x', sizeof(big));
    ck_assert_int_eq(rte_pmix_card_set(&card, "a", "1234", 4), STRATA_OK);
    ck_assert_int_eq(rte_pmix_card_set(&card, "bb", big, sizeof(big)), STRATA_OK);
    ck_assert_int_eq(rte_pmix_card_set(&card, "empty", NULL, 0), STRATA_OK);
    ck_assert_int_eq(rte_pmix_card_set(&card, "a", "new", 3), STRATA_OK);
    ck_assert_int_eq(rte_pmix_card_find(card.bytes, card.length, "a", &blob, &length), STRATA_OK);
    ck_assert_uint_eq(length, 3);
    ck_assert_mem_eq(blob, "new", 3);
    ck_assert_int_eq(rte_pmix_card_find(card.bytes, card.length, "bb", &blob, &length), STRATA_OK);
    ck_assert_uint_eq(length, sizeof(big));
    ck_assert_mem_eq(blob, big, sizeof(big));
    ck_assert_int_eq(rte_pmix_card_find(card.bytes, card.length, "empty", &blob, &length), STRATA_OK);
    ck_assert_uint_eq(length, 0);
    ck_assert_int_eq(rte_pmix_card_find(card.bytes, card.length, "b", &blob, &length), STRATA_ERR_NOT_FOUND);
    rte_pmix_card_clear(&card);
}
END_TEST

START_TEST(bad_keys)
{
    struct rte_pmix_card card = {0};
    char key[80];
    memset(key, 'k', sizeof(key));
    key[64] = 0;
    ck_assert_int_eq(rte_pmix_card_set(&card, key, "x", 1), STRATA_ERR_ARG);
    key[63] = 0;
    ck_assert_int_eq(rte_pmix_card_set(&card, key, "x", 1), STRATA_OK);
    ck_assert_int_eq(rte_pmix_card_set(&card, "", "x", 1), STRATA_ERR_ARG);
    rte_pmix_card_clear(&card);
}
END_TEST

/* A card cut anywhere, or with any byte changed, is found, not found or refused, and never read beyond its end: the
 * copy is exact, so that a sanitizer or valgrind sees one byte too many. */
START_TEST(damaged_cards)
{
    struct rte_pmix_card card = {0};
    const void *blob;
    size_t length;
    ck_assert_int_eq(rte_pmix_card_set(&card, "first", "12345678", 8), STRATA_OK);
    ck_assert_int_eq(rte_pmix_card_set(&card, "second", "abcdefgh", 8), STRATA_OK);
    for (size_t n = 0; n < card.length; n++) {
        unsigned char *cut = malloc(n ? n : 1);
        memcpy(cut, card.bytes, n);
        ck_assert_int_ne(rte_pmix_card_find(cut, n, "second", &blob, &length), STRATA_OK);
        free(cut);
    }
    unsigned char *copy = malloc(card.length);
    for (size_t at = 0; at < card.length; at++)
        for (int bit = 0; bit < 8; bit++) {
            memcpy(copy, card.bytes, card.length);
            copy[at] = (unsigned char)(copy[at] ^ (1u << bit));
            if (rte_pmix_card_find(copy, card.length, "second", &blob, &length) == STRATA_OK)
                ck_assert((const unsigned char *)blob + length <= copy + card.length);
        }
    free(copy);
    rte_pmix_card_clear(&card);
}
END_TEST

static void ranks_are(const char *text, int size, int me, const int *expected, int n_expected)
{
    int *list = NULL, n = 0;
    ck_assert_int_eq(rte_pmix_parse_ranks(text, size, me, &list, &n), STRATA_OK);
    ck_assert_int_eq(n, n_expected);
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(list[i], expected[i]);
    free(list);
}

START_TEST(lists_of_ranks)
{
    ranks_are("0,1,2", 3, 1, (int[]){0, 1, 2}, 3);
    ranks_are("5,3-4,0,4", 6, 0, (int[]){0, 3, 4, 5}, 4);
    ranks_are("", 4, 2, (int[]){2}, 1);
    ranks_are("1,9,2", 4, 1, (int[]){1, 2}, 2);    /* beyond the job */
    ranks_are("1,junk,2", 4, 0, (int[]){0, 1}, 2); /* what comes after is not believed */
    ranks_are("0-99999999999", 3, 0, (int[]){0, 1, 2}, 3);
}
END_TEST

/* Answers when the parent says so. */
static void *answer(void *arg)
{
    struct rte_pmix_wait *w = ((void **)arg)[0];
    char word;
    if (read(*(const int *)((void **)arg)[1], &word, 1) == 1)
        rte_pmix_wait_answer(w, PMIX_SUCCESS);
    return NULL;
}

enum { LIMIT_MS = 3000, STOPPED_MS = 3500 };

static _Noreturn void wait_in_child(int to_parent, int from_parent)
{
    struct rte_pmix_wait *w = rte_pmix_wait_create();
    void *arg[] = {w, &from_parent};
    int64_t left_ms = LIMIT_MS;
    pthread_t thread;
    if (!w || pthread_create(&thread, NULL, answer, arg) != 0 || write(to_parent, "", 1) != 1)
        _exit(2);
    bool answered = rte_pmix_wait_counted(w, &left_ms) == PMIX_SUCCESS;
    _exit(answered && pthread_join(thread, NULL) == 0 ? 0 : 1);
}

/* A process that gets no processor for longer than the limit, here since it is stopped, has not waited that long. */
START_TEST(time_without_a_processor_does_not_count)
{
    int up[2], down[2], status;
    char word;
    ck_assert(pipe(up) == 0 && pipe(down) == 0);
    pid_t pid = fork();
    if (pid == 0)
        wait_in_child(up[1], down[0]);
    ck_assert(pid > 0 && read(up[0], &word, 1) == 1);
    ck_assert(kill(pid, SIGSTOP) == 0);
    usleep(STOPPED_MS * 1000);
    ck_assert(kill(pid, SIGCONT) == 0);
    usleep(300000);
    ck_assert(write(down[1], "", 1) == 1 && waitpid(pid, &status, 0) == pid);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

START_TEST(a_wait_without_an_answer_ends)
{
    struct rte_pmix_wait *w = rte_pmix_wait_create();
    int64_t left_ms = 250;
    ck_assert_int_eq(rte_pmix_wait_counted(w, &left_ms), PMIX_ERR_TIMEOUT);
    ck_assert_int_le(left_ms, 0);
    rte_pmix_wait_answer(w, PMIX_SUCCESS);
    ck_assert_int_eq(rte_pmix_wait_counted(w, &left_ms), PMIX_SUCCESS);
    rte_pmix_wait_put(w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rte_pmix");
    TCase *tc = tcase_create("card");
    tcase_add_test(tc, card_round_trip);
    tcase_add_test(tc, bad_keys);
    tcase_add_test(tc, damaged_cards);
    tcase_add_test(tc, lists_of_ranks);
    tcase_add_test(tc, time_without_a_processor_does_not_count);
    tcase_add_test(tc, a_wait_without_an_answer_ends);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
