/* Names of rings: a channel that is opened after another one was closed has another name, so that what is still on its
 * way to the former ring by another path does not reach it. */
#include <check.h>
#include <strata/channel.h>

#include "channel/channel.h"
#include "support/run_suite.h"
#include "support/world.h"

enum { TAG = 3, CHANNELS = 4 * CHANNEL_TABLE_LEAST };

static void sends(struct tw_rank *r)
{
    strata_channel_sender_t *c;
    char byte = 1;

    CHECK_OK(strata_channel_open_send(r->s, 1, "n", &c));
    CHECK_OK(strata_channel_send(c, &byte, 1, STRATA_CHANNEL_FOREVER));
    CHECK_OK(strata_channel_close_send(c));
    CHECK_OK(strata_send(r->comm, &byte, 1, 1, TAG));
}

/* Returns the ring's name. The sender has said BYE when its word is here. */
static uint32_t receives(struct tw_rank *r)
{
    strata_channel_receiver_t *c;
    char byte = 0;
    size_t len;

    CHECK_OK(strata_channel_open_recv(r->s, 0, "n", 1024, &c));
    uint32_t name = c->ring;
    CHECK_OK(strata_channel_recv(c, &byte, 1, &len, STRATA_CHANNEL_FOREVER));
    CHECK_EQ(strata_channel_recv(c, &byte, 1, &len, STRATA_CHANNEL_FOREVER), STRATA_CHANNEL_ENDED);
    CHECK_OK(strata_channel_close_recv(c));
    CHECK_OK(strata_recv(r->comm, &byte, 1, 0, TAG, NULL));
    tw_barrier(r);
    for (int i = 0; i < 10; i++)
        strata_progress(r->s);
    return name;
}

static void each_has_another(struct tw_rank *r)
{
    uint32_t before = UINT32_MAX, highest = 0;

    for (int i = 0; i < CHANNELS; i++) {
        if (r->rank == 0) {
            sends(r);
            tw_barrier(r);
            continue;
        }
        uint32_t name = receives(r);
        CHECK(name != before);
        before = name;
        highest = name > highest ? name : highest;
    }
    if (r->rank == 1)
        CHECK_EQ(highest, CHANNEL_TABLE_LEAST - 1); /* the table does not grow for it */
}

START_TEST(names_in_turn)
{
    tw_run(&(struct tw_options){.n = 2, .settings = "btl=sm,self"}, each_has_another, NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ring names");
    TCase *tc = tcase_create("ring names");
    tcase_add_test(tc, names_in_turn);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
