/* How this Strata was built; config/build_info.m4 asked. */
#include "config.h"
#include "info.h"

const struct build_fact build_facts[] = {
    {"version", PACKAGE_VERSION},
    {"compiler", ST_BUILD_COMPILER},
    {"flags", ST_BUILD_FLAGS},
    {"configure", ST_BUILD_CONFIGURE},
#ifdef ST_STATIC_COMPONENTS
    {"components", "linked into the library"},
#else
    {"components", "plugins"},
#endif
    {"PMIx", ST_BUILD_PMIX},
    {"hwloc", ST_BUILD_HWLOC},
    {"libibverbs", ST_BUILD_VERBS},
    {"Open MPI", ST_BUILD_OPENMPI},
    {NULL, NULL},
};
