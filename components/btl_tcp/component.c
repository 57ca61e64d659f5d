/* btl_tcp as a component: open, which makes the module and publishes where it listens. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/socket.h>
#include <sys/random.h>
#include "dial.h"
#include "rdma.h"
#include "tcp.h"

const struct st_btl_ops tcp_ops = {.reach = tcp_reach,
                                   .connect = tcp_connect,
                                   .disconnect = tcp_disconnect,
                                   .facts = tcp_facts,
                                   .send = tcp_send,
                                   .progress = tcp_progress,
                                   .arm = tcp_arm,
                                   .disarm = tcp_disarm,
                                   .mem_report = tcp_mem_report,
                                   .describe = tcp_describe,
                                   .close = tcp_close};

static bool open_all_local(struct st_rte *rte)
{
    int n = 0;

    (void)rte->ops->local_ranks(rte, &n);
    return n > 0 && n == rte->size;
}

/* Fills in the card's addresses from the machine's interfaces. */
static int open_addresses(struct tcp_module *m, char *why, size_t why_size)
{
    struct tcp_filter *include = NULL, *exclude = NULL;
    struct ifaddrs *all = NULL;
    char item[160] = "";
    const char *name = "include";
    uint32_t left_out = 0;
    int rc = tcp_filter_parse(m->par->if_include, &include, item, sizeof item);

    if (rc == STRATA_OK) {
        name = "exclude";
        rc = tcp_filter_parse(m->par->if_exclude, &exclude, item, sizeof item);
    }
    if (rc != STRATA_OK) {
        snprintf(why, why_size, "btl_tcp_if_%s: %s", name, item[0] ? item : strata_strerror(rc));
    } else if (getifaddrs(&all) != 0) {
        snprintf(why, why_size, "the network interfaces cannot be listed: %s", strerror(errno));
        rc = STRATA_ERR_SYSTEM;
    } else {
        m->card.n = (uint16_t)tcp_addresses(all, include, exclude, m->card.address, &left_out);
        freeifaddrs(all);
        if (left_out && m->link == 0)
            st_log(m->btl.context, ST_LOG_WARN, "btl_tcp",
                   "this process has %u addresses more than the %u that it publishes; btl_tcp_if_include chooses",
                   left_out, TCP_ADDRESSES);
        if (m->card.n == 0) {
            snprintf(why, why_size, "no network interface is up%s",
                     include || exclude ? " that btl_tcp_if_include and btl_tcp_if_exclude leave" : "");
            rc = STRATA_ERR_UNSUPPORTED;
        }
    }
    tcp_filter_free(include);
    tcp_filter_free(exclude);
    return rc;
}

static bool open_given(const char *list)
{
    return list && *list;
}

static int open_card(struct tcp_module *m, char *why, size_t why_size)
{
    bool lists = open_given(m->par->if_include) || open_given(m->par->if_exclude);
    bool here = open_all_local(m->rte) && !lists;
    int rc = STRATA_OK;

    m->card.magic = TCP_MAGIC;
    if (getrandom(m->card.key, TCP_KEY, 0) != (ssize_t)TCP_KEY) {
        snprintf(why, why_size, "no random numbers for a key: %s", strerror(errno));
        return STRATA_ERR_SYSTEM;
    }
    if (here) { /* no other machine is listened to */
        memcpy(m->card.address[0].ip, st_socket_loopback, 16);
        m->card.address[0].prefix = 104;
        m->card.address[0].flags = TCP_LOOPBACK;
        m->card.n = 1;
    } else {
        rc = open_addresses(m, why, why_size);
    }
    return rc == STRATA_OK ? tcp_listen(m, !here && !lists, why, why_size) : rc;
}

static void open_limits(struct tcp_module *m)
{
    const struct tcp_params *par = m->par;
    struct st_btl *b = &m->btl;

    b->caps = ST_BTL_ORDERED | ST_BTL_COSTLY_POLL | ST_BTL_GET | ST_BTL_PUT | ST_BTL_NEEDS_REG | ST_BTL_REG_CHEAP |
              (par->bulk ? ST_BTL_PUT_APART : 0) | (par->mend ? ST_BTL_MENDS | ST_BTL_KEEP | ST_BTL_BOTH_TOLD : 0);
    b->max_send = (uint32_t)par->max_send;
    b->pipeline_send = (uint32_t)(par->pipeline_send < par->max_send ? par->pipeline_send : par->max_send);
    b->eager_limit = (uint32_t)(par->eager_limit < par->max_send ? par->eager_limit : par->max_send);
    b->facts.latency_ns = (uint32_t)par->latency_ns;
    b->facts.bandwidth_mbs = (uint32_t)par->bandwidth_mbs;
    b->facts.fragment_cost = TCP_FRAGMENT_COST;
    b->facts.rdma_cost = par->rdma_min ? par->rdma_min : ST_BTL_RDMA_NEVER;
    b->facts.fixed = par->eager_limit != TCP_EAGER_LIMIT_KIB << 10 || par->rdma_min != (size_t)TCP_RDMA_MIN_KIB << 10;
    b->rdma_pipeline = TCP_PIPELINE;
    b->exclusivity = 100; /* shared memory and InfiniBand come first */
    m->frame_max = tcp_frame_bytes(ST_BTL_HDR_MAX, b->max_send);
    m->rx_size = (m->frame_max + 64 * 1024 + 4095) / 4096 * 4096;
}

int tcp_module_make(strata_t *s, const struct st_component *c, const struct tcp_params *par, uint8_t link,
                    struct tcp_module **out, char *why, size_t why_size)
{
    struct tcp_module *m = calloc(1, sizeof *m);
    char key[TCP_CARD_KEY];
    int rc;

    if (!m)
        return STRATA_ERR_NOMEM;
    if (!tcp_zerocopy_parse(par->zerocopy, &m->zerocopy)) {
        snprintf(why, why_size, "btl_tcp_zerocopy = \"%s\": neither off, auto nor a length such as 64k", par->zerocopy);
        free(m);
        return STRATA_ERR_PARAM;
    }
    m->rte = st_rte(s);
    m->par = par;
    m->link = link;
    m->pair.rank = -1;
    tcp_card_key(link, key);
    m->events = -1;
    m->btl.ops = &tcp_ops;
    m->btl.rdma = &tcp_rdma_ops;
    m->btl.hints = &tcp_hints;
    m->btl.context = s;
    m->btl.component = c;
    st_list_init(&m->conns);
    st_list_init(&m->dead);
    st_list_init(&m->dialling);
    st_list_init(&m->waiting);
    tcp_rdma_init(m);
    open_limits(m);
    rc = st_rank_table_init(&m->peers, (uint32_t)m->rte->size);
    if (rc == STRATA_OK)
        rc = open_card(m, why, why_size);
    if (rc == STRATA_OK)
        rc = m->rte->ops->put(m->rte, key, &m->card, sizeof m->card);
    if (rc != STRATA_OK) {
        tcp_close(&m->btl);
        return rc;
    }
    *out = m;
    return STRATA_OK;
}

/* One for each link that the interfaces allow. */
static int open_modules(strata_t *s, const struct st_component *c, const struct tcp_params *par, struct st_btl **mods,
                        size_t *n, char *why, size_t why_size)
{
    uint32_t links = 1;

    for (uint32_t i = 0; i < links; i++) {
        struct tcp_module *m = NULL;
        int rc = tcp_module_make(s, c, par, (uint8_t)i, &m, why, why_size);
        if (rc != STRATA_OK) {
            while (i-- > 0)
                tcp_close(mods[i]);
            return rc;
        }
        m->counting = (struct st_counting){.component = c, .count = tcp_count};
        st_counters_add(s, &m->counting);
        mods[i] = &m->btl;
        if (i == 0)
            links = tcp_interfaces(m->card.address, m->card.n);
        if (links > (uint32_t)par->links)
            links = (uint32_t)par->links;
        *n = i + 1;
    }
    return STRATA_OK;
}

static int tcp_open(strata_t *s, const struct st_component *c, const void *config, struct st_btl ***mods, size_t *n)
{
    struct st_rte *rte = st_rte(s);
    const struct tcp_params *par = config;
    char why[256] = "";
    int rc;

    *n = 0;
    if (rte->size == 1) {
        st_reject(s, c, "this rank is alone in its job");
        return STRATA_OK;
    }
    /* Shared memory does better, and each process would have a port open for nothing. */
    if (open_all_local(rte) && !st_asked_by_name(s, c)) {
        st_reject(s, c, "all ranks are on this machine: used only if the list names it, as in --mca btl tcp,self");
        return STRATA_OK;
    }
    *mods = calloc((size_t)par->links, sizeof **mods);
    rc = *mods ? open_modules(s, c, par, *mods, n, why, sizeof why) : STRATA_ERR_NOMEM;
    if (rc != STRATA_OK) {
        *n = 0;
        st_reject(s, c, "%s", why[0] ? why : strata_strerror(rc));
    }
    return rc;
}

static const struct st_btl_component_ops component_ops = {.open = tcp_open};

ST_COMPONENT(btl, tcp) = {
    ST_COMPONENT_HEAD("btl", "tcp", "0.1.0", "TCP between machines"),
    .ops_size = sizeof(struct st_btl_component_ops),
    .priority = 20,
    .params = tcp_param_rows,
    .n_params = TCP_N_PARAMS,
    .config_size = sizeof(struct tcp_params),
    .ops = &component_ops,
    .counters = tcp_counters,
    .n_counters = TCP_N_COUNTERS,
};
