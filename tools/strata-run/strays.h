/* Processes that ranks have left outside their process groups, as timeout(1) and shells with job control make them. */
#ifndef RUN_STRAYS_H
#define RUN_STRAYS_H

#include <sys/types.h>

/* Kills processes of the job of this strata-run that are in its session, and waits a moment until they have gone. They
 * are told by the name of the job in the environment that they were started with. A process that has made a session of
 * its own is meant to stay. */
void strays_kill(pid_t launcher, pid_t session);

#endif
