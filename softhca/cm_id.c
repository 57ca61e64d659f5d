/* Identifiers of connections and listeners, by number. Under cm_lock. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "cm.h"

/* As many as librdmacm can tell apart. */
#define MOST 65536u

static struct table {
    struct cm_id **of;
    uint32_t n, next; /* places; below `next` all are taken */
} table;
static uint32_t numbers; /* of packets: each connection begins with another */

static bool grow(void)
{
    const uint32_t n = table.n ? table.n * 2 : 64;
    struct cm_id **of = n <= MOST ? realloc(table.of, n * sizeof(struct cm_id *)) : NULL;
    if (!of)
        return false;
    for (uint32_t i = table.n; i < n; i++)
        of[i] = NULL;
    table.of = of;
    table.n = n;
    return true;
}

struct cm_id *cm_id_new(struct cm_channel *c, uint32_t space, bool datagram)
{
    while (table.next < table.n && table.of[table.next])
        table.next++;
    struct cm_id *id = table.next < table.n || grow() ? calloc(1, sizeof *id) : NULL;
    if (!id) {
        errno = ENOMEM;
        return NULL;
    }
    id->number = table.next++;
    id->space = space;
    id->datagram = datagram;
    id->afonly = id->ack_timeout = CM_UNSET;
    id->channel = c;
    id->fd = -1;
    id->listener = CM_NONE;
    id->here.psn = ((uint32_t)getpid() * 2654435761u + ++numbers * 40503u) & 0xffffff;
    table.of[id->number] = id;
    return id;
}

struct cm_id *cm_id_at(uint32_t number)
{
    return number < table.n ? table.of[number] : NULL;
}

struct cm_id *cm_id_next(const struct cm_channel *c, uint32_t after)
{
    for (uint32_t i = after + 1; i < table.n; i++) /* CM_NONE + 1 is 0 */
        if (table.of[i] && table.of[i]->channel == c)
            return table.of[i];
    return NULL;
}

/* Requests that came in at it, and that the program has not fetched, go with a listener. */
static void free_unheard(const struct cm_id *listener)
{
    for (uint32_t i = 0; i < table.n; i++)
        if (table.of[i] && table.of[i]->listener == listener->number)
            cm_id_free(table.of[i]);
}

void cm_id_free(struct cm_id *id)
{
    if (id->state == CM_LISTENING)
        free_unheard(id);
    cm_events_drop(id->channel, id);
    cm_hang_up(id, CM_OVER); /* the other end is told by that */
    table.of[id->number] = NULL;
    if (id->number < table.next)
        table.next = id->number;
    free(id);
}
