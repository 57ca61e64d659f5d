/* The clock for those who cannot have it inline. */
#include <strata/sdk/clock.h>

uint64_t st_clock_ns(void)
{
    return st_now_ns();
}
