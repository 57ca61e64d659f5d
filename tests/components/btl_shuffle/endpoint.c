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

int shuffle_connect(struct st_btl *btl, int rank, struct st_btl_endpoint **out)
{
    struct module *m = (struct module *)btl;
    struct address a;
    int rc = look_up(m, rank, &a);
    if (rc != STRATA_OK)
        return rc;
    struct endpoint *e = calloc(1, sizeof *e);
    if (!e)
        return STRATA_ERR_NOMEM;
    e->super = (struct st_btl_endpoint){.btl = btl, .rank = rank, .caps = btl->caps};
    e->port = a.port;
    port_get(e->port);
    st_list_append(&m->endpoints, &e->node);
    *out = &e->super;
    return STRATA_OK;
}

void shuffle_disconnect(struct st_btl_endpoint *ep)
{
    struct endpoint *e = (struct endpoint *)ep;
    transfers_orphan((struct module *)ep->btl, e);
    st_list_remove(&e->node);
    port_put(e->port);
    free(e);
}

int endpoint_use(struct endpoint *e)
{
    struct module *m = (struct module *)e->super.btl;
    if (e->dead)
        return STRATA_ERR_PEER;
    if (e->super.rank == m->config->fail_rank && (int64_t)e->sent >= m->config->fail_after) {
        e->dead = true;
        m->failure_due = true; /* told from progress: callbacks never come from inside send */
        return STRATA_ERR_PEER;
    }
    e->sent++;
    return STRATA_OK;
}
