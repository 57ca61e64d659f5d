/* How peers are reached: JSON put together from what base, BTLs and PML know, and its text form. */
#include "framework/pml/report.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <strata/sdk/btl_rdma.h>
#include <strata/sdk/pml.h>
#include <strata/sdk/rcache.h>
#include "framework/base/context.h"
#include "framework/base/log.h"

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
    static const struct {
        uint32_t bit;
        const char *name;
    } names[] = {{ST_BTL_ORDERED, "ordered"},
                 {ST_BTL_GET, "get"},
                 {ST_BTL_PUT, "put"},
                 {ST_BTL_NEEDS_REG, "needs_registration"},
                 {ST_BTL_REG_KEPT, "keeps_registrations"},
                 {ST_BTL_MENDS, "mends"}};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (caps & names[i].bit)
            json_array_append_new(list, json_string(names[i].name));
    return list;
}

static json_t *pml_report_path_object(const struct st_bml_path *path)
{
    const struct st_btl *b = path->ep->btl;
    json_t *j = json_pack("{s:s, s:f, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "transport", b->component->name,
                          "weight", (double)path->weight, "capabilities", pml_report_capabilities(path->ep->caps),
                          "eager_limit", (json_int_t)b->eager_limit, "stream_limit", (json_int_t)b->stream_limit,
                          "max_send", (json_int_t)b->max_send, "rdma_min", (json_int_t)b->rdma_min, "rdma_pipeline",
                          (json_int_t)b->rdma_pipeline, "latency_ns", (json_int_t)b->facts.latency_ns, "bandwidth_mbs",
                          (json_int_t)b->facts.bandwidth_mbs);
    json_t *own = pml_report_parse(b->ops->describe(path->ep->btl, path->ep));
    if (j && own)
        json_object_update(j, own);
    json_decref(own);
    return j;
}

static json_t *pml_report_peer_object(strata_t *s, const struct st_bml_peer *peer)
{
    json_t *paths = json_array();
    for (unsigned i = 0; i < peer->n_paths; i++)
        json_array_append_new(paths, pml_report_path_object(&peer->paths[i]));
    json_t *j = json_pack("{s:i, s:s, s:b, s:o}", "rank", peer->rank, "host", s->rte->ops->host_of(s->rte, peer->rank),
                          "local", (int)s->rte->ops->is_local(s->rte, peer->rank), "paths", paths);
    json_t *pml = s->pml->ops->describe ? pml_report_parse(s->pml->ops->describe(s->pml, peer->rank)) : NULL;
    if (j && pml)
        json_object_set(j, "protocols", pml);
    json_decref(pml);
    return j;
}

int strata_peer_report(strata_t *s, int rank, char **json)
{
    if (!s || !json)
        return STRATA_ERR_ARG;
    if (rank < 0 || rank >= s->rte->size)
        return STRATA_ERR_RANK;
    struct st_bml_peer *peer = NULL;
    st_context_lock(s);
    int rc = s->bml->ops->peer(s->bml, rank, &peer);
    json_t *j = rc == STRATA_OK ? pml_report_peer_object(s, peer) : NULL;
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

static json_t *pml_report_transports(const strata_t *s)
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

static void pml_report_print_json(strata_t *s)
{
    json_t *peers = json_array();
    for (int r = 0; (r = s->bml->ops->next(s->bml, r)) >= 0; r++) {
        const struct st_bml_peer *peer = s->bml->ops->lookup(s->bml, r);
        if (peer)
            json_array_append_new(peers, pml_report_peer_object(s, peer));
    }
    json_t *j = json_pack("{s:i, s:s, s:o, s:o}", "rank", s->rte->rank, "host", s->rte->host, "peers", peers,
                          "transports", pml_report_transports(s));
    json_t *cached = pml_report_registrations(s);
    if (j && cached)
        json_object_set(j, "registrations", cached);
    json_decref(cached);
    char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;
    if (text)
        st_log_plain(s, text);
    free(text);
    json_decref(j);
}

/* A threshold that no message reaches is a way of switching something off. */
#define NEVER ((json_int_t)ST_BTL_RDMA_NEVER)

/* One member of an object as "name value", nested objects flattened by their names. */
static void pml_report_append_member(char *out, size_t size, const char *name, const json_t *value)
{
    size_t n = strlen(out);
    char *at = out + n;
    size_t room = size - n;
    if (json_is_string(value) && json_string_length(value) == 0)
        return;
    if (json_is_string(value))
        snprintf(at, room, ", %s %s", name, json_string_value(value));
    else if (json_is_integer(value) && json_integer_value(value) >= NEVER)
        snprintf(at, room, ", %s never", name);
    else if (json_is_integer(value))
        snprintf(at, room, ", %s %lld", name, (long long)json_integer_value(value));
    else if (json_is_real(value))
        snprintf(at, room, ", %s %.2f", name, json_real_value(value));
    else if (json_is_boolean(value))
        snprintf(at, room, ", %s %s", name, json_is_true(value) ? "yes" : "no");
}

static void pml_report_append_object(char *out, size_t size, json_t *object)
{
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
    {
        if (strcmp(name, "transport") == 0)
            continue;
        if (json_is_object(value))
            pml_report_append_object(out, size, value);
        else
            pml_report_append_member(out, size, name, value);
    }
}

static void pml_report_print_text(strata_t *s)
{
    char line[1536];
    for (int r = 0; (r = s->bml->ops->next(s->bml, r)) >= 0; r++) {
        const struct st_bml_peer *peer = s->bml->ops->lookup(s->bml, r);
        if (!peer)
            continue;
        json_t *j = pml_report_peer_object(s, peer), *path;
        size_t i;
        json_array_foreach(json_object_get(j, "paths"), i, path)
        {
            snprintf(line, sizeof(line), "strata[%s:%d]: peer %d on %s: path %zu of %u by %s", s->rte->host,
                     s->rte->rank, r, s->rte->ops->host_of(s->rte, r), i + 1, (unsigned)peer->n_paths,
                     json_string_value(json_object_get(path, "transport")));
            pml_report_append_object(line, sizeof(line), path);
            st_log_plain(s, line);
        }
        json_t *protocols = json_object_get(j, "protocols");
        if (protocols) {
            snprintf(line, sizeof(line), "strata[%s:%d]: peer %d: protocols", s->rte->host, s->rte->rank, r);
            pml_report_append_object(line, sizeof(line), protocols);
            st_log_plain(s, line);
        }
        json_decref(j);
    }
    for (size_t i = 0; i < s->n_btls; i++) {
        const struct st_btl *b = s->btls[i];
        if (!pml_report_used(b))
            continue;
        snprintf(line, sizeof(line), "strata[%s:%d]: transport %s: %llu messages, %llu bytes sent, %llu got",
                 s->rte->host, s->rte->rank, b->component->name, (unsigned long long)b->messages_sent,
                 (unsigned long long)b->bytes_sent, (unsigned long long)b->bytes_got);
        st_log_plain(s, line);
    }
    json_t *cached = pml_report_registrations(s);
    if (cached) {
        snprintf(line, sizeof(line), "strata[%s:%d]: registrations", s->rte->host, s->rte->rank);
        pml_report_append_object(line, sizeof(line), cached);
        st_log_plain(s, line);
    }
    json_decref(cached);
}

void st_report_transports(strata_t *s)
{
    if (s->base->report_transports == ST_REPORT_OFF)
        return;
    st_context_lock(s);
    if (s->base->report_transports == ST_REPORT_JSON)
        pml_report_print_json(s);
    else
        pml_report_print_text(s);
    st_context_unlock(s);
}
