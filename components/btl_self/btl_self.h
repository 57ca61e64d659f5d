/* Private to btl_self and its tests. */
#ifndef BTL_SELF_H
#define BTL_SELF_H

#include <strata/sdk/btl.h>

struct btl_self_config {
    size_t ring;
    size_t eager_limit;
};

/* A module for rank `rank`, the context's own. */
int btl_self_make(strata_t *s, const struct st_component *c, const struct btl_self_config *config, int rank,
                  struct st_btl **out);

#endif
