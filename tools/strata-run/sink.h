/* Output that is passed on without ever blocking. */
#ifndef RUN_SINK_H
#define RUN_SINK_H

#include "io.h"

/* Takes all of it; when memory is short, some is lost and said to be. */
void sink_put(struct sink *sink, const char *data, size_t n);
/* Writes as long as the reader takes it. */
void sink_flush(struct sink *sink);
bool sink_full(const struct sink *sink); /* enough is waiting: do not read more from the ranks */
static inline bool sink_empty(const struct sink *sink)
{
    return sink->from == sink->to;
}

#endif
