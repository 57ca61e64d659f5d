/* Which BTLs reach which peer: asked at the first message to it, remembered in a rank table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/mpool.h>
#include <strata/sdk/rank_table.h>
#include "bml_r2.h"

struct r2 {
    struct st_bml head;
    struct st_rank_table peers; /* struct st_bml_peer */
    uint32_t max_paths;
    size_t bytes; /* of the peers */
};

/* A candidate of one peer, with the reason why it is not used. */
struct candidate {
    struct st_btl *btl;
    struct st_btl_endpoint *ep;
    const char *why_not;
};

static const char *btl_name(const struct st_btl *btl)
{
    return btl->component ? btl->component->name : "?";
}

/* "No usable transport reaches the peer" is what is being explained. */
static const char *reason_of(int rc)
{
    return rc == STRATA_ERR_UNREACHABLE ? "does not reach this rank" : strata_strerror(rc);
}

static void r2_ask(struct r2 *r2, int rank, struct candidate *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct st_btl *btl = r2->head.btls[i];
        int rc = btl->ops->reach(btl, rank);
        c[i] = (struct candidate){btl, NULL, rc == STRATA_OK ? NULL : reason_of(rc)};
    }
}

/* The highest exclusivity of those that reach the rank and have not failed to connect it; false: there is none. */
static bool best_exclusivity(const struct candidate *c, size_t n, int *best)
{
    bool found = false;

    for (size_t i = 0; i < n; i++) {
        if (c[i].why_not || (found && c[i].btl->exclusivity <= *best))
            continue;
        *best = c[i].btl->exclusivity;
        found = true;
    }
    return found;
}

/* Puts it in its place among n: by the latency of the endpoint, which may not be what its module says of itself. */
static void add_path(struct st_bml_path *paths, uint32_t n, struct st_btl_endpoint *ep)
{
    uint32_t latency = st_btl_facts_of(ep).latency_ns;

    for (; n > 0 && st_btl_facts_of(paths[n - 1].ep).latency_ns > latency; n--)
        paths[n] = paths[n - 1];
    paths[n] = (struct st_bml_path){ep, 1};
}

/* Connects those of an exclusivity, of modules of the lowest latency first; returns how many. */
static uint32_t connect_those(struct r2 *r2, int rank, int exclusivity, struct candidate *c, size_t n,
                              struct st_bml_path *paths)
{
    uint32_t n_paths = 0;

    while (n_paths < r2->max_paths) {
        struct candidate *next = NULL;
        for (size_t i = 0; i < n; i++)
            if (!c[i].why_not && !c[i].ep && c[i].btl->exclusivity == exclusivity &&
                (!next || c[i].btl->facts.latency_ns < next->btl->facts.latency_ns))
                next = &c[i];
        if (!next)
            break;
        int rc = next->btl->ops->connect(next->btl, rank, &next->ep);
        if (rc != STRATA_OK) {
            next->why_not = reason_of(rc);
            next->ep = NULL;
            continue;
        }
        add_path(paths, n_paths++, next->ep);
        st_mem_module_used(r2->head.context, next->btl);
    }
    return n_paths;
}

/* Transports that reach a rank as far as can be told may fail to: in containers the memory of a neighbour. Then those
 * of the next exclusivity carry it. */
static uint32_t connect_best(struct r2 *r2, int rank, struct candidate *c, size_t n, struct st_bml_path *paths)
{
    uint32_t n_paths = 0;
    int exclusivity = 0;

    while (n_paths == 0 && best_exclusivity(c, n, &exclusivity))
        n_paths = connect_those(r2, rank, exclusivity, c, n, paths);
    return n_paths;
}

static float r2_bandwidth(const struct st_bml_path *path)
{
    uint32_t mbs = st_btl_facts_of(path->ep).bandwidth_mbs;

    return (float)(mbs ? mbs : 1);
}

/* Shares of all whose weight is not 0. */
static void r2_weigh(struct st_bml_path *paths, uint32_t n)
{
    float sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += paths[i].weight > 0 ? r2_bandwidth(&paths[i]) : 0;
    for (uint32_t i = 0; i < n; i++)
        if (paths[i].weight > 0)
            paths[i].weight = r2_bandwidth(&paths[i]) / sum;
}

/* The one line for a peer that nothing reaches: rank, host, and each transport's reason. */
static void report_unreachable(const struct r2 *r2, int rank, const struct candidate *c, size_t n)
{
    struct st_rte *rte = st_rte(r2->head.context);
    char text[512], closed[512], asked[1024] = "";
    int at = 0;

    text[0] = '\0';
    for (size_t i = 0; i < n && at >= 0 && (size_t)at < sizeof(text); i++)
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%s: %s", i ? "; " : "", btl_name(c[i].btl),
                       c[i].why_not ? c[i].why_not : "not tried");
    st_rejected(r2->head.context, "btl", closed, sizeof(closed));
    if (rte && rte->ops->get_failures)
        rte->ops->get_failures(rte, rank, asked, sizeof(asked));
    st_log(r2->head.context, ST_LOG_ERROR, "bml_r2", "no transport reaches rank %d on host %s (%s%s%s%s%s)", rank,
           rte ? rte->ops->host_of(rte, rank) : "?", n ? text : "no transport is open", closed[0] ? "; " : "", closed,
           asked[0] ? "; " : "", asked);
}

static bool r2_works(const struct st_bml_peer *peer)
{
    for (uint32_t i = 0; i < peer->n_paths; i++)
        if (peer->paths[i].weight > 0)
            return true;
    return false;
}

static int r2_peer(struct st_bml *bml, int rank, struct st_bml_peer **out)
{
    struct r2 *r2 = (struct r2 *)bml;
    struct st_bml_peer *peer;
    struct st_bml_path paths[ST_BML_MAX_PATHS];
    size_t n = bml->n_btls, bytes;
    uint32_t n_paths;
    int rc;

    if (rank < 0 || (uint64_t)rank >= (uint64_t)r2->peers.max_dir * ST_RANK_LEAF)
        return STRATA_ERR_RANK;
    peer = st_rank_table_get(&r2->peers, (uint32_t)rank);
    if (peer) {
        *out = peer;
        return r2_works(peer) ? STRATA_OK : STRATA_ERR_PEER;
    }
    struct candidate *c = calloc(n ? n : 1, sizeof(*c));
    if (!c)
        return STRATA_ERR_NOMEM;
    r2_ask(r2, rank, c, n);
    n_paths = connect_best(r2, rank, c, n, paths);
    if (n_paths == 0) {
        report_unreachable(r2, rank, c, n);
        free(c);
        return STRATA_ERR_UNREACHABLE;
    }
    free(c);
    r2_weigh(paths, n_paths);
    bytes = sizeof(*peer) + n_paths * sizeof(paths[0]);
    peer = malloc(bytes);
    rc = peer ? st_rank_table_set(&r2->peers, (uint32_t)rank, peer) : STRATA_ERR_NOMEM;
    if (rc != STRATA_OK) {
        for (uint32_t i = 0; i < n_paths; i++)
            paths[i].ep->btl->ops->disconnect(paths[i].ep);
        free(peer);
        return rc;
    }
    peer->rank = rank;
    peer->n_paths = (uint16_t)n_paths;
    memcpy(peer->paths, paths, n_paths * sizeof(paths[0]));
    r2->bytes += bytes;
    *out = peer;
    return STRATA_OK;
}

static struct st_bml_peer *r2_lookup(struct st_bml *bml, int rank)
{
    struct r2 *r2 = (struct r2 *)bml;

    if (rank < 0 || (uint64_t)rank >= (uint64_t)r2->peers.max_dir * ST_RANK_LEAF)
        return NULL;
    return st_rank_table_get(&r2->peers, (uint32_t)rank);
}

static int r2_next(struct st_bml *bml, int from)
{
    return (int)st_rank_table_next(&((struct r2 *)bml)->peers, (uint32_t)from);
}

/* The peer stays in the table when the last path has failed: a dead peer is not connected again. */
static int r2_path_failed(struct st_bml *bml, struct st_bml_peer *peer, struct st_btl_endpoint *ep)
{
    (void)bml;
    for (uint32_t i = 0; i < peer->n_paths; i++)
        if (peer->paths[i].ep == ep)
            peer->paths[i].weight = 0;
    r2_weigh(peer->paths, peer->n_paths);
    return r2_works(peer) ? STRATA_OK : STRATA_ERR_PEER;
}

static int r2_path_retry(struct st_bml *bml, struct st_bml_peer *peer, uint32_t i)
{
    struct st_btl_endpoint *old = peer->paths[i].ep, *ep;
    struct st_btl *btl = old->btl;
    int rc = btl->ops->connect(btl, peer->rank, &ep);

    (void)bml;
    if (rc != STRATA_OK)
        return rc;
    if (ep != old) /* a module may mend the endpoint that there is */
        btl->ops->disconnect(old);
    peer->paths[i].ep = ep;
    return STRATA_OK;
}

static void r2_path_works(struct st_bml *bml, struct st_bml_peer *peer, uint32_t i)
{
    (void)bml;
    peer->paths[i].weight = 1;
    r2_weigh(peer->paths, peer->n_paths);
}

static void r2_mem_report(struct st_bml *bml, st_mem_line_fn line, void *arg)
{
    struct r2 *r2 = (struct r2 *)bml;
    strata_mem_line_t l = {
        .component = "bml_r2", .category = "peers", .bytes = sizeof(*r2) + st_rank_table_bytes(&r2->peers) + r2->bytes};

    line(arg, &l);
}

static void r2_close(struct st_bml *bml)
{
    struct r2 *r2 = (struct r2 *)bml;

    for (int64_t i = 0; (i = st_rank_table_next(&r2->peers, (uint32_t)i)) >= 0; i++) {
        struct st_bml_peer *peer = st_rank_table_get(&r2->peers, (uint32_t)i);
        for (uint32_t k = 0; k < peer->n_paths; k++)
            peer->paths[k].ep->btl->ops->disconnect(peer->paths[k].ep);
        free(peer);
    }
    st_rank_table_destroy(&r2->peers);
    free(r2);
}

static const struct st_bml_ops ops = {
    .peer = r2_peer,
    .lookup = r2_lookup,
    .next = r2_next,
    .path_failed = r2_path_failed,
    .path_retry = r2_path_retry,
    .path_works = r2_path_works,
    .mem_report = r2_mem_report,
    .close = r2_close,
};

int bml_r2_make(strata_t *s, const struct bml_r2_config *config, struct st_btl **btls, size_t n_btls,
                struct st_bml **out)
{
    struct r2 *r2 = calloc(1, sizeof(*r2));
    int rc;

    if (!r2)
        return STRATA_ERR_NOMEM;
    rc = st_rank_table_init(&r2->peers, (uint32_t)st_rte(s)->size);
    if (rc != STRATA_OK) {
        free(r2);
        return rc;
    }
    r2->max_paths = (uint32_t)config->max_paths;
    r2->head = (struct st_bml){.ops = &ops, .context = s, .btls = btls, .n_btls = n_btls};
    *out = &r2->head;
    return STRATA_OK;
}
