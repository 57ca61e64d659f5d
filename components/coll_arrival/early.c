/* Adverts for communicators that are not there: held until the first collective here, or, where the communicator was
 * freed after a failure, answered by a stop. */
#include <stdlib.h>
#include <string.h>

#include "in.h"
#include "slot.h"

enum { MOST_EARLY = 1 << 16 }; /* a peer cannot make this process hold more */

bool early_is_retired(const struct arrival *a, uint32_t comm)
{
    for (size_t i = 0; i < a->n_retired; i++)
        if (a->retired[i] == comm)
            return true;
    return false;
}

void early_retire(struct arrival *a, uint32_t comm)
{
    uint32_t *more = realloc(a->retired, (a->n_retired + 1) * sizeof(*more));
    if (!more)
        return; /* a late member may wait until this process ends */
    a->retired = more;
    a->retired[a->n_retired++] = comm;
    a->bytes += sizeof(*more);
}

void early_created(struct st_coll *coll, uint32_t comm)
{
    struct arrival *a = (struct arrival *)coll;
    for (size_t i = 0; i < a->n_retired; i++)
        if (a->retired[i] == comm) {
            a->retired[i] = a->retired[--a->n_retired];
            a->bytes -= sizeof(*a->retired);
            return;
        }
}

static void early_stop(struct arrival *a, int rank, uint32_t comm, uint16_t epoch)
{
    struct wire_stop stop = {.type = ARRIVAL_STOP, .epoch = epoch, .comm = comm, .src = -1};
    struct st_peer *peer = st_worker_peer_known(a->w, rank);
    if (peer) {
        a->counted[COUNT_STOPS]++;
        arrival_tell(a, peer, &stop, sizeof(stop), NULL, 0);
    }
}

void early_hold(struct arrival *a, int rank, const struct wire_advert *advert, const void *key)
{
    if (early_is_retired(a, advert->comm)) {
        early_stop(a, rank, advert->comm, advert->epoch);
        return;
    }
    struct early *e = a->n_early < MOST_EARLY ? calloc(1, sizeof(*e)) : NULL;
    if (!e) {
        st_worker_peer_failed(a->w, rank, STRATA_ERR_NOMEM, "no memory for an advert of a collective");
        return;
    }
    *e = (struct early){.next = a->early, .rank = rank, .advert = *advert};
    memcpy(e->key, key, sizeof(e->key));
    a->early = e;
    a->n_early++;
    a->bytes += sizeof(*e);
}

static void early_free(struct arrival *a, struct early *e)
{
    free(e);
    a->n_early--;
    a->bytes -= sizeof(*e);
}

void early_withdraw(struct arrival *a, int rank, const struct wire_stop *withdraw)
{
    struct early **at = &a->early, *e;
    while ((e = *at) != NULL) {
        if (e->rank != rank || e->advert.comm != withdraw->comm || e->advert.epoch != withdraw->epoch) {
            at = &e->next;
            continue;
        }
        *at = e->next;
        early_free(a, e);
    }
    early_stop(a, rank, withdraw->comm, withdraw->epoch);
}

/* The link, from at on, that leads to the communicator's next advert; to NULL when there is none. */
static struct early **early_next(struct early **at, uint32_t comm)
{
    while (*at && (*at)->advert.comm != comm)
        at = &(*at)->next;
    return at;
}

void early_freed(struct st_coll *coll, uint32_t comm)
{
    struct arrival *a = (struct arrival *)coll;
    struct early **at = &a->early, *e;
    while ((e = *(at = early_next(at, comm))) != NULL) {
        *at = e->next;
        early_free(a, e);
    }
}

/* A member's adverts of two epochs go to different places: their order does not matter. */
void early_replay(struct slot *s)
{
    struct arrival *a = s->a;
    struct early **at = &a->early, *e;
    while ((e = *(at = early_next(at, s->base.group->comm->id))) != NULL) {
        *at = e->next;
        if (!in_keep_advert(s, e->rank, &e->advert, e->key))
            a->counted[COUNT_REFUSED]++;
        early_free(a, e);
    }
}

void early_forget(struct arrival *a)
{
    struct early *e;
    while ((e = a->early) != NULL) {
        a->early = e->next;
        early_free(a, e);
    }
    free(a->retired);
}
