/* News of dead peers: from the rte's watch and from BTLs to the PML, from the PML to log and embedder. */
#ifndef ST_BASE_PEER_FAILED_H
#define ST_BASE_PEER_FAILED_H

#include <stdbool.h>

#include <strata/strata.h>

int st_failures_create(strata_t *s);
void st_failures_destroy(strata_t *s);
/* From here on (s->pml is set) news reach the PML, until st_failures_stop returns. */
void st_failures_start(strata_t *s);
void st_failures_stop(strata_t *s);
/* A peer is known dead; any thread. */
void st_failures_news(strata_t *s, int rank, int rc, const char *reason);
/* Whether st_peer_failed has named anybody; any thread. */
bool st_failures_any(const strata_t *s);

#endif
