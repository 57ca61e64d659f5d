/* An endpoint's objects: memory, completion queues, queue pairs. */
#include "config.h"
#include "endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "machine.h"

#define LEAST_RECEIVES  64u /* with ping-pong */
#define LEAST_OF_STREAM 512u
#define MOST_RECEIVES   1024u

/* Memory as tests use it by default, or a sealed memfd, into which softhca writes by stores. Its descriptor, *file, may
 * be closed once the memory is registered. */
static char *map(size_t bytes, bool memfd, int *file)
{
    if (!memfd) {
        char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return p == MAP_FAILED ? NULL : p;
    }
    const int fd = memfd_create("strata-miba", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK)) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        close(fd);
        return NULL;
    }
    *file = fd;
    return p;
}

static enum miba_status make_memory(struct endpoint *e)
{
    const unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    int file = -1;

    endpoint_lay_out(e);
    const size_t bytes = 4096 + 2 * (size_t)e->stride * e->t.buffers;
    e->mapped_bytes = e->t.region > bytes ? (size_t)e->t.region : bytes;
    /* Where both sides are here the other one needs as much. */
    const enum miba_status status = machine_spares((e->m->child > 0 ? 2 : 1) * (uint64_t)e->mapped_bytes, &e->m->why);
    if (status)
        return status;
    e->mapped = map(e->mapped_bytes, e->t.memfd, &file);
    if (!e->mapped)
        return miba_fail(&e->m->why, MIBA_SKIPPED, "%zu bytes of memory: %s", e->mapped_bytes, strerror(errno));
    e->memory = e->mapped + (e->mapped_bytes - bytes) / 4096 * 4096;
    memset(e->memory, 0, bytes);
    e->mr = ibv_reg_mr(e->m->dev.pd, e->mapped, e->mapped_bytes,
                       (int)(access | (miba_op_is_atomic(e->t.op) ? IBV_ACCESS_REMOTE_ATOMIC : 0u)));
    const int error = errno;
    if (file >= 0)
        close(file);
    return e->mr ? MIBA_OK : miba_fail_verb(&e->m->why, error, "ibv_reg_mr", NULL);
}

/* A completion queue; `events`: it is waited for by events. */
static enum miba_status make_cq(struct endpoint *e, struct ibv_cq **cq, uint32_t entries, bool events)
{
    struct event_queue *q = &e->by_event[e->by_event[0].cq ? 1 : 0];

    if (events) {
        q->channel = ibv_create_comp_channel(e->m->dev.ctx);
        if (!q->channel)
            return miba_fail_verb(&e->m->why, errno, "ibv_create_comp_channel", NULL);
    }
    *cq = ibv_create_cq(e->m->dev.ctx, (int)entries, NULL, events ? q->channel : NULL, 0);
    if (!*cq)
        return miba_fail_verb(&e->m->why, errno, "ibv_create_cq", cq == &e->scq ? "for sends" : "for receives");
    q->cq = events ? *cq : NULL;
    return MIBA_OK;
}

static enum miba_status make_completion_queues(struct endpoint *e)
{
    const struct traffic *t = &e->t;
    const bool receives =
        t->pattern == PATTERN_PING_PONG ? miba_op_takes_receive(t->op) : t->pattern == PATTERN_STREAM && !e->m->leads;
    const uint32_t sends = t->qps * (t->window + 1), arrivals = t->qps * e->depth;

    if (t->one_cq) {
        const enum miba_status status = make_cq(e, &e->scq, sends + arrivals, false);
        e->rcq = e->scq;
        return status;
    }
    const enum miba_status status = make_cq(e, &e->scq, sends, t->send_events || (t->events && !receives));
    return status ? status : make_cq(e, &e->rcq, arrivals, t->events && receives);
}

static enum miba_status make_queues(struct endpoint *e)
{
    const struct traffic *t = &e->t;
    const struct ibv_device_attr *most = &e->m->dev.attr;

    const uint32_t least = t->pattern == PATTERN_PING_PONG ? LEAST_RECEIVES : LEAST_OF_STREAM;

    e->depth = 2 * t->window < least ? least : 2 * t->window;
    e->depth = e->depth > MOST_RECEIVES ? MOST_RECEIVES : e->depth;
    if (e->depth > (uint32_t)most->max_qp_wr)
        e->depth = (uint32_t)most->max_qp_wr;
    if (t->srq && e->depth > (uint32_t)most->max_srq_wr)
        e->depth = (uint32_t)most->max_srq_wr;
    if ((uint64_t)e->depth * t->qps > (uint64_t)most->max_cqe && most->max_cqe >= (int)t->qps)
        e->depth = (uint32_t)most->max_cqe / t->qps;
    if (t->window + 1 > (uint32_t)most->max_qp_wr)
        return miba_fail(&e->m->why, MIBA_UNSUPPORTED, "a window of %u: the device's queues have %d entries", t->window,
                         most->max_qp_wr);
    const enum miba_status status = make_completion_queues(e);
    if (status)
        return status;
    if (t->srq) {
        struct ibv_srq_init_attr a = {.attr = {.max_wr = e->depth, .max_sge = t->max_recv_sge}};
        e->srq = ibv_create_srq(e->m->dev.pd, &a);
        if (!e->srq)
            return miba_fail_verb(&e->m->why, errno, "ibv_create_srq", NULL);
    }
    return MIBA_OK;
}

static enum miba_status make_pairs(struct endpoint *e)
{
    const unsigned own = e->pairs - e->t.loaders;

    for (unsigned i = 0; i < e->t.loaders; i++) {
        e->loader_cq[i] = ibv_create_cq(e->m->dev.ctx, (int)e->t.window + 1, NULL, NULL, 0);
        if (!e->loader_cq[i])
            return miba_fail_verb(&e->m->why, errno, "ibv_create_cq", "of a loader");
    }
    for (unsigned i = 0; i < e->pairs; i++) {
        struct ibv_qp_init_attr a = {
            .send_cq = i < own ? e->scq : e->loader_cq[i - own],
            .recv_cq = e->rcq,
            .srq = e->srq,
            .qp_type = miba_qp_type(e->t.transport),
            .cap = {.max_send_wr = e->t.window + 1,
                    .max_recv_wr = e->srq ? 0 : e->depth,
                    .max_send_sge = e->t.max_sge,
                    .max_recv_sge = e->t.max_recv_sge,
                    .max_inline_data = e->t.inline_bytes},
        };
        e->qp[i] = ibv_create_qp(e->m->dev.pd, &a);
        if (!e->qp[i])
            return miba_fail_verb(&e->m->why, errno, "ibv_create_qp", miba_transport_name(e->t.transport));
    }
    return MIBA_OK;
}

/* What all messages have in common; post_inl.h fills in the rest. */
static void prepare_requests(struct endpoint *e)
{
    const struct traffic *t = &e->t;
    const bool inlined = t->inline_bytes > 0 && !t->copied && t->size <= t->inline_bytes && !miba_op_fetches(t->op);

    for (unsigned i = 0; i < t->list; i++) {
        e->wr[i] = (struct ibv_send_wr){
            .sg_list = e->sge[i],
            .num_sge = t->size ? (int)t->segments : 0,
            .opcode = miba_op_code(t->op),
            .send_flags = inlined ? IBV_SEND_INLINE : 0,
        };
        for (unsigned s = 0; s < t->segments; s++) {
            const uint32_t each = t->size / t->segments;
            e->sge[i][s] = (struct ibv_sge){.addr = (uintptr_t)endpoint_tx(e, 0) + s * each,
                                            .length = s + 1 < t->segments ? each : t->size - s * each,
                                            .lkey = e->mr->lkey};
        }
    }
    const uint32_t header = t->transport == UD ? ENDPOINT_GRH_BYTES : 0, part = t->size / t->scatter;
    for (unsigned s = 0; s < t->scatter; s++)
        e->rsge[s] = (struct ibv_sge){
            .length = (s + 1 < t->scatter ? part : t->size - s * part) + (s == 0 ? header : 0), .lkey = e->mr->lkey};
    e->rwr = (struct ibv_recv_wr){.sg_list = e->rsge, .num_sge = t->size + header ? (int)t->scatter : 0};
}

enum miba_status endpoint_make(struct endpoint *e, struct miba *m, const struct traffic *t)
{
    *e = (struct endpoint){.m = m, .t = *t, .pairs = t->pattern == PATTERN_INCAST ? t->qps : t->qps + t->loaders};
    if (t->max_sge > (uint32_t)m->dev.attr.max_sge)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "%u entries of a list: the device has %d", t->max_sge,
                         m->dev.attr.max_sge);
    if (miba_op_is_atomic(t->op) && m->dev.attr.atomic_cap == IBV_ATOMIC_NONE)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "the device has no atomic operations");
    if (t->transport == UD && t->size > t->mtu)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "%u bytes: a datagram has %u at most", t->size, t->mtu);
    enum miba_status status = make_memory(e);
    if (!status)
        status = make_queues(e);
    if (!status)
        status = make_pairs(e);
    if (status)
        endpoint_destroy(e);
    else
        prepare_requests(e);
    return status;
}

void endpoint_destroy(struct endpoint *e)
{
    for (unsigned i = 0; i < MOST_QPS + MOST_LOADERS; i++)
        if (e->qp[i])
            ibv_destroy_qp(e->qp[i]);
    for (unsigned i = 0; i < MOST_LOADERS; i++)
        if (e->loader_cq[i])
            ibv_destroy_cq(e->loader_cq[i]);
    if (e->ah)
        ibv_destroy_ah(e->ah);
    if (e->srq)
        ibv_destroy_srq(e->srq);
    if (e->scq)
        ibv_destroy_cq(e->scq);
    if (e->rcq && e->rcq != e->scq)
        ibv_destroy_cq(e->rcq);
    for (unsigned i = 0; i < EVENT_QUEUES; i++)
        if (e->by_event[i].channel)
            ibv_destroy_comp_channel(e->by_event[i].channel);
    if (e->mr)
        ibv_dereg_mr(e->mr);
    if (e->mapped)
        munmap(e->mapped, e->mapped_bytes);
    *e = (struct endpoint){.m = e->m};
}
