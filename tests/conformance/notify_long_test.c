/* Put with notice: 10^6 operations from several senders, over every transport that strata-info finds and the ways of
 * btl_shuffle. Each comes once, with all of its bytes. */
#include "support/form.h"
#include "support/notify_ends.h"
#include "support/over_transports.h"
#include "support/suite.h"

enum { FULL = 1000000, SHORT = 20000, A_TURN = (NOTIFY_RANKS - 1) * NOTIFY_SLOTS };

static int operations(void)
{
    return suite_scale((int)test_form(SHORT, FULL));
}

static void from_several(struct tw_rank *r)
{
    struct notify_receiver in = {.look = notify_look};
    notify_turns(r, &in, (uint32_t)(operations() + A_TURN - 1) / A_TURN, NULL);
}

static const struct over_case cases[] = {{"from_several", from_several, NOTIFY_RANKS, STRATA_THREAD_SINGLE, false}};

int main(void)
{
    static const char *const more[] = {"btl=shuffle,self btl_shuffle_window=64 btl_shuffle_again_percent=50",
                                       "btl=shuffle,self btl_shuffle_needs_reg=1 btl_shuffle_async_percent=100", NULL};
    test_form_print(0, (unsigned long)operations(), FULL, "operations over each transport");
    return over_main("conformance-notify-long", OVER_PUTS, cases, sizeof cases / sizeof cases[0], more);
}
