/* Outcome of a step, with its reason in words. */
#ifndef MIBA_STATUS_H
#define MIBA_STATUS_H

#include <stddef.h>

enum miba_status {
    MIBA_OK = 0,
    MIBA_UNSUPPORTED, /* the device refuses the operation: reported, the next case runs */
    MIBA_SKIPPED,     /* this machine cannot run the case (memory, huge pages, limits): reported, the next case runs */
    MIBA_FAILED,      /* the case went wrong: reported, the next case runs, exit status 1 */
    MIBA_LOST,        /* the peer is gone or does not answer: the run ends */
    MIBA_BROKEN,      /* results cannot be written, or the sides disagree: the run ends */
};

struct miba_why {
    char text[256];
};

/* Writes the reason and returns `status`. */
enum miba_status miba_fail(struct miba_why *why, enum miba_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A verb failed with errno value `error`: EOPNOTSUPP, ENOSYS, EINVAL and EPROTONOSUPPORT mean MIBA_UNSUPPORTED, a lack
 * of memory or of objects MIBA_SKIPPED, others MIBA_FAILED. `verb` names it, `of` says of what (NULL: nothing more). */
enum miba_status miba_fail_verb(struct miba_why *why, int error, const char *verb, const char *of);

/* "ok", "unsupported", ... */
const char *miba_status_name(enum miba_status status);

#endif
