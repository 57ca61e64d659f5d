/* The devices and their contexts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "cost.h"

/* A vendor of nobody: the locally administered prefix that the GUIDs have too. */
#define VENDOR_ID      0x02736fu
#define VENDOR_PART_ID 1u

static struct hca_device devices[HCA_DEVICES];
struct hca_context *hca_contexts;

static void fill_devices(void)
{
    hca_limits_read(&hca.limits);
    for (uint32_t i = 0; i < HCA_DEVICES; i++) {
        struct ibv_device *d = &devices[i].ibv;
        devices[i].index = i;
        d->node_type = IBV_NODE_CA;
        d->transport_type = IBV_TRANSPORT_IB;
        snprintf(d->name, sizeof d->name, "soft%u", i);
        /* No kernel has these: who looks there finds nothing, as for a device without a bus. */
        snprintf(d->dev_name, sizeof d->dev_name, "uverbs_soft%u", i);
        snprintf(d->dev_path, sizeof d->dev_path, "/sys/class/infiniband_verbs/uverbs_soft%u", i);
        snprintf(d->ibdev_path, sizeof d->ibdev_path, "/sys/class/infiniband/soft%u", i);
    }
}

size_t hca_devices(struct hca_device **first)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_devices);
    *first = devices;
    return hca.limits.devices;
}

bool hca_is_device(const struct ibv_device *d)
{
    const uintptr_t at = (uintptr_t)d, first = (uintptr_t)devices;
    return at >= first && at < first + sizeof devices;
}

bool hca_is_ours(const struct ibv_context *c)
{
    return hca_is_device(c->device);
}

uint64_t hca_guid(const struct hca_device *d)
{
    const unsigned char guid[8] = {0x02, 's', 'o', 'f', 't', 0, (unsigned char)d->index, 0};
    uint64_t value;
    memcpy(&value, guid, sizeof value);
    return value;
}

bool hca_device_gone(uint32_t device)
{
    return hca.header && atomic_load_explicit(&hca.device_gone[device], memory_order_relaxed);
}

/* ---- contexts ---- */

/* What libibverbs' inline functions reach; all that is left NULL they answer with EOPNOTSUPP. */

static int context_query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *a, size_t length)
{
    struct ibv_port_attr all;
    const int error = hca_query_port(c, port, &all);
    if (error)
        return error;
    /* A program that was built with another verbs.h may have another length. */
    memset(a, 0, length);
    memcpy(a, &all, length < sizeof all ? length : sizeof all);
    return 0;
}

static int context_query_device_ex(struct ibv_context *c, const struct ibv_query_device_ex_input *input,
                                   struct ibv_device_attr_ex *a, size_t length)
{
    struct ibv_device_attr_ex all = {0};
    if (input && input->comp_mask)
        return EINVAL;
    if (length < sizeof all.orig_attr)
        return EINVAL;
    const int error = hca_query_device(c, &all.orig_attr);
    if (error)
        return error;
    all.device_cap_flags_ex = all.orig_attr.device_cap_flags;
    all.phys_port_cnt_ex = hca.limits.ports;
    memset(a, 0, length);
    memcpy(a, &all, length < sizeof all ? length : sizeof all);
    return 0;
}

/* ibv_create_qp_ex takes the plain case to ibv_create_qp itself. */
static struct ibv_qp *context_create_qp_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *a)
{
    const uint32_t mask = a->comp_mask;
    if (!(mask & IBV_QP_INIT_ATTR_PD)) {
        errno = mask ? EOPNOTSUPP : EINVAL;
        return NULL;
    }
    if ((mask & ~(uint32_t)(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS)) ||
        ((mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && a->create_flags)) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    if (a->pd->context != c) {
        errno = EINVAL;
        return NULL;
    }
    /* The first members of both are the same, up to sq_sig_all. */
    return hca_create_qp(a->pd, (struct ibv_qp_init_attr *)a);
}

static struct ibv_srq *context_create_srq_ex(struct ibv_context *c, struct ibv_srq_init_attr_ex *a)
{
    const uint32_t mask = a->comp_mask;
    if ((mask & ~(uint32_t)(IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE)) ||
        ((mask & IBV_SRQ_INIT_ATTR_TYPE) && a->srq_type != IBV_SRQT_BASIC)) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    if (!(mask & IBV_SRQ_INIT_ATTR_PD) || a->pd->context != c) {
        errno = EINVAL;
        return NULL;
    }
    return hca_create_srq(a->pd, (struct ibv_srq_init_attr *)a);
}

static int comp_vectors(void)
{
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    return cpus < 1 ? 1 : cpus > 64 ? 64 : (int)cpus;
}

static void fill_context(struct hca_context *h, struct hca_device *d)
{
    struct verbs_context *v = &h->v;
    h->device = d;
    v->sz = sizeof *v;
    v->query_port = context_query_port;
    v->query_device_ex = context_query_device_ex;
    v->create_qp_ex = context_create_qp_ex;
    v->create_srq_ex = context_create_srq_ex;
    v->context.device = &d->ibv;
    v->context.ops.poll_cq = hca_poll_cq;
    v->context.ops.req_notify_cq = hca_req_notify_cq;
    v->context.ops.post_send = hca_post_send;
    v->context.ops.post_recv = hca_post_recv;
    v->context.ops.post_srq_recv = hca_post_srq_recv;
    hca_cost_use(&v->context.ops);
    v->context.cmd_fd = -1;
    v->context.num_comp_vectors = comp_vectors();
    v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    pthread_mutex_init(&v->context.mutex, NULL);
}

/* Faults that the environment asks for count from a process's first open device on. */
static void faults_at_first_open(void)
{
    static _Atomic(pid_t) applied;
    const pid_t pid = getpid();
    if (atomic_exchange(&applied, pid) != pid)
        hca_faults_from_environment();
}

struct ibv_context *hca_open_device(struct hca_device *d)
{
    static _Atomic(uint32_t) numbers;
    int error = hca_costs_read();
    if (!error)
        error = hca_start();
    if (!error)
        error = hca_transfer_check();
    if (!error)
        error = hca_engine_start(); /* it serves the control socket */
    if (!error && hca_device_gone(d->index))
        error = ENODEV;
    if (error) {
        errno = error;
        return NULL;
    }
    hca_costs_publish();
    faults_at_first_open();
    struct hca_context *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    fill_context(h, d);
    h->v.context.async_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    if (h->v.context.async_fd < 0) {
        error = errno;
        pthread_mutex_destroy(&h->v.context.mutex);
        free(h);
        errno = error;
        return NULL;
    }
    h->asynchronous = hca_token(h->v.context.async_fd);
    h->number = atomic_fetch_add(&numbers, 1) + 1;
    pthread_mutex_lock(&hca.lock);
    h->next = hca_contexts;
    hca_contexts = h;
    pthread_mutex_unlock(&hca.lock);
    return &h->v.context;
}

int hca_close_device(struct ibv_context *c)
{
    struct hca_context *h = hca_context(c);
    pthread_mutex_lock(&hca.lock);
    struct hca_context **at = &hca_contexts;
    while (*at && *at != h)
        at = &(*at)->next;
    if (*at)
        *at = h->next;
    pthread_mutex_unlock(&hca.lock);
    hca_token_end(h->asynchronous);
    close(c->async_fd);
    pthread_mutex_destroy(&c->mutex);
    free(h);
    return 0;
}

/* Wakes whoever waits for asynchronous events of a device: in every context. port 0: of the device itself. */
static void raise_event(uint32_t device, uint32_t port, enum ibv_event_type what)
{
    struct hca_peer *self = hca_peer_get(hca.index);
    if (!self)
        return;
    pthread_mutex_lock(&hca.lock);
    for (struct hca_context *h = hca_contexts; h; h = h->next)
        if (h->device->index == device)
            hca_async(self, port ? &h->port_async[port - 1] : &h->async, h->asynchronous, what);
    pthread_mutex_unlock(&hca.lock);
}

void hca_port_set(uint32_t device, uint32_t port, bool up)
{
    const uint32_t state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    if (atomic_exchange(&hca.header->port[device][port - 1].state, state) != state)
        raise_event(device, port, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
}

/* The subnet manager's word to the port comes with it, after which a program registers anew what that had of it. */
void hca_port_readdress(uint32_t device, uint32_t port, uint32_t n)
{
    hca_set_address(device, port, n);
    raise_event(device, port, hca.limits.roce ? IBV_EVENT_GID_CHANGE : IBV_EVENT_LID_CHANGE);
    if (!hca.limits.roce)
        raise_event(device, port, IBV_EVENT_CLIENT_REREGISTER);
}

void hca_device_remove(uint32_t device)
{
    atomic_store(&hca.header->device_gone[device], 1);
    if (!atomic_exchange(&hca.device_gone[device], true))
        raise_event(device, 0, IBV_EVENT_DEVICE_FATAL);
}

/* ---- what it can do ---- */

int hca_query_device(struct ibv_context *c, struct ibv_device_attr *a)
{
    const struct hca_device *d = hca_context(c)->device;
    const struct hca_limits *l = &hca.limits;
    if (hca_device_gone(d->index))
        return EIO;
    *a = (struct ibv_device_attr){
        .node_guid = hca_guid(d),
        .sys_image_guid = hca_guid(d),
        .max_mr_size = UINT64_C(1) << 47,
        .page_size_cap = 0xfffff000,
        .vendor_id = VENDOR_ID,
        .vendor_part_id = VENDOR_PART_ID,
        .hw_ver = 1,
        .max_qp = (int)l->max_qp,
        .max_qp_wr = (int)l->max_qp_wr,
        .device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
                            IBV_DEVICE_RC_RNR_NAK_GEN,
        .max_sge = (int)l->max_sge,
        .max_sge_rd = (int)l->max_sge,
        .max_cq = (int)l->max_cq,
        .max_cqe = (int)l->max_cqe,
        .max_mr = (int)l->max_mr,
        .max_pd = (int)l->max_pd,
        .max_qp_rd_atom = HCA_MAX_RD_ATOMIC,
        .max_res_rd_atom = (int)(l->max_qp < INT32_MAX / HCA_MAX_RD_ATOMIC ? l->max_qp * HCA_MAX_RD_ATOMIC : INT32_MAX),
        .max_qp_init_rd_atom = HCA_MAX_RD_ATOMIC,
        .atomic_cap = IBV_ATOMIC_HCA,
        .max_ah = (int)l->max_ah,
        .max_srq = (int)l->max_srq,
        .max_srq_wr = (int)l->max_srq_wr,
        .max_srq_sge = (int)l->max_sge,
        .max_pkeys = (uint16_t)l->pkeys,
        .local_ca_ack_delay = 15,
        .phys_port_cnt = (uint8_t)l->ports,
    };
    snprintf(a->fw_ver, sizeof a->fw_ver, "1.0.0");
    return 0;
}
