/* The budgets of what exists once per peer, per endpoint, per request and per fragment. Raising one is a decision, not
 * an accident. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include "components/btl_sm/peer.h"
#include "components/pml_ob1/match.h"
#include "components/pml_ob1/peer.h"
#include "components/pml_ob1/request.h"
#include "components/pml_ob1/wire.h"
#include "support/run_suite.h"

static const struct {
    const char *what;
    size_t size, budget;
} budgets[] = {
    {"request (head)", sizeof(struct strata_request), 80},
    {"request (ob1)", sizeof(struct ob1_req), 288},
    {"peer (ob1)", sizeof(struct ob1_peer), 168},
    {"peer in a context (ob1)", sizeof(struct ob1_cpeer), 128},
    {"peer (bml), one path", sizeof(struct st_bml_peer) + sizeof(struct st_bml_path), 24},
    {"endpoint (head)", sizeof(struct st_btl_endpoint), 16},
    {"endpoint (sm)", sizeof(struct sm_peer), 256},
    {"fragment handed up", sizeof(struct st_frag), 56},
    {"posted receive in matching", sizeof(struct ob1_posted), 32},
    {"unexpected message in matching", sizeof(struct ob1_unexp), 72},
    {"status", sizeof(strata_status_t), 32},
};

START_TEST(within_budget)
{
    printf("%-32s %4zu of %4zu bytes\n", budgets[_i].what, budgets[_i].size, budgets[_i].budget);
    ck_assert_msg(budgets[_i].size <= budgets[_i].budget, "%s: %zu bytes, the budget is %zu", budgets[_i].what,
                  budgets[_i].size, budgets[_i].budget);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sizes");
    TCase *tc = tcase_create("budgets");
    tcase_add_loop_test(tc, within_budget, 0, (int)(sizeof budgets / sizeof budgets[0]));
    suite_add_tcase(s, tc);
    return run_suite(s);
}
