/* How peers are reached, and what went to them and came from them: JSON put together from what base, BTLs and PML know.
 * report_text.c is its text form. */
#include "framework/pml/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <strata/sdk/pml.h>
#include <strata/sdk/rcache.h>
#include <strata/sdk/thresholds.h>
#include "framework/base/context.h"
#include "framework/base/log.h"
#include "framework/btl/btl_select.h"

/* Parses a description that a component made and frees its text; NULL when there is none or it is no JSON object. */
static json_t *pml_report_parse(char *text)
{
    json_t *j = text ? json_loads(text, 0, NULL) : NULL;
    free(text);
    if (j && !json_is_object(j)) {
        json_decref(j);
        j = NULL;
    }
    return j;
}

static json_t *pml_report_capabilities(uint32_t caps)
{
    json_t *list = json_array();
    const char *name;
    uint32_t bit;
    for (size_t i = 0; (name = st_btl_capability(i, &bit)) != NULL; i++)
        if (caps & bit)
            json_array_append_new(list, json_string(name));
    return list;
}

static json_t *pml_report_path_object(const struct st_bml_path *path)
{
    const struct st_btl *b = path->ep->btl;
    struct st_btl_facts facts = st_btl_facts_of(path->ep);
    struct st_thresholds t;
    st_thresholds_derive(b, &facts, &t);
    json_t *j = json_pack("{s:s, s:f, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "transport", b->component->name,
                          "weight", (double)path->weight, "capabilities", pml_report_capabilities(path->ep->caps),
                          "eager_limit", (json_int_t)b->eager_limit, "stream_limit", (json_int_t)t.stream_limit,
                          "max_send", (json_int_t)b->max_send, "rdma_min", (json_int_t)t.rdma_min, "rdma_pipeline",
                          (json_int_t)b->rdma_pipeline, "latency_ns", (json_int_t)facts.latency_ns, "bandwidth_mbs",
                          (json_int_t)facts.bandwidth_mbs);
    json_t *own = pml_report_parse(b->ops->describe(path->ep->btl, path->ep));
    if (j && own)
        json_object_update(j, own);
    json_decref(own);
    return j;
}

/* The transports between this rank and a peer, by name and without repeats: those of its paths, or when this rank has
 * never sent to it the one that brought its first message. "sm", "openib", "openib+tcp". */
static void pml_report_by(const struct st_bml_peer *peer, const struct st_pml_traffic *t, char *out, size_t size)
{
    size_t n = 0;
    snprintf(out, size, "%s", t->heard_by ? t->heard_by->name : "");
    for (unsigned i = 0; peer && i < peer->n_paths && n < size; i++) {
        const char *name = peer->paths[i].ep->btl->component->name;
        bool again = false;
        for (unsigned k = 0; k < i; k++)
            again = again || strcmp(name, peer->paths[k].ep->btl->component->name) == 0;
        if (!again)
            n += (size_t)snprintf(out + n, size - n, "%s%s", n ? "+" : "", name);
    }
}

/* Rank, transport, messages and bytes. `peer` is NULL for one that this rank has only received from. */
static json_t *pml_report_counts_object(strata_t *s, int rank, const struct st_bml_peer *peer)
{
    struct st_pml_traffic t = {0};
    char by[256];
    if (s->pml->ops->traffic)
        (void)s->pml->ops->traffic(s->pml, rank, &t);
    pml_report_by(peer, &t, by, sizeof(by));
    return json_pack("{s:i, s:s, s:I, s:I, s:I, s:I}", "rank", rank, "by", by, "messages_sent",
                     (json_int_t)t.messages_sent, "bytes_sent", (json_int_t)t.bytes_sent, "messages_received",
                     (json_int_t)t.messages_received, "bytes_received", (json_int_t)t.bytes_received);
}

static json_t *pml_report_peer_object(strata_t *s, int rank, const struct st_bml_peer *peer)
{
    json_t *paths = json_array();
    for (unsigned i = 0; peer && i < peer->n_paths; i++)
        json_array_append_new(paths, pml_report_path_object(&peer->paths[i]));
    json_t *j = json_pack("{s:i, s:s, s:b}", "rank", rank, "host", s->rte->ops->host_of(s->rte, rank), "local",
                          (int)s->rte->ops->is_local(s->rte, rank));
    json_t *counts = pml_report_counts_object(s, rank, peer);
    json_object_update(j, counts);
    json_decref(counts);
    json_object_set_new(j, "paths", paths);
    json_t *pml = peer && s->pml->ops->describe ? pml_report_parse(s->pml->ops->describe(s->pml, rank)) : NULL;
    if (j && pml)
        json_object_set(j, "protocols", pml);
    json_decref(pml);
    return j;
}

/* A peer whose only path is being made again is reported: it has not failed. */
static int report_find(strata_t *s, int rank, struct st_bml_peer **out)
{
    int rc = s->bml->ops->peer(s->bml, rank, out);
    const struct st_peer *known = rc == STRATA_ERR_PEER ? st_worker_peer_known(s->worker, rank) : NULL;

    if (!known || known->failed || !known->bml)
        return rc;
    *out = known->bml;
    return STRATA_OK;
}

int strata_peer_report(strata_t *s, int rank, char **json)
{
    if (!s || !json)
        return STRATA_ERR_ARG;
    if (rank < 0 || rank >= s->rte->size)
        return STRATA_ERR_RANK;
    struct st_bml_peer *peer = NULL;
    st_context_lock(s);
    int rc = report_find(s, rank, &peer);
    json_t *j = rc == STRATA_OK ? pml_report_peer_object(s, rank, peer) : NULL;
    st_context_unlock(s);
    if (rc != STRATA_OK)
        return rc;
    char *text = j ? json_dumps(j, JSON_INDENT(2)) : NULL;
    json_decref(j);
    if (!text)
        return STRATA_ERR_NOMEM;
    *json = text;
    return STRATA_OK;
}

/* ---- at finalize ----------------------------------------------------------------------------------------- */

/* Whether a module carried anything: what is merely open is nobody's transport. */
static bool pml_report_used(const struct st_btl *b)
{
    return b->messages_sent > 0 || b->bytes_sent > 0;
}

static json_t *pml_report_modules(const strata_t *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->n_btls; i++) {
        struct st_btl *b = s->btls[i];
        if (!pml_report_used(b))
            continue;
        json_t *j =
            json_pack("{s:s, s:I, s:I, s:I}", "transport", b->component->name, "bytes_sent", (json_int_t)b->bytes_sent,
                      "bytes_got", (json_int_t)b->bytes_got, "messages_sent", (json_int_t)b->messages_sent);
        json_t *own = pml_report_parse(b->ops->describe(b, NULL));
        if (j && own)
            json_object_update_missing(j, own);
        json_decref(own);
        json_array_append_new(list, j);
    }
    return list;
}

/* What became of registered user memory, or NULL when nothing was registered. */
static json_t *pml_report_registrations(strata_t *s)
{
    struct st_rcache_counters n;
    if (!s->rcache)
        return NULL;
    s->rcache->ops->counters(s->rcache, &n);
    if (n.misses == 0)
        return NULL;
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "rcache", s->rcache_component->name, "made",
                     (json_int_t)n.misses, "found", (json_int_t)n.hits, "evicted", (json_int_t)n.evictions, "gone",
                     (json_int_t)n.invalidations, "bytes", (json_int_t)n.bytes, "bytes_max", (json_int_t)n.bytes_max);
}

/* Of all peers with which there was contact, by either function. */
static json_t *pml_report_peers(strata_t *s, json_t *(*of)(strata_t *s, int rank, const struct st_bml_peer *peer))
{
    json_t *peers = json_array();
    for (int r = 0; r >= 0 && r < s->rte->size; r++) {
        int sent = s->bml->ops->next(s->bml, r), heard = (int)st_worker_peer_next(s->worker, r);
        r = sent < 0 || (heard >= 0 && heard < sent) ? heard : sent;
        if (r < 0)
            break;
        json_array_append_new(peers, of(s, r, s->bml->ops->lookup(s->bml, r)));
    }
    return peers;
}

json_t *st_report_traffic_json(strata_t *s)
{
    return pml_report_peers(s, pml_report_counts_object);
}

/* Sums over the peers by what reached them, in the order of the first of each. */
static json_t *pml_report_traffic(json_t *peers)
{
    static const char *const sums[] = {"messages_sent", "bytes_sent", "messages_received", "bytes_received"};
    json_t *all = json_object(), *peer;
    size_t i;
    json_array_foreach(peers, i, peer)
    {
        const char *by = json_string_value(json_object_get(peer, "by"));
        json_t *row = json_object_get(all, by ? by : "");
        if (!row) {
            row = json_pack("{s:i}", "peers", 0);
            json_object_set_new(all, by ? by : "", row);
        }
        json_object_set_new(row, "peers", json_integer(json_integer_value(json_object_get(row, "peers")) + 1));
        for (size_t k = 0; k < sizeof(sums) / sizeof(*sums); k++)
            json_object_set_new(row, sums[k],
                                json_integer(json_integer_value(json_object_get(row, sums[k])) +
                                             json_integer_value(json_object_get(peer, sums[k]))));
    }
    return all;
}

json_t *st_report_transports_json(strata_t *s)
{
    json_t *peers = pml_report_peers(s, pml_report_peer_object);
    json_t *j = json_pack("{s:i, s:s, s:o, s:o, s:o}", "rank", s->rte->rank, "host", s->rte->host, "peers", peers,
                          "traffic", pml_report_traffic(peers), "transports", pml_report_modules(s));
    json_t *cached = pml_report_registrations(s);
    if (j && cached)
        json_object_set(j, "registrations", cached);
    json_decref(cached);
    return j;
}

void st_report_transports(strata_t *s)
{
    if (s->base->report_transports == ST_REPORT_OFF)
        return;
    st_context_lock(s);
    json_t *j = st_report_transports_json(s);
    st_context_unlock(s);
    if (j && s->base->report_transports == ST_REPORT_TEXT)
        st_report_transports_text(s, j);
    char *text = j && s->base->report_transports == ST_REPORT_JSON ? json_dumps(j, JSON_COMPACT) : NULL;
    if (text)
        st_log_plain(s, text);
    free(text);
    json_decref(j);
}
