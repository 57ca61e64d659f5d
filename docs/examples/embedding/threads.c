/* Embedding Strata in C: ranks are threads of this process, its own table is the launcher, requests lie inside its own
 * structs, and completion is a callback. Each rank sends numbers around a ring; docs/embedding.md explains it part by
 * part. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <strata/host.h>

enum { RANKS = 4, ROUNDS = 1000 };

/* ---- the table: what ranks publish, and where they meet ---- */

struct entry {
    struct entry *next;
    int rank;
    char key[64];
    size_t length;
    unsigned char blob[];
};

static struct table {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct entry *entries;
    bool up[RANKS]; /* strata_init of the rank has returned: it publishes nothing more */
    int arrived;
    unsigned generation; /* of fences */
    char job_id[32];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* A rank, which is the callbacks' `user`. */
struct rank {
    int rank;
    pthread_t thread;
    strata_host_t host;
    strata_t *strata;
    int status; /* 0: all went well */
};

static int table_put(void *user, const char *key, const void *blob, size_t length)
{
    struct entry *e = malloc(sizeof(*e) + length);

    if (!e)
        return STRATA_ERR_NOMEM;
    e->rank = ((struct rank *)user)->rank;
    e->length = length;
    snprintf(e->key, sizeof(e->key), "%s", key);
    memcpy(e->blob, blob, length);
    pthread_mutex_lock(&table.lock);
    e->next = table.entries;
    table.entries = e;
    pthread_cond_broadcast(&table.changed);
    pthread_mutex_unlock(&table.lock);
    return STRATA_OK;
}

/* Waits for the peer: "not found" would mean that it never publishes this. */
static int table_get(void *user, int rank, const char *key, void **blob, size_t *length)
{
    int rc = STRATA_ERR_NOT_FOUND;
    struct entry *e;

    (void)user;
    pthread_mutex_lock(&table.lock);
    for (;;) {
        for (e = table.entries; e && (e->rank != rank || strcmp(e->key, key) != 0); e = e->next)
            ;
        if (e || table.up[rank])
            break;
        pthread_cond_wait(&table.changed, &table.lock);
    }
    if (e && (*blob = malloc(e->length ? e->length : 1))) { /* Strata frees it */
        memcpy(*blob, e->blob, e->length);
        *length = e->length;
        rc = STRATA_OK;
    }
    pthread_mutex_unlock(&table.lock);
    return rc;
}

static int table_fence(void *user)
{
    (void)user;
    pthread_mutex_lock(&table.lock);
    unsigned generation = table.generation;
    if (++table.arrived == RANKS) {
        table.arrived = 0;
        table.generation++;
        pthread_cond_broadcast(&table.changed);
    }
    while (generation == table.generation)
        pthread_cond_wait(&table.changed, &table.lock);
    pthread_mutex_unlock(&table.lock);
    return STRATA_OK;
}

/* ---- an operation of ours, with Strata's request inside ---- */

struct op {
    struct ring *ring;
    long value;
    bool busy;
    void *request; /* behind this struct, in the same allocation, aligned */
};

/* A rank of the ring: receives a number from its left neighbour and sends the next one to its right, in callbacks. */
struct ring {
    struct rank *r;
    strata_comm_t *comm;
    struct op *in, *out;
    int received;
    long sum;
    int failed; /* first error */
};

static struct op *op_new(struct ring *ring)
{
    size_t align = strata_request_align(ring->r->strata);
    size_t head = (sizeof(struct op) + align - 1) / align * align;
    size_t size = (head + strata_request_size(ring->r->strata) + align - 1) / align * align;
    struct op *op = aligned_alloc(align, size);

    if (op)
        *op = (struct op){.ring = ring, .request = (char *)op + head};
    return op;
}

static void note(struct ring *ring, int rc)
{
    if (rc < 0 && ring->failed == STRATA_OK)
        ring->failed = rc;
}

/* The storage is ours again. */
static void sent(void *arg, strata_request_t *req, const strata_status_t *status)
{
    struct op *op = arg;

    (void)req;
    op->busy = false;
    note(op->ring, status->error);
}

static void send_value(struct ring *ring, long value)
{
    strata_data_t data = {.kind = STRATA_CONTIGUOUS, .length = sizeof(long)};
    int rc;

    ring->out->value = value;
    data.u.buffer = &ring->out->value;
    ring->out->busy = true;
    rc = strata_host_isend(ring->comm, &data, (ring->r->rank + 1) % RANKS, 1, STRATA_STANDARD, ring->out->request, sent,
                           ring->out);
    if (rc != STRATA_OK) /* 1: complete already, `sent` is not called */
        ring->out->busy = false;
    note(ring, rc);
}

static void receive_next(struct ring *ring);

/* Called by strata_progress, with no lock held: it may post again, in the same storage. */
static void received(void *arg, strata_request_t *req, const strata_status_t *status)
{
    struct op *op = arg;
    struct ring *ring = op->ring;

    (void)req;
    op->busy = false;
    note(ring, status->error);
    ring->sum += op->value;
    ring->received++;
    if (ring->received < ROUNDS && ring->failed == STRATA_OK)
        receive_next(ring);
}

static void receive_next(struct ring *ring)
{
    strata_data_t data = {.kind = STRATA_CONTIGUOUS, .length = sizeof(long)};
    int rc;

    data.u.buffer = &ring->in->value;
    ring->in->busy = true;
    rc = strata_host_irecv(ring->comm, &data, (ring->r->rank + RANKS - 1) % RANKS, 1, ring->in->request, received,
                           ring->in);
    if (rc != STRATA_OK)
        ring->in->busy = false;
    note(ring, rc);
}

static int ring_run(struct rank *r)
{
    struct ring ring = {.r = r, .comm = strata_world(r->strata)};
    unsigned empty = 0;
    int next = 0;

    ring.in = op_new(&ring);
    ring.out = op_new(&ring);
    if (ring.in && ring.out)
        receive_next(&ring);
    else
        ring.failed = STRATA_ERR_NOMEM;
    while (ring.failed == STRATA_OK && (ring.received < ROUNDS || next < ROUNDS || ring.out->busy)) {
        if (next < ROUNDS && !ring.out->busy)
            send_value(&ring, r->rank * ROUNDS + next++);
        /* The embedder's own loop: it would look at its other work here. */
        empty = strata_progress(r->strata) ? 0 : empty + 1;
        if (empty)
            strata_host_pause(r->strata, empty);
    }
    free(ring.in);
    free(ring.out);
    if (ring.failed != STRATA_OK)
        fprintf(stderr, "rank %d: %s\n", r->rank, strata_strerror(ring.failed));
    long left = (r->rank + RANKS - 1) % RANKS;
    return ring.failed == STRATA_OK && ring.sum == left * ROUNDS * ROUNDS + ROUNDS * (ROUNDS - 1) / 2 ? 0 : 1;
}

/* ---- ranks ---- */

static void *rank_main(void *arg)
{
    struct rank *r = arg;
    char why[512] = "";
    strata_config_t config = STRATA_CONFIG_INIT;

    r->host = (strata_host_t){.size = sizeof(r->host),
                              .user = r,
                              .rank = r->rank,
                              .n_ranks = RANKS,
                              .job_id = table.job_id,
                              .put = table_put,
                              .get = table_get,
                              .fence = table_fence};
    config.host = &r->host;
    config.error_text = why;
    config.error_text_size = sizeof(why);
    r->status = strata_init(&config, &r->strata);
    pthread_mutex_lock(&table.lock);
    table.up[r->rank] = true;
    pthread_cond_broadcast(&table.changed);
    pthread_mutex_unlock(&table.lock);
    if (r->status != STRATA_OK) {
        fprintf(stderr, "rank %d: %s\n", r->rank, why);
        exit(1); /* the others would wait for it */
    }
    r->status = ring_run(r);
    if (strata_finalize(r->strata) != STRATA_OK)
        r->status = 1;
    return NULL;
}

int main(void)
{
    struct rank ranks[RANKS];
    int status = 0;

    snprintf(table.job_id, sizeof(table.job_id), "threads-%d", (int)getpid());
    for (int i = 0; i < RANKS; i++) {
        ranks[i] = (struct rank){.rank = i};
        if (pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]) != 0)
            return 1;
    }
    for (int i = 0; i < RANKS; i++) {
        pthread_join(ranks[i].thread, NULL);
        status |= ranks[i].status;
    }
    for (struct entry *e = table.entries, *next; e; e = next) {
        next = e->next;
        free(e);
    }
    printf("%d ranks, %d numbers around the ring: %s\n", RANKS, ROUNDS, status ? "wrong" : "ok");
    return status != 0;
}
