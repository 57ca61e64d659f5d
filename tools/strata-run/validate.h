/* Are the parameters right? Asked before anything is started. */
#ifndef RUN_VALIDATE_H
#define RUN_VALIDATE_H

#include "options.h"

/* Reads all sources of parameters as a rank would, --mca included. 0, or -1 with the message printed. */
int validate_parameters(const struct run_options *options);

#endif
