/* Input and output of the ranks: lines to our stdout and stderr, our stdin to rank 0. */
#ifndef RUN_IO_H
#define RUN_IO_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

/* Where lines go: stdout or stderr. Never blocks the main thread for long: what poll does not let through waits. */
struct sink {
    int fd;
    char *data;
    size_t from, to, room;
    bool broken;               /* nothing can be written any more */
    bool failed;               /* not because the reader has gone, but by an error */
    struct stream *unfinished; /* with tags: the stream whose line has not ended */
};

/* One pipe or pseudo-terminal from a rank. */
struct stream {
    int fd; /* -1: ended */
    int rank;
    bool is_stderr, is_terminal;
    struct sink *sink;
    int file;   /* of --output-filename, else -1 */
    char *data; /* an incomplete line */
    size_t n, room;
    double last_read; /* seconds of run_now */
};

struct job;

struct io {
    const struct job *job;
    struct sink sinks[2];
    struct stream *streams; /* two per rank */
    int n_streams;
    int n_open;
    bool copy;        /* to the sinks: not with --output-filename DIR:nocopy */
    bool failed;      /* output of a rank could not be written, and that was said */
    double last_read; /* from any rank; seconds of run_now */
    int terminal;     /* our stdin when it is a terminal, else -1 */
    int to_rank0;     /* write end of rank 0's stdin when we pump, else -1 */
    char input[4096];
    size_t input_from, input_to;
};

struct rank_pipes { /* the rank's ends; in == -1: keeps our stdin */
    int in, out, err;
};

/* Makes the folder of --output-filename. 0, or -1 with the message printed. */
int io_create(struct io *io, const struct job *job);
void io_destroy(struct io *io);
int io_open_rank(struct io *io, int rank, struct rank_pipes *pipes);
void io_close_rank_ends(struct rank_pipes *pipes);

/* For the main loop: adds what to poll for to fds (room: io_poll_room), returns how many; then handles the answers. */
int io_poll_room(const struct io *io);
int io_poll_prepare(struct io *io, struct pollfd *fds);
void io_poll_handle(struct io *io, const struct pollfd *fds, int n);
/* Passes on what has been held for long enough; when there is more to do, in seconds of run_now; 0: nothing is held. */
double io_tick(struct io *io);
bool io_failed(const struct io *io); /* output was lost by an error, which was reported: the job cannot end well */

bool io_streams_open(const struct io *io); /* a rank, or a child of one, still holds its output */
bool io_pending(const struct io *io);      /* something is not yet written */
void io_close_streams(struct io *io);      /* passes on what was read and stops reading */

#endif
