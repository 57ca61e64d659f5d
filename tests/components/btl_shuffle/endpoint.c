/* Reaching a peer: its port's address comes through the rte and is good inside this process only. */
#include "shuffle.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void shuffle_key(char *key, size_t size, int rail)
{
    if (rail == 0)
        snprintf(key, size, "btl_shuffle");
    else
        snprintf(key, size, "btl_shuffle.%d", rail);
}

static int look_up(struct module *m, int rank, struct address *out)
{
    struct st_rte *rte = st_rte(m->super.context);
    char key[32];
    void *blob = NULL;
    size_t length = 0;
    shuffle_key(key, sizeof key, m->rail);
    if (rte->ops->get(rte, rank, key, &blob, &length) != STRATA_OK)
        return STRATA_ERR_UNREACHABLE;
    bool good = length == sizeof *out;
    if (good)
        memcpy(out, blob, sizeof *out);
    free(blob);
    return good && out->magic == SHUFFLE_MAGIC && out->pid == getpid() ? STRATA_OK : STRATA_ERR_UNREACHABLE;
}

int shuffle_reach(struct st_btl *btl, int rank)
{
    struct address a;
    return look_up((struct module *)btl, rank, &a);
}

static uint32_t cuts_of(struct port *port, int src)
{
    pthread_mutex_lock(&port->lock);
    uint32_t cuts = port->cuts[(uint32_t)src % SHUFFLE_CUTS];
    pthread_mutex_unlock(&port->lock);
    return cuts;
}

static void cut(struct port *port, int src)
{
    pthread_mutex_lock(&port->lock);
    port->cuts[(uint32_t)src % SHUFFLE_CUTS]++;
    pthread_mutex_unlock(&port->lock);
}

static bool breaks(const struct module *m)
{
    return m->config->break_after && m->rail < m->config->break_rails;
}

/* Whether a connection to rank has broken. */
static bool has_dead(const struct module *m, int rank)
{
    for (const struct st_node *n = m->endpoints.next; n != &m->endpoints; n = n->next) {
        const struct endpoint *e = ST_CONTAINER(n, struct endpoint, node);
        if (e->dead && e->super.rank == rank)
            return true;
    }
    return false;
}

int shuffle_connect(struct st_btl *btl, int rank, struct st_btl_endpoint **out)
{
    struct module *m = (struct module *)btl;
    struct address a;
    int rc = look_up(m, rank, &a);
    if (rc != STRATA_OK)
        return rc;
    if (m->polls < m->mended_at && has_dead(m, rank))
        return STRATA_ERR_AGAIN;
    struct endpoint *e = calloc(1, sizeof *e);
    if (!e)
        return STRATA_ERR_NOMEM;
    e->super = (struct st_btl_endpoint){.btl = btl, .rank = rank, .caps = btl->caps};
    e->port = a.port;
    port_get(e->port);
    e->cuts = cuts_of(e->port, m->rank);
    if (breaks(m))
        e->break_at = 1 + draw(m, 2 * (uint32_t)m->config->break_after);
    st_list_append(&m->endpoints, &e->node);
    *out = &e->super;
    return STRATA_OK;
}

void shuffle_disconnect(struct st_btl_endpoint *ep)
{
    struct endpoint *e = (struct endpoint *)ep;
    transfers_orphan((struct module *)ep->btl, e);
    leave_all_of((struct module *)ep->btl, ep->rank);
    st_list_remove(&e->node);
    port_put(e->port);
    free(e);
}

static bool is_cut(const struct endpoint *e)
{
    const struct module *m = (const struct module *)e->super.btl;
    return breaks(m) && cuts_of(e->port, m->rank) != e->cuts;
}

bool endpoint_cut(struct endpoint *e)
{
    struct module *m = (struct module *)e->super.btl;
    if (!e->dead && is_cut(e)) {
        e->dead = e->cut = true;
        m->mended_at = m->polls + (uint64_t)m->config->mend_polls;
    }
    return e->cut;
}

int endpoints_tell(struct module *m)
{
    int events = 0;
    bool look = !m->config->break_silent && draw(m, 100) < 5;
    for (struct st_node *n = m->endpoints.next; n != &m->endpoints; n = n->next) {
        struct endpoint *e = ST_CONTAINER(n, struct endpoint, node);
        if (look)
            (void)endpoint_cut(e);
        if (!e->cut || e->told)
            continue;
        e->told = true;
        events++;
        if (m->super.path_failed)
            m->super.path_failed(m->super.peer_failed_arg, &e->super, STRATA_ERR_PEER,
                                 "btl_shuffle has cut this connection");
    }
    return events;
}

/* Cuts both directions: what is on its way may be lost, and the other end may not notice before it sends. */
static void break_now(struct endpoint *e)
{
    struct module *m = (struct module *)e->super.btl;
    cut(e->port, m->rank);
    cut(m->port, e->super.rank);
    (void)endpoint_cut(e);
}

int endpoint_use(struct endpoint *e)
{
    struct module *m = (struct module *)e->super.btl;
    if (e->break_at && e->sent >= e->break_at && !e->dead)
        break_now(e);
    if (e->dead)
        return STRATA_ERR_PEER;
    if (m->config->break_silent && is_cut(e))
        return STRATA_ERR_AGAIN;
    if (endpoint_cut(e))
        return STRATA_ERR_PEER;
    if (e->super.rank == m->config->fail_rank && (int64_t)e->sent >= m->config->fail_after) {
        e->dead = true;
        if (!m->failure_told && m->super.peer_failed)
            m->super.peer_failed(m->super.peer_failed_arg, e->super.rank, STRATA_ERR_PEER,
                                 "btl_shuffle was told to break this connection");
        m->failure_told = true;
        return STRATA_ERR_PEER;
    }
    e->sent++;
    return STRATA_OK;
}
