/* The choice of a call's form. */
#include "choose.h"

unsigned arrival_skew_class(uint64_t ns)
{
    unsigned digits = 0;
    for (uint64_t us = ns / 1000; us > 0 && digits < SKEW_CLASSES - 1; us >>= 1)
        digits++;
    return digits;
}

bool arrival_is_aware(enum arrival_form form)
{
    return form != FORM_DIRECT && form != FORM_SHM_DIRECT && form != FORM_BRUCK && form != FORM_DOUBLING;
}

size_t arrival_choose_limit(enum arrival_form form, size_t agreed, unsigned skew, size_t most, uint64_t most_us)
{
    if (form == FORM_SHM_DIRECT || form == FORM_PAP_SHM_DIRECT)
        return agreed;
    if (form != FORM_AUTO || skew > arrival_skew_class(most_us * 1000))
        return 0;
    return agreed < most ? agreed : most;
}
