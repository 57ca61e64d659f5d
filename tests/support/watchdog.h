/* Ends a test that hangs: prints the stack of every thread of the process, then exits with status 1. */
#ifndef TEST_SUPPORT_WATCHDOG_H
#define TEST_SUPPORT_WATCHDOG_H

struct watchdog;
struct watchdog *watchdog_start(int seconds, int n_ranks);
void watchdog_stop(struct watchdog *dog);
/* Gives the calling thread its rank in a dump. */
void watchdog_name_thread(int rank);

#endif
