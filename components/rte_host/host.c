/* rte "host": an embedder that passed a strata_host_t is the launcher. Every op forwards to its callback; what it left
 * NULL gets a default here. Nothing is done per rank at open: the list of local ranks is derived when first asked for.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <strata/sdk/rte.h>

/* A call of get that failed. */
struct failure {
    int rank; /* asked about; -1: none */
    int rc;
    char key[64];
};
enum { FAILURES = 8 }; /* kept: one of each transport is enough for a message */

struct host_rte {
    struct st_rte base;
    const strata_host_t *host; /* the context's copy */
    struct failure failures[FAILURES];
    unsigned n_failures;  /* the next goes into failures[n_failures % FAILURES] */
    pthread_mutex_t lock; /* guards local, n_local, failures, n_failures */
    int *local;           /* derived list, NULL until asked for */
    int n_local;
    char name[256];
};

static struct host_rte *self(struct st_rte *rte)
{
    return (struct host_rte *)rte;
}

static int put(struct st_rte *rte, const char *key, const void *blob, size_t length)
{
    const strata_host_t *h = self(rte)->host;
    return h->put(h->user, key, blob, length);
}

/* Once for each rank and key: the latest answer. */
static void remember_failure(struct host_rte *r, int rank, const char *key, int rc)
{
    struct failure *f = NULL;

    pthread_mutex_lock(&r->lock);
    for (int i = 0; i < FAILURES && !f; i++)
        if (r->failures[i].rank == rank && !strcmp(r->failures[i].key, key))
            f = &r->failures[i];
    if (!f)
        f = &r->failures[r->n_failures++ % FAILURES];
    f->rank = rank;
    f->rc = rc;
    snprintf(f->key, sizeof(f->key), "%s", key);
    pthread_mutex_unlock(&r->lock);
}

static int get(struct st_rte *rte, int rank, const char *key, void **blob, size_t *length)
{
    const strata_host_t *h = self(rte)->host;
    if (rank < 0 || rank >= rte->size)
        return STRATA_ERR_RANK;
    int rc = h->get(h->user, rank, key, blob, length);
    if (rc != STRATA_OK)
        remember_failure(self(rte), rank, key, rc);
    return rc;
}

static void get_failures(struct st_rte *rte, int rank, char *text, size_t size)
{
    struct host_rte *r = self(rte);
    size_t n = 0;

    text[0] = 0;
    pthread_mutex_lock(&r->lock);
    for (int i = 0; i < FAILURES && n < size; i++)
        if (r->failures[i].rank == rank)
            n += (size_t)snprintf(text + n, size - n, "%sthe embedder's get(rank %d, key \"%s\") answered: %s",
                                  n ? "; " : "", rank, r->failures[i].key, strata_strerror(r->failures[i].rc));
    pthread_mutex_unlock(&r->lock);
}

static int fence(struct st_rte *rte)
{
    const strata_host_t *h = self(rte)->host;
    return h->fence(h->user);
}

static void job_abort(struct st_rte *rte, int status, const char *reason)
{
    const strata_host_t *h = self(rte)->host;
    if (h->abort)
        h->abort(h->user, status, reason);
}

static int compare_int(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static bool is_local(struct st_rte *rte, int rank)
{
    const strata_host_t *h = self(rte)->host;
    if (rank < 0 || rank >= rte->size)
        return false;
    if (rank == rte->rank)
        return true;
    if (h->is_local)
        return h->is_local(h->user, rank) != 0;
    if (h->local_ranks) {
        int n = 0;
        const int *list = h->local_ranks(h->user, &n);
        return list && n > 0 && bsearch(&rank, list, (size_t)n, sizeof(int), compare_int) != NULL;
    }
    return true;
}

/* Walks all ranks once; only when the embedder has no list of its own and somebody asks. */
static void derive_local(struct host_rte *r)
{
    const strata_host_t *h = r->host;
    int n = 0;
    if (!h->is_local) {
        n = r->base.size;
    } else {
        for (int i = 0; i < r->base.size; i++)
            n += i == r->base.rank || h->is_local(h->user, i) ? 1 : 0;
    }
    int *list = malloc((size_t)n * sizeof(int));
    if (!list)
        return;
    int k = 0;
    for (int i = 0; i < r->base.size && k < n; i++)
        if (!h->is_local || i == r->base.rank || h->is_local(h->user, i))
            list[k++] = i;
    r->local = list;
    r->n_local = k;
}

static const int *local_ranks(struct st_rte *rte, int *n)
{
    struct host_rte *r = self(rte);
    if (r->host->local_ranks) {
        const int *list = r->host->local_ranks(r->host->user, n);
        if (list && *n > 0)
            return list;
    }
    pthread_mutex_lock(&r->lock);
    if (!r->local)
        derive_local(r);
    const int *list = r->local ? r->local : &rte->rank; /* out of memory: at least this rank is here */
    *n = r->local ? r->n_local : 1;
    pthread_mutex_unlock(&r->lock);
    return list;
}

static const char *host_of(struct st_rte *rte, int rank)
{
    struct host_rte *r = self(rte);
    const char *name = NULL;
    if (rank >= 0 && rank < rte->size && r->host->host_of)
        name = r->host->host_of(r->host->user, rank);
    if (!name && is_local(rte, rank))
        name = rte->host;
    return name ? name : "?";
}

static void close_rte(struct st_rte *rte)
{
    struct host_rte *r = self(rte);
    pthread_mutex_destroy(&r->lock);
    free(r->local);
    free(r);
}

static const struct st_rte_ops ops = {
    .put = put,
    .get = get,
    .fence = fence,
    .abort = job_abort,
    .is_local = is_local,
    .local_ranks = local_ranks,
    .host_of = host_of,
    .get_failures = get_failures,
    .close = close_rte,
};

/* What is wrong with the embedder's table, or NULL. */
static const char *fault_of(const strata_host_t *h)
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

static int open_rte(strata_t *context, const struct st_component *c, const void *config, const strata_host_t *host,
                    struct st_rte **out)
{
    (void)config;
    if (!host) {
        st_reject(context, c, "no embedder passed a table of callbacks (strata_config_t.host)");
        return STRATA_ERR_UNSUPPORTED;
    }
    const char *fault = fault_of(host);
    if (fault) {
        st_reject(context, c, "%s", fault);
        return STRATA_ERR_ARG;
    }
    struct host_rte *r = calloc(1, sizeof(*r));
    if (!r)
        return STRATA_ERR_NOMEM;
    if (pthread_mutex_init(&r->lock, NULL) != 0) {
        free(r);
        return STRATA_ERR_NOMEM;
    }
    r->host = host;
    for (int i = 0; i < FAILURES; i++)
        r->failures[i].rank = -1;
    if (!host->host_name && gethostname(r->name, sizeof(r->name) - 1) != 0)
        strcpy(r->name, "localhost");
    r->base = (struct st_rte){.ops = &ops,
                              .context = context,
                              .rank = host->rank,
                              .size = host->n_ranks,
                              .job_id = host->job_id,
                              .host = host->host_name ? host->host_name : r->name};
    *out = &r->base;
    return STRATA_OK;
}

static const struct st_rte_component_ops component_ops = {.open = open_rte};

ST_COMPONENT(rte, host) = {
    ST_COMPONENT_HEAD("rte", "host", "0.1.0", "an embedding program is the launcher, through <strata/host.h>"),
    .ops_size = sizeof(component_ops),
    .priority = 100,
    .ops = &component_ops,
};
