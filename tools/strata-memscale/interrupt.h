/* Signals that end the tool end its job first: a job would go on beside the next run, and leave its folder. */
#ifndef MEMSCALE_INTERRUPT_H
#define MEMSCALE_INTERRUPT_H

#include <stdbool.h>

/* From here on SIGINT, SIGTERM and SIGHUP are noted, but those that are ignored. */
void interrupt_hold(void);
/* One has come since. */
bool interrupt_came(void);
/* As before interrupt_hold; a signal that has come ends the process now. */
void interrupt_release(void);

#endif
