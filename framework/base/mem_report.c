/* Who uses how much memory: the sum over the base and all modules. */
#include <strata/sdk/pml.h>
#include <strata/sdk/rcache.h>

#include "framework/base/context.h"

int strata_mem_report(strata_t *s, void (*line)(void *arg, const strata_mem_line_t *line), void *arg)
{
    if (!s || !line)
        return STRATA_ERR_ARG;
    if (s->pml->ops->lock)
        s->pml->ops->lock(s->pml);
    strata_mem_line_t own = {.component = "base", .category = "other", .bytes = sizeof(*s)};
    own.bytes += s->n_btls * sizeof(struct st_btl *);
    line(arg, &own);
    if (s->pml->ops->mem_report)
        s->pml->ops->mem_report(s->pml, line, arg);
    if (s->bml->ops->mem_report)
        s->bml->ops->mem_report(s->bml, line, arg);
    if (s->rcache)
        s->rcache->ops->mem_report(s->rcache, line, arg);
    for (size_t i = 0; i < s->n_btls; i++)
        s->btls[i]->ops->mem_report(s->btls[i], line, arg);
    if (s->pml->ops->unlock)
        s->pml->ops->unlock(s->pml);
    return STRATA_OK;
}
