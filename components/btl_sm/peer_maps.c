/* The keys of this process's shared memory, and the mappings that keys of peers ask for. */
#include "peer_maps.h"
#include "sm.h"

#include <stdlib.h>
#include <string.h>

#include <strata/sdk/hint.h>
#include <strata/sdk/mpool.h>

int sm_reg(struct st_btl *btl, void *base, size_t len, enum st_btl_use use, struct st_btl_reg *out)
{
    struct st_mpool *pool = st_mpool(btl->context);
    struct st_shared_piece piece;
    struct sm_key key = {.address = (uint64_t)(uintptr_t)base};

    *out = (struct st_btl_reg){0};
    if (use == ST_BTL_ANY_USE && pool && pool->ops->find_shared(pool, base, len, &piece) &&
        st_shared_name_make(piece.fd, piece.offset, len, &key.name) == STRATA_OK)
        memcpy(out->key, &key, sizeof key);
    return STRATA_OK;
}

static void sm_map_free(struct sm_module *m, struct sm_peer *p, struct sm_map *map)
{
    struct sm_map **at = &p->maps;

    while (*at != map)
        at = &(*at)->next;
    *at = map->next;
    m->n_maps--;
    st_shared_unmap(&map->at);
    free(map);
}

/* The mapping of p that was used least recently, if nothing holds it, else an earlier one. */
static struct sm_map *sm_map_oldest(const struct sm_peer *p, uint32_t *n)
{
    struct sm_map *oldest = NULL;

    *n = 0;
    for (struct sm_map *map = p->maps; map; map = map->next) {
        if (map->holds == 0)
            oldest = map;
        ++*n;
    }
    return oldest;
}

/* Room for one more of p. False: operations hold them all. */
static bool sm_map_room(struct sm_module *m, struct sm_peer *p)
{
    struct sm_peer *owner = p;
    uint32_t n, n_other;
    struct sm_map *oldest = sm_map_oldest(p, &n);

    if (n < SM_MAPS_PEER && m->n_maps < SM_MAPS_ALL)
        return true;
    for (struct sm_peer *q = m->peers; q && n < SM_MAPS_PEER; q = q->next) {
        struct sm_map *other = sm_map_oldest(q, &n_other);
        if (other && (!oldest || other->used < oldest->used)) {
            oldest = other;
            owner = q;
        }
    }
    if (oldest)
        sm_map_free(m, owner, oldest);
    return oldest != NULL;
}

static struct sm_map *sm_map_make(struct sm_module *m, struct sm_peer *p, const struct sm_key *key)
{
    struct sm_map *map;

    if (!sm_map_room(m, p) || !(map = calloc(1, sizeof *map)))
        return NULL;
    if (st_shared_map(p->pid, &key->name, &map->at) == STRATA_ERR_NOMEM) {
        free(map);
        return NULL; /* it may be possible later; whatever else is wrong will stay so, and is remembered */
    }
    map->key = *key;
    map->next = p->maps;
    p->maps = map;
    m->n_maps++;
    return map;
}

/* Not the one of p that was used last. */
static __attribute__((noinline)) struct sm_map *sm_map_slow(struct sm_peer *p, const struct sm_key *key)
{
    for (struct sm_map **at = &p->maps, *map; (map = *at) != NULL; at = &map->next) {
        if (memcmp(&map->key, key, sizeof *key) != 0)
            continue;
        *at = map->next;
        map->next = p->maps;
        p->maps = map;
        return map;
    }
    if (p->foreign_pid) /* its files are not found by its pid */
        return NULL;
    return sm_map_make(sm_module(p->ep.btl), p, key);
}

/* Whether a key names len bytes at `remote`. *at: where they begin in its memory. */
static bool sm_key_names(const struct sm_key *key, uint64_t remote, size_t len, uint64_t *at)
{
    *at = remote - key->address; /* below it: very large */
    return *at < key->name.length && len <= key->name.length - *at;
}

int sm_map_lasting(struct st_btl_endpoint *ep, uint64_t remote, const uint8_t *remote_key, size_t len,
                   struct st_shared_mapping *out)
{
    struct sm_peer *p = sm_peer(ep);
    struct sm_key key;
    uint64_t at;

    if (p->failed || p->died || p->gone)
        return STRATA_ERR_PEER;
    if (!remote_key || p->foreign_pid)
        return STRATA_ERR_UNSUPPORTED;
    memcpy(&key, remote_key, sizeof key);
    if (!sm_key_names(&key, remote, len, &at))
        return STRATA_ERR_UNSUPPORTED;
    int rc = st_shared_map(p->pid, &key.name, out);
    if (rc == STRATA_OK)
        out->memory += at;
    return rc;
}

uint8_t *sm_map_find(struct sm_peer *p, const uint8_t *key_, uint64_t remote, size_t len, struct sm_map **out)
{
    struct sm_map *map = p->maps;
    struct sm_key key;

    if (!key_)
        return NULL;
    memcpy(&key, key_, sizeof key);
    uint64_t at;
    if (!sm_key_names(&key, remote, len, &at))
        return NULL;
    if (ST_UNLIKELY(!map || memcmp(&map->key, &key, sizeof key) != 0))
        map = sm_map_slow(p, &key);
    if (!map || !map->at.memory)
        return NULL;
    map->used = ++sm_module(p->ep.btl)->map_uses;
    *out = map;
    return (uint8_t *)map->at.memory + at;
}

void sm_maps_drop(struct sm_peer *p)
{
    while (p->maps)
        sm_map_free(sm_module(p->ep.btl), p, p->maps);
}

size_t sm_maps_bytes(const struct sm_module *m)
{
    size_t n = 0;

    for (const struct sm_peer *p = m->peers; p; p = p->next) {
        for (const struct sm_map *map = p->maps; map; map = map->next)
            n += map->at.bytes;
    }
    return n;
}
