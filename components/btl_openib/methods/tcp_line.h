/* One socket of the method tcp: what has come of a frame, what is to go. Nothing that arrives is believed before it is
 * a whole frame of the right size that names our key, and who sends something else is hung up on. */
#ifndef IB_TCP_LINE_H
#define IB_TCP_LINE_H

#include <stdbool.h>
#include <stdint.h>
#include <strata/sdk/list.h>
#include "wire.h"

#define IB_TCP_MAGIC 0x54436269u /* "ibCT" */

struct ib_tcp_frame {
    uint32_t magic, length; /* of what follows */
    struct ib_conn conn;
};
#define IB_TCP_QUEUED 4u /* frames that wait to go; more count as lost */

enum ib_tcp_news {
    IB_TCP_NOTHING, /* not a whole frame */
    IB_TCP_FRAME,
    IB_TCP_ENDED,  /* closed by the other side, or broken */
    IB_TCP_INVALID /* what comes is no frame */
};

struct ib_tcp_line {
    struct st_node node;
    uint64_t number;   /* in the poll set; not used twice, 0 is the listener */
    int fd;            /* -1: closed, to be freed */
    int rank;          /* who it is; -1: nobody has said so yet */
    bool dialled;      /* by us */
    bool connecting;   /* and not there yet */
    bool heard;        /* a frame has come that was of this job */
    bool listens;      /* the poll set has POLLOUT */
    uint64_t deadline; /* ns: hung up then; 0: none */
    uint64_t used;     /* ns */
    uint32_t n_in, n_out;
    union {
        struct ib_tcp_frame frame;
        uint8_t bytes[sizeof(struct ib_tcp_frame)];
    } in;
    uint8_t out[IB_TCP_QUEUED * sizeof(struct ib_tcp_frame)];
};

/* Reads at most one frame into line->in. */
enum ib_tcp_news ib_tcp_read(struct ib_tcp_line *line);
/* Adds a frame to what is to go; false: there is no room. */
bool ib_tcp_queue(struct ib_tcp_line *line, const struct ib_conn *c);
/* Sends what can go; false: the line is broken. */
bool ib_tcp_write(struct ib_tcp_line *line);

#endif
