/* Selection of BTLs: unlike the other frameworks all that can be opened are, and each may bring several modules. */
#include "framework/btl/btl_select.h"

#include <stdlib.h>
#include <string.h>

#include "framework/base/context.h"
#include "framework/base/select.h"

/* Closes what a component opened before something else about it failed. */
static void btl_close_some(struct st_btl **mods, size_t from, size_t n)
{
    for (size_t i = from; i < n; i++)
        if (mods[i]->ops && mods[i]->ops->close)
            mods[i]->ops->close(mods[i]);
}

/* Takes n modules of one component into the context, all or none. */
static int btl_adopt(strata_t *s, const struct st_candidate *c, struct st_btl **mods, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *wrong = st_btl_check(mods[i]);
        if (wrong) {
            st_reject(s, c->component, "breaks the btl contract: %s", wrong);
            btl_close_some(mods, 0, n);
            return STRATA_ERR_UNSUPPORTED;
        }
    }
    struct st_btl **all = realloc(s->btls, (s->n_btls + n) * sizeof(*all));
    if (all)
        s->btls = all;
    struct st_btl_filled **filled = realloc(s->btl_filled, (s->n_btls + n) * sizeof(*filled));
    if (filled)
        s->btl_filled = filled;
    if (!all || !filled) {
        btl_close_some(mods, 0, n);
        return STRATA_ERR_NOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        mods[i]->context = s;
        mods[i]->component = c->component;
        int rc = st_btl_fill(mods[i], &filled[s->n_btls + i]);
        if (rc != STRATA_OK) {
            for (size_t j = 0; j < i; j++)
                st_btl_close(mods[j], filled[s->n_btls + j]);
            btl_close_some(mods, i, n);
            return rc;
        }
    }
    memcpy(all + s->n_btls, mods, n * sizeof(*all));
    s->n_btls += n;
    return STRATA_OK;
}

/* *empty: it works, and there is nothing for it to do in this job. */
static int btl_open(strata_t *s, const struct st_candidate *c, bool *empty)
{
    const struct st_btl_component_ops *ops = c->component->ops;
    struct st_btl **mods = NULL;
    size_t n = 0;
    int rc = ops->open(s, c->component, c->config, &mods, &n);
    *empty = rc == STRATA_OK && n == 0;
    if (*empty) {
        if (!st_mca_reject_reason(s->mca, c->component)[0])
            st_reject(s, c->component, "opened, and offers no module");
        rc = STRATA_ERR_UNSUPPORTED;
    }
    if (rc == STRATA_OK)
        rc = btl_adopt(s, c, mods, n);
    free(mods);
    return rc;
}

/* Opens a candidate and records what became of it. */
static int btl_try(strata_t *s, const struct st_candidate *c)
{
    char where[160];
    bool empty;
    int rc = btl_open(s, c, &empty);

    if (rc == STRATA_OK) {
        st_mca_fate(s->mca, c->component, ST_FATE_CHOSEN, "opened; used for the peers that it reaches");
        return rc;
    }
    st_select_failed(s, c, rc);
    /* "self,sm" in a user's environment must not stop a job of one rank. */
    if (!c->by_name || empty)
        return STRATA_OK;
    return st_fail(s, rc, "%s: component btl %s was asked for and cannot be used: %s",
                   st_select_where(s, where, sizeof(where)), c->component->name,
                   st_mca_reject_reason(s->mca, c->component));
}

/* In the second round the costly ones, with what is open by then. */
static int btl_try_all(strata_t *s, const struct st_candidate *c, size_t n, bool costly)
{
    int rc = STRATA_OK;

    for (size_t i = 0; i < n && rc == STRATA_OK; i++) {
        if (st_btl_may_spare(s, &c[i]) != costly)
            continue;
        const struct st_btl *other = costly ? st_btl_instead_of(s, &c[i]) : NULL;
        if (!other) {
            rc = btl_try(s, &c[i]);
            continue;
        }
        st_reject(s, c[i].component,
                  "all ranks of the job are on this machine, where %s is used; --mca btl opens it by name",
                  other->component->name);
    }
    return rc;
}

int st_btl_select(strata_t *s)
{
    struct st_candidate *c = NULL;
    size_t n = 0;
    int rc = st_mca_candidates(s->mca, "btl", sizeof(struct st_btl_component_ops), &c, &n);
    if (rc != STRATA_OK)
        return st_fail(s, rc, "framework btl: %s", strata_strerror(rc));
    rc = btl_try_all(s, c, n, false);
    if (rc == STRATA_OK)
        rc = btl_try_all(s, c, n, true);
    if (rc == STRATA_OK && s->n_btls == 0)
        rc = st_select_none(s, "btl", c, n);
    free(c);
    if (rc != STRATA_OK)
        st_btl_close_all(s);
    return rc;
}

void st_btl_close_all(strata_t *s)
{
    for (size_t i = s->n_btls; i-- > 0;)
        st_btl_close(s->btls[i], s->btl_filled[i]);
    free(s->btls);
    free(s->btl_filled);
    s->btls = NULL;
    s->btl_filled = NULL;
    s->n_btls = 0;
}
