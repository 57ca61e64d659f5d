/* Selection of the coll components: all that open, in the order of priority, when the first collective
 * is started or asked of this rank. */
#include "framework/coll/coll_select.h"

#include <stdlib.h>

#include "framework/base/context.h"
#include "framework/base/select.h"
#include "framework/coll/group.h"
#include "framework/pml/comm.h"

/* A component whose parameters are wrong is not left out, which ranks with the right ones would not do: the choice for
 * an operation is the same at all of them. */
static int select_open(strata_t *s, struct colls *colls, const struct st_candidate *c)
{
    const struct st_coll_component_ops *ops = c->component->ops;
    int rc = ops->open(s, c->component, c->config, colls->w, &colls->module[colls->n]);
    if (rc != STRATA_OK) {
        st_select_failed(s, c, rc);
        return c->by_name || rc == STRATA_ERR_PARAM ? rc : STRATA_OK;
    }
    colls->n++;
    st_mca_fate(s->mca, c->component, ST_FATE_CHOSEN, "does the operations that none of a higher priority does");
    return STRATA_OK;
}

static int select_all(strata_t *s, struct colls *colls, const struct st_candidate *c, size_t n)
{
    int rc = STRATA_OK;
    for (size_t i = 0; i < n && rc == STRATA_OK; i++) {
        if (colls->n == COLL_MODULES)
            st_mca_fate(s->mca, c[i].component, ST_FATE_UNUSED, "there are enough before it");
        else
            rc = select_open(s, colls, &c[i]);
    }
    return rc;
}

static void select_close(struct colls *colls)
{
    for (unsigned i = 0; i < colls->n; i++) {
        colls->module[i]->ops->close(colls->module[i]);
        colls->module[i] = NULL;
    }
    colls->n = 0;
}

int coll_open(struct colls *colls)
{
    strata_t *s = colls->w->context;
    struct st_candidate *c = NULL;
    size_t n = 0;
    if (atomic_load_explicit(&colls->open, memory_order_relaxed))
        return STRATA_OK; /* another thread was faster */
    int rc = st_mca_candidates(s->mca, "coll", sizeof(struct st_coll_component_ops), &c, &n);
    if (rc == STRATA_OK)
        rc = select_all(s, colls, c, n);
    free(c);
    if (rc == STRATA_OK)
        atomic_store_explicit(&colls->open, true, memory_order_release);
    else /* the next start tries again */
        select_close(colls);
    return rc;
}

int st_coll_select(strata_t *s)
{
    if (!s->pml->ops->revoke)
        return STRATA_OK;
    struct colls *colls = calloc(1, sizeof(*colls));
    if (!colls)
        return STRATA_ERR_NOMEM;
    s->coll = colls;
    colls->w = s->worker;
    st_list_init(&colls->groups);
    int rc = st_worker_join(colls->w, &coll_row, colls);
    if (rc == STRATA_OK && !st_mca_waits(s->mca, "coll")) {
        st_worker_lock(colls->w);
        rc = coll_open(colls);
        st_worker_unlock(colls->w);
    }
    return rc != STRATA_OK ? st_fail(s, rc, "framework coll: %s", strata_strerror(rc)) : rc;
}

void st_coll_close(strata_t *s)
{
    struct colls *colls = s->coll;
    s->coll = NULL;
    if (!colls)
        return;
    st_worker_leave(colls->w, &coll_row);
    select_close(colls);
    free(colls);
}

/* Tells the modules that want to know that a communicator has been created, or freed. */
static void select_tell(const strata_comm_t *comm, bool created)
{
    const struct colls *colls = comm->worker->context->coll;
    if (!colls || !atomic_load_explicit(&colls->open, memory_order_acquire))
        return;
    st_worker_lock(colls->w);
    for (unsigned i = 0; i < colls->n; i++) {
        struct st_coll *module = colls->module[i];
        void (*tell)(struct st_coll *, uint32_t) = created ? module->ops->created : module->ops->freed;
        if (tell)
            tell(module, comm->id);
    }
    st_worker_unlock(colls->w);
}

void st_coll_created(const strata_comm_t *comm)
{
    select_tell(comm, true);
}

void st_coll_detach(strata_comm_t *comm)
{
    struct st_coll_group *head = atomic_load_explicit(&st_comm_tail(comm)->coll, memory_order_acquire);
    if (head)
        coll_group_free(ST_CONTAINER(head, struct group, head));
    select_tell(comm, false);
}

void st_coll_mem_report(const strata_t *s, st_mem_line_fn line, void *arg)
{
    const struct colls *colls = s->coll;
    strata_mem_line_t own = {.component = "coll",
                             .category = "communicators",
                             .bytes = sizeof(*colls) + colls->n_groups * sizeof(struct group)};
    line(arg, &own);
    for (unsigned i = 0; i < colls->n; i++)
        if (colls->module[i]->ops->mem_report)
            colls->module[i]->ops->mem_report(colls->module[i], line, arg);
}
