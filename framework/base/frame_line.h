/* One socket of sdk/frames.h: what has come of a frame, what is to go. Nothing that arrives is believed before it is a
 * whole frame of the right size. */
#ifndef STRATA_FRAME_LINE_H
#define STRATA_FRAME_LINE_H

#include <strata/sdk/frames.h>
#include <strata/sdk/list.h>

#define FRAME_LINE_QUEUED 4u /* frames that wait to go; more count as lost */

enum frame_news {
    FRAME_NOTHING, /* not a whole frame */
    FRAME_WHOLE,
    FRAME_ENDED,  /* closed by the other side, or broken */
    FRAME_INVALID /* what comes is no frame */
};

struct frame_line {
    struct st_node node;
    int fd;            /* -1: closed, to be freed */
    int rank;          /* who it is; -1: nobody has said so yet */
    bool dialled;      /* by us */
    bool connecting;   /* and not there yet */
    bool heard;        /* a frame has come that was of this job */
    bool listens;      /* the poll set has POLLOUT */
    uint64_t deadline; /* ns: hung up then; 0: none */
    uint64_t used;     /* ns */
    uint32_t magic, size;
    uint32_t n_in, n_out; /* bytes of `data`: of a frame with its head, then of those to go */
    uint8_t data[];
};
_Static_assert(offsetof(struct frame_line, data) % sizeof(uint64_t) == 0, "frames are aligned");

/* Bytes of a frame with its head, magic and size. */
static inline size_t frame_line_whole(const struct frame_line *line)
{
    return 2 * sizeof(uint32_t) + line->size;
}
/* The frame that has come. */
static inline const void *frame_line_frame(const struct frame_line *line)
{
    return line->data + 2 * sizeof(uint32_t);
}
/* Frames to go. */
static inline uint8_t *frame_line_out(struct frame_line *line)
{
    return line->data + frame_line_whole(line);
}

/* For frames of this size; NULL: no memory. Freed by free(). */
struct frame_line *frame_line_make(uint32_t magic, uint32_t size, int fd);
size_t frame_line_bytes(uint32_t size);
/* Reads at most one frame. */
enum frame_news frame_line_read(struct frame_line *line);
/* Adds a frame to what is to go; false: there is no room. */
bool frame_line_queue(struct frame_line *line, const void *frame);
/* Sends what can go; false: the line is broken. */
bool frame_line_write(struct frame_line *line);

#endif
