#include "method.h"

const struct ib_method ib_method_rdmacm = {.name = "rdmacm",
                                           .absent = "this build has no librdmacm (Debian: librdmacm-dev)"};
