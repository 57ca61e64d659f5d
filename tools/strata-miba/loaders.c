/* Loaders: threads of the following side, each with a queue pair of its own. They write words into the leading side's
 * memory to load its adapter, or are the senders of an incast. */
#include "config.h"
#include "pattern.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include "machine.h"

#define WORD       4u
#define MOST_POLLS 16
#define LOOK_MS    100 /* whether a loader has failed */

struct loader {
    struct endpoint *e;
    unsigned index, pair; /* of its completion queue; of its queue pair */
    unsigned count;       /* messages of an incast; 0: writes until it is stopped */
    atomic_bool *stop;
    atomic_int *failed; /* of all loaders: status of a completion, FAILED_TO_POST, or 0 */
};

#define FAILED_TO_POST (-1)

/* One message: a send of the traffic's size, or a word beside those of the other loaders. */
static struct ibv_send_wr request_of(const struct loader *l, struct ibv_sge *sge)
{
    const struct endpoint *e = l->e;
    const bool sends = l->count > 0;

    *sge =
        (struct ibv_sge){.addr = (uintptr_t)endpoint_tx(e, 0), .length = sends ? e->t.size : WORD, .lkey = e->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = sge,
                             .num_sge = sge->length ? 1 : 0,
                             .opcode = sends ? IBV_WR_SEND : IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED};
    if (!sends) {
        wr.wr.rdma.remote_addr = e->remote.word + (uint64_t)64 * (l->index + 1);
        wr.wr.rdma.rkey = e->remote.rkey;
    }
    return wr;
}

static void *load(void *arg)
{
    struct loader *l = arg;
    struct ibv_sge sge;
    struct ibv_send_wr wr = request_of(l, &sge), *bad;
    struct ibv_wc wc[MOST_POLLS];
    unsigned posted = 0, complete = 0;
    int failed = 0;

    while (!failed && (complete < posted || !atomic_load_explicit(l->stop, memory_order_relaxed))) {
        const bool more = l->count ? posted < l->count : !atomic_load_explicit(l->stop, memory_order_relaxed);
        if (l->count && complete == l->count)
            break;
        if (more && posted - complete < l->e->t.window) {
            failed = ibv_post_send(l->e->qp[l->pair], &wr, &bad) ? FAILED_TO_POST : 0;
            posted++;
        }
        const int k = ibv_poll_cq(l->e->loader_cq[l->index], MOST_POLLS, wc);
        for (int i = 0; i < k && !failed; i++)
            failed = (int)wc[i].status;
        failed = k < 0 ? FAILED_TO_POST : failed;
        complete += k > 0 ? (unsigned)k : 0;
    }
    if (failed)
        atomic_store(l->failed, failed);
    return NULL;
}

/* A thread inherits the one processor that this side is bound to: loaders get others. */
static bool start(struct loader *l, pthread_t *thread, const cpu_set_t *processors)
{
    pthread_attr_t attr;

    if (pthread_attr_init(&attr))
        return false;
    const bool any = CPU_COUNT(processors) == 0; /* the kernel did not say */
    const bool started = (any || pthread_attr_setaffinity_np(&attr, sizeof *processors, processors) == 0) &&
                         pthread_create(thread, &attr, load, l) == 0;
    pthread_attr_destroy(&attr);
    return started;
}

enum miba_status loaders_follow(struct endpoint *e, unsigned n, uint32_t *arrived)
{
    struct loader l[MOST_LOADERS];
    pthread_t thread[MOST_LOADERS];
    atomic_bool stop = false;
    atomic_int failed = 0;
    const bool incast = e->t.pattern == PATTERN_INCAST, receives = !incast && miba_op_takes_receive(e->t.op);
    const cpu_set_t processors = machine_loaders(&e->m->permitted, e->m->cpu, e->m->other_cpu, !receives);
    const unsigned k = e->t.loaders;
    unsigned started = 0;
    uint64_t ns;
    enum miba_status status = MIBA_OK;

    for (; started < k; started++) {
        l[started] = (struct loader){.e = e,
                                     .index = started,
                                     .pair = e->pairs - k + started,
                                     .count = incast ? n / k + (started < n % k) : 0,
                                     .stop = &stop,
                                     .failed = &failed};
        if (incast && l[started].count == 0)
            break;
        if (!start(&l[started], &thread[started], &processors)) {
            atomic_store(&failed, FAILED_TO_POST);
            break;
        }
    }
    if (receives) {
        status = stream(e, 0, n, &ns, arrived);
    } else {
        struct pollfd p = {.fd = e->m->link->fd, .events = POLLIN | POLLRDHUP};
        while (!atomic_load(&failed) && !link_stirs(e->m->link) && poll(&p, 1, LOOK_MS) <= 0)
            ;
        *arrived = n;
    }
    atomic_store(&stop, true);
    for (unsigned i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    const int why = atomic_load(&failed);
    if (why > 0)
        return miba_fail(&e->m->why, MIBA_FAILED, "a message of a loader ended with \"%s\"",
                         ibv_wc_status_str((enum ibv_wc_status)why));
    if (why)
        return miba_fail(&e->m->why, MIBA_FAILED, "a thread that loads the adapter could not run or send");
    return status;
}
