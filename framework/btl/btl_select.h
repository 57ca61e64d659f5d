/* Selection of BTLs and what the base adds to a module. */
#ifndef ST_BTL_SELECT_H
#define ST_BTL_SELECT_H

#include <strata/sdk/btl.h>

/* Opens every admitted component; sets s->btls. On failure the text for the user is set and nothing stays open. */
int st_btl_select(strata_t *s);
/* Closes all modules. */
void st_btl_close_all(strata_t *s);

/* Checks attributes against the contract: NULL, or what is wrong. */
const char *st_btl_check(const struct st_btl *btl);
/* Replaces NULL in the ops that callers need not check by defaults, in a table of the module's own when there is
 * any. st_btl_close undoes it and closes the module. */
int st_btl_fill(struct st_btl *btl);
void st_btl_close(struct st_btl *btl);

#endif
