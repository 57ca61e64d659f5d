/* pml_ob1 as a component: parameters, open and close. */
#include <stdlib.h>
#include "comm.h"
#include "control.h"
#include "message.h"
#include "ob1.h"
#include "peer.h"
#include "recv.h"
#include "report.h"
#include "request.h"
#include "revoke.h"
#include "send.h"
#include "stream.h"
#include "task.h"
#include "wire.h"

static const char *const rndv_choices[] = {"auto", "get", "put", "split", "pipeline", NULL};

#define AT(member) offsetof(struct ob1_config, member)
static const struct st_param params[] = {
    {"eager_limit", ST_PARAM_SIZE, AT(eager_limit), "0", 0, 1 << 30, "bytes",
     "Largest message sent in one fragment before the receiver has matched; 0: by the transport's facts.", 3, NULL},
    {"stream_limit", ST_PARAM_INT, AT(stream_limit), "-1", -1, OB1_STREAM_MAX, "bytes",
     "Largest message sent in consecutive fragments without waiting for the receiver; -1: by the transport's facts; 0: "
     "none.",
     3, NULL},
    {"rdma_min", ST_PARAM_SIZE, AT(rdma_min), "0", 0, 0, "bytes",
     "Smallest message moved by get or put; 0: by the transport's facts.", 4, NULL},
    {"split_min", ST_PARAM_SIZE, AT(split_min), "0", 0, 0, "bytes",
     "From this length on sender and receiver move one half each, if the transport can get and put; 0: by the "
     "transport's facts.",
     4, NULL},
    {"alone_min", ST_PARAM_SIZE, AT(alone_min), "0", 0, 0, "bytes",
     "Smallest message that is announced, and then fetched by the receiver, when it travels alone: nothing else is in "
     "flight to the receiver, which has answered the last message. 0: by the transport's facts, unless eager_limit or "
     "stream_limit is set.",
     4, NULL},
    {"stripe_min", ST_PARAM_SIZE, AT(stripe_min), "256k", 0, 0, "bytes",
     "From this length on a message is divided among all paths to the peer.", 4, NULL},
    {"piece", ST_PARAM_SIZE, AT(piece), "1m", 4096, 0x40000000, "bytes",
     "Largest single get or put where memory need not be registered.", 6, NULL},
    {"depth", ST_PARAM_INT, AT(depth), "4", 1, 64, "operations", "Gets or puts of one range in flight at a time.", 6,
     NULL},
    {"rndv", ST_PARAM_ENUM, AT(rndv), "auto", 0, 0, NULL,
     "Protocol of long messages, for tests and measurements; what a path cannot do is ignored.", 6, rndv_choices},
    {"coalesce", ST_PARAM_INT, AT(coalesce), "-1", -1, UINT16_MAX, "bytes",
     "Largest message that may share a fragment with others: in a burst of nonblocking sends, which then wait for the "
     "next progress, or after there was no room; -1: what the transport says, 0: only empty ones.",
     4, NULL},
    {"unexpected_max", ST_PARAM_SIZE, AT(unexpected_max), "64m", 0, 0, "bytes",
     "Maximum payload of unexpected messages; above it senders must announce messages first; 0: no limit.", 4, NULL},
    {"unexpected_spare", ST_PARAM_SIZE, AT(unexpected_spare), "4m", 0, 0, "bytes",
     "Maximum memory of unexpected messages above 4 KiB that is kept for the next ones. The C library would return it "
     "to the system, and each page would be cleared again.",
     5, NULL},
    {"path_retry_ms", ST_PARAM_INT, AT(paths.retry_ms), "1000", 1, 1 << 30, "ms",
     "Time before a failed path, one of several to a peer, is reconnected.", 5, NULL},
    {"path_keep", ST_PARAM_BOOL, AT(paths.keep), "0", 0, 0, NULL,
     "Whether messages to a peer with one path are also kept until the peer has received them, so that the path may "
     "fail and come back; the same in all processes of a job. Costs a copy and 16 bytes for each message.",
     4, NULL},
    {"path_wait_ms", ST_PARAM_INT, AT(paths.wait_ms), "60000", 0, 1 << 30, "ms",
     "Time without a working path, although paths may come back, after which a peer has failed.", 5, NULL},
    {"spin", ST_PARAM_INT, AT(spin), "-1", -1, 1 << 30, "polls",
     "Polls of a blocking receive before it counts as waiting; -1: by mca_base_spin.", 7, NULL},
};

static const struct st_client client = {.am = ST_AM_PML,
                                        .deliver = ob1_deliver,
                                        .attend = ob1_attend,
                                        .peer_changed = ob1_peer_changed,
                                        .firsts = ob1_firsts,
                                        .peer_failed = ob1_peer_failed,
                                        .outside = ob1_run_callbacks,
                                        .drained = ob1_drained};

static void ob1_close(struct st_pml *head)
{
    struct ob1 *pml = (struct ob1 *)head;

    st_worker_leave(head->worker, &client);
    st_counters_remove(head->context, &pml->counting);
    if (pml->n_dropped || pml->n_protocol_errors)
        st_log(head->context, ST_LOG_INFO, "pml_ob1", "%lu messages were dropped unreceived, %lu fragments refused",
               (unsigned long)(pml->n_dropped + pml->n_early), (unsigned long)pml->n_protocol_errors);
    /* Memory that is given back from here on is no reason to send anything: the worker takes nothing any more. */
    while (st_list_pop(&pml->throttled))
        ;
    ob1_comms_destroy(pml);
    ob1_kept_release(pml);
    ob1_peers_destroy(pml);
    st_wire_ids_destroy(&pml->ids);
    st_slab_destroy(&pml->requests);
    st_slab_destroy(&pml->messages);
    st_slab_destroy(&pml->tasks);
    st_slab_destroy(&pml->pieces);
    st_slab_destroy(&pml->controls);
    st_slab_destroy(&pml->streams);
    st_slab_destroy(&pml->cpeers);
    st_block_cache_clear(&pml->payloads);
    free(pml);
}

#define OB1_OPS                                                                                                        \
    .comm_size = sizeof(struct ob1_comm), .request_size = sizeof(struct ob1_req), .request_align = 16,                 \
    .comm_add = ob1_comm_add, .comm_del = ob1_comm_del, .send_init = ob1_send_init, .recv_init = ob1_recv_init,        \
    .start = ob1_start, .cancel = ob1_cancel, .request_free = ob1_request_free, .iprobe = ob1_iprobe,                  \
    .imrecv = ob1_imrecv, .describe = ob1_describe, .traffic = ob1_traffic, .mem_report = ob1_mem_report,              \
    .queues = ob1_queues, .revoke = ob1_revoke, .close = ob1_close

/* Without threads nothing looks at a lock; with them the hot operations take it. */
static const struct st_pml_ops single_ops = {OB1_OPS, .send = ob1_send, .recv = ob1_recv, .isend = ob1_isend,
                                             .irecv = ob1_irecv};
static const struct st_pml_ops multiple_ops = {OB1_OPS, .send = ob1_send_locked, .recv = ob1_recv_locked,
                                               .isend = ob1_isend_locked, .irecv = ob1_irecv_locked};

static int ob1_make_slabs(struct ob1 *pml)
{
    const struct {
        struct st_slab *slab;
        size_t size, align, per_slab;
    } slabs[] = {
        {&pml->requests, sizeof(struct ob1_req), 64, 32},     {&pml->messages, sizeof(struct ob1_msg), 64, 32},
        {&pml->tasks, sizeof(struct ob1_task), 16, 16},       {&pml->pieces, sizeof(struct ob1_piece), 16, 16},
        {&pml->controls, sizeof(struct ob1_control), 16, 16}, {&pml->streams, sizeof(struct ob1_stream), 16, 16},
        {&pml->cpeers, sizeof(struct ob1_cpeer), 64, 16},
    };

    for (size_t i = 0; i < sizeof(slabs) / sizeof(slabs[0]); i++) {
        int rc = st_slab_init(slabs[i].slab, slabs[i].size, slabs[i].align, slabs[i].per_slab, 0);
        if (rc != STRATA_OK)
            return rc;
    }
    return STRATA_OK;
}

static int ob1_open(strata_t *s, const struct st_component *c, const void *parameters, struct st_worker *worker,
                    struct st_pml **out)
{
    const struct ob1_config *config = parameters;
    struct ob1 *pml = calloc(1, sizeof(*pml));
    int rc;

    if (!pml)
        return STRATA_ERR_NOMEM;
    pml->threaded = st_thread_multiple(s);
    pml->tells = st_tuning(s) != ST_TUNE_OFF;
    pml->head = (struct st_pml){.ops = pml->threaded ? &multiple_ops : &single_ops, .context = s, .worker = worker};
    pml->config = *config;
    pml->payloads.most = config->unexpected_spare;
    pml->rank = st_rte(s)->rank;
    pml->size = st_rte(s)->size;
    st_list_init(&pml->throttled);
    st_list_init(&pml->kept);
    pml->ended_last = &pml->ended;
    pml->early_last = &pml->early;
    pml->want.hdr_len = OB1_WANT_NONE;
    pml->nobody = (struct ob1_cpeer){.rank = -1, .job_rank = -1, .fast_limit = -1};
    pml->done = (struct strata_request){.state = ST_REQ_COMPLETE, .flags = ST_REQ_STATIC, .kind = OB1_SEND};
    if (config->spin >= 0)
        worker->spin = (uint32_t)config->spin;
    rc = ob1_make_slabs(pml);
    worker->paths = config->paths;
    if (rc == STRATA_OK)
        rc = st_worker_join(worker, &client, pml);
    if (rc != STRATA_OK) {
        ob1_close(&pml->head);
        return rc;
    }
    pml->counting = (struct st_counting){.component = c, .count = ob1_count};
    st_counters_add(s, &pml->counting);
    *out = &pml->head;
    return STRATA_OK;
}

static const struct st_pml_component_ops ops = {.open = ob1_open};

ST_COMPONENT(pml, ob1) = {
    ST_COMPONENT_HEAD("pml", "ob1", "0.1.0", "matching by hash; eager, stream and rendezvous protocols over any BTLs"),
    .ops_size = sizeof(struct st_pml_component_ops),
    .priority = 50,
    .params = params,
    .n_params = sizeof(params) / sizeof(params[0]),
    .config_size = sizeof(struct ob1_config),
    .ops = &ops,
    .counters = ob1_counters,
    .n_counters = OB1_N_COUNTERS,
};
