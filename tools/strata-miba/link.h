/* The out-of-band link between both sides: lines of text over TCP, or over a pair of sockets on one machine. */
#ifndef MIBA_LINK_H
#define MIBA_LINK_H

#include <stdbool.h>
#include "status.h"

#define LINE_MOST 65536u /* bytes of a line, its end included */

struct link {
    int fd;
    int timeout_s;
    bool lost;
    size_t held; /* bytes of the buffer that are in use */
    char buffer[LINE_MOST];
};

/* Takes over `fd`. */
void link_start(struct link *l, int fd, int timeout_s);
void link_end(struct link *l);
/* Sends one line; `format` has no newline. MIBA_LOST: the peer is gone. */
enum miba_status link_say(struct link *l, struct miba_why *why, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Receives one line into `line` (LINE_MOST bytes), without its newline. `patient`: waits for any time while the peer
 * lives; else for timeout_s. */
enum miba_status link_hear(struct link *l, char *line, bool patient, struct miba_why *why);
/* Whether a line has arrived or the peer is gone: spinning loops ask now and then. */
bool link_stirs(struct link *l);

/* Waits for one client at `port` (0: any; which is printed on stderr), connects to a server. The descriptor, or -1. */
int link_serve(const char *port, struct miba_why *why);
int link_connect(const char *host, const char *port, int timeout_s, struct miba_why *why);

#endif
