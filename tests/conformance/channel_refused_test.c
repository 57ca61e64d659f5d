/* Channels over a transport that neither puts nor maps: opening says so at once, and other channels go on. */
#include <check.h>
#include <strata/channel.h>
#include "support/run_suite.h"
#include "support/suite.h"

static void no_puts_body(struct tw_rank *r)
{
    strata_channel_sender_t *out;
    strata_channel_receiver_t *in;
    char byte = 1;
    for (int i = 0; i < 2; i++) {
        CHECK_RC(strata_channel_open_send(r->s, 1 - r->rank, "x", &out), STRATA_ERR_UNSUPPORTED);
        CHECK_RC(strata_channel_open_recv(r->s, 1 - r->rank, "x", 0, &in), STRATA_ERR_UNSUPPORTED);
    }
    CHECK_OK(strata_channel_open_recv(r->s, r->rank, "x", 0, &in));
    CHECK_OK(strata_channel_open_send(r->s, r->rank, "x", &out));
    CHECK_OK(strata_channel_send(out, &byte, 1, STRATA_CHANNEL_FOREVER));
    CHECK_OK(strata_channel_end(out, STRATA_CHANNEL_FOREVER));
    CHECK_OK(strata_channel_recv(in, &byte, 1, NULL, STRATA_CHANNEL_FOREVER));
    CHECK_RC(strata_channel_recv(in, &byte, 1, NULL, STRATA_CHANNEL_FOREVER), STRATA_CHANNEL_ENDED);
    CHECK_OK(strata_channel_close_recv(in));
    CHECK_OK(strata_channel_close_send(out));
}
START_TEST(no_puts)
{
    tw_run(&(struct tw_options){.n = 2, .settings = "btl=shuffle,self btl_shuffle_put=0"}, no_puts_body, NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("channel_refused");
    TCase *tc = tcase_create("refused");

    tcase_set_timeout(tc, 0);
    tcase_add_test(tc, no_puts);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
