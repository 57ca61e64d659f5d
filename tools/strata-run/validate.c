/* Lets the library judge the parameters, so that a typing error costs one line and not N. */
#include "validate.h"

#include <strata/sdk/info.h>
#include "report.h"

int validate_parameters(const struct run_options *options)
{
    strata_config_t config = STRATA_CONFIG_INIT;
    struct st_mca *mca = NULL;
    char why[1024] = "";
    config.command_line = options->settings;
    config.n_command_line = options->n_settings;
    int rc = st_info_create_needed(&config, &mca, why, sizeof(why));
    if (rc != STRATA_OK) {
        report_error("%s", why[0] ? why : strata_strerror(rc));
        return -1;
    }
    st_info_destroy(mca);
    return 0;
}
