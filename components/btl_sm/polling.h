/* The rings of this process: who has one, which are polled. */
#ifndef SM_POLLING_H
#define SM_POLLING_H

#include <stdint.h>

struct sm_module;

int sm_rings_open(struct sm_module *m);
void sm_rings_close(struct sm_module *m);
void sm_shared_arrival(struct sm_module *m, uint32_t local);
void sm_ring_report(struct sm_module *m, uint32_t ring);
void sm_ring_left(struct sm_module *m, uint32_t ring);   /* the sender's BYE has been read */
void sm_ring_broken(struct sm_module *m, uint32_t ring); /* not to be polled again */

#endif
