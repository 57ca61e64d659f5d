/* Where the component does not know how to change code, or must not. */
#include <stdio.h>

#include "patch.h"

#if !defined(INTERCEPT_CHANGES_CODE)
int intercept_plan(struct intercept_entry *entries, size_t n, char *why, size_t why_size)
{
    (void)entries, (void)n;
    snprintf(why, why_size,
             "it changes code on x86-64 and aarch64 only, and not when it is built with the thread sanitizer");
    return STRATA_ERR_UNSUPPORTED;
}

int intercept_patch(struct intercept_entry *entries, size_t n, char *why, size_t why_size)
{
    return intercept_plan(entries, n, why, why_size);
}
#endif
