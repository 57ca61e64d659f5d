/* The fake PML of fake_stack.h: delivers nothing, completes requests when told to. */
#include "support/fake_stack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct strata_request static_request = {.state = ST_REQ_COMPLETE, .flags = ST_REQ_STATIC};

static void op(const char *name)
{
    snprintf(fake.last_op, sizeof(fake.last_op), "%s", name);
}

static int comm_add(strata_comm_t *c)
{
    if (fake.fail & (1u << FAKE_COMM))
        return STRATA_ERR_NOMEM;
    char word[24];
    snprintf(word, sizeof(word), "comm%u+", c->id);
    fake_note(word);
    fake.open++;
    return STRATA_OK;
}
static void comm_del(strata_comm_t *c)
{
    char word[24];
    snprintf(word, sizeof(word), "comm%u-", c->id);
    fake_closes(word);
}
static int pml_send(strata_comm_t *c, const void *buf, size_t len, int dst, int tag, strata_mode_t mode)
{
    (void)c;
    op("send");
    fake.last_send = (struct st_pml_send){.buf = buf, .len = len, .dst = dst, .tag = tag, .mode = mode};
    return fake.next_status.error;
}
static int pml_recv(strata_comm_t *c, void *buf, size_t len, int src, int tag, strata_status_t *status)
{
    (void)c;
    op("recv");
    fake.last_recv = (struct st_pml_recv){.buf = buf, .len = len, .src = src, .tag = tag};
    if (status)
        *status = fake.next_status;
    return fake.next_status.error;
}
static strata_request_t *make_request(strata_comm_t *c, void *storage, strata_complete_fn fn, void *arg, bool active)
{
    strata_request_t *r = storage ? storage : malloc(sizeof(*r));
    *r = (struct strata_request){.flags = storage  ? ST_REQ_FOREIGN
                                          : active ? 0
                                                   : ST_REQ_PERSISTENT,
                                 .comm = c,
                                 .fn = fn,
                                 .arg = arg,
                                 .state = active ? ST_REQ_ACTIVE : ST_REQ_INACTIVE};
    if (active)
        fake.pending[fake.n_pending++] = r;
    return r;
}
static int pml_isend(strata_comm_t *c, const struct st_pml_send *a, strata_request_t **req)
{
    op("isend");
    fake.last_send = *a;
    if (fake.isend_at_once) {
        if (!req)
            return 1;
        *req = &static_request;
        return STRATA_OK;
    }
    if (!req && !a->storage)
        return STRATA_ERR_AGAIN;
    strata_request_t *r = make_request(c, a->storage, a->fn, a->arg, true);
    if (req)
        *req = r;
    return STRATA_OK;
}
static int pml_irecv(strata_comm_t *c, const struct st_pml_recv *a, strata_request_t **req)
{
    op("irecv");
    fake.last_recv = *a;
    strata_request_t *r = make_request(c, a->storage, a->fn, a->arg, true);
    if (req)
        *req = r;
    return STRATA_OK;
}
static int pml_send_init(strata_comm_t *c, const struct st_pml_send *a, strata_request_t **req)
{
    op("send_init");
    fake.last_send = *a;
    *req = make_request(c, NULL, NULL, NULL, false);
    return STRATA_OK;
}
static int pml_recv_init(strata_comm_t *c, const struct st_pml_recv *a, strata_request_t **req)
{
    op("recv_init");
    fake.last_recv = *a;
    *req = make_request(c, NULL, NULL, NULL, false);
    return STRATA_OK;
}
static int pml_start(strata_request_t *r)
{
    fake.started++;
    atomic_store(&r->state, ST_REQ_ACTIVE);
    fake.pending[fake.n_pending++] = r;
    return STRATA_OK;
}
static int pml_cancel(strata_request_t *r)
{
    fake.cancelled++;
    for (int i = 0; i < fake.n_pending; i++) {
        if (fake.pending[i] == r) {
            strata_status_t keep = fake.next_status;
            fake.next_status = (strata_status_t){.error = STRATA_ERR_CANCELLED};
            fake_complete(i);
            fake.next_status = keep;
        }
    }
    return STRATA_OK;
}
static void pml_request_free(strata_request_t *r)
{
    fake.freed++;
    if (!(r->flags & (ST_REQ_STATIC | ST_REQ_FOREIGN)))
        free(r);
}
static int pml_iprobe(strata_comm_t *c, int src, int tag, int *found, strata_message_t **msg, strata_status_t *status)
{
    (void)src, (void)tag;
    op(msg ? "improbe" : "iprobe");
    *found = fake.message_waits;
    if (fake.message_waits && msg) {
        *msg = malloc(sizeof(**msg));
        (*msg)->comm = c;
        fake.taken++;
    }
    if (fake.message_waits && status)
        *status = fake.next_status;
    return STRATA_OK;
}
static int pml_imrecv(strata_message_t *msg, const struct st_pml_recv *a, strata_request_t **req)
{
    strata_comm_t *c = msg->comm;
    free(msg);
    pml_irecv(c, a, req);
    op("imrecv");
    return STRATA_OK;
}

void fake_complete(int i)
{
    strata_request_t *r = fake.pending[i];
    fake.pending[i] = fake.pending[--fake.n_pending];
    r->status = fake.next_status;
    strata_complete_fn fn = r->fn;
    strata_status_t status = r->status;
    void *arg = r->arg;
    atomic_store_explicit(&r->state, ST_REQ_COMPLETE, memory_order_release);
    if (fn)
        fn(arg, r, &status);
}

/* Each progress completes the oldest request that pends. */
static int client_attend(void *arg)
{
    (void)arg;
    __atomic_add_fetch(&fake.progressed, 1, __ATOMIC_RELEASE);
    fake.message_waits |= fake.message_comes;
    if (fake.n_pending == 0)
        return 0;
    fake_complete(0);
    return 1;
}
static void client_peer_failed(void *arg, struct st_peer *peer)
{
    (void)arg;
    fake.failed_rank = peer->rank;
}
static bool client_drained(void *arg)
{
    (void)arg;
    fake_note("drain");
    return true;
}
static void client_deliver(void *arg, const struct st_frag *frag)
{
    (void)arg, (void)frag;
}
static const struct st_client client = {.am = ST_AM_PML,
                                        .deliver = client_deliver,
                                        .attend = client_attend,
                                        .peer_failed = client_peer_failed,
                                        .drained = client_drained};

/* Of rank 2, which is sent to, and of rank 3, which is only heard. */
static bool pml_traffic(struct st_pml *p, int rank, struct st_pml_traffic *out)
{
    (void)p;
    if (rank == 2)
        *out = (struct st_pml_traffic){7, 70, 1, 5, &fake_btl_a};
    if (rank == 3)
        *out = (struct st_pml_traffic){0, 0, 2, 9, &fake_btl_b};
    return rank == 2 || rank == 3;
}

static char *pml_describe(struct st_pml *p, int rank)
{
    (void)p, (void)rank;
    return strdup("{\"eager_up_to\": 1024, \"rendezvous\": {\"get\": true}}");
}
static void pml_mem_report(struct st_pml *p, st_mem_line_fn line, void *arg)
{
    (void)p;
    line(arg, &(strata_mem_line_t){.component = "pml_fpml", .category = "requests", .bytes = 100});
}
static void pml_close(struct st_pml *p)
{
    st_worker_leave(p->worker, &client);
    fake_closes("pml-");
    free(p);
}

static const struct st_pml_ops pml_ops = {.comm_size = sizeof(struct strata_comm),
                                          .request_size = sizeof(struct strata_request),
                                          .request_align = 8,
                                          .comm_add = comm_add,
                                          .comm_del = comm_del,
                                          .send = pml_send,
                                          .recv = pml_recv,
                                          .isend = pml_isend,
                                          .irecv = pml_irecv,
                                          .send_init = pml_send_init,
                                          .recv_init = pml_recv_init,
                                          .start = pml_start,
                                          .cancel = pml_cancel,
                                          .request_free = pml_request_free,
                                          .iprobe = pml_iprobe,
                                          .imrecv = pml_imrecv,
                                          .describe = pml_describe,
                                          .traffic = pml_traffic,
                                          .mem_report = pml_mem_report,
                                          .close = pml_close};

static int pml_open(strata_t *s, const struct st_component *c, const void *config, struct st_worker *worker,
                    struct st_pml **out)
{
    (void)config;
    int rc = fake_opens(s, c, FAKE_PML);
    if (rc != STRATA_OK)
        return rc;
    struct st_pml *p = calloc(1, sizeof(*p));
    *p = (struct st_pml){&pml_ops, s, worker};
    if (st_worker_join(worker, &client, p) != STRATA_OK)
        abort();
    st_worker_attend(worker, ST_ATTEND_LOOK << ST_AM_PML);
    *out = fake.pml = p;
    return STRATA_OK;
}
static const struct st_pml_component_ops pml_component = {pml_open};
const struct st_component fake_pml = {ST_COMPONENT_HEAD("pml", "fpml", "1", "fake"), .ops_size = sizeof(pml_component),
                                      .priority = 90, .ops = &pml_component};
