/* Modules ("rails"), their parameters, progress, sleeping and closing. */
#include "shuffle.h"
#include <strata/sdk/btl_hints.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define AT(field) offsetof(struct shuffle_config, field)
static const struct st_param params[] = {
    {"seed", ST_PARAM_INT, AT(seed), "1", 0, 0, NULL, "Seed of every random choice.", 9, NULL},
    {"rails", ST_PARAM_INT, AT(rails), "1", 1, 8, "modules", "Modules to make, for striping.", 9, NULL},
    {"window", ST_PARAM_INT, AT(window), "8", 1, 1 + ST_BTL_OVERTAKING_MOST, "fragments",
     "How far a fragment may be overtaken at the receiver; 1 keeps the order.", 9, NULL},
    {"delay", ST_PARAM_INT, AT(delay), "3", 0, 1e6, "polls", "Longest delay of a fragment or an RDMA operation.", 9,
     NULL},
    {"again_percent", ST_PARAM_INT, AT(again_percent), "10", 0, 99, "%",
     "Share of calls that are refused with STRATA_ERR_AGAIN.", 9, NULL},
    {"crowded_percent", ST_PARAM_INT, AT(crowded_percent), "20", 0, 100, "%",
     "Share of fragments after which the peer counts as being behind.", 9, NULL},
    {"keep_percent", ST_PARAM_INT, AT(keep_percent), "50", 0, 100, "%",
     "Share of fragments that clients may keep where they arrived.", 9, NULL},
    {"leave_percent", ST_PARAM_INT, AT(leave_percent), "5", 0, 100, "%",
     "Share of polls that take the oldest kept fragment back.", 9, NULL},
    {"unsupported_percent", ST_PARAM_INT, AT(unsupported_percent), "0", 0, 100, "%",
     "Share of get and put operations at which the endpoint loses the capability.", 9, NULL},
    {"unsupported_put", ST_PARAM_BOOL, AT(unsupported_put), "1", 0, 0, NULL, "Puts lose theirs, too.", 9, NULL},
    {"async_percent", ST_PARAM_INT, AT(async_percent), "80", 0, 100, "%",
     "Share of get and put operations that complete later instead of at once.", 9, NULL},
    {"piece", ST_PARAM_INT, AT(piece), "10000", 1, 1e9, "bytes", "Most bytes that a get or put moves in one poll.", 9,
     NULL},
    {"zcopy_percent", ST_PARAM_INT, AT(zcopy_percent), "50", 0, 100, "%",
     "Share of nonblocking messages whose data is taken some polls after they were sent; none where the order is kept.",
     9, NULL},
    {"zcopy_min", ST_PARAM_SIZE, AT(zcopy_min), "256", 0, 1e9, "bytes", "Smallest message for that; 0: none.", 9, NULL},
    {"eager_limit", ST_PARAM_SIZE, AT(eager_limit), "512", 1, 1e9, "bytes", "Eager limit.", 9, NULL},
    {"max_send", ST_PARAM_SIZE, AT(max_send), "1000", 1, 1e9, "bytes", "Largest payload of a fragment.", 9, NULL},
    {"stream_limit", ST_PARAM_SIZE, AT(stream_limit), "4k", 1, 1e9, "bytes",
     "Largest message sent without waiting for the receiver.", 9, NULL},
    {"rdma_min", ST_PARAM_SIZE, AT(rdma_min), "8k", 0, 1e9, "bytes", "Smallest message for get or put.", 9, NULL},
    {"rdma_pipeline", ST_PARAM_SIZE, AT(rdma_pipeline), "32k", 1, 1e9, "bytes",
     "Piece of an RDMA pipeline when memory must be registered.", 9, NULL},
    {"far_odd", ST_PARAM_BOOL, AT(far_odd), "1", 0, 0, NULL,
     "Odd ranks are twice as far away: latency, and what a question and an RDMA operation cost.", 9, NULL},
    {"get", ST_PARAM_BOOL, AT(get), "1", 0, 0, NULL, "Offer get.", 9, NULL},
    {"put", ST_PARAM_BOOL, AT(put), "1", 0, 0, NULL, "Offer put.", 9, NULL},
    {"needs_reg", ST_PARAM_BOOL, AT(needs_reg), "0", 0, 0, NULL,
     "Demand that memory of get and put is registered, and check it at each access.", 9, NULL},
    {"gather", ST_PARAM_BOOL, AT(gather), "1", 0, 0, NULL,
     "Gather payloads itself; without it the base gathers into a bounce buffer.", 9, NULL},
    {"fail_rank", ST_PARAM_INT, AT(fail_rank), "-1", -1, 1e9, NULL, "Rank whose connection breaks; -1: none.", 9, NULL},
    {"fail_after", ST_PARAM_INT, AT(fail_after), "0", 0, 1e9, "operations",
     "Operations towards fail_rank that still work.", 9, NULL},
    {"break_after", ST_PARAM_INT, AT(break_after), "0", 0, 1e9, "operations",
     "Connections break after this many operations on average, and lose what is on its way; 0: never.", 9, NULL},
    {"break_rails", ST_PARAM_INT, AT(break_rails), "8", 0, 8, "modules", "How many of the rails break.", 9, NULL},
    {"break_silent", ST_PARAM_BOOL, AT(break_silent), "0", 0, 0, NULL,
     "The other end of a cut connection does not notice: its operations are refused with STRATA_ERR_AGAIN.", 9, NULL},
    {"mend_polls", ST_PARAM_INT, AT(mend_polls), "20", 0, 1e9, "polls",
     "After a connection was cut none is made for so long.", 9, NULL},
};

static int progress(struct st_btl *btl)
{
    struct module *m = (struct module *)btl;
    m->polls++;
    leave_one(m);
    int events = m->config->break_after ? endpoints_tell(m) : 0;
    events += deliver_some(m);
    events += transfer_some(m);
    return events;
}

static int arm(struct st_btl *btl, struct st_btl_wait *w)
{
    struct module *m = (struct module *)btl;
    eventfd_t old;
    if (m->port->event_fd >= 0)
        eventfd_read(m->port->event_fd, &old); /* of an earlier sleep; before we look for packets */
    atomic_fetch_add(&m->port->sleeping, 1);
    if (w->by_fd && m->port->event_fd >= 0) {
        w->fd = m->port->event_fd;
    } else {
        w->word = &m->port->word;
        w->expect = atomic_load(&m->port->word);
    }
    bool refused = m->refused; /* there is room again */
    m->refused = false;
    if (refused || m->config->break_after || packets_pending(m) || !st_list_empty(&m->transfers)) {
        atomic_fetch_sub(&m->port->sleeping, 1);
        return STRATA_ERR_AGAIN;
    }
    return STRATA_OK;
}

static void disarm(struct st_btl *btl)
{
    atomic_fetch_sub(&((struct module *)btl)->port->sleeping, 1);
}

static void mem_report(struct st_btl *btl, st_mem_line_fn line, void *arg)
{
    struct module *m = (struct module *)btl;
    size_t peers = 0, regions = 0;
    pthread_mutex_lock(&m->port->lock);
    for (struct st_node *n = m->port->regions.next; n != &m->port->regions; n = n->next)
        regions += sizeof(struct region);
    pthread_mutex_unlock(&m->port->lock);
    for (struct st_node *n = m->endpoints.next; n != &m->endpoints; n = n->next)
        peers += sizeof(struct endpoint);
    line(arg, &(strata_mem_line_t){
                  .component = "btl_shuffle", .category = "other", .bytes = sizeof *m + sizeof *m->port + m->bytes});
    line(arg, &(strata_mem_line_t){.component = "btl_shuffle", .category = "peers", .bytes = peers});
    line(arg, &(strata_mem_line_t){.component = "btl_shuffle", .category = "registered", .bytes = regions});
}

static char *describe(struct st_btl *btl, struct st_btl_endpoint *ep)
{
    (void)ep;
    struct module *m = (struct module *)btl;
    char *text = malloc(64);
    if (text)
        snprintf(text, 64, "{\"rail\": %d, \"test\": true}", m->rail);
    return text;
}

/* All other rails and limits alike, odd ranks are twice as far away. */
static void endpoint_facts(const struct st_btl_endpoint *ep, struct st_btl_facts *facts)
{
    const struct module *m = (const struct module *)ep->btl;
    if (!m->config->far_odd || !(ep->rank & 1))
        return;
    facts->latency_ns *= 2;
    facts->ask_cost *= 2;
    facts->rdma_cost *= 2;
}

static void drain(struct st_node *list)
{
    struct st_node *n;
    while ((n = st_list_pop(list)))
        free(ST_CONTAINER(n, struct packet, node));
}

static void close_module(struct st_btl *btl)
{
    struct module *m = (struct module *)btl;
    struct st_node *n;
    while ((n = st_list_first(&m->endpoints)))
        shuffle_disconnect(&ST_CONTAINER(n, struct endpoint, node)->super);
    if (!st_list_empty(&m->kept))
        st_log(btl->context, ST_LOG_ERROR, "btl_shuffle", "kept fragments were not released before close");
    while ((n = st_list_pop(&m->transfers))) {
        free(ST_CONTAINER(n, struct transfer, node)->packet);
        free(ST_CONTAINER(n, struct transfer, node));
    }
    drain(&m->pool);
    pthread_mutex_lock(&m->port->lock);
    m->port->closed = true;
    drain(&m->port->arrived);
    pthread_mutex_unlock(&m->port->lock);
    port_put(m->port);
    free(m);
}

#define COMMON_OPS                                                                                                     \
    .reach = shuffle_reach, .connect = shuffle_connect, .disconnect = shuffle_disconnect, .facts = endpoint_facts,     \
    .send = shuffle_send, .progress = progress, .arm = arm, .disarm = disarm, .mem_report = mem_report,                \
    .describe = describe, .close = close_module

static const struct st_btl_ops ops_plain = {COMMON_OPS};
static const struct st_btl_ops ops_gather = {COMMON_OPS, .send_payload = shuffle_send_payload};
static const struct st_btl_rdma rdma = {.get = shuffle_get, .put = shuffle_put};
static const struct st_btl_rdma rdma_reg = {
    .get = shuffle_get, .put = shuffle_put, .reg = shuffle_reg, .dereg = shuffle_dereg};
static const struct st_btl_hints hints = {
    .send_zcopy = shuffle_send_zcopy, .keep = shuffle_keep, .release = shuffle_release};

static void fill(struct module *m, strata_t *s, const struct st_component *c, const struct shuffle_config *k)
{
    struct st_btl *b = &m->super;
    b->ops = k->gather ? &ops_gather : &ops_plain;
    b->rdma = k->needs_reg ? &rdma_reg : &rdma;
    b->hints = &hints;
    b->context = s;
    b->component = c;
    b->caps = (k->get ? ST_BTL_GET : 0) | (k->put ? ST_BTL_PUT : 0) | (k->needs_reg ? ST_BTL_NEEDS_REG : 0) |
              (k->window == 1 ? ST_BTL_ORDERED : 0) | ST_BTL_MENDS;
    b->max_overtaking = (uint32_t)k->window - 1;
    b->max_send = (uint32_t)k->max_send;
    b->eager_limit = (uint32_t)(k->eager_limit < k->max_send ? k->eager_limit : k->max_send);
    b->pipeline_send = b->max_send;
    b->rdma_pipeline = k->rdma_pipeline;
    b->facts = (struct st_btl_facts){
        .latency_ns = 1000u + (uint32_t)m->rail,
        .bandwidth_mbs = 1000u * (1 + (uint32_t)m->rail), /* unequal, so that weights show */
        .ask_cost = (uint32_t)k->stream_limit,
        .zcopy_cost = k->window == 1 ? 0 : (uint32_t)k->zcopy_min,
        .rdma_cost = k->rdma_min,
        .split_cost = 128u << 10,
    };
    b->exclusivity = 0;
}

static int make(strata_t *s, const struct st_component *c, const struct shuffle_config *k, int rail,
                struct st_btl **out)
{
    struct st_rte *rte = st_rte(s);
    struct module *m = calloc(1, sizeof *m);
    if (!m || !(m->port = port_create())) {
        free(m);
        return STRATA_ERR_NOMEM;
    }
    m->config = k;
    m->rail = rail;
    m->rank = rte->rank;
    m->rng = (uint64_t)k->seed * 1000003u + (uint64_t)rte->rank * 17u + (uint64_t)rail;
    st_list_init(&m->endpoints);
    st_list_init(&m->pool);
    st_list_init(&m->transfers);
    st_list_init(&m->batch);
    st_list_init(&m->kept);
    fill(m, s, c, k);
    struct address a = {SHUFFLE_MAGIC, getpid(), m->port};
    char key[32];
    shuffle_key(key, sizeof key, rail);
    int rc = rte->ops->put(rte, key, &a, sizeof a);
    if (rc != STRATA_OK) {
        close_module(&m->super);
        return rc;
    }
    *out = &m->super;
    return STRATA_OK;
}

static int open_component(strata_t *s, const struct st_component *c, const void *config, struct st_btl ***mods,
                          size_t *n)
{
    const struct shuffle_config *k = config;
    size_t rails = (size_t)k->rails;
    struct st_btl **list = calloc(rails, sizeof *list);
    if (!list)
        return STRATA_ERR_NOMEM;
    for (size_t i = 0; i < rails; i++) {
        int rc = make(s, c, k, (int)i, &list[i]);
        if (rc != STRATA_OK) {
            while (i--)
                close_module(list[i]);
            free(list);
            return rc;
        }
    }
    *mods = list;
    *n = rails;
    return STRATA_OK;
}

static const struct st_btl_component_ops component_ops = {.open = open_component};

ST_COMPONENT(btl, shuffle) = {
    ST_COMPONENT_HEAD("btl", "shuffle", "0.1",
                      "for tests: a transport inside one process that shuffles, delays, refuses and fails"),
    .ops_size = sizeof(struct st_btl_component_ops),
    .priority = -1, /* only when named */
    .params = params,
    .n_params = sizeof params / sizeof params[0],
    .config_size = sizeof(struct shuffle_config),
    .ops = &component_ops,
};
