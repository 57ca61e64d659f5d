/* A parameter that nobody explained. */
#include "fake.h"

static const struct st_param params[] = {{.name = "depth", .type = ST_PARAM_INT, .dflt = "1", .level = 1}};

ST_COMPONENT(btl, no_help) = {ST_COMPONENT_HEAD("btl", "no_help", "1.0", "a transport that explains nothing"),
                              .ops_size = sizeof(fake_ops),
                              .params = params,
                              .n_params = 1,
                              .config_size = sizeof(int64_t),
                              .ops = &fake_ops};
