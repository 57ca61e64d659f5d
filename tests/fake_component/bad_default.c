/* A parameter whose default is out of its own range. */
#include "fake.h"

static const struct st_param params[] = {{.name = "depth",
                                          .type = ST_PARAM_INT,
                                          .dflt = "0",
                                          .min = 1,
                                          .max = 9,
                                          .help = "Depth of something.",
                                          .level = 1}};

ST_COMPONENT(btl, bad_default) = {ST_COMPONENT_HEAD("btl", "bad_default", "1.0", "a transport with a bad default"),
                                  .ops_size = sizeof(fake_ops),
                                  .params = params,
                                  .n_params = 1,
                                  .config_size = sizeof(int64_t),
                                  .ops = &fake_ops};
