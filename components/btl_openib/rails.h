/* Which ports of two processes correspond. */
#ifndef IB_RAILS_H
#define IB_RAILS_H

#include <stdint.h>

#define IB_PLACES 64u /* ports of a process that are looked at */

/* Sets of places: the k-th port that a process may use has place k, whether it can use it or not. What both have
 * corresponds to each other, what only one has to what only the other has, in order. The place of theirs that
 * corresponds to this one of ours; -1: none does. Both sides come to the same pairs. */
int ib_rail_match(uint64_t ours, uint64_t theirs, uint32_t place);
/* The card of a place has the number of those before it. */
uint32_t ib_rail_number(uint64_t rails, uint32_t place);

#endif
