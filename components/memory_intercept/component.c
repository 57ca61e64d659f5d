/* The component: when the code is changed, and what is done when somebody changes it after us. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>

#include "intercept.h"

/* Process-wide, as the code that was changed is; written under the framework's lock, and under this one by settle. */
static pthread_mutex_t settling = PTHREAD_MUTEX_INITIALIZER;
static bool installed;
static bool hopeless; /* somebody else's changes cannot be lived with; under settling */

static bool vouches(struct st_memory_source *source, enum st_memory_event event)
{
    (void)source;
    for (size_t i = 0; i < intercept_n_entries; i++) {
        const struct intercept_entry *e = &intercept_entries[i];
        if (e->at && e->event == event && !intercept_ours(e))
            return false;
    }
    return true;
}

/* Somebody changed the code after us: it is changed again, so that we come first and they second. Threads may be
 * running it, which is as safe as the first time. The test says whether that helped. */
static bool change_again(struct st_memory_source *source)
{
    char why[256] = "";
    uint32_t missed = 0;
    int rc = intercept_change(intercept_entries, intercept_n_entries, why, sizeof(why));
    if (rc == STRATA_OK) {
        atomic_store_explicit(&source->steady, intercept_entries[0].new_word, memory_order_relaxed);
        missed = st_memory_test(source);
    }
    bool good = rc == STRATA_OK && !missed;
    if (!good) /* never again equal to the pulse */
        atomic_store_explicit(&source->steady, ~atomic_load_explicit(source->pulse, memory_order_relaxed),
                              memory_order_relaxed);
    st_log(NULL, ST_LOG_INFO, "memory_intercept", "another library changed the C library's code after us; %s%s",
           good ? "both of us are told now" : "no registration is kept any more: ",
           good     ? ""
           : why[0] ? why
                    : "the self-test fails");
    return good;
}

static bool all_ours(void)
{
    return intercept_all_ours(intercept_entries, intercept_n_entries);
}

/* munmap's code is not what we wrote. What happened until now may not have been seen, so the answer is no in any case.
 */
static bool settle(struct st_memory_source *source, uintptr_t from, uintptr_t to)
{
    (void)from, (void)to;
    if (pthread_mutex_trylock(&settling) != 0)
        return false; /* another context is at it */
    if (!hopeless && !st_memory_steady(source))
        hopeless = !change_again(source);
    pthread_mutex_unlock(&settling);
    return false;
}

/* Before something is kept all code is looked at, not only munmap's: that is cheap beside a registration. */
static bool cover(struct st_memory_source *source, uintptr_t from, uintptr_t to)
{
    (void)from, (void)to;
    if (__builtin_expect(all_ours(), 1))
        return true;
    if (pthread_mutex_trylock(&settling) != 0)
        return false;
    if (!hopeless && !all_ours())
        hopeless = !change_again(source);
    bool good = !hopeless;
    pthread_mutex_unlock(&settling);
    st_memory_gone(0, UINTPTR_MAX); /* what is kept already may have gone unseen */
    return good;
}

static struct st_memory_source source = {
    .name = "intercept", .settle = settle, .cover = cover, .vouches = vouches, .before = true};

/* The code that the changed functions jump to must never be unmapped. */
static bool pin(const void *at)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1(at, &info, (void **)&map, RTLD_DL_LINKMAP))
        return true; /* linked statically */
    if (!map || !map->l_name || !map->l_name[0])
        return true; /* in the program itself */
    return dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) != NULL;
}

static int intercept_start(strata_t *s, const struct st_component *c, const void *config, const strata_host_t *host,
                           struct st_memory_source **out)
{
    char why[256] = "";
    const char *missing = NULL;
    (void)config, (void)host;
    if (installed) {
        *out = &source;
        return STRATA_OK;
    }
    if (!intercept_find(intercept_entries, intercept_n_entries, &missing)) {
        st_reject(s, c, "the C library has no %s", missing);
        return STRATA_ERR_UNSUPPORTED;
    }
    if (!pin((const void *)intercept_start) || !pin((const void *)st_memory_gone)) {
        st_reject(s, c, "this library cannot be kept loaded until the process ends");
        return STRATA_ERR_UNSUPPORTED;
    }
    if (intercept_change(intercept_entries, intercept_n_entries, why, sizeof(why)) != STRATA_OK) {
        st_reject(s, c, "%s", why);
        return STRATA_ERR_UNSUPPORTED;
    }
    source.pulse = intercept_entries[0].word;
    atomic_store(&source.steady, intercept_entries[0].new_word);
    installed = true;
    *out = &source;
    return STRATA_OK;
}

static const struct st_memory_component_ops component_ops = {.start = intercept_start, .patches = true};

ST_COMPONENT(memory, intercept) = {
    ST_COMPONENT_HEAD("memory", "intercept", "0.1.0", "changes the code of munmap, mmap and the like to be told first"),
    .ops_size = sizeof(component_ops),
    .priority = 60,
    .ops = &component_ops,
};
