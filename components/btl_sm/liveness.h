/* Looking for peers whose process has ended without a message. */
#ifndef SM_LIVENESS_H
#define SM_LIVENESS_H

#include <stdint.h>

struct sm_module;

/* The process of a rank that has published a card; 0: of another pid namespace, or there is no card. */
uint32_t sm_pid_of(struct sm_module *m, int rank);
/* Tells of those that have ended without a word. When rings and queue are empty; not from inside a callback. */
void sm_look_for_ended(struct sm_module *m);
/* Rank cannot be attached: it may be about to end. */
void sm_doubt(struct sm_module *m, int rank);
void sm_doubts_free(struct sm_module *m);

#endif
