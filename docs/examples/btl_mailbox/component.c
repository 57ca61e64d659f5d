/* How btl_mailbox presents itself: parameters, and open, which makes the module. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "mailbox.h"

static const struct st_param params[] = {
    {.name = "max_send",
     .type = ST_PARAM_SIZE,
     .offset = offsetof(struct mailbox_config, max_send),
     .dflt = "32k",
     .min = 1024,
     .max = 128 * 1024,
     .unit = "bytes",
     .help = "Largest payload of one datagram.",
     .level = 4},
    {.name = "eager_limit",
     .type = ST_PARAM_SIZE,
     .offset = offsetof(struct mailbox_config, eager_limit),
     .dflt = "8k",
     .min = 64,
     .max = 128 * 1024,
     .unit = "bytes",
     .help = "Messages up to this size are sent before the receiver has matched.",
     .level = 3},
    {.name = "batch",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct mailbox_config, batch),
     .dflt = "8",
     .min = 1,
     .max = 1024,
     .unit = "datagrams",
     .help = "Most datagrams that one call of progress takes out of the mailbox.",
     .level = 6},
};

static const struct st_help_topic help[] = {
    {"no-socket",
     "btl_mailbox cannot %s its socket: %s.\n"
     "Datagram sockets of the local machine are needed; leave mailbox out of the btl list without them.\n"},
};

/* Makes the socket with a name of the kernel's choice in the abstract namespace: no file, nothing to leave behind. */
static int make_socket(strata_t *s, const struct st_component *c, struct mailbox_address *address)
{
    const char *what = "create";
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    memset(address, 0, sizeof(*address));
    address->name.sun_family = AF_UNIX;
    if (fd >= 0) {
        what = "name";
        address->length = sizeof(address->name);
        if (bind(fd, (struct sockaddr *)&address->name, sizeof(sa_family_t)) == 0 &&
            getsockname(fd, (struct sockaddr *)&address->name, &address->length) == 0)
            return fd;
        close(fd);
    }
    st_reject(s, c, "cannot %s a datagram socket: %s", what, strerror(errno));
    st_help(s, c, "no-socket", what, strerror(errno));
    return STRATA_ERR_SYSTEM;
}

static int mailbox_open(strata_t *s, const struct st_component *c, const void *config, struct st_btl ***mods, size_t *n)
{
    const struct mailbox_config *cfg = config;
    struct st_rte *rte = st_rte(s);
    struct mailbox_address address;
    struct mailbox *m = calloc(1, sizeof(*m));
    struct st_btl **list = calloc(1, sizeof(*list));
    int rc = STRATA_ERR_NOMEM;

    if (!m || !list)
        goto free_both;
    m->buffer_size = sizeof(struct mailbox_wire) + ST_BTL_HDR_MAX + cfg->max_send;
    m->buffer = aligned_alloc(64, (m->buffer_size + 63) / 64 * 64);
    if (!m->buffer)
        goto free_both;
    rc = st_rank_table_init(&m->peers, (uint32_t)rte->size);
    if (rc != STRATA_OK)
        goto free_buffer;
    rc = m->fd = make_socket(s, c, &address);
    if (rc < 0)
        goto destroy_table;
    /* What peers must know. They fetch it when they first speak to us. */
    rc = rte->ops->put(rte, "btl_mailbox", &address, sizeof(address));
    if (rc != STRATA_OK)
        goto close_socket;

    m->rank = rte->rank;
    m->size = rte->size;
    m->batch = (int)cfg->batch;
    m->btl.ops = &mailbox_ops;
    m->btl.context = s;
    m->btl.component = c;
    m->btl.caps = ST_BTL_ORDERED | ST_BTL_COSTLY_POLL;
    m->btl.max_send = (uint32_t)cfg->max_send;
    m->btl.pipeline_send = (uint32_t)cfg->max_send;
    m->btl.eager_limit = (uint32_t)(cfg->eager_limit < cfg->max_send ? cfg->eager_limit : cfg->max_send);
    m->btl.facts.latency_ns = 5000;
    m->btl.facts.bandwidth_mbs = 1000;
    m->btl.exclusivity = 5; /* low: used only where no faster transport reaches the peer, or when asked for by name */
    m->counting = (struct st_counting){.component = c, .count = mailbox_count};
    st_counters_add(s, &m->counting);
    list[0] = &m->btl;
    *mods = list;
    *n = 1;
    return STRATA_OK;

close_socket:
    close(m->fd);
destroy_table:
    st_rank_table_destroy(&m->peers);
free_buffer:
    free(m->buffer);
free_both:
    free(list);
    free(m);
    return rc;
}

static const struct st_btl_component_ops component_ops = {.open = mailbox_open};

/* The one symbol that the plugin exports. */
ST_COMPONENT(btl, mailbox) = {
    ST_COMPONENT_HEAD("btl", "mailbox", "1.0", "example transport: datagrams between processes of one machine"),
    .ops_size = sizeof(struct st_btl_component_ops),
    .priority = 5,
    .params = params,
    .n_params = sizeof(params) / sizeof(params[0]),
    .config_size = sizeof(struct mailbox_config),
    .help = help,
    .n_help = sizeof(help) / sizeof(help[0]),
    .ops = &component_ops,
    .counters = mailbox_counters,
    .n_counters = MAILBOX_N_COUNTERS,
};
