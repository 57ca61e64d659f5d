/* Rules of form auto where the user has no table: what was measured to be better in the next component is left to it
 * (docs/design/coll-arrival.md says how). */
#include "choose.h"

#include <limits.h>

#define ANY INT_MAX, INT_MAX /* ranks, nodes */

const struct arrival_rule arrival_default_rules[ARRIVAL_DEFAULT_RULES] = {
    {STRATA_BARRIER, ANY, SIZE_MAX, UINT64_MAX, FORM_NEXT},
    {STRATA_BCAST, ANY, 32768, UINT64_MAX, FORM_NEXT},
    {STRATA_ALLREDUCE, ANY, 4096, UINT64_MAX, FORM_NEXT},
};
