/* btl_mqueue: a transport over POSIX message queues, in one file. Every rank owns one queue; a send is one message into
 * the peer's queue, which the kernel keeps whole and in order. The queue loses its name at once, and peers open it
 * through /proc/PID/fd, so that nothing is left behind however a rank ends. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <strata/sdk/btl.h>
#include <strata/sdk/rank_table.h>

/* The values of our parameters. */
struct mq_config {
    size_t max_send;
};

/* The card that each rank publishes. Only readers of it can send with the rank's token. */
struct card {
    int64_t pid, fd; /* of the queue: the process, and the descriptor in it */
    uint64_t token;
};

/* In front of every message; the length of the payload is what remains. */
struct wire {
    uint64_t token; /* of the sender */
    int32_t rank;   /* of the sender */
    uint16_t am, hdr_len;
};

struct endpoint {
    struct st_btl_endpoint ep; /* first: the part that the layers above read */
    mqd_t queue;
    uint64_t token; /* the peer's */
};

struct mq {
    struct st_btl btl; /* first */
    struct st_rte *rte;
    mqd_t queue;
    size_t size; /* of a message */
    char *in;    /* where messages land; behind it they are put together */
    struct st_rank_table peers;
    uint64_t token;
    bool refused; /* a send, since the last arm */
};

static int mq_reach(struct st_btl *btl, int rank)
{
    struct st_rte *rte = ((struct mq *)btl)->rte;

    return rank != rte->rank && rte->ops->is_local(rte, rank) ? STRATA_OK : STRATA_ERR_UNREACHABLE;
}

/* Opens the peer's queue. An arrival may have done so before. */
static int mq_connect(struct st_btl *btl, int rank, struct st_btl_endpoint **out)
{
    struct mq *m = (struct mq *)btl;
    struct endpoint *e = st_rank_table_get(&m->peers, (uint32_t)rank);
    struct card *card = NULL;
    char path[64];
    size_t length = 0;
    int rc = e ? STRATA_OK : m->rte->ops->get(m->rte, rank, "btl_mqueue", (void **)&card, &length);

    if (e)
        *out = &e->ep;
    if (e || rc != STRATA_OK)
        return rc;
    e = calloc(1, sizeof(*e));
    rc = !e ? STRATA_ERR_NOMEM : length != sizeof(*card) ? STRATA_ERR_PROTOCOL : STRATA_OK;
    if (rc == STRATA_OK) {
        *e = (struct endpoint){.ep = {.btl = btl, .rank = rank, .caps = btl->caps}, .token = card->token};
        snprintf(path, sizeof(path), "/proc/%lld/fd/%lld", (long long)card->pid, (long long)card->fd);
        e->queue = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        rc = e->queue < 0 ? STRATA_ERR_UNREACHABLE : st_rank_table_set(&m->peers, (uint32_t)rank, e);
        if (rc != STRATA_OK && e->queue >= 0)
            mq_close(e->queue);
    }
    free(card);
    if (rc == STRATA_OK)
        *out = &e->ep;
    else
        free(e);
    return rc;
}

static void mq_disconnect(struct st_btl_endpoint *ep)
{
    struct mq *m = (struct mq *)ep->btl;

    st_rank_table_set(&m->peers, (uint32_t)ep->rank, NULL);
    mq_close(((struct endpoint *)ep)->queue);
    free(ep);
}

static int mq_send_message(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                           const void *data, uint32_t len)
{
    struct mq *m = (struct mq *)ep->btl;
    struct wire wire = {m->token, m->rte->rank, (uint16_t)am, (uint16_t)hdr_len};
    char *message = m->in + m->size, *end = mempcpy(message, &wire, sizeof(wire));

    end = hdr_len ? mempcpy(end, hdr, hdr_len) : end;
    end = len ? mempcpy(end, data, len) : end;
    if (mq_send(((struct endpoint *)ep)->queue, message, (size_t)(end - message), 0) == 0) {
        m->btl.bytes_sent += len;
        m->btl.messages_sent++;
        return STRATA_OK;
    }
    if (errno == EAGAIN || errno == EINTR) { /* full */
        m->refused = true;
        return STRATA_ERR_AGAIN;
    }
    m->btl.peer_failed(m->btl.peer_failed_arg, ep->rank, STRATA_ERR_PEER, strerror(errno));
    return STRATA_ERR_PEER;
}

/* Whether the message is one of ours, from the rank that it names. */
static bool mq_believed(struct mq *m, const struct wire *wire, size_t n)
{
    struct st_btl_endpoint *ep;

    return n >= sizeof(*wire) && wire->rank >= 0 && wire->rank < m->rte->size && wire->rank != m->rte->rank &&
           wire->am < ST_AM_COUNT && wire->hdr_len <= ST_BTL_HDR_MAX && wire->hdr_len <= n - sizeof(*wire) &&
           mq_connect(&m->btl, wire->rank, &ep) == STRATA_OK && ((struct endpoint *)ep)->token == wire->token;
}

static int mq_progress(struct st_btl *btl)
{
    struct mq *m = (struct mq *)btl;
    int events = 0;
    ssize_t n;

    for (; events < 8 && (n = mq_receive(m->queue, m->in, m->size, NULL)) >= 0; events++) {
        struct wire wire;
        memcpy(&wire, m->in, sizeof(wire));
        if (!mq_believed(m, &wire, (size_t)n))
            continue; /* none of ours */
        struct st_frag frag = {.hdr = m->in + sizeof(wire),
                               .data = m->in + sizeof(wire) + wire.hdr_len,
                               .hdr_len = wire.hdr_len,
                               .len = (uint32_t)((size_t)n - sizeof(wire) - wire.hdr_len),
                               .rank = wire.rank,
                               .btl = btl};
        st_btl_deliver(btl, (enum st_am)wire.am, &frag);
    }
    return events;
}

/* On Linux a queue is a descriptor, readable when a message is there. Nothing tells of room in a peer's queue: after a
 * refused send nobody sleeps. */
static int mq_arm(struct st_btl *btl, struct st_btl_wait *w)
{
    struct mq *m = (struct mq *)btl;
    bool refused = m->refused;

    m->refused = false;
    w->fd = m->queue;
    return refused ? STRATA_ERR_AGAIN : STRATA_OK;
}

static void mq_disarm(struct st_btl *btl)
{
    (void)btl;
}

static void mq_close_module(struct st_btl *btl)
{
    struct mq *m = (struct mq *)btl;

    for (int64_t r = 0; (r = st_rank_table_next(&m->peers, (uint32_t)r)) >= 0; r++)
        mq_disconnect(&((struct endpoint *)st_rank_table_get(&m->peers, (uint32_t)r))->ep);
    st_rank_table_destroy(&m->peers);
    mq_close(m->queue);
    free(m->in);
    free(m);
}

static const struct st_btl_ops ops = {.reach = mq_reach,
                                      .connect = mq_connect,
                                      .disconnect = mq_disconnect,
                                      .send = mq_send_message,
                                      .progress = mq_progress,
                                      .arm = mq_arm,
                                      .disarm = mq_disarm,
                                      .close = mq_close_module};

static int mq_make_queue(struct mq *m)
{
    struct mq_attr attr = {.mq_maxmsg = 8, .mq_msgsize = (long)m->size};
    char name[80];

    if (getrandom(&m->token, sizeof(m->token), 0) != sizeof(m->token))
        return STRATA_ERR_SYSTEM;
    snprintf(name, sizeof(name), "/strata-%d-%016llx", (int)getpid(), (unsigned long long)m->token);
    m->queue = mq_open(name, O_RDONLY | O_CREAT | O_EXCL | O_NONBLOCK | O_CLOEXEC, 0600, &attr);
    if (m->queue >= 0)
        mq_unlink(name);
    return m->queue >= 0 ? STRATA_OK : STRATA_ERR_SYSTEM;
}

static int mq_open_module(strata_t *s, const struct st_component *c, const void *config, struct st_btl ***mods,
                          size_t *n)
{
    uint32_t max_send = (uint32_t)((const struct mq_config *)config)->max_send;
    struct mq *m = malloc(sizeof(*m));
    int rc;

    if (!m)
        return STRATA_ERR_NOMEM;
    *m = (struct mq){.rte = st_rte(s), .queue = -1, .size = sizeof(struct wire) + ST_BTL_HDR_MAX + max_send};
    m->in = malloc(2 * m->size);
    *mods = calloc(1, sizeof(**mods)); /* the base frees it, after an error as well */
    rc = m->in && *mods ? st_rank_table_init(&m->peers, (uint32_t)m->rte->size) : STRATA_ERR_NOMEM;
    if (rc == STRATA_OK && (rc = mq_make_queue(m)) != STRATA_OK)
        st_reject(s, c, "cannot make a message queue (see mq_overview(7), RLIMIT_MSGQUEUE): %s", strerror(errno));
    if (rc == STRATA_OK) {
        struct card card = {getpid(), m->queue, m->token};
        rc = m->rte->ops->put(m->rte, "btl_mqueue", &card, sizeof(card));
    }
    if (rc != STRATA_OK) {
        mq_close_module(&m->btl);
        return rc;
    }
    m->btl.ops = &ops;
    m->btl.caps = ST_BTL_ORDERED | ST_BTL_COSTLY_POLL;
    m->btl.max_send = m->btl.pipeline_send = m->btl.eager_limit = max_send;
    m->btl.facts = (struct st_btl_facts){.latency_ns = 4000, .bandwidth_mbs = 500};
    m->btl.exclusivity = 4;
    (*mods)[0] = &m->btl;
    *n = 1;
    return STRATA_OK;
}

static const struct st_param params[] = {{"max_send", ST_PARAM_SIZE, offsetof(struct mq_config, max_send), "4k", 1024,
                                          8000, "bytes", "Largest payload of one message.", 4, NULL}};

ST_COMPONENT(btl, mqueue) = {ST_COMPONENT_HEAD("btl", "mqueue", "1.0", "example transport: POSIX message queues"),
                             .ops_size = sizeof(struct st_btl_component_ops),
                             .priority = 4,
                             .params = params,
                             .n_params = sizeof(params) / sizeof(params[0]),
                             .config_size = sizeof(struct mq_config),
                             .ops = &(const struct st_btl_component_ops){.open = mq_open_module}};
