/* Going on with a run that was ended: what its file of results has is not measured again. */
#ifndef MIBA_RESUME_H
#define MIBA_RESUME_H

#include "results.h"

/* Reads the results of `path`, JSON lines, into `r`, unless there is no such file. The last case of the file is left
 * out: it may lack figures; so are cases that failed. MIBA_BROKEN: the file is of another device or other settings than
 * `about`. */
enum miba_status resume_load(struct results *r, const char *path, const json_t *about, struct miba_why *why);
/* Reads all results of the file, failed ones as well, whatever device they are of; *about is what its first line says,
 * the caller's to release; `early` is why the run ended early, or empty. MIBA_BROKEN: the file cannot be read, or is
 * none of strata-miba. */
enum miba_status resume_read(struct results *r, const char *path, json_t **about, struct miba_why *early,
                             struct miba_why *why);
/* Whether a result of this case was read. */
bool resume_has(const struct results *r, const struct miba_case *c);

#endif
