/* Receiving. */
#ifndef SM_PROGRESS_H
#define SM_PROGRESS_H

#include "sm.h"

int sm_progress(struct st_btl *btl);

/* control.c */
/* A control message of the entry src of my directory. */
void sm_control(struct sm_module *m, uint32_t src, uint64_t word, const struct st_frag *f);
void sm_nudge(struct sm_module *m); /* tells senders that their rings were revoked */

#endif
