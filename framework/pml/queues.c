/* Facts that programs may ask for: lengths of a communicator's queues, and parameters. */
#include <string.h>

#include "framework/base/context.h"
#include "framework/mca/mca.h"
#include <strata/sdk/info.h>

static void lock(strata_t *s)
{
    if (s->pml->ops->lock)
        s->pml->ops->lock(s->pml);
}

static void unlock(strata_t *s)
{
    if (s->pml->ops->unlock)
        s->pml->ops->unlock(s->pml);
}

int strata_comm_queues(const strata_comm_t *comm, uint64_t *unexpected, uint64_t *posted)
{
    if (!comm)
        return STRATA_ERR_ARG;
    if (!comm->ops->queues)
        return STRATA_ERR_UNSUPPORTED;
    lock(comm->context);
    comm->ops->queues(comm, unexpected, posted);
    unlock(comm->context);
    return STRATA_OK;
}

struct show {
    void (*fn)(void *arg, const strata_param_t *p);
    void *arg;
};

static void show_param(void *arg, const struct st_info_param *p)
{
    const struct show *show = arg;
    strata_param_t out = {.name = p->name,
                          .type = p->type,
                          .value = p->value,
                          .default_value = p->dflt,
                          .source = p->source,
                          .unit = p->unit,
                          .help = p->help,
                          .level = p->level};

    show->fn(show->arg, &out);
}

int strata_params(const strata_config_t *config, void (*fn)(void *arg, const strata_param_t *p), void *arg)
{
    struct show show = {fn, arg};
    struct st_mca *mca = NULL;
    char err[512] = "";
    int rc;

    if (!fn)
        return STRATA_ERR_ARG;
    rc = st_info_create(config, &mca, err, sizeof(err));
    if (rc != STRATA_OK) {
        if (config && config->error_text && config->error_text_size) {
            strncpy(config->error_text, err, config->error_text_size - 1);
            config->error_text[config->error_text_size - 1] = 0;
        }
        return rc;
    }
    st_info_params(mca, show_param, &show);
    st_info_destroy(mca);
    return STRATA_OK;
}
