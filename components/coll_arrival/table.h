/* A user's table of forms. */
#ifndef COLL_ARRIVAL_TABLE_H
#define COLL_ARRIVAL_TABLE_H

#include "choose.h"

/* Names of the forms, ARRIVAL_FORMS of them and NULL. */
extern const char *const arrival_forms[];

/* Reads lines "OPERATION RANKS NODES BYTES SKEW FORM": the most of each that the line is for, "-": any; the skew in us.
 * OPERATION is one that the component does, FORM one of its own but auto, or "next", for which nodes and skew are "-".
 * "#" begins a comment. Sets *rules, which the caller frees, and *n. STRATA_ERR_PARAM with the reason in `why`. */
int arrival_table_read(const char *path, struct arrival_rule **rules, size_t *n, char *why, size_t why_size);

#endif
