/* Frames on one socket: read whole, queued, written. */
#include "framework/base/frame_line.h"

#include <stdlib.h>
#include <string.h>
#include <strata/sdk/socket.h>

size_t frame_line_bytes(uint32_t size)
{
    return sizeof(struct frame_line) + (1 + FRAME_LINE_QUEUED) * (2 * sizeof(uint32_t) + size);
}

struct frame_line *frame_line_make(uint32_t magic, uint32_t size, int fd)
{
    struct frame_line *line = calloc(1, frame_line_bytes(size));

    if (line) {
        line->magic = magic;
        line->size = size;
        line->fd = fd;
    }
    return line;
}

enum frame_news frame_line_read(struct frame_line *line)
{
    uint32_t whole = (uint32_t)frame_line_whole(line), head[2];

    while (line->n_in < whole) {
        ssize_t n = st_socket_read(line->fd, line->data + line->n_in, whole - line->n_in);
        if (n <= 0)
            return n == 0 ? FRAME_NOTHING : FRAME_ENDED;
        line->n_in += (uint32_t)n;
        memcpy(head, line->data, sizeof head);
        /* As early as it can be told. */
        if ((line->n_in >= 4 && head[0] != line->magic) || (line->n_in >= 8 && head[1] != line->size))
            return FRAME_INVALID;
    }
    line->n_in = 0;
    return FRAME_WHOLE;
}

bool frame_line_queue(struct frame_line *line, const void *frame)
{
    const uint32_t head[] = {line->magic, line->size};
    uint8_t *to = frame_line_out(line) + line->n_out;

    if (line->n_out + frame_line_whole(line) > FRAME_LINE_QUEUED * frame_line_whole(line))
        return false;
    memcpy(to, head, sizeof head);
    memcpy(to + sizeof head, frame, line->size);
    line->n_out += (uint32_t)frame_line_whole(line);
    return true;
}

bool frame_line_write(struct frame_line *line)
{
    uint8_t *out = frame_line_out(line);

    while (line->n_out) {
        ssize_t n = st_socket_write(line->fd, out, line->n_out);
        if (n <= 0)
            return n == 0;
        line->n_out -= (uint32_t)n;
        memmove(out, out + n, line->n_out);
    }
    return true;
}
