/* The parameters of all components, for programs that ask. */
#include <string.h>

#include "framework/mca/mca.h"
#include <strata/sdk/info.h>

struct show {
    void (*fn)(void *arg, const strata_param_t *p);
    void *arg;
};

static void params_show_param(void *arg, const struct st_info_param *p)
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
    st_info_params(mca, params_show_param, &show);
    st_info_destroy(mca);
    return STRATA_OK;
}
