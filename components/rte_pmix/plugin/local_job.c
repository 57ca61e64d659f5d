#define _GNU_SOURCE
#include "plugin/local_job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/clock.h>
#include <strata/sdk/rte_card.h>
#include <sys/stat.h>
#include <unistd.h>
#include "plugin/meeting.h"

#define CARD_BYTES_MAX ((off_t)1 << 24)

struct local_job {
    struct st_rte_common common; /* its lock guards card and committed */
    const struct rte_pmix_config *config;
    const struct rte_pmix_body *(*load)(strata_t *s);
    struct rte_pmix_meeting meeting;
    char base[768]; /* of the names of this context's files */
    char job_id[64];
    int *ranks; /* all of the job */
    struct st_rte_card card;
    bool committed;
};

/* The process's contexts, numbered as in session.c: the n-th ones of all processes belong together. */
static struct {
    pthread_mutex_t lock;
    unsigned made, open;
    pid_t pid; /* that made the first; a forked child is somebody else */
    const struct rte_pmix_body *(*load)(strata_t *s);
} local = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct local_job *local_of(struct st_rte *rte)
{
    return (struct local_job *)rte;
}

static void local_card_name(const struct local_job *j, int rank, const char *end, char *out, size_t size)
{
    snprintf(out, size, "%s.%d%s", j->base, rank, end);
}

/* ---- exchange ------------------------------------------------------------------------------------------------ */

static int local_put(struct st_rte *rte, const char *key, const void *blob, size_t length)
{
    struct local_job *j = local_of(rte);
    pthread_mutex_lock(&j->common.lock);
    int rc = j->committed ? STRATA_ERR_STATE : st_rte_card_set(&j->card, key, blob, length);
    pthread_mutex_unlock(&j->common.lock);
    return rc;
}

static bool local_write(int fd, const unsigned char *p, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno != EINTR)
            return false;
        p += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

/* Written under another name, so that a card that is there is whole. */
static int local_write_card(const struct local_job *j)
{
    char name[800], new_name[800];
    local_card_name(j, j->common.head.rank, "", name, sizeof(name));
    local_card_name(j, j->common.head.rank, ".new", new_name, sizeof(new_name));
    int fd = open(new_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return STRATA_ERR_SYSTEM;
    bool whole = local_write(fd, j->card.bytes, j->card.length);
    if (close(fd) != 0 || !whole || rename(new_name, name) != 0)
        return STRATA_ERR_SYSTEM;
    return STRATA_OK;
}

static int local_commit(struct st_rte *rte)
{
    struct local_job *j = local_of(rte);
    pthread_mutex_lock(&j->common.lock);
    int rc = j->committed ? STRATA_ERR_STATE : STRATA_OK;
    if (rc == STRATA_OK && j->card.length == 0) /* an empty card still says that this rank is up */
        rc = st_rte_card_set(&j->card, "rank", &rte->rank, sizeof(rte->rank));
    if (rc == STRATA_OK) {
        rc = local_write_card(j);
        if (rc != STRATA_OK)
            st_log(rte->context, ST_LOG_ERROR, "rte_pmix", "cannot publish this rank's addresses in %s.*: %s", j->base,
                   strerror(errno));
    }
    j->committed = rc == STRATA_OK;
    pthread_mutex_unlock(&j->common.lock);
    return rc;
}

/* STRATA_ERR_AGAIN: it is not there yet. */
static int local_read_card(const char *name, unsigned char **bytes, size_t *length)
{
    struct stat st;
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? STRATA_ERR_AGAIN : STRATA_ERR_SYSTEM;
    int rc = fstat(fd, &st) == 0 && st.st_size > 0 && st.st_size <= CARD_BYTES_MAX ? STRATA_OK : STRATA_ERR_SYSTEM;
    unsigned char *p = rc == STRATA_OK ? malloc((size_t)st.st_size) : NULL;
    if (rc == STRATA_OK && !p)
        rc = STRATA_ERR_NOMEM;
    if (rc == STRATA_OK && read(fd, p, (size_t)st.st_size) != (ssize_t)st.st_size)
        rc = STRATA_ERR_SYSTEM;
    (void)close(fd);
    if (rc != STRATA_OK) {
        free(p);
        return rc;
    }
    *bytes = p;
    *length = (size_t)st.st_size;
    return STRATA_OK;
}

/* Looks until the card is there: every rank commits one in the end. */
static int local_wait_card(const struct local_job *j, int rank, unsigned char **bytes, size_t *length)
{
    int64_t timeout_ms = j->config->timeout_s * 1000, until = st_now_ms() + timeout_ms, pause_us = 500;
    char name[800];
    local_card_name(j, rank, "", name, sizeof(name));
    for (;;) {
        int rc = local_read_card(name, bytes, length);
        if (rc != STRATA_ERR_AGAIN)
            return rc;
        if (rte_pmix_meeting_dead(&j->meeting, rank))
            return STRATA_ERR_PEER;
        if (timeout_ms && st_now_ms() >= until)
            return STRATA_ERR_TIMEOUT;
        usleep((useconds_t)pause_us);
        pause_us = pause_us < 50000 ? pause_us * 2 : pause_us;
    }
}

static int local_get(struct st_rte *rte, int rank, const char *key, void **blob, size_t *length)
{
    struct local_job *j = local_of(rte);
    unsigned char *bytes = NULL;
    size_t n = 0;
    if (rank < 0 || rank >= rte->size)
        return STRATA_ERR_RANK;
    if (rank == rte->rank) {
        pthread_mutex_lock(&j->common.lock);
        int own =
            j->card.length ? st_rte_card_get(j->card.bytes, j->card.length, key, blob, length) : STRATA_ERR_NOT_FOUND;
        pthread_mutex_unlock(&j->common.lock);
        return own;
    }
    int rc = local_wait_card(j, rank, &bytes, &n);
    if (rc == STRATA_OK)
        rc = st_rte_card_get(bytes, n, key, blob, length);
    else
        st_log(rte->context, ST_LOG_ERROR, "rte_pmix", "no answer about rank %d's \"%s\": %s", rank, key,
               rc == STRATA_ERR_TIMEOUT ? "it has not finished strata_init within rte_pmix_timeout seconds"
                                        : strata_strerror(rc));
    free(bytes);
    return rc;
}

/* ---- the job ------------------------------------------------------------------------------------------------- */

static int local_fence(struct st_rte *rte)
{
    return rte_pmix_meeting_fence(&local_of(rte)->meeting);
}

static bool local_is_local(struct st_rte *rte, int rank)
{
    return rank >= 0 && rank < rte->size;
}

static const int *local_ranks(struct st_rte *rte, int *n)
{
    *n = rte->size;
    return local_of(rte)->ranks;
}

static const char *local_host_of(struct st_rte *rte, int rank)
{
    return local_is_local(rte, rank) ? rte->host : "?";
}

static void local_abort(struct st_rte *rte, int status, const char *reason)
{
    const struct rte_pmix_body *body = local_of(rte)->load(rte->context);
    if (body)
        body->abort(rte->context, status, reason);
}

static void local_free(struct local_job *j)
{
    st_rte_card_clear(&j->card);
    free(j->ranks);
    st_rte_free(&j->common);
}

static void local_close(struct st_rte *rte)
{
    struct local_job *j = local_of(rte);
    rte_pmix_meeting_leave(&j->meeting);
    local_free(j);
    pthread_mutex_lock(&local.lock);
    local.open--;
    pthread_mutex_unlock(&local.lock);
}

static const struct st_rte_ops local_ops = {
    .put = local_put,
    .commit = local_commit,
    .get = local_get,
    .fence = local_fence,
    .abort = local_abort,
    .is_local = local_is_local,
    .local_ranks = local_ranks,
    .host_of = local_host_of,
    .close = local_close,
};

/* A process that ends with a context that is not finalized has failed its peers, which may wait for it. */
static void local_at_exit(void)
{
    const struct rte_pmix_body *body = local.open > 0 && local.pid == getpid() && local.load ? local.load(NULL) : NULL;
    if (body)
        body->fail();
}

/* Numbers a context. False in a child that was forked from a rank. */
static bool local_count(const struct rte_pmix_body *(*load)(strata_t *s), unsigned *instance)
{
    pthread_mutex_lock(&local.lock);
    bool mine = !local.pid || local.pid == getpid();
    if (mine) {
        if (!local.pid)
            (void)atexit(local_at_exit);
        local.pid = getpid();
        local.load = load;
        *instance = local.made++;
        local.open++;
    }
    pthread_mutex_unlock(&local.lock);
    return mine;
}

static int local_prepare(struct local_job *j, const struct rte_pmix_job *job, unsigned instance)
{
    int n = snprintf(j->base, sizeof(j->base), "%s/strata.%s.%u", job->folder, job->name, instance);
    if (n < 0 || (size_t)n >= sizeof(j->base)) {
        errno = ENAMETOOLONG;
        return STRATA_ERR_SYSTEM;
    }
    snprintf(j->job_id, sizeof(j->job_id), "%.40s.%u", job->name, instance);
    j->ranks = malloc((size_t)job->size * sizeof(*j->ranks));
    if (!j->ranks)
        return STRATA_ERR_NOMEM;
    for (int r = 0; r < job->size; r++)
        j->ranks[r] = r;
    return rte_pmix_meeting_enter(&j->meeting, j->base, job->rank, job->size);
}

static void local_explain(const struct local_job *j, const struct st_component *c, const struct rte_pmix_job *job,
                          int rc)
{
    if (rc == STRATA_ERR_STATE)
        st_reject(j->common.head.context, c,
                  "rank %d is in job %s already: has a program of this rank left it? A rank joins its job once, by one "
                  "program",
                  job->rank, job->name);
    else if (rc == STRATA_ERR_SYSTEM)
        st_reject(j->common.head.context, c, "%s cannot be used: %s; rte_pmix_local=0 joins job %s by PMIx", j->base,
                  strerror(errno), job->name);
}

int rte_pmix_local_open(strata_t *s, const struct st_component *c, const struct rte_pmix_config *config,
                        const struct rte_pmix_job *job, const struct rte_pmix_body *(*load)(strata_t *s),
                        struct st_rte **out)
{
    struct local_job *j = st_rte_make(sizeof(*j), &local_ops, s);
    unsigned instance;
    if (!j)
        return STRATA_ERR_NOMEM;
    j->config = config;
    j->load = load;
    j->common.head.rank = job->rank;
    j->common.head.size = job->size;
    j->common.head.job_id = j->job_id;
    if (!local_count(load, &instance)) {
        st_reject(s, c, "this process was forked from rank %d of job %s, and is none itself", job->rank, job->name);
        local_free(j);
        return STRATA_ERR_SYSTEM;
    }
    int rc = local_prepare(j, job, instance);
    if (rc == STRATA_OK) {
        *out = &j->common.head;
        return rc;
    }
    local_explain(j, c, job, rc);
    pthread_mutex_lock(&local.lock);
    local.open--;
    pthread_mutex_unlock(&local.lock);
    local_free(j);
    return rc;
}
