/* The tuners of this process's peers: one for each module, read and written under the lock of those who send. */
#ifndef OB1_TUNED_H
#define OB1_TUNED_H

#include <stdio.h>
#include "tune.h"

struct ob1;
struct ob1_peer;
struct st_btl_endpoint;

/* The tuner of an endpoint's module, made if need be; NULL: not wanted, the user has set limits, nothing can be got by
 * that path, or there is no memory for one. */
struct ob1_tune *ob1_tune_of(struct ob1 *pml, const struct st_btl_endpoint *ep);
/* A message of this class is about to be sent to a peer with a tuner: the class that has it announced, or OB1_WINDOW.
 * Reads the clock. */
enum ob1_class ob1_tuned_class(struct ob1 *pml, struct ob1_peer *peer, enum ob1_class found, uint64_t length);
/* Appends ,"tuned":[...]: the cells that messages have gone by. */
void ob1_tuned_describe(FILE *f, const struct ob1_tune *tune);
void ob1_tunes_destroy(struct ob1 *pml);

#endif
