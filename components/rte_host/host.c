/* rte "host": an embedder that passed a strata_host_t is the launcher. Every op forwards to its callback; what it left
 * NULL gets a default here. Nothing is done per rank at open: the list of local ranks is derived when first asked for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/rte.h>

/* A call of get that failed. */
struct failure {
    int rank; /* asked about; -1: none */
    int rc;
    char key[64];
};
enum { FAILURES = 8 }; /* kept: one of each transport is enough for a message */

struct host_rte {
    struct st_rte_common common; /* its lock guards local, n_local, failures, n_failures */
    const strata_host_t *host;   /* the context's copy */
    struct failure failures[FAILURES];
    unsigned n_failures; /* the next goes into failures[n_failures % FAILURES] */
    int *local;          /* derived list, NULL until asked for */
    int n_local;
};

static struct host_rte *host_self(struct st_rte *rte)
{
    return (struct host_rte *)rte;
}

static int host_put(struct st_rte *rte, const char *key, const void *blob, size_t length)
{
    const strata_host_t *h = host_self(rte)->host;
    return h->put(h->user, key, blob, length);
}

/* Once for each rank and key: the latest answer. */
static void host_remember_failure(struct host_rte *r, int rank, const char *key, int rc)
{
    struct failure *f = NULL;

    pthread_mutex_lock(&r->common.lock);
    for (int i = 0; i < FAILURES && !f; i++)
        if (r->failures[i].rank == rank && !strcmp(r->failures[i].key, key))
            f = &r->failures[i];
    if (!f)
        f = &r->failures[r->n_failures++ % FAILURES];
    f->rank = rank;
    f->rc = rc;
    snprintf(f->key, sizeof(f->key), "%s", key);
    pthread_mutex_unlock(&r->common.lock);
}

static int host_get(struct st_rte *rte, int rank, const char *key, void **blob, size_t *length)
{
    const strata_host_t *h = host_self(rte)->host;
    if (rank < 0 || rank >= rte->size)
        return STRATA_ERR_RANK;
    int rc = h->get(h->user, rank, key, blob, length);
    if (rc != STRATA_OK)
        host_remember_failure(host_self(rte), rank, key, rc);
    return rc;
}

static void host_get_failures(struct st_rte *rte, int rank, char *text, size_t size)
{
    struct host_rte *r = host_self(rte);
    size_t n = 0;

    text[0] = 0;
    pthread_mutex_lock(&r->common.lock);
    for (int i = 0; i < FAILURES && n < size; i++)
        if (r->failures[i].rank == rank)
            n += (size_t)snprintf(text + n, size - n, "%sthe embedder's get(rank %d, key \"%s\") answered: %s",
                                  n ? "; " : "", rank, r->failures[i].key, strata_strerror(r->failures[i].rc));
    pthread_mutex_unlock(&r->common.lock);
}

static int host_fence(struct st_rte *rte)
{
    const strata_host_t *h = host_self(rte)->host;
    return h->fence(h->user);
}

static void host_abort(struct st_rte *rte, int status, const char *reason)
{
    const strata_host_t *h = host_self(rte)->host;
    if (h->abort)
        h->abort(h->user, status, reason);
}

static int host_compare_int(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static bool host_is_local(struct st_rte *rte, int rank)
{
    const strata_host_t *h = host_self(rte)->host;
    if (rank < 0 || rank >= rte->size)
        return false;
    if (rank == rte->rank)
        return true;
    if (h->is_local)
        return h->is_local(h->user, rank) != 0;
    if (h->local_ranks) {
        int n = 0;
        const int *list = h->local_ranks(h->user, &n);
        return list && n > 0 && bsearch(&rank, list, (size_t)n, sizeof(int), host_compare_int) != NULL;
    }
    return true;
}

/* Walks all ranks once; only when the embedder has no list of its own and somebody asks. */
static void host_derive_local(struct host_rte *r)
{
    const strata_host_t *h = r->host;
    int n = 0;
    if (!h->is_local) {
        n = r->common.head.size;
    } else {
        for (int i = 0; i < r->common.head.size; i++)
            n += i == r->common.head.rank || h->is_local(h->user, i) ? 1 : 0;
    }
    int *list = malloc((size_t)n * sizeof(int));
    if (!list)
        return;
    int k = 0;
    for (int i = 0; i < r->common.head.size && k < n; i++)
        if (!h->is_local || i == r->common.head.rank || h->is_local(h->user, i))
            list[k++] = i;
    r->local = list;
    r->n_local = k;
}

static const int *host_local_ranks(struct st_rte *rte, int *n)
{
    struct host_rte *r = host_self(rte);
    if (r->host->local_ranks) {
        const int *list = r->host->local_ranks(r->host->user, n);
        if (list && *n > 0)
            return list;
    }
    pthread_mutex_lock(&r->common.lock);
    if (!r->local)
        host_derive_local(r);
    const int *list = r->local ? r->local : &rte->rank; /* out of memory: at least this rank is here */
    *n = r->local ? r->n_local : 1;
    pthread_mutex_unlock(&r->common.lock);
    return list;
}

static const char *host_name_of(struct st_rte *rte, int rank)
{
    struct host_rte *r = host_self(rte);
    const char *name = NULL;
    if (rank >= 0 && rank < rte->size && r->host->host_of)
        name = r->host->host_of(r->host->user, rank);
    if (!name && host_is_local(rte, rank))
        name = rte->host;
    return name ? name : "?";
}

static void host_close(struct st_rte *rte)
{
    struct host_rte *r = host_self(rte);
    free(r->local);
    st_rte_free(&r->common);
}

static const struct st_rte_ops host_ops = {
    .put = host_put,
    .get = host_get,
    .fence = host_fence,
    .abort = host_abort,
    .is_local = host_is_local,
    .local_ranks = host_local_ranks,
    .host_of = host_name_of,
    .get_failures = host_get_failures,
    .close = host_close,
};

/* What is wrong with the embedder's table, or NULL. */
static const char *host_fault_of(const strata_host_t *h)
{
    if (h->size < sizeof(strata_host_t))
        return "strata_host_t.size is too small: set it to sizeof(strata_host_t)";
    if (!h->put || !h->get || !h->fence)
        return "the embedder's table lacks put, get or fence";
    if (!h->job_id || !*h->job_id)
        return "the embedder's table has no job_id";
    if (h->n_ranks < 1 || h->rank < 0 || h->rank >= h->n_ranks)
        return "the embedder's table has a rank outside 0..n_ranks-1";
    if (h->n_ranks == STRATA_RANKS_OPEN && (!h->is_local || !h->local_ranks))
        return "the embedder's rank space is open and its table lacks is_local or local_ranks";
    return NULL;
}

static int host_open(strata_t *context, const struct st_component *c, const void *config, const strata_host_t *host,
                     struct st_rte **out)
{
    (void)config;
    if (!host) {
        st_reject(context, c, "no embedder passed a table of callbacks (strata_config_t.host)");
        return STRATA_ERR_UNSUPPORTED;
    }
    const char *fault = host_fault_of(host);
    if (fault) {
        st_reject(context, c, "%s", fault);
        return STRATA_ERR_ARG;
    }
    struct host_rte *r = st_rte_make(sizeof(*r), &host_ops, context);
    if (!r)
        return STRATA_ERR_NOMEM;
    r->host = host;
    for (int i = 0; i < FAILURES; i++)
        r->failures[i].rank = -1;
    r->common.head.rank = host->rank;
    r->common.head.size = host->n_ranks;
    r->common.head.job_id = host->job_id;
    if (host->host_name)
        r->common.head.host = host->host_name;
    *out = &r->common.head;
    return STRATA_OK;
}

static const struct st_rte_component_ops component_ops = {.open = host_open};

ST_COMPONENT(rte, host) = {
    ST_COMPONENT_HEAD("rte", "host", "0.1.0", "an embedding program is the launcher, through <strata/host.h>"),
    .ops_size = sizeof(component_ops),
    .priority = 100,
    .ops = &component_ops,
};
