/* The parameters mca_base_*, rows of struct st_base_config (framework/base/context.h). */
#ifndef ST_BASE_BASE_PARAMS_H
#define ST_BASE_BASE_PARAMS_H

#include <strata/sdk/component.h>

extern const struct st_param st_base_params[];
extern const size_t st_base_n_params;

#endif
