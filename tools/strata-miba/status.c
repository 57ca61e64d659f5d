/* Outcome of a step, with its reason in words. */
#include "config.h"
#include "status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum miba_status miba_fail(struct miba_why *why, enum miba_status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    return status;
}

enum miba_status miba_fail_verb(struct miba_why *why, int error, const char *verb, const char *of)
{
    enum miba_status status = MIBA_FAILED;

    switch (error) {
    case EOPNOTSUPP:
    case ENOSYS:
    case EINVAL:
    case EPROTONOSUPPORT:
        status = MIBA_UNSUPPORTED;
        break;
    case ENOMEM:
    case EAGAIN:
    case EMFILE:
    case ENOSPC:
        status = MIBA_SKIPPED;
        break;
    default:
        break;
    }
    return miba_fail(why, status, "%s%s%s%s: %s", verb, of ? " (" : "", of ? of : "", of ? ")" : "", strerror(error));
}

const char *miba_status_name(enum miba_status status)
{
    static const char *const names[] = {"ok", "unsupported", "skipped", "failed", "peer lost", "broken"};

    return names[status];
}
