/* memory "import": the program that embeds Strata has a monitor of its own and reports by strata_host_memory_gone.
 *
 * Such a monitor mostly sits in the C library's code. Another library that changes the same code later may keep it from
 * being told; so the code's first words are looked at, and the self-test is run again when they change
 * (strata/sdk/memory_code.h). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <sys/mman.h>

#include <strata/sdk/memory_code.h>

static bool import_vouches(struct st_memory_source *source, enum st_memory_event event)
{
    (void)source, (void)event;
    return true; /* it has promised all of them */
}

/* The first words of the calls, as they were when the monitor was last seen to work; munmap comes first, whose word is
 * the pulse. Process-wide, as the code is; written under the framework's locks. */
static const char *const calls[] = {"munmap", "mmap", "mremap", "madvise", "brk", "sbrk", "shmat", "shmdt"};
enum { CALLS = sizeof(calls) / sizeof(calls[0]) };
static struct {
    const _Atomic(uint64_t) *at;
    _Atomic(uint64_t) was;
} words[CALLS];

static uint64_t import_now(unsigned i)
{
    return atomic_load_explicit(words[i].at, memory_order_relaxed);
}

static bool import_as_left(const struct st_memory_code *code)
{
    (void)code;
    for (unsigned i = 0; i < CALLS; i++)
        if (words[i].at && import_now(i) != atomic_load_explicit(&words[i].was, memory_order_relaxed))
            return false;
    return true;
}

/* There is nothing to do for it: it works with what the code is now, or it does not. */
static int import_again(struct st_memory_code *code, uint64_t *steady, char *why, size_t why_size)
{
    (void)code, (void)why, (void)why_size;
    for (unsigned i = 0; i < CALLS; i++)
        atomic_store_explicit(&words[i].was, words[i].at ? import_now(i) : 0, memory_order_relaxed);
    *steady = words[0].was;
    return STRATA_OK;
}

/* Process-wide, as its reports are. */
static struct st_memory_code code = ST_MEMORY_CODE("import", import_vouches, import_as_left, import_again);

static void import_find(void)
{
    void *libc = dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);
    for (unsigned i = 0; i < CALLS; i++) {
        uintptr_t at = libc ? (uintptr_t)dlsym(libc, calls[i]) : 0;
        words[i].at = (const _Atomic(uint64_t) *)(at & ~(uintptr_t)7);
    }
    if (!words[0].at) /* linked statically */
        words[0].at = (const _Atomic(uint64_t) *)((uintptr_t)munmap & ~(uintptr_t)7);
    code.source.pulse = words[0].at;
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
    if (!code.source.pulse)
        import_find();
    *out = &code.source;
    return st_memory_code_start(&code, NULL, 0); /* another embedder's promise is another promise */
}

static const struct st_memory_component_ops component_ops = {.start = import_start, .patches = false};

ST_COMPONENT(memory, import) = {
    ST_COMPONENT_HEAD("memory", "import", "0.1.0", "the embedding program tells when memory goes away"),
    .ops_size = sizeof(component_ops),
    .priority = 70,
    .ops = &component_ops,
};
