/* Selection of the coll components: all that open, in the order of priority. */
#include "framework/coll/coll_select.h"

#include <stdlib.h>

#include "framework/base/context.h"
#include "framework/base/select.h"
#include "framework/coll/group.h"
#include "framework/pml/comm.h"

static int select_open(strata_t *s, struct colls *colls, const struct st_candidate *c)
{
    const struct st_coll_component_ops *ops = c->component->ops;
    int rc = ops->open(s, c->component, c->config, colls->w, &colls->module[colls->n]);
    if (rc != STRATA_OK) {
        st_select_failed(s, c, rc);
        return c->by_name ? rc : STRATA_OK;
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
    if (rc == STRATA_OK && colls->n > 0)
        rc = st_worker_join(colls->w, &coll_row, colls);
    return rc != STRATA_OK ? st_fail(s, rc, "framework coll: %s", strata_strerror(rc)) : rc;
}

int st_coll_select(strata_t *s)
{
    struct st_candidate *c = NULL;
    size_t n = 0;
    int rc = st_mca_candidates(s->mca, "coll", sizeof(struct st_coll_component_ops), &c, &n);
    if (rc == STRATA_OK && n > 0 && s->pml->ops->revoke) {
        s->coll = calloc(1, sizeof(*s->coll));
        rc = s->coll ? STRATA_OK : STRATA_ERR_NOMEM;
    }
    if (s->coll) {
        s->coll->w = s->worker;
        st_list_init(&s->coll->groups);
        rc = select_all(s, s->coll, c, n);
    }
    free(c);
    return rc;
}

void st_coll_close(strata_t *s)
{
    struct colls *colls = s->coll;
    s->coll = NULL;
    if (!colls)
        return;
    st_worker_leave(colls->w, &coll_row);
    for (unsigned i = 0; i < colls->n; i++)
        colls->module[i]->ops->close(colls->module[i]);
    free(colls);
}

void st_coll_detach(strata_comm_t *comm)
{
    struct st_coll_group *head = atomic_load_explicit(&st_comm_tail(comm)->coll, memory_order_acquire);
    if (head)
        coll_group_free(ST_CONTAINER(head, struct group, head));
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
