/* Where the build under test is. */
#include "support/paths.h"

#include <stdlib.h>

const char *test_build_dir(void)
{
    const char *d = getenv("STRATA_BUILD");
    return d ? d : ".";
}
