/* Selection of the bml. */
#ifndef ST_BML_SELECT_H
#define ST_BML_SELECT_H

#include <strata/sdk/bml.h>

/* Sets s->bml, over the modules in s->btls. On failure the text for the user is set. */
int st_bml_select(strata_t *s);

#endif
