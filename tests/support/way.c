/* What a test asks of the way to another rank. */
#include "support/way.h"

#include <strata/sdk/pml.h>
#include <strata/sdk/worker.h>

bool way_puts(const struct tw_rank *r, int to)
{
    struct st_worker *w = r->comm->worker;
    struct st_peer *peer;

    st_worker_lock(w);
    bool puts = st_worker_peer(w, to, &peer) == STRATA_OK && st_worker_connect(w, peer) == STRATA_OK &&
                (st_peer_path(peer, 0)->caps & ST_BTL_PUT);
    st_worker_unlock(w);
    return puts;
}
