/* Which ports of two processes correspond. */
#ifndef IB_RAILS_H
#define IB_RAILS_H

#include <stdint.h>

#define IB_PLACES 64u /* ports of a process that are looked at */

/* Sets of places: the k-th port that a process may use has place k, whether it can be opened or not. Places that both
 * have correspond to each other; the rest correspond in order. Returns the place of theirs for this one of ours; -1:
 * there is none. Both sides get the same pairs. */
int ib_rail_match(uint64_t ours, uint64_t theirs, uint32_t place);
/* The card of a place has the number of those before it. */
uint32_t ib_rail_number(uint64_t rails, uint32_t place);

#endif
