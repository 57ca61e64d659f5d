/* Messages of libpmix itself: the user sees them, but for those that are no news. */
#ifndef RUN_FILTER_H
#define RUN_FILTER_H

#include <stddef.h>

/* Before PMIx_server_init: its output goes to a pipe whose ends are in fds. 0 or -1. */
int filter_begin(int fds[2]);
void filter_started(void); /* after it: the ranks' libpmix is not concerned */
/* Passes on what has come, line by line. */
void filter_pass(int fd, void (*print)(const char *text, size_t n));

#endif
