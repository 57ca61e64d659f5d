/* The out-of-band link between both sides: lines of text over TCP, or over a pair of sockets on one machine. An empty
 * line is a heartbeat, which says that the sender lives and nothing else. */
#ifndef MIBA_LINK_H
#define MIBA_LINK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "status.h"

#define LINE_MOST 65536u /* bytes of a line, its end included */

struct silence;

/* A peer with heartbeats may take so many time-outs for an answer or a completion. */
#define LINK_PATIENCE 15u

struct link {
    int fd;
    int timeout_s;
    unsigned patience;
    bool lost;
    uint64_t heard;   /* time of the last bytes from the peer, in nanoseconds; 0: none */
    uint64_t watched; /* the same when link_watch looked last */
    bool beating;     /* the peer has sent heartbeats */
    size_t held;      /* bytes of the buffer that are in use */
    char buffer[LINE_MOST];
    pthread_mutex_t sending; /* a heartbeat does not cut a line in two */
    /* Heartbeats (link_beat.c), under `sending`. */
    bool beats, stop;
    pthread_cond_t stopped;
    pthread_t thread;
};

/* Takes over `fd`. */
void link_start(struct link *l, int fd, int timeout_s);
void link_end(struct link *l);
/* Sends one line; `format` has no newline. MIBA_LOST: the peer is gone. */
enum miba_status link_say(struct link *l, struct miba_why *why, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Receives one line into `line` (LINE_MOST bytes), without its newline. `patient`: waits for any time until the link is
 * closed. Else MIBA_LOST after timeout_s without a sign of life, or after patience times as long without a line. */
enum miba_status link_hear(struct link *l, char *line, bool patient, struct miba_why *why);
/* Whether a line has arrived or the peer is gone: spinning loops ask now and then. Takes heartbeats off the link. */
bool link_stirs(struct link *l);
/* Between its parts the peer says nothing but heartbeats. MIBA_LOST: it is gone, or was silent for timeout_s; `quiet`
 * is how long, from one call to the next. */
enum miba_status link_watch(struct link *l, struct silence *quiet, struct miba_why *why);
/* Whether the peer gave a sign of life in the last timeout_s. link_stirs or link_hear has looked before. */
bool link_lives(const struct link *l);

/* Sends a heartbeat four times a second from a thread of its own, which the processor of the measuring loop does not
 * bind: call it before the affinity is set. False: there is no thread, and no heartbeat. */
bool link_beats_start(struct link *l);
/* Ends the thread; without one does nothing. */
void link_beats_stop(struct link *l);

/* Whether both ends are on one machine: they have one address. */
bool link_is_here(const struct link *l);

/* Waits for one client at `port` (0: any; which is printed on stderr), connects to a server. The descriptor, or -1. */
int link_serve(const char *port, struct miba_why *why);
/* Within timeout_s, however many addresses the host has. */
int link_connect(const char *host, const char *port, int timeout_s, struct miba_why *why);

#endif
