/* Text files with one entry per line, for user-supplied tables; # begins a comment. */
#ifndef STRATA_SDK_LINE_FILE_H
#define STRATA_SDK_LINE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <strata/sdk/component.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Calls `take` for each line that has more than blanks, without its comment; until one returns false. Returns
 * STRATA_OK, or STRATA_ERR_PARAM with *why: the file cannot be read, or a line is not what `wanted` says. */
ST_API int st_line_file_read(const char *path, bool (*take)(void *arg, const char *line), void *arg, const char *wanted,
                             char *why, size_t why_size);

#ifdef __cplusplus
}
#endif
#endif
