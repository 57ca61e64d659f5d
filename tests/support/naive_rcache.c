/* See naive_rcache.h. */
#include "support/naive_rcache.h"

#include <stdlib.h>

struct item {
    struct item *next;
    uintptr_t from, to;
    const void *handle;
    uint64_t refs;
    uint32_t access;
    int client;
    bool dead;
};

struct naive_rcache {
    struct item *first; /* least recently given back first */
    uint64_t max_bytes, max_entries, device_bytes, bytes, entries;
};

struct naive_rcache *naive_rcache_create(uint64_t max_bytes, uint64_t max_entries, uint64_t device_bytes)
{
    struct naive_rcache *n = calloc(1, sizeof(*n));
    if (n) {
        n->max_bytes = max_bytes;
        n->max_entries = max_entries;
        n->device_bytes = device_bytes;
    }
    return n;
}

static struct item *unlink_item(struct item **at)
{
    struct item *i = *at;
    *at = i->next;
    return i;
}

static void append(struct naive_rcache *n, struct item *i)
{
    struct item **at = &n->first;
    while (*at)
        at = &(*at)->next;
    i->next = NULL;
    *at = i;
}

static void drop(struct naive_rcache *n, struct item **at)
{
    struct item *i = unlink_item(at);
    n->bytes -= i->to - i->from;
    n->entries--;
    free(i);
}

void naive_rcache_destroy(struct naive_rcache *n)
{
    while (n->first)
        drop(n, &n->first);
    free(n);
}

static bool serves(const struct item *i, int client, uintptr_t from, uintptr_t to, uint32_t access)
{
    return !i->dead && i->client == client && i->from <= from && i->to >= to && (i->access & access) == access;
}

bool naive_rcache_hit(const struct naive_rcache *n, int client, uintptr_t from, uintptr_t to, uint32_t access)
{
    for (const struct item *i = n->first; i; i = i->next)
        if (serves(i, client, from, to, access))
            return true;
    return false;
}

static struct item **find(const struct naive_rcache *n, const void *handle)
{
    struct item **at = (struct item **)&n->first;
    while (*at && (*at)->handle != handle)
        at = &(*at)->next;
    return at;
}

static uint64_t evict(struct naive_rcache *n)
{
    for (struct item **at = &n->first; *at; at = &(*at)->next)
        if ((*at)->refs == 0) {
            uint64_t bytes = (*at)->to - (*at)->from;
            drop(n, at);
            return bytes;
        }
    return 0;
}

static void shrink(struct naive_rcache *n, uint64_t bytes, uint64_t entries)
{
    while (n->bytes + bytes > n->max_bytes || n->entries + entries > n->max_entries)
        if (!evict(n))
            return;
}

bool naive_rcache_room(struct naive_rcache *n, uintptr_t from, uintptr_t to)
{
    shrink(n, to - from, 1);
    while (n->bytes + (to - from) > n->device_bytes) {
        uint64_t sum = 0, bytes;
        while (sum < to - from && (bytes = evict(n)) > 0)
            sum += bytes;
        if (sum == 0)
            return false;
    }
    return true;
}

void naive_rcache_add(struct naive_rcache *n, int client, uintptr_t from, uintptr_t to, uint32_t access,
                      const void *handle)
{
    struct item *i = malloc(sizeof(*i));
    if (!i)
        abort();
    *i = (struct item){NULL, from, to, handle, 1, access, client, false};
    append(n, i);
    n->bytes += to - from;
    n->entries++;
}

bool naive_rcache_use(struct naive_rcache *n, const void *handle, int client, uintptr_t from, uintptr_t to,
                      uint32_t access)
{
    struct item *i = *find(n, handle);
    if (!i || !serves(i, client, from, to, access))
        return false;
    i->refs++;
    return true;
}

void naive_rcache_put(struct naive_rcache *n, const void *handle)
{
    struct item **at = find(n, handle);
    if (--(*at)->refs)
        return;
    if ((*at)->dead) {
        drop(n, at);
        return;
    }
    append(n, unlink_item(at));
    shrink(n, 0, 0);
}

void naive_rcache_invalidate(struct naive_rcache *n, uintptr_t from, uintptr_t to)
{
    for (struct item **at = &n->first; *at;) {
        struct item *i = *at;
        bool hit = !i->dead && i->from < to && i->to > from;
        if (hit)
            i->dead = true;
        if (hit && i->refs == 0)
            drop(n, at);
        else
            at = &i->next;
    }
}

uint64_t naive_rcache_flush(struct naive_rcache *n)
{
    uint64_t count = 0;
    while (evict(n))
        count++;
    return count;
}

bool naive_rcache_has(const struct naive_rcache *n, const void *handle)
{
    return *find(n, handle) != NULL;
}

uint64_t naive_rcache_entries(const struct naive_rcache *n)
{
    return n->entries;
}

uint64_t naive_rcache_bytes(const struct naive_rcache *n)
{
    return n->bytes;
}
