/* Frames on one socket: read whole, queued, written. */
#include "methods/tcp_line.h"

#include <string.h>

#include <strata/sdk/socket.h>

enum ib_tcp_news ib_tcp_read(struct ib_tcp_line *line)
{
    while (line->n_in < sizeof line->in) {
        ssize_t n = st_socket_read(line->fd, line->in.bytes + line->n_in, sizeof line->in - line->n_in);
        if (n <= 0)
            return n == 0 ? IB_TCP_NOTHING : IB_TCP_ENDED;
        line->n_in += (uint32_t)n;
        /* As early as it can be told. */
        if ((line->n_in >= 4 && line->in.frame.magic != IB_TCP_MAGIC) ||
            (line->n_in >= 8 && line->in.frame.length != sizeof line->in.frame.conn))
            return IB_TCP_INVALID;
    }
    line->n_in = 0;
    return IB_TCP_FRAME;
}

bool ib_tcp_queue(struct ib_tcp_line *line, const struct ib_conn *c)
{
    struct ib_tcp_frame f = {IB_TCP_MAGIC, sizeof f.conn, *c};

    if (line->n_out + sizeof f > sizeof line->out)
        return false;
    memcpy(line->out + line->n_out, &f, sizeof f);
    line->n_out += (uint32_t)sizeof f;
    return true;
}

bool ib_tcp_write(struct ib_tcp_line *line)
{
    while (line->n_out) {
        ssize_t n = st_socket_write(line->fd, line->out, line->n_out);
        if (n <= 0)
            return n == 0;
        line->n_out -= (uint32_t)n;
        memmove(line->out, line->out + n, line->n_out);
    }
    return true;
}
