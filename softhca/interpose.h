/* Standing in for libibverbs' entry points: what is about a device of ours is done here, the rest by the real library.
 * The names are given the versions that libibverbs has them in (softhca.map), so that programs that are built already
 * find them. */
#ifndef SOFTHCA_INTERPOSE_H
#define SOFTHCA_INTERPOSE_H

#include <errno.h>
#include <stdatomic.h>
#include "hca.h"

/* These are names of inline functions in verbs.h; we define what they call. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova
#undef ibv_get_device_list

#define EXPORT __attribute__((visibility("default")))

#define V1_0      "IBVERBS_1.0"
#define V1_1      "IBVERBS_1.1"
#define V1_5      "IBVERBS_1.5"
#define V1_6      "IBVERBS_1.6"
#define V1_7      "IBVERBS_1.7"
#define V1_8      "IBVERBS_1.8"
#define V1_9      "IBVERBS_1.9"
#define V1_10     "IBVERBS_1.10"
#define V1_11     "IBVERBS_1.11"
#define V1_12     "IBVERBS_1.12"
#define V1_13     "IBVERBS_1.13"
#define V1_14     "IBVERBS_1.14"
#define V_PRIVATE "IBVERBS_PRIVATE_34"

/* The real library's function, kept in *found; NULL when it has none of that name. */
HCA_INTERNAL void *hca_real(_Atomic(void *) *found, const char *name, const char *version);

/* The real function of a name, of the type that verbs.h declares. */
#define REAL(name, version)                                                                                            \
    ({                                                                                                                 \
        static _Atomic(void *) found_;                                                                                 \
        (__typeof__(&(name)))hca_real(&found_, #name, version);                                                        \
    })

static inline void *hca_unsupported(int error)
{
    errno = error;
    return NULL;
}
/* For functions that return -1 and set errno. */
static inline int hca_minus_one(int error)
{
    if (!error)
        return 0;
    errno = error;
    return -1;
}

#endif
