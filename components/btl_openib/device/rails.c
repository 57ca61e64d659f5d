/* See rails.h. */
#include "device/rails.h"

uint32_t ib_rail_number(uint64_t rails, uint32_t place)
{
    return (uint32_t)__builtin_popcountll(rails & (((uint64_t)1 << place) - 1));
}

int ib_rail_match(uint64_t ours, uint64_t theirs, uint32_t place)
{
    uint64_t both = ours & theirs, rest = theirs & ~both;

    if (both >> place & 1)
        return (int)place;
    for (uint32_t before = ib_rail_number(ours & ~both, place); rest && before > 0; before--)
        rest &= rest - 1; /* without its lowest */
    return rest ? __builtin_ctzll(rest) : -1;
}
