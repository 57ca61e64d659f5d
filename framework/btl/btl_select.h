/* Selection of BTLs and what the base adds to a module. */
#ifndef ST_BTL_SELECT_H
#define ST_BTL_SELECT_H

#include <strata/sdk/btl.h>
#include "framework/mca/mca.h"

/* Opens every admitted component; sets s->btls. On failure the text for the user is set and nothing stays open. */
int st_btl_select(strata_t *s);
/* Closes all modules. */
void st_btl_close_all(strata_t *s);

/* Whether a component's open costs much and all ranks are on this machine, so that it is not opened while others do. */
bool st_btl_may_spare(const strata_t *s, const struct st_candidate *c);
/* The open module that goes before that component's for the peers that it reaches, or NULL. */
const struct st_btl *st_btl_instead_of(const strata_t *s, const struct st_candidate *c);

/* The name of the i-th capability that is shown to users, with its ST_BTL_ bit; NULL behind the last. */
const char *st_btl_capability(size_t i, uint32_t *bit);

/* Checks attributes against the contract: NULL, or what is wrong. */
const char *st_btl_check(const struct st_btl *btl);
/* A module's table of operations after defaults have taken the place of NULL. */
struct st_btl_filled;
/* Replaces NULL in the ops that callers need not check by defaults; *filled is NULL when there was none and the module
 * keeps its own table. st_btl_close closes the module and frees the table. */
int st_btl_fill(struct st_btl *btl, struct st_btl_filled **filled);
void st_btl_close(struct st_btl *btl, struct st_btl_filled *filled);
/* Memory that the base holds for a module: the table; where payloads are packed. */
size_t st_btl_table_bytes(const struct st_btl_filled *filled);
size_t st_btl_bounce_bytes(const struct st_btl *btl);

#endif
