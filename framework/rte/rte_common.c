/* What the rte components have in common. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <strata/sdk/rte.h>

void *st_rte_make(size_t size, const struct st_rte_ops *ops, strata_t *context)
{
    struct st_rte_common *rte = calloc(1, size);

    if (!rte)
        return NULL;
    if (pthread_mutex_init(&rte->lock, NULL) != 0) {
        free(rte);
        return NULL;
    }
    if (gethostname(rte->host, sizeof(rte->host) - 1) != 0)
        strcpy(rte->host, "localhost");
    rte->head = (struct st_rte){.ops = ops, .context = context, .host = rte->host};
    return rte;
}

void st_rte_free(struct st_rte_common *rte)
{
    pthread_mutex_destroy(&rte->lock);
    free(rte);
}
