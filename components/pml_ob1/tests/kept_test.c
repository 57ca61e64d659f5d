/* A message in the transport's memory, which the transport takes back when there is no memory for a copy: its receive
 * fails with the message's length, and all others go on. */
#include <check.h>
#include <strata/sdk/pml.h>
#include "ob1.h"
#include "support/pattern.h"
#include "support/run_suite.h"
#include "support/world.h"

enum { LENGTH = 5000, LOST = 1, NEXT = 2, LAST = 3 }; /* LENGTH: of a block, not of malloc; tags */

static void no_copy(struct tw_rank *r)
{
    struct ob1 *pml = (struct ob1 *)r->comm->pml;
    const size_t align = pml->payloads.align;
    char data[LENGTH];
    strata_status_t status;

    if (r->rank == 0) {
        pattern_fill(data, LENGTH, LOST);
        CHECK_OK(strata_send(r->comm, data, LENGTH, 1, LOST));
        CHECK_OK(strata_send(r->comm, data, 8, 1, NEXT));
        tw_quiesce(r);
        pattern_fill(data, LENGTH, LAST);
        CHECK_OK(strata_send(r->comm, data, LENGTH, 1, LAST));
        return;
    }
    pml->payloads.align = 3; /* posix_memalign refuses it: no block can be had */
    CHECK_OK(strata_recv(r->comm, data, LENGTH, 0, NEXT, NULL));
    while (st_list_first(&pml->kept))
        strata_progress(r->s);
    pml->payloads.align = align;
    CHECK_RC(strata_recv(r->comm, data, LENGTH, 0, LOST, &status), STRATA_ERR_NOMEM);
    CHECK_EQ(status.source, 0);
    CHECK_EQ(status.tag, LOST);
    CHECK_EQ(status.sent, LENGTH);
    tw_quiesce(r);
    CHECK_OK(strata_recv(r->comm, data, LENGTH, 0, LAST, NULL));
    CHECK_EQ(pattern_check(data, LENGTH, LAST), -1);
}

START_TEST(a_copy_that_cannot_be_made)
{
    tw_run(&(struct tw_options){.n = 2,
                                .settings =
                                    "btl=shuffle,self btl_shuffle_eager_limit=16k btl_shuffle_keep_percent=100 "
                                    "btl_shuffle_leave_percent=100 pml_ob1_alone_min=1m pml_ob1_eager_limit=16k"},
           no_copy, NULL);
}
END_TEST

int main(void)
{
    if (test_sanitized()) {
        printf("SKIP: a sanitizer ends a program that asks for a wrong alignment\n");
        return 77;
    }
    Suite *s = suite_create("ob1_kept");
    TCase *tc = tcase_create("kept");
    tcase_set_timeout(tc, 0);
    tcase_add_test(tc, a_copy_that_cannot_be_made);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
