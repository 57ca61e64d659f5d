/* What the selection of every framework has in common: opening candidates in order, and saying why none would do. */
#include "framework/base/select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <strata/sdk/rte.h>
#include "framework/base/context.h"

int st_fail(strata_t *s, int rc, const char *format, ...)
{
    if (s->error && s->error_size > 0 && s->error[0] == '\0') {
        va_list args;
        va_start(args, format);
        vsnprintf(s->error, s->error_size, format, args);
        va_end(args);
    }
    return rc;
}

const char *st_select_where(const strata_t *s, char *out, size_t size)
{
    char host[64] = "?";
    if (s->rte) {
        snprintf(out, size, "rank %d on host %s", s->rte->rank, s->rte->host);
        return out;
    }
    if (s->host && s->host->host_name)
        snprintf(host, sizeof(host), "%s", s->host->host_name);
    else if (gethostname(host, sizeof(host)) != 0)
        strcpy(host, "?");
    host[sizeof(host) - 1] = '\0';
    if (s->host)
        snprintf(out, size, "rank %d on host %s", s->host->rank, host);
    else
        snprintf(out, size, "host %s", host);
    return out;
}

void st_select_failed(strata_t *s, const struct st_candidate *c, int rc)
{
    const char *given = st_mca_reject_reason(s->mca, c->component);
    st_mca_fate(s->mca, c->component, ST_FATE_REJECTED, given[0] ? NULL : strata_strerror(rc));
    if (rc != STRATA_ERR_UNSUPPORTED)
        st_mca_broken(s->mca, c->component);
}

int st_select_none(strata_t *s, const char *framework, const struct st_candidate *c, size_t n)
{
    char text[768] = ": none is installed or admitted by the list of components", where[160];
    const char *why, *name = st_mca_unloaded(s->mca, framework, &why);
    size_t at = 0;

    for (size_t i = 0; i < n && at < sizeof(text); i++) {
        int m = snprintf(text + at, sizeof(text) - at, "%s %s: %s", i ? ";" : ":", c[i].component->name,
                         st_mca_reject_reason(s->mca, c[i].component));
        at += m > 0 ? (size_t)m : 0;
    }
    if (name && at < sizeof(text))
        snprintf(text + at, sizeof(text) - at, "%s %s cannot be loaded: %s", at ? ";" : ":", name, why);
    return st_fail(s, STRATA_ERR_NOT_FOUND, "%s: no %s component can be used%s",
                   st_select_where(s, where, sizeof(where)), framework, text);
}

int st_select_one(strata_t *s, const char *framework, uint32_t ops_size,
                  int (*open)(strata_t *s, const struct st_candidate *c, void *arg), void *arg)
{
    struct st_candidate *c = NULL;
    size_t n = 0;
    int rc = st_mca_candidates(s->mca, framework, ops_size, &c, &n), named_rc = STRATA_OK;
    if (rc != STRATA_OK)
        return st_fail(s, rc, "framework %s: %s", framework, strata_strerror(rc));
    size_t i;
    for (i = 0; i < n; i++) {
        rc = open(s, &c[i], arg);
        if (rc == STRATA_OK)
            break;
        st_select_failed(s, &c[i], rc);
        if (c[i].by_name && named_rc == STRATA_OK)
            named_rc = rc;
    }
    if (i < n) {
        char why[128];
        st_mca_fate(s->mca, c[i].component, ST_FATE_CHOSEN, "first in order of priority that can be used");
        snprintf(why, sizeof(why), "%s was chosen before it", c[i].component->name);
        for (size_t j = i + 1; j < n; j++)
            st_mca_fate(s->mca, c[j].component, ST_FATE_UNUSED, why);
        rc = STRATA_OK;
    } else {
        rc = st_select_none(s, framework, c, n);
        if (named_rc != STRATA_OK)
            rc = named_rc;
    }
    free(c);
    return rc;
}
