/* Private to bml_r2 and its tests. */
#ifndef BML_R2_H
#define BML_R2_H

#include <strata/sdk/bml.h>

struct bml_r2_config {
    int64_t max_paths;
};

int bml_r2_make(strata_t *s, const struct bml_r2_config *config, struct st_btl **btls, size_t n_btls,
                struct st_bml **out);

#endif
