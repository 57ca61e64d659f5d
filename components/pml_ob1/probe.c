/* Probe and matched probe: what the matching engine holds, after a round of progress. */
#include "comm.h"
#include "match.h"
#include "message.h"
#include "ob1.h"
#include "ob1_inl.h"
#include "recv.h"

int ob1_iprobe(strata_comm_t *comm, int src, int tag, int *found, strata_message_t **msg, strata_status_t *status)
{
    struct ob1_comm *c = (struct ob1_comm *)comm;
    struct ob1 *pml = ob1_of(comm);
    struct ob1_unexp *u;
    int rc;

    ob1_lock(pml);
    rc = ob1_match_find(&c->match, src, tag, msg != NULL, &u);
    if (rc == STRATA_OK && !u) {
        st_worker_poll(pml->head.worker);
        rc = ob1_match_find(&c->match, src, tag, msg != NULL, &u);
        if (rc == STRATA_OK && !u && ST_UNLIKELY(pml->head.worker->n_failed != 0))
            rc = ob1_dead_source(comm, src);
    }
    if (rc == STRATA_OK) {
        *found = u != NULL;
        if (u) {
            struct ob1_msg *m = ST_CONTAINER(u, struct ob1_msg, unexp);
            if (status)
                *status = (strata_status_t){.source = m->from->rank,
                                            .tag = m->a.tag,
                                            .error = STRATA_OK,
                                            .length = (size_t)m->a.length,
                                            .sent = (size_t)m->a.length};
            if (msg)
                *msg = &m->head;
        }
    }
    ob1_leave(pml);
    return rc;
}
