/* Selection of the pml. */
#ifndef ST_PML_SELECT_H
#define ST_PML_SELECT_H

#include <strata/sdk/pml.h>

/* Sets s->pml, over s->bml. On failure the text for the user is set. */
int st_pml_select(strata_t *s);

#endif
