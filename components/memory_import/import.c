/* memory "import": the program that embeds Strata has a monitor of its own and reports by strata_host_memory_gone.
 *
 * Such a monitor mostly sits in the C library's code. Another library that changes the same code later may keep it from
 * being told; so the code's first words are looked at, and the self-test is run again when they change. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <pthread.h>
#include <sys/mman.h>

#include <strata/sdk/memory.h>

static bool vouches(struct st_memory_source *source, enum st_memory_event event)
{
    (void)source, (void)event;
    return true; /* it has promised all of them */
}

/* The first words of the calls, as they were when the monitor was last seen to work; munmap comes first, whose word is
 * the pulse. Process-wide, as the code is; written under the framework's lock and under settling. */
static const char *const calls[] = {"munmap", "mmap", "mremap", "madvise", "brk", "sbrk", "shmat", "shmdt"};
enum { CALLS = sizeof(calls) / sizeof(calls[0]) };
static struct {
    const _Atomic(uint64_t) *at;
    uint64_t was;
} code[CALLS];
static pthread_mutex_t settling = PTHREAD_MUTEX_INITIALIZER;
static bool hopeless; /* under settling */

static uint64_t now(unsigned i)
{
    return atomic_load_explicit(code[i].at, memory_order_relaxed);
}

static bool unchanged(void)
{
    for (unsigned i = 0; i < CALLS; i++)
        if (code[i].at && now(i) != code[i].was)
            return false;
    return true;
}

static void look(struct st_memory_source *source)
{
    for (unsigned i = 0; i < CALLS; i++)
        code[i].was = code[i].at ? now(i) : 0;
    atomic_store_explicit(&source->steady, code[0].was, memory_order_relaxed);
}

/* Under settling. */
static void test_again(struct st_memory_source *source)
{
    look(source);
    hopeless = st_memory_test(source) != 0;
    if (hopeless) /* never again equal to the pulse */
        atomic_store_explicit(&source->steady, ~now(0), memory_order_relaxed);
    st_log(NULL, ST_LOG_INFO, "memory_import", "another library changed the C library's code; %s",
           hopeless ? "the embedding program's monitor does not work any more, no registration is kept"
                    : "the embedding program's monitor works all the same");
}

/* munmap's code has changed. What happened until now may not have been seen. */
static bool settle(struct st_memory_source *source, uintptr_t from, uintptr_t to)
{
    (void)from, (void)to;
    if (pthread_mutex_trylock(&settling) != 0)
        return false; /* another context is at it */
    if (!hopeless && !st_memory_steady(source))
        test_again(source);
    pthread_mutex_unlock(&settling);
    return false;
}

/* Before something is kept all of it is looked at. */
static bool cover(struct st_memory_source *source, uintptr_t from, uintptr_t to)
{
    (void)from, (void)to;
    if (__builtin_expect(unchanged(), 1))
        return true;
    if (pthread_mutex_trylock(&settling) != 0)
        return false;
    if (!hopeless && !unchanged())
        test_again(source);
    bool good = !hopeless;
    pthread_mutex_unlock(&settling);
    st_memory_gone(0, UINTPTR_MAX); /* what is kept already may have gone unseen */
    return good;
}

/* Process-wide, as its reports are. */
static struct st_memory_source source = {
    .name = "import", .settle = settle, .cover = cover, .vouches = vouches, .before = true};

static void find(void)
{
    void *libc = dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);
    for (unsigned i = 0; i < CALLS; i++) {
        uintptr_t at = libc ? (uintptr_t)dlsym(libc, calls[i]) : 0;
        code[i].at = (const _Atomic(uint64_t) *)(at & ~(uintptr_t)7);
    }
    if (!code[0].at) /* linked statically */
        code[0].at = (const _Atomic(uint64_t) *)((uintptr_t)munmap & ~(uintptr_t)7);
    source.pulse = code[0].at;
}

static int import_start(strata_t *s, const struct st_component *c, const void *config, const strata_host_t *host,
                        struct st_memory_source **out)
{
    (void)config;
    if (!host || !host->memory_watch) {
        st_reject(s, c, "%s", host ? "the embedding program has no memory monitor" : "this program embeds nothing");
        return STRATA_ERR_UNSUPPORTED;
    }
    int rc = host->memory_watch(host->user);
    if (rc != STRATA_OK) {
        st_reject(s, c, "the embedding program's memory monitor does not work: %s", strata_strerror(rc));
        return STRATA_ERR_UNSUPPORTED;
    }
    pthread_mutex_lock(&settling);
    find();
    look(&source);
    hopeless = false;
    source.tested = false; /* another embedder's promise is another promise */
    pthread_mutex_unlock(&settling);
    *out = &source;
    return STRATA_OK;
}

static const struct st_memory_component_ops component_ops = {.start = import_start, .patches = false};

ST_COMPONENT(memory, import) = {
    ST_COMPONENT_HEAD("memory", "import", "0.1.0", "the embedding program tells when memory goes away"),
    .ops_size = sizeof(component_ops),
    .priority = 70,
    .ops = &component_ops,
};
