/* What a source in the C library's code does when another library changes that code after it. */
#include <strata/sdk/hint.h>
#include <strata/sdk/memory_code.h>

static struct st_memory_code *memory_code_of(struct st_memory_source *source)
{
    return (struct st_memory_code *)source; /* its first member */
}
_Static_assert(offsetof(struct st_memory_code, source) == 0, "code_of");

/* Under the lock. */
static int memory_make_work(struct st_memory_code *code, char *why, size_t why_size)
{
    uint64_t steady = 0;
    int rc = code->again(code, &steady, why, why_size);
    if (rc == STRATA_OK)
        atomic_store_explicit(&code->source.steady, steady, memory_order_relaxed);
    return rc;
}

int st_memory_code_start(struct st_memory_code *code, char *why, size_t why_size)
{
    pthread_mutex_lock(&code->lock);
    int rc = memory_make_work(code, why, why_size);
    code->hopeless = rc != STRATA_OK;
    code->source.tested = false;
    pthread_mutex_unlock(&code->lock);
    return rc;
}

/* Under the lock. Threads may be running the code, which is as safe as the first time. */
static void memory_recover(struct st_memory_code *code)
{
    char why[256] = "";
    struct st_memory_source *source = &code->source;
    int rc = memory_make_work(code, why, sizeof(why));
    code->hopeless = rc != STRATA_OK || st_memory_test(source) != 0;
    if (code->hopeless) /* never again equal to the pulse */
        atomic_store_explicit(&source->steady, ~atomic_load_explicit(source->pulse, memory_order_relaxed),
                              memory_order_relaxed);
    st_log(NULL, ST_LOG_INFO, "memory", "another library changed the C library's code after %s; %s%s", source->name,
           code->hopeless ? "no registration is kept any more: " : "it is told all the same",
           !code->hopeless ? ""
           : why[0]        ? why
                           : "the self-test fails");
}

/* munmap's code is not what it was. */
bool st_memory_code_settle(struct st_memory_source *source, uintptr_t from, uintptr_t to)
{
    struct st_memory_code *code = memory_code_of(source);
    (void)from, (void)to;
    if (pthread_mutex_trylock(&code->lock) != 0)
        return false; /* another context is at it */
    if (!code->hopeless && !st_memory_steady(source))
        memory_recover(code);
    pthread_mutex_unlock(&code->lock);
    return false;
}

bool st_memory_code_cover(struct st_memory_source *source, uintptr_t from, uintptr_t to)
{
    struct st_memory_code *code = memory_code_of(source);
    (void)from, (void)to;
    if (ST_LIKELY(code->as_left(code)))
        return true;
    if (pthread_mutex_trylock(&code->lock) != 0)
        return false;
    if (!code->hopeless && !code->as_left(code))
        memory_recover(code);
    bool good = !code->hopeless;
    pthread_mutex_unlock(&code->lock);
    st_memory_gone(0, UINTPTR_MAX); /* what is kept already may have gone unseen */
    return good;
}
