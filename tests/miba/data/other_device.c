/* For LD_PRELOAD: what softhca's device does not do. OTHER_DEVICE=regions: regions have up to 2^64-1 bytes, as mlx5
 * says. OTHER_DEVICE=busy: the third region that is deregistered is said to be busy. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is(const char *what)
{
    const char *asked = getenv("OTHER_DEVICE");

    return asked && strcmp(asked, what) == 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    int (*real)(struct ibv_context *, struct ibv_device_attr *) = NULL;

    *(void **)(&real) = dlsym(RTLD_NEXT, "ibv_query_device");
    const int error = real(context, attr);
    if (!error && is("regions"))
        attr->max_mr_size = UINT64_MAX;
    return error;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    static atomic_uint n;
    int (*real)(struct ibv_mr *) = NULL;

    *(void **)(&real) = dlsym(RTLD_NEXT, "ibv_dereg_mr");
    const int error = real(mr);
    return !error && is("busy") && atomic_fetch_add(&n, 1) == 2 ? EBUSY : error;
}
