/* Output of one rank on its way to a sink: whole lines, or part of one after a silence. */
#ifndef RUN_STREAM_H
#define RUN_STREAM_H

#include "io.h"

/* Reads what is there and passes it on. The number of bytes; 0 when there are none now, or none any more. */
size_t stream_read(struct io *io, struct stream *stream);
/* Takes what is still in the pipe or terminal, passes it on and closes. */
void stream_close(struct io *io, struct stream *stream);
/* When the part of a line that is held is passed on, in seconds of run_now; 0: nothing is held. */
double stream_due(const struct io *io, const struct stream *stream);
/* Passes on all that is held. */
void stream_flush(struct io *io, struct stream *stream);

#endif
