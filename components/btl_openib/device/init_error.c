/* Why the device refused an object. ENOMEM of verbs means either that this process may not lock more memory or that the
 * device has no more such objects; registering a little memory tells which. */
#include "device/device.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <strata/sdk/process_memory.h>

enum { SOME = 256 << 10 }; /* bytes that any queue with its buffers is content with */

static bool error_registers(const struct ib_device *d, size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr = NULL;

    if (p == MAP_FAILED)
        return false;
    if (d->pd)
        mr = ibv_reg_mr(d->pd, p, bytes, IBV_ACCESS_LOCAL_WRITE);
    if (mr)
        (void)ibv_dereg_mr(mr);
    (void)munmap(p, bytes);
    return mr != NULL;
}

static void error_add_device(const struct ib_device *d, enum ib_resource resource, char *text, size_t size)
{
    const struct {
        const char *name, *attribute;
        int most;
    } all[] = {
        [IB_PDS] = {"protection domains", "max_pd", d->attr.max_pd},
        [IB_CQS] = {"completion queues", "max_cq", d->attr.max_cq},
        [IB_SRQS] = {"shared receive queues", "max_srq", d->attr.max_srq},
        [IB_QPS] = {"queue pairs", "max_qp", d->attr.max_qp},
        [IB_MRS] = {"memory regions", "max_mr", d->attr.max_mr},
    };
    size_t n = strlen(text);

    snprintf(text + n, size - n, "; the device has %d %s for all processes (%s)", all[resource].most,
             all[resource].name, all[resource].attribute);
}

static void error_add_memlock(char *text, size_t size)
{
    struct rlimit r;
    size_t n = strlen(text);

    if (getrlimit(RLIMIT_MEMLOCK, &r) == 0 && r.rlim_cur != RLIM_INFINITY)
        snprintf(text + n, size - n, "; ulimit -l is %llu KiB, raise it (limits.conf: memlock unlimited)",
                 (unsigned long long)r.rlim_cur / 1024);
}

void ib_init_error(const struct ib_device *d, enum ib_resource resource, const char *what, char *why, size_t why_size)
{
    int error = errno;

    snprintf(why, why_size, "%s: no %s can be made: %s", d->name, what, strerror(error));
    if (error != ENOMEM)
        return;
    if (resource == IB_MRS) {
        /* One page: there are more regions, so that it is the bytes that are too many. */
        if (!error_registers(d, st_page_size()))
            error_add_device(d, resource, why, why_size);
        error_add_memlock(why, why_size);
    } else if (resource == IB_PDS || error_registers(d, SOME)) {
        error_add_device(d, resource, why, why_size);
    } else {
        error_add_memlock(why, why_size);
    }
}
