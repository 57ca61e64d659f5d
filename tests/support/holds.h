/* An assertion for loops of very many turns. Check's own tell the test's parent, by a system call each, where they are,
 * also when they hold; this one does when it fails. */
#ifndef TESTS_SUPPORT_HOLDS_H
#define TESTS_SUPPORT_HOLDS_H

#include <check.h>

#define HOLDS(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            ck_abort_msg("this does not hold: %s", #condition);                                                        \
    } while (0)

#endif
