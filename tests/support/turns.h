/* Under a sanitizer the short form runs a case over one of several settings, in turn, if its test has settings that are
 * alike. Without a sanitizer, and in the full form, the case runs over all of them. */
#ifndef TEST_SUPPORT_TURNS_H
#define TEST_SUPPORT_TURNS_H

#include "support/form.h"
#include "support/world.h"

/* Whether settings take turns. Not if STRATA_CONFORMANCE chooses what runs. */
static inline bool test_turns(void)
{
    return test_sanitized() && test_form(true, false) && !getenv("STRATA_CONFORMANCE");
}

/* Whether case i runs over a setting: the `turn`-th of the `turns` that take turns; all cases do if `turn` is -1. */
static inline bool test_its_turn(size_t i, int turn, int turns)
{
    return turn < 0 || i % (size_t)turns == (size_t)turn;
}

#endif
