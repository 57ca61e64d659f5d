/* A transport that opens, has one module, and reaches nobody. */
#include "fake.h"

#include <stdlib.h>

struct config {
    size_t eager_limit;
    const char *greeting;
};

struct module {
    struct st_btl btl;
    struct st_counting counting;
};

static int reach(struct st_btl *btl, int rank)
{
    (void)btl;
    (void)rank;
    return STRATA_ERR_UNREACHABLE;
}

static int connect_to(struct st_btl *btl, int rank, struct st_btl_endpoint **out)
{
    (void)btl;
    (void)rank;
    (void)out;
    return STRATA_ERR_UNREACHABLE;
}

static void disconnect(struct st_btl_endpoint *ep)
{
    (void)ep;
}

static int send_to(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                   uint32_t len)
{
    (void)ep;
    (void)am;
    (void)hdr;
    (void)hdr_len;
    (void)data;
    (void)len;
    return STRATA_ERR_UNREACHABLE;
}

static void close_module(struct st_btl *btl)
{
    struct module *m = (struct module *)btl;
    st_counters_remove(btl->context, &m->counting);
    free(m);
}

static void count(const struct st_counting *counting, uint64_t *value)
{
    (void)counting;
    value[0] += 17;
    value[1] += 4;
}

static const struct st_btl_ops ops = {
    .reach = reach, .connect = connect_to, .disconnect = disconnect, .send = send_to, .close = close_module};

static int open_component(strata_t *s, const struct st_component *c, const void *config, struct st_btl ***mods,
                          size_t *n)
{
    const struct config *cfg = config;
    if (strcmp(cfg->greeting, "hello") != 0) {
        st_reject(s, c, "the greeting is \"%s\"", cfg->greeting);
        return STRATA_ERR_PARAM;
    }
    struct module *m = calloc(1, sizeof(*m));
    struct st_btl **list = malloc(sizeof(struct st_btl *));
    if (!m || !list) {
        free(m);
        free(list);
        return STRATA_ERR_NOMEM;
    }
    struct st_btl *btl = &m->btl;
    m->counting = (struct st_counting){.component = c, .count = count};
    st_counters_add(s, &m->counting);
    btl->ops = &ops;
    btl->eager_limit = (uint32_t)cfg->eager_limit;
    btl->caps |= ST_BTL_ORDERED;
    btl->max_send = btl->pipeline_send = 1u << 20;
    btl->rdma_pipeline = 1u << 20;
    btl->facts = (struct st_btl_facts){.latency_ns = 1000, .bandwidth_mbs = 1000, .rdma_cost = 1u << 20};
    list[0] = btl;
    *mods = list;
    *n = 1;
    return STRATA_OK;
}

static const struct st_btl_component_ops component_ops = {.open = open_component};

static const struct st_param params[] = {
    {.name = "eager_limit",
     .type = ST_PARAM_SIZE,
     .offset = offsetof(struct config, eager_limit),
     .dflt = "4k",
     .min = 64,
     .max = 65536,
     .unit = "bytes",
     .help = "Largest message that nobody will ever send.",
     .level = 4},
    {.name = "greeting",
     .type = ST_PARAM_STRING,
     .offset = offsetof(struct config, greeting),
     .dflt = "hello",
     .help = "What the transport wants to be told.",
     .level = 1},
};

static const struct st_counter counters[] = {
    {"greetings", "greetings", STRATA_COUNT, "It was greeted so many times."},
    {"patience", "minutes", STRATA_LEVEL, "It has so many minutes left."},
};

ST_COMPONENT(btl, good) = {ST_COMPONENT_HEAD("btl", "good", "1.0", "a transport that reaches nobody"),
                           .ops_size = sizeof(component_ops),
                           .priority = 5,
                           .params = params,
                           .n_params = sizeof(params) / sizeof(params[0]),
                           .config_size = sizeof(struct config),
                           .ops = &component_ops,
                           .counters = counters,
                           .n_counters = sizeof(counters) / sizeof(counters[0])};
