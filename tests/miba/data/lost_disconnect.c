/* For LD_PRELOAD: the first event RDMA_CM_EVENT_DISCONNECTED that a thread other than the first one gets is lost, as
 * when the other end of a connection goes before the connection is established. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_bool lost;

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
    int (*real)(struct rdma_event_channel *, struct rdma_cm_event **) = NULL;

    *(void **)(&real) = dlsym(RTLD_NEXT, "rdma_get_cm_event");
    const int error = real(channel, event);
    if (error || (*event)->event != RDMA_CM_EVENT_DISCONNECTED || gettid() == getpid() || atomic_exchange(&lost, 1))
        return error;
    rdma_ack_cm_event(*event);
    errno = EAGAIN;
    return -1;
}
