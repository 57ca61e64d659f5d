/* Ranks as threads: see world.h. */
#include "support/world.h"
#include "support/let_run.h"
#include "support/watchdog.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include <strata/sdk/rte.h>

struct entry {
    struct entry *next;
    int rank;
    size_t length;
    char key[64];
    unsigned char blob[];
};

#define MAX_SETTINGS 32

struct tw_world {
    struct tw_options o;
    int present;
    char job_id[48];
    char *text; /* the settings, cut up */
    strata_setting_t settings[MAX_SETTINGS];
    size_t n_settings;
    strata_host_t *hosts; /* present */
    struct slot {
        struct tw_world *world;
        int rank;
        int *local; /* ranks of its machine */
        int n_local;
        int *told; /* present: how often it was told that each has failed */
    } * slots;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct entry *entries;
    bool *up; /* strata_init of the rank has returned: what it did not publish it will not publish */
    int arrived;
    unsigned generation;
    atomic_int logs[4];  /* by level */
    atomic_int meeting;  /* of tw_quiesce */
    atomic_uint meet_no; /* its generation */
};

static int host_put(void *user, const char *key, const void *blob, size_t length)
{
    struct slot *slot = user;
    struct tw_world *w = slot->world;
    if (strlen(key) >= sizeof((struct entry *)0)->key)
        return STRATA_ERR_ARG;
    struct entry *e = malloc(sizeof *e + length);
    if (!e)
        return STRATA_ERR_NOMEM;
    e->rank = slot->rank;
    e->length = length;
    strcpy(e->key, key);
    memcpy(e->blob, blob, length);
    pthread_mutex_lock(&w->lock);
    e->next = w->entries;
    w->entries = e;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return STRATA_OK;
}

static struct entry *find(struct tw_world *w, int rank, const char *key)
{
    for (struct entry *e = w->entries; e; e = e->next)
        if (e->rank == rank && !strcmp(e->key, key))
            return e;
    return NULL;
}

static int host_get(void *user, int rank, const char *key, void **blob, size_t *length)
{
    struct tw_world *w = ((struct slot *)user)->world;
    int rc = STRATA_ERR_NOT_FOUND;
    if (rank < 0 || rank >= w->present)
        return rc;
    pthread_mutex_lock(&w->lock);
    struct entry *e;
    while (!(e = find(w, rank, key)) && !w->up[rank])
        pthread_cond_wait(&w->changed, &w->lock);
    if (e) {
        void *copy = malloc(e->length ? e->length : 1);
        rc = copy ? STRATA_OK : STRATA_ERR_NOMEM;
        if (copy) {
            memcpy(copy, e->blob, e->length);
            *blob = copy;
            *length = e->length;
        }
    }
    pthread_mutex_unlock(&w->lock);
    return rc;
}

static void barrier(struct tw_world *w)
{
    pthread_mutex_lock(&w->lock);
    unsigned g = w->generation;
    if (++w->arrived == w->present) {
        w->arrived = 0;
        w->generation++;
        pthread_cond_broadcast(&w->changed);
    }
    while (g == w->generation)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

static int host_fence(void *user)
{
    barrier(((struct slot *)user)->world);
    return STRATA_OK;
}

static int host_is_local(void *user, int rank)
{
    struct slot *slot = user;
    int per = slot->world->o.ranks_per_host;
    return per == 0 || rank / per == slot->rank / per;
}

/* This machine's ranks, which are consecutive. */
static const int *host_local_ranks(void *user, int *n)
{
    struct slot *slot = user;
    *n = slot->n_local;
    return slot->local;
}

static void host_log(void *user, int level, const char *text)
{
    struct slot *slot = user;
    atomic_fetch_add(&slot->world->logs[level < 0 ? 0 : level > 3 ? 3 : level], 1);
    if (!slot->world->o.quiet)
        fprintf(stderr, "[%d] %s%s", slot->rank, text, *text && text[strlen(text) - 1] == '\n' ? "" : "\n");
}

static void host_abort(void *user, int status, const char *reason)
{
    test_fail("rank", ((struct slot *)user)->rank, "aborts with %d: %s", status, reason ? reason : "");
}

static void host_peer_failed(void *user, int rank, int rc, const char *reason)
{
    struct slot *slot = user;
    struct tw_world *w = slot->world;
    if (!w->o.quiet)
        fprintf(stderr, "[%d] peer %d failed: %s (%s)\n", slot->rank, rank, strata_strerror(rc), reason ? reason : "");
    pthread_mutex_lock(&w->lock);
    if (rank >= 0 && rank < w->present)
        slot->told[rank]++;
    pthread_mutex_unlock(&w->lock);
}

static void cut_settings(struct tw_world *w)
{
    char *save = NULL;
    w->text = strdup(w->o.settings ? w->o.settings : "");
    CHECK(w->text);
    for (char *t = strtok_r(w->text, " ", &save); t; t = strtok_r(NULL, " ", &save)) {
        char *eq = strchr(t, '=');
        CHECK_MSG(eq && w->n_settings < MAX_SETTINGS, "bad setting '%s'", t);
        *eq = 0;
        w->settings[w->n_settings++] = (strata_setting_t){.name = t, .value = eq + 1};
    }
}

static void place(struct tw_world *w, int rank)
{
    struct slot *slot = &w->slots[rank];
    int per = w->o.ranks_per_host ? w->o.ranks_per_host : w->o.n, first = rank / per * per;
    *slot = (struct slot){.world = w, .rank = rank};
    slot->n_local = first + per <= w->o.n ? per : w->o.n - first;
    slot->local = calloc((size_t)slot->n_local, sizeof *slot->local);
    slot->told = calloc((size_t)w->present, sizeof *slot->told);
    CHECK(slot->local && slot->told);
    for (int i = 0; i < slot->n_local; i++)
        slot->local[i] = first + i;
}

struct tw_world *tw_create(const struct tw_options *o)
{
    static atomic_uint serial; /* job ids must differ between worlds of one process */
    struct tw_world *w = calloc(1, sizeof *w);
    CHECK(w && o->n > 0 && o->present <= o->n);
    w->o = *o;
    w->present = o->present ? o->present : o->n;
    snprintf(w->job_id, sizeof w->job_id, "threads-%d-%u", (int)getpid(), atomic_fetch_add(&serial, 1));
    cut_settings(w);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    size_t n = (size_t)w->present;
    w->hosts = calloc(n, sizeof *w->hosts);
    w->slots = calloc(n, sizeof *w->slots);
    w->up = calloc(n, sizeof *w->up);
    CHECK(w->hosts && w->slots && w->up);
    for (int i = 0; i < w->present; i++) {
        place(w, i);
        w->hosts[i] = (strata_host_t){
            .size = sizeof(strata_host_t),
            .user = &w->slots[i],
            .rank = i,
            .n_ranks = o->n,
            .job_id = w->job_id,
            .host_name = "threads",
            .put = host_put,
            .get = host_get,
            .fence = host_fence,
            .is_local = host_is_local,
            .local_ranks = host_local_ranks,
            .abort = host_abort,
            .log = host_log,
            .peer_failed = host_peer_failed,
        };
    }
    return w;
}

void tw_destroy(struct tw_world *w)
{
    for (struct entry *e = w->entries, *next; e; e = next) {
        next = e->next;
        free(e);
    }
    for (int i = 0; i < w->present; i++) {
        free(w->slots[i].local);
        free(w->slots[i].told);
    }
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->changed);
    free(w->hosts);
    free(w->slots);
    free(w->up);
    free(w->text);
    free(w);
}

const strata_host_t *tw_host(struct tw_world *w, int rank)
{
    return &w->hosts[rank];
}

int tw_log_count(const struct tw_world *w, int max_level)
{
    int n = 0;
    for (int i = 0; i <= max_level && i < 4; i++)
        n += atomic_load(&w->logs[i]);
    return n;
}

int tw_failures(const struct tw_world *w, int rank)
{
    struct tw_world *m = (struct tw_world *)(uintptr_t)w;
    pthread_mutex_lock(&m->lock);
    int n = 0;
    for (int i = 0; i < m->present; i++)
        n += m->slots[i].told[rank];
    pthread_mutex_unlock(&m->lock);
    return n;
}

bool tw_was_told(const struct tw_rank *r, int rank)
{
    pthread_mutex_lock(&r->world->lock);
    bool told = r->world->slots[r->rank].told[rank] > 0;
    pthread_mutex_unlock(&r->world->lock);
    return told;
}

int tw_init(struct tw_world *w, int rank, strata_t **out, char *err, size_t err_size)
{
    strata_config_t c = STRATA_CONFIG_INIT;
    c.thread_level = w->o.level;
    c.settings = w->settings;
    c.n_settings = w->n_settings;
    c.host = &w->hosts[rank];
    c.error_text = err;
    c.error_text_size = err_size;
    int rc = strata_init(&c, out);
    pthread_mutex_lock(&w->lock);
    w->up[rank] = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return rc;
}

void tw_barrier(struct tw_rank *r)
{
    if (r->world)
        barrier(r->world);
    else
        CHECK_OK(st_rte(r->s)->ops->fence(st_rte(r->s)));
}

static int poll_context(void *arg)
{
    return strata_progress(arg);
}

void tw_quiesce(struct tw_rank *r)
{
    tw_quiesce_with(r, poll_context, r->s);
}

static void fence_ends(void *arg, int rc)
{
    CHECK_OK(rc);
    atomic_store((atomic_int *)arg, 1);
}

/* By the launcher, whose answer comes on a thread of its own. */
static void processes_meet(struct tw_rank *r, int (*poll)(void *arg), void *arg)
{
    atomic_int done = 0;
    CHECK(st_rte(r->s)->ops->fence_begin);
    CHECK_OK(st_rte(r->s)->ops->fence_begin(st_rte(r->s), fence_ends, &done));
    while (!atomic_load(&done))
        if (poll(arg) == 0)
            let_run();
}

void tw_quiesce_with(struct tw_rank *r, int (*poll)(void *arg), void *arg)
{
    struct tw_world *w = r->world;
    if (!w) {
        processes_meet(r, poll, arg);
        return;
    }
    unsigned g = atomic_load(&w->meet_no);
    if (atomic_fetch_add(&w->meeting, 1) + 1 == w->present) {
        atomic_store(&w->meeting, 0);
        atomic_fetch_add(&w->meet_no, 1);
    }
    while (atomic_load(&w->meet_no) == g)
        if (poll(arg) == 0)
            let_run();
}

struct thread {
    struct tw_rank r;
    tw_body_fn body;
    pthread_t id;
};

static void *rank_main(void *arg)
{
    struct thread *t = arg;
    char err[1024] = "";
    watchdog_name_thread(t->r.rank);
    int rc = tw_init(t->r.world, t->r.rank, &t->r.s, err, sizeof err);
    CHECK_MSG(rc == STRATA_OK, "rank %d: strata_init: %s: %s", t->r.rank, strata_strerror(rc), err);
    t->r.comm = strata_world(t->r.s);
    t->r.n = strata_size(t->r.s);
    CHECK_EQ(strata_rank(t->r.s), t->r.rank);
    t->body(&t->r);
    if (!t->r.world->o.no_finalize)
        CHECK_OK(strata_finalize(t->r.s));
    return NULL;
}

void tw_run(const struct tw_options *o, tw_body_fn body, void *arg)
{
    struct tw_world *w = tw_create(o);
    struct thread *threads = calloc((size_t)w->present, sizeof *threads);
    pthread_attr_t attr;
    CHECK(threads);
    pthread_attr_init(&attr);
    if (o->stack_bytes)
        pthread_attr_setstacksize(&attr, o->stack_bytes);
    struct watchdog *dog = watchdog_start(test_timeout(o->timeout_s), w->present);
    for (int i = 0; i < w->present; i++) {
        threads[i].r = (struct tw_rank){.world = w, .rank = i, .n = o->n, .arg = arg};
        threads[i].body = body;
        CHECK_EQ(pthread_create(&threads[i].id, &attr, rank_main, &threads[i]), 0);
    }
    for (int i = 0; i < w->present; i++)
        pthread_join(threads[i].id, NULL);
    watchdog_stop(dog);
    pthread_attr_destroy(&attr);
    free(threads);
    tw_destroy(w);
}
