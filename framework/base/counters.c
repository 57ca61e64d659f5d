/* Counters of a context: those that each component of a framework has, which the base reads itself, and those that
 * components have added. */
#include "framework/base/counters.h"

#include <string.h>

#include "framework/base/context.h"
#include <strata/sdk/rcache.h>

static const struct st_counter of_btls[] = {
    {"messages_sent", "messages", STRATA_COUNT,
     "This rank has begun so many fragments, puts and gets by this transport."},
    {"bytes_sent", "bytes", STRATA_COUNT, "This rank has sent or put so many bytes by this transport."},
    {"bytes_got", "bytes", STRATA_COUNT,
     "This rank has fetched so many bytes from its peers' memory, where they do not count as sent."},
    {"registered_bytes", "bytes", STRATA_LEVEL, "The transport holds so many bytes of registered memory of its own."},
};
static const struct st_counter of_caches[] = {
    {"hits", "times", STRATA_COUNT, "Memory was needed that was registered already."},
    {"misses", "times", STRATA_COUNT, "Memory was needed that had to be registered first, whether it could be or not."},
    {"evictions", "registrations", STRATA_COUNT, "An idle registration was undone to make room for others."},
    {"invalidations", "registrations", STRATA_COUNT, "A registration was undone because its memory went away."},
    {"ranges", "ranges", STRATA_COUNT, "A range of memory went away and the cache was searched for it."},
    {"overflows", "times", STRATA_COUNT,
     "More ranges went away at once than could be noted, and all registrations were undone."},
    {"registrations", "registrations", STRATA_LEVEL, "So many registrations of the program's memory exist."},
    {"registered_bytes", "bytes", STRATA_LEVEL, "So many bytes of the program's memory are registered, and so pinned."},
    {"registered_bytes_max", "bytes", STRATA_PEAK,
     "At most so many bytes of the program's memory were registered at a time."},
};
static const struct st_counter of_pools[] = {
    {"blocks", "blocks", STRATA_LEVEL,
     "The program has so many blocks of memory from strata_mem_alloc or MPI_Alloc_mem."},
    {"bytes", "bytes", STRATA_LEVEL,
     "The program's blocks from strata_mem_alloc or MPI_Alloc_mem have so many bytes, in whole pages."},
    {"bytes_max", "bytes", STRATA_PEAK,
     "The program's blocks from strata_mem_alloc or MPI_Alloc_mem had at most so many bytes at a time."},
};
#define N(rows) (sizeof(rows) / sizeof(*(rows)))

const struct st_counter *st_counters_common(const char *framework, size_t *n)
{
    static const struct {
        const char *framework;
        const struct st_counter *rows;
        size_t n;
    } common[] = {{"btl", of_btls, N(of_btls)}, {"mpool", of_pools, N(of_pools)}, {"rcache", of_caches, N(of_caches)}};

    for (size_t i = 0; i < N(common); i++) {
        if (strcmp(framework, common[i].framework) == 0) {
            *n = common[i].n;
            return common[i].rows;
        }
    }
    *n = 0;
    return NULL;
}

void st_counters_add(strata_t *s, struct st_counting *counting)
{
    struct st_counting **at = &s->counting;

    while (*at)
        at = &(*at)->next;
    counting->next = NULL;
    *at = counting;
}

void st_counters_remove(strata_t *s, struct st_counting *counting)
{
    for (struct st_counting **at = &s->counting; *at; at = &(*at)->next) {
        if (*at == counting) {
            *at = counting->next;
            return;
        }
    }
}

/* Who is told. */
struct teller {
    void (*fn)(void *arg, const strata_counter_t *c);
    void *arg;
};

static void counters_tell(const struct teller *to, const struct st_component *c, const struct st_counter *rows,
                          size_t n, const uint64_t *value)
{
    for (size_t i = 0; i < n; i++) {
        strata_counter_t line = {.framework = c->framework,
                                 .component = c->name,
                                 .name = rows[i].name,
                                 .unit = rows[i].unit,
                                 .kind = rows[i].kind,
                                 .value = value[i],
                                 .help = rows[i].help};
        to->fn(to->arg, &line);
    }
}

static void counters_add_registered(void *arg, const strata_mem_line_t *line)
{
    uint64_t *sum = arg;

    if (strcmp(line->category, "registered") == 0)
        *sum += line->bytes;
}

/* Modules of one component are neighbours. Returns the first of the next one. */
static size_t counters_tell_btl(strata_t *s, size_t i, const struct teller *to)
{
    const struct st_component *c = s->btls[i]->component;
    uint64_t value[N(of_btls)] = {0};

    for (; i < s->n_btls && s->btls[i]->component == c; i++) {
        struct st_btl *b = s->btls[i];
        value[0] += b->messages_sent;
        value[1] += b->bytes_sent;
        value[2] += b->bytes_got;
        if (b->ops->mem_report)
            b->ops->mem_report(b, counters_add_registered, &value[3]);
    }
    counters_tell(to, c, of_btls, N(of_btls), value);
    return i;
}

static void counters_tell_cache(strata_t *s, const struct teller *to)
{
    struct st_rcache_counters n;

    s->rcache->ops->counters(s->rcache, &n);
    const uint64_t value[N(of_caches)] = {n.hits,      n.misses,  n.evictions, n.invalidations, n.ranges,
                                          n.overflows, n.entries, n.bytes,     n.bytes_max};
    counters_tell(to, s->rcache_component, of_caches, N(of_caches), value);
}

/* What components have added: all that is of one component at once, where the first stands. */
static void counters_tell_added(strata_t *s, const struct teller *to)
{
    for (const struct st_counting *c = s->counting; c; c = c->next) {
        uint64_t value[ST_COUNTERS_MAX] = {0};
        const struct st_counting *first = s->counting;
        while (first->component != c->component)
            first = first->next;
        if (first != c)
            continue;
        for (; first; first = first->next)
            if (first->component == c->component)
                first->count(first, value);
        counters_tell(to, c->component, c->component->counters, c->component->n_counters, value);
    }
}

int strata_counters(strata_t *s, void (*fn)(void *arg, const strata_counter_t *c), void *arg)
{
    const struct teller to = {fn, arg};

    if (!s || !fn)
        return STRATA_ERR_ARG;
    st_context_lock(s);
    for (size_t i = 0; i < s->n_btls;)
        i = counters_tell_btl(s, i, &to);
    if (s->mpool) {
        const uint64_t value[N(of_pools)] = {s->mem.n, s->mem.bytes, s->mem.bytes_max};
        counters_tell(&to, s->mpool_component, of_pools, N(of_pools), value);
    }
    if (s->rcache)
        counters_tell_cache(s, &to);
    counters_tell_added(s, &to);
    st_context_unlock(s);
    return STRATA_OK;
}
