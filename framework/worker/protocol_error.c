/* Malformed fragments of a peer: dropped, counted, logged. */
#include <strata/sdk/worker.h>

#define LOGGED 8 /* of each count: a peer must not be able to fill the log */

void st_worker_protocol_error(struct st_worker *w, const char *component, const struct st_frag *frag, const char *what,
                              uint64_t *count)
{
    if ((*count)++ < LOGGED)
        st_log(w->context, ST_LOG_WARN, component, "dropped a fragment from rank %d by %s: %s", frag->rank,
               frag->btl && frag->btl->component ? frag->btl->component->name : "?", what);
}
