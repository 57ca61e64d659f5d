/* rte "singleton": a process that nobody launched is rank 0 of 1. What it publishes stays in its own memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include <strata/sdk/rte.h>

struct entry {
    struct entry *next;
    size_t length;
    char *key;
    unsigned char blob[];
};

struct singleton {
    struct st_rte_common common; /* its lock guards entries: get may be called by any thread */
    struct entry *entries;
    char job_id[64];
};

static struct singleton *alone_self(struct st_rte *rte)
{
    return (struct singleton *)rte;
}

static struct entry **alone_find(struct singleton *s, const char *key)
{
    struct entry **at = &s->entries;
    while (*at && strcmp((*at)->key, key) != 0)
        at = &(*at)->next;
    return at;
}

static void alone_entry_free(struct entry *e)
{
    if (e)
        free(e->key);
    free(e);
}

static int alone_put(struct st_rte *rte, const char *key, const void *blob, size_t length)
{
    struct entry *e = malloc(sizeof(*e) + length);
    if (!e)
        return STRATA_ERR_NOMEM;
    e->key = strdup(key);
    if (!e->key) {
        free(e);
        return STRATA_ERR_NOMEM;
    }
    e->length = length;
    if (length)
        memcpy(e->blob, blob, length);

    pthread_mutex_lock(&alone_self(rte)->common.lock);
    struct entry **at = alone_find(alone_self(rte), key), *old = *at;
    e->next = old ? old->next : NULL;
    *at = e;
    pthread_mutex_unlock(&alone_self(rte)->common.lock);
    alone_entry_free(old);
    return STRATA_OK;
}

static int alone_get(struct st_rte *rte, int rank, const char *key, void **blob, size_t *length)
{
    if (rank != 0)
        return STRATA_ERR_RANK;
    int rc = STRATA_ERR_NOT_FOUND;
    pthread_mutex_lock(&alone_self(rte)->common.lock);
    struct entry *e = *alone_find(alone_self(rte), key);
    if (e) {
        void *copy = malloc(e->length ? e->length : 1);
        rc = copy ? STRATA_OK : STRATA_ERR_NOMEM;
        if (copy) {
            memcpy(copy, e->blob, e->length);
            *blob = copy;
            *length = e->length;
        }
    }
    pthread_mutex_unlock(&alone_self(rte)->common.lock);
    return rc;
}

static int alone_fence(struct st_rte *rte)
{
    (void)rte;
    return STRATA_OK;
}

/* There is no launcher to tell: the caller decides how its own process ends. */
static void alone_abort(struct st_rte *rte, int status, const char *reason)
{
    st_log(rte->context, ST_LOG_ERROR, "rte_singleton", "abort with status %d: %s", status,
           reason ? reason : "no reason given");
}

static bool alone_is_local(struct st_rte *rte, int rank)
{
    (void)rte;
    return rank == 0;
}

static const int *alone_local_ranks(struct st_rte *rte, int *n)
{
    (void)rte;
    static const int only = 0;
    *n = 1;
    return &only;
}

static const char *alone_host_of(struct st_rte *rte, int rank)
{
    return rank == 0 ? rte->host : "?";
}

static void alone_close(struct st_rte *rte)
{
    struct singleton *s = alone_self(rte);
    while (s->entries) {
        struct entry *e = s->entries;
        s->entries = e->next;
        alone_entry_free(e);
    }
    st_rte_free(&s->common);
}

static const struct st_rte_ops alone_ops = {
    .put = alone_put,
    .get = alone_get,
    .fence = alone_fence,
    .abort = alone_abort,
    .is_local = alone_is_local,
    .local_ranks = alone_local_ranks,
    .host_of = alone_host_of,
    .close = alone_close,
};

/* Several contexts of one process, and a recycled process id, must not meet in one job: hence the random part. */
static void alone_make_job_id(struct singleton *s)
{
    unsigned long long nonce;
    if (getrandom(&nonce, sizeof(nonce), GRND_NONBLOCK) != (ssize_t)sizeof(nonce)) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        nonce = (unsigned long long)now.tv_sec * 1000000000ull + (unsigned long long)now.tv_nsec;
        nonce ^= (unsigned long long)(uintptr_t)s << 20;
    }
    snprintf(s->job_id, sizeof(s->job_id), "alone-%ld-%016llx", (long)getpid(), nonce);
}

static int alone_open(strata_t *context, const struct st_component *c, const void *config, const strata_host_t *host,
                      struct st_rte **out)
{
    (void)config;
    if (host) { /* whose rank would else go on in a job of its own when rte_host is missing */
        st_reject(context, c, "the program passed a table of callbacks (strata_config_t.host): it is not alone");
        return STRATA_ERR_UNSUPPORTED;
    }
    struct singleton *s = st_rte_make(sizeof(*s), &alone_ops, context);
    if (!s)
        return STRATA_ERR_NOMEM;
    alone_make_job_id(s);
    s->common.head.size = 1;
    s->common.head.job_id = s->job_id;
    *out = &s->common.head;
    return STRATA_OK;
}

static const struct st_rte_component_ops component_ops = {.open = alone_open};

ST_COMPONENT(rte, singleton) = {
    ST_COMPONENT_HEAD("rte", "singleton", "0.1.0", "a process that was started alone: rank 0 of 1"),
    .ops_size = sizeof(component_ops),
    .priority = 10,
    .ops = &component_ops,
};
