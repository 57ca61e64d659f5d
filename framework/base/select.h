/* What the selection of every framework has in common. */
#ifndef ST_BASE_SELECT_H
#define ST_BASE_SELECT_H

#include "framework/mca/mca.h"

/* Opens the first of the framework's candidates that can be opened, by `open`; fates are recorded. Names in the user's
 * list are alternatives, in order of priority. When none opens: the text for the user is set (st_fail), and the result
 * is the error of the first one asked for by name, else STRATA_ERR_NOT_FOUND. */
int st_select_one(strata_t *s, const char *framework, uint32_t ops_size,
                  int (*open)(strata_t *s, const struct st_candidate *c, void *arg), void *arg);

/* Records that `c` failed to open with rc (the reason it gave to st_reject, else the status' text). */
void st_select_failed(strata_t *s, const struct st_candidate *c, int rc);

/* Sets the text for the user when framework is left without a component: the reasons of all n candidates. */
int st_select_none(strata_t *s, const char *framework, const struct st_candidate *c, size_t n);

/* "rank R on host H", as far as they are known yet. */
const char *st_select_where(const strata_t *s, char *out, size_t size);

#endif
