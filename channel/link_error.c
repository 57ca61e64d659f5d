/* Errors of a link, for the user. */
#include <stdarg.h>
#include <stdio.h>

#include "channel/link.h"

int link_fail(const strata_channel_link_t *l, int rc, const char *format, ...)
{
    char text[512];
    va_list list;

    va_start(list, format);
    (void)vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    if (l->error && l->error_size)
        (void)snprintf(l->error, l->error_size, "%s", text);
    else
        fprintf(stderr, "strata: %s\n", text);
    return rc;
}
