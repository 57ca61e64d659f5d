/* Connections by librdmacm: how long one takes, step by step. Both ends are in this process, the passive one in a
 * thread. */
#include "config.h"
#include "tests.h"

#ifdef HAVE_MIBA_RDMACM

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <string.h>
#include "measure.h"

#define MOST_CONNECTIONS 32u
#define MOST_LIVE        (2 * MOST_CONNECTIONS) /* with those whose end nobody reports */
#define WAIT_MS          2000
#define LOOK_MS          20
#define MOST_QUIET       25u /* looks: connections whose end nobody reports are let go after half a second */

struct passive {
    struct rdma_event_channel *channel;
    struct rdma_cm_id *listener;
    uint32_t entries;
    pthread_t thread;
    atomic_bool stop;
    struct rdma_cm_id *live[MOST_LIVE];
    unsigned n_live;
};

struct active {
    struct miba *m;
    struct rdma_event_channel *channel;
    struct sockaddr_in to;
    uint32_t entries;
    struct rdma_cm_id *id[MOST_CONNECTIONS];
};

static int make_pair(struct rdma_cm_id *id, uint32_t entries)
{
    struct ibv_qp_init_attr a = {
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = entries, .max_recv_wr = entries, .max_send_sge = 1, .max_recv_sge = 1}};

    return rdma_create_qp(id, NULL, &a) ? errno : 0;
}

static void let_go(struct passive *p, unsigned i)
{
    struct rdma_cm_id *id = p->live[i];

    p->live[i] = p->live[--p->n_live];
    rdma_disconnect(id);
    rdma_destroy_qp(id);
    rdma_destroy_id(id);
}

static bool is_end(enum rdma_cm_event_type what)
{
    return what == RDMA_CM_EVENT_DISCONNECTED || what == RDMA_CM_EVENT_CONNECT_ERROR ||
           what == RDMA_CM_EVENT_UNREACHABLE || what == RDMA_CM_EVENT_REJECTED || what == RDMA_CM_EVENT_DEVICE_REMOVAL;
}

/* The passive end accepts what comes and lets go what leaves. An event is acknowledged before its connection is
 * destroyed. */
static void handle(struct passive *p, struct rdma_cm_event *e)
{
    struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1, .rnr_retry_count = 7};
    struct rdma_cm_id *id = e->id;
    const enum rdma_cm_event_type what = e->event;

    rdma_ack_cm_event(e);
    if (what == RDMA_CM_EVENT_CONNECT_REQUEST) {
        if (p->n_live == MOST_LIVE || make_pair(id, p->entries) || rdma_accept(id, &param)) {
            rdma_reject(id, NULL, 0);
            if (id->qp)
                rdma_destroy_qp(id);
            rdma_destroy_id(id);
        } else {
            p->live[p->n_live++] = id;
        }
        return;
    }
    for (unsigned i = p->n_live; is_end(what) && i-- > 0;)
        if (p->live[i] == id) {
            let_go(p, i);
            return;
        }
}

static void *serve(void *arg)
{
    struct passive *p = arg;
    struct pollfd f = {.fd = p->channel->fd, .events = POLLIN};
    struct rdma_cm_event *e;

    for (unsigned quiet = 0; quiet < MOST_QUIET;) {
        if (poll(&f, 1, LOOK_MS) > 0 && rdma_get_cm_event(p->channel, &e) == 0) {
            handle(p, e);
            quiet = 0;
        } else if (atomic_load(&p->stop)) {
            quiet = p->n_live ? quiet + 1 : MOST_QUIET;
        }
    }
    while (p->n_live)
        let_go(p, p->n_live - 1);
    return NULL;
}

static enum miba_status no(struct miba *m, const char *step)
{
    return miba_fail(&m->why, errno == ETIMEDOUT || errno == EPROTO ? MIBA_FAILED : MIBA_UNSUPPORTED, "%s: %s", step,
                     strerror(errno));
}

/* The next event, which has to be this one. 0, or -1 with errno. */
static int await(struct active *a, enum rdma_cm_event_type what)
{
    struct pollfd f = {.fd = a->channel->fd, .events = POLLIN};
    const uint64_t end = miba_now() + (uint64_t)WAIT_MS * 1000000u;
    struct rdma_cm_event *e;

    while (poll(&f, 1, WAIT_MS) <= 0)
        if (miba_now() > end) {
            errno = ETIMEDOUT;
            return -1;
        }
    if (rdma_get_cm_event(a->channel, &e))
        return -1;
    const bool good = e->event == what;
    rdma_ack_cm_event(e);
    errno = good ? 0 : EPROTO;
    return good ? 0 : -1;
}

static enum miba_status resolve(struct active *a, unsigned i)
{
    if (rdma_create_id(a->channel, &a->id[i], NULL, RDMA_PS_TCP))
        return no(a->m, "rdma_create_id");
    if (rdma_resolve_addr(a->id[i], NULL, (struct sockaddr *)&a->to, WAIT_MS) || await(a, RDMA_CM_EVENT_ADDR_RESOLVED))
        return no(a->m, "rdma_resolve_addr");
    if (rdma_resolve_route(a->id[i], WAIT_MS) || await(a, RDMA_CM_EVENT_ROUTE_RESOLVED))
        return no(a->m, "rdma_resolve_route");
    return MIBA_OK;
}

static enum miba_status join(struct active *a, unsigned i)
{
    struct rdma_conn_param param = {
        .responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7};

    errno = make_pair(a->id[i], a->entries);
    if (errno)
        return no(a->m, "rdma_create_qp");
    if (rdma_connect(a->id[i], &param) || await(a, RDMA_CM_EVENT_ESTABLISHED))
        return no(a->m, "rdma_connect");
    return MIBA_OK;
}

static enum miba_status part(struct active *a, unsigned i)
{
    enum miba_status status = MIBA_OK;

    if (a->id[i]->qp) {
        if (rdma_disconnect(a->id[i]) || await(a, RDMA_CM_EVENT_DISCONNECTED))
            status = no(a->m, "rdma_disconnect");
        rdma_destroy_qp(a->id[i]);
    }
    rdma_destroy_id(a->id[i]);
    a->id[i] = NULL;
    return status;
}

/* The manager finds the device by the address, whatever --device says. */
static enum miba_status check_device(struct active *a)
{
    const struct device *d = &a->m->dev;
    char text[INET_ADDRSTRLEN] = "";
    enum miba_status status = resolve(a, 0);

    if (!status && (!a->id[0]->verbs || strcmp(ibv_get_device_name(a->id[0]->verbs->device), d->name) != 0 ||
                    a->id[0]->port_num != d->port_number)) {
        inet_ntop(AF_INET, &a->to.sin_addr, text, sizeof text);
        status =
            miba_fail(&a->m->why, MIBA_UNSUPPORTED, "%s leads to device %s port %d, not to %s port %d: --cm-address",
                      text, a->id[0]->verbs ? ibv_get_device_name(a->id[0]->verbs->device) : "none", a->id[0]->port_num,
                      d->name, d->port_number);
    }
    if (a->id[0])
        rdma_destroy_id(a->id[0]);
    a->id[0] = NULL;
    return status;
}

typedef enum miba_status (*step_fn)(struct active *a, unsigned i);
static const step_fn steps[] = {resolve, join, part};

static enum miba_status batch(void *arg, unsigned n, double ns[MOST_FIGURES])
{
    struct active *a = arg;
    enum miba_status status = MIBA_OK;

    for (unsigned s = 0; s < 3 && !status; s++) {
        const uint64_t begin = miba_now();
        for (unsigned i = 0; i < n && !status; i++)
            status = steps[s](a, i);
        ns[s] = (double)(miba_now() - begin);
    }
    const struct miba_why why = a->m->why;
    for (unsigned i = 0; i < n; i++)
        if (a->id[i])
            part(a, i);
    a->m->why = why;
    return status;
}

/* The address that was asked for, that of the port's GID, or this machine's own. */
static bool choose_address(const struct miba *m, struct in_addr *to)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    if (m->set.cm_address)
        return inet_pton(AF_INET, m->set.cm_address, to) == 1;
    if (memcmp(m->dev.gid.raw, mapped, sizeof mapped) == 0)
        memcpy(to, m->dev.gid.raw + 12, 4);
    else
        to->s_addr = htonl(INADDR_LOOPBACK);
    return true;
}

static enum miba_status between(struct active *a, struct passive *p, const struct miba_case *c)
{
    static const char *const figures[] = {"cm_resolve", "cm_connect", "cm_disconnect"};
    const struct measure what = {.run = batch, .arg = a, .figures = 3, .most = MOST_CONNECTIONS, .scale = 1};

    if (rdma_create_id(p->channel, &p->listener, NULL, RDMA_PS_TCP))
        return no(a->m, "rdma_create_id");
    if (rdma_bind_addr(p->listener, (struct sockaddr *)&a->to) || rdma_listen(p->listener, (int)MOST_CONNECTIONS))
        return no(a->m, "rdma_bind_addr, rdma_listen");
    a->to.sin_port = rdma_get_src_port(p->listener);
    if (pthread_create(&p->thread, NULL, serve, p))
        return miba_fail(&a->m->why, MIBA_SKIPPED, "no thread for the passive end");
    enum miba_status status = check_device(a);
    if (!status)
        status = measure_and_report(a->m, c, &what, figures);
    atomic_store(&p->stop, true);
    pthread_join(p->thread, NULL);
    return status;
}

static enum miba_status lead(struct miba *m, const struct miba_case *c)
{
    struct passive p = {.entries = (uint32_t)c->x};
    struct active a = {.m = m, .entries = (uint32_t)c->x, .to = {.sin_family = AF_INET}};
    enum miba_status status;

    if (c->x == 0 || c->x > (uint64_t)m->dev.attr.max_qp_wr)
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "the device's queues have 1 to %d entries", m->dev.attr.max_qp_wr);
    if (!choose_address(m, &a.to.sin_addr))
        return miba_fail(&m->why, MIBA_UNSUPPORTED, "--cm-address %s is not an IPv4 address", m->set.cm_address);
    p.channel = rdma_create_event_channel();
    a.channel = p.channel ? rdma_create_event_channel() : NULL;
    status = a.channel ? between(&a, &p, c) : no(m, "rdma_create_event_channel");
    if (p.listener)
        rdma_destroy_id(p.listener);
    if (a.channel)
        rdma_destroy_event_channel(a.channel);
    if (p.channel)
        rdma_destroy_event_channel(p.channel);
    return status;
}

#else

static enum miba_status lead(struct miba *m, const struct miba_case *c)
{
    (void)c;
    return miba_fail(&m->why, MIBA_UNSUPPORTED, "strata-miba was built without librdmacm");
}

#endif

static const uint64_t entries[] = {16, 256};

const struct miba_test test_cm = {
    .name = "cm",
    .paper = "beyond the paper (Table 1)",
    .isolates = "A connection by librdmacm: finding address and route (cm_resolve), making the pair and connecting it "
                "(cm_connect), and "
                "parting (cm_disconnect). What qp_connected has less is the manager's. Both ends are in one process.",
    .x_name = "entries",
    VALUES(entries),
    .values_fixed = true,
    .local = lead,
};
