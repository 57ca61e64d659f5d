/* What a test asks of the way to another rank. */
#ifndef TEST_SUPPORT_WAY_H
#define TEST_SUPPORT_WAY_H

#include "support/world.h"

/* Connects rank `to`: whether the path to it can put. False: it cannot, or nothing reaches the rank. */
bool way_puts(const struct tw_rank *r, int to);

#endif
