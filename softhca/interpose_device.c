/* Devices: their list, names, contexts and asynchronous events. */
#include <stdlib.h>
#include <string.h>
#include "interpose.h"

static _Atomic(bool) real_devices; /* some were listed */

/* The array that programs get begins its block of memory, as libibverbs' own does: some give it to free(). Entries: our
 * devices, the real library's, NULL, and behind that the real library's array, which has to be given back. */

static struct ibv_device **real_list(size_t *n)
{
    __typeof__(&ibv_get_device_list) real = REAL(ibv_get_device_list, V1_1);
    int count = 0;
    /* NULL where the kernel knows nothing of verbs: then there are none. */
    struct ibv_device **list = real ? real(&count) : NULL;
    *n = list && count > 0 ? (size_t)count : 0;
    if (*n)
        atomic_store(&real_devices, true);
    return list;
}

static void real_free(struct ibv_device **list)
{
    __typeof__(&ibv_free_device_list) real = REAL(ibv_free_device_list, V1_1);
    if (list && real)
        real(list);
}

EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
    struct hca_device *ours;
    const size_t n_ours = hca_devices(&ours);
    size_t n_real, n = 0;
    struct ibv_device **theirs = real_list(&n_real);
    struct ibv_device **list = calloc(n_ours + n_real + 2, sizeof(struct ibv_device *));
    if (!list) {
        real_free(theirs);
        errno = ENOMEM;
        return NULL;
    }
    for (size_t i = 0; i < n_ours; i++)
        if (!hca_device_gone(ours[i].index))
            list[n++] = &ours[i].ibv;
    for (size_t i = 0; i < n_real; i++)
        list[n++] = theirs[i];
    list[n + 1] = (struct ibv_device *)(void *)theirs;
    if (num_devices)
        *num_devices = (int)n;
    errno = 0; /* what the real library met on its way is no error of ours */
    return list;
}

EXPORT void ibv_free_device_list(struct ibv_device **list)
{
    if (!list)
        return;
    size_t n = 0;
    while (list[n])
        n++;
    real_free((struct ibv_device **)(void *)list[n + 1]);
    free(list);
}

EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
    if (hca_is_device(device))
        return device->name;
    __typeof__(&ibv_get_device_name) real = REAL(ibv_get_device_name, V1_1);
    return real ? real(device) : NULL;
}

EXPORT int ibv_get_device_index(struct ibv_device *device)
{
    if (hca_is_device(device))
        return -1; /* the kernel numbers none of ours */
    __typeof__(&ibv_get_device_index) real = REAL(ibv_get_device_index, V1_9);
    return real ? real(device) : -1;
}

EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
    if (hca_is_device(device))
        return hca_guid((struct hca_device *)device);
    __typeof__(&ibv_get_device_guid) real = REAL(ibv_get_device_guid, V1_1);
    return real ? real(device) : 0;
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    if (hca_is_device(device))
        return hca_open_device((struct hca_device *)device);
    __typeof__(&ibv_open_device) real = REAL(ibv_open_device, V1_1);
    return real ? real(device) : hca_unsupported(ENOSYS);
}

EXPORT int ibv_close_device(struct ibv_context *context)
{
    if (hca_is_ours(context))
        return hca_minus_one(hca_close_device(context));
    __typeof__(&ibv_close_device) real = REAL(ibv_close_device, V1_1);
    return real ? real(context) : hca_minus_one(ENOSYS);
}

EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    if (hca_is_ours(context))
        return hca_get_async_event(context, event);
    __typeof__(&ibv_get_async_event) real = REAL(ibv_get_async_event, V1_1);
    return real ? real(context, event) : hca_minus_one(ENOSYS);
}

/* Whose an event is, if it is an object's; events of ports and devices do not say, and nothing is to be done for them.
 */
static const struct ibv_context *context_of(const struct ibv_async_event *event)
{
    switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
        return event->element.cq->context;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return event->element.qp->context;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return event->element.srq->context;
    default:
        return NULL;
    }
}

EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
    const struct ibv_context *context = context_of(event);
    if (context && hca_is_ours(context)) {
        hca_ack_async_event(event);
        return;
    }
    __typeof__(&ibv_ack_async_event) real = REAL(ibv_ack_async_event, V1_1);
    if (real)
        real(event);
}

/* ---- fork ---- */

EXPORT int ibv_fork_init(void)
{
    __typeof__(&ibv_fork_init) real = REAL(ibv_fork_init, V1_1);
    return real ? real() : 0;
}

EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
    /* Our copies go by the parent's addresses, whatever a child does to its own pages. */
    if (!atomic_load(&real_devices))
        return IBV_FORK_UNNEEDED;
    __typeof__(&ibv_is_fork_initialized) real = REAL(ibv_is_fork_initialized, V1_13);
    return real ? real() : IBV_FORK_DISABLED;
}
