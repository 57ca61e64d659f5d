/* Fake components; see fake_stack.h. */
#include "support/fake_stack.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "support/world.h"

struct fake_stack fake;

void fake_reset(int rank, int size)
{
    fake = (struct fake_stack){.rank = rank, .size = size, .failed_rank = -1};
}

void fake_note(const char *word)
{
    size_t n = strlen(fake.trace);
    snprintf(fake.trace + n, sizeof(fake.trace) - n, "%s%s", n ? " " : "", word);
}

int fake_opens(strata_t *s, const struct st_component *c, enum fake_stage stage)
{
    if (fake.fail & (1u << stage)) {
        st_reject(s, c, "told to fail");
        return STRATA_ERR_UNSUPPORTED;
    }
    char word[32];
    snprintf(word, sizeof(word), "%s+", c->name);
    fake_note(word);
    fake.open++;
    return STRATA_OK;
}

void fake_closes(const char *word)
{
    fake_note(word);
    fake.open--;
}

/* ---- rte ------------------------------------------------------------------------------------------------- */

static int rte_put(struct st_rte *r, const char *key, const void *blob, size_t length)
{
    (void)r, (void)key, (void)blob, (void)length;
    return STRATA_OK;
}
static int rte_get(struct st_rte *r, int rank, const char *key, void **blob, size_t *length)
{
    (void)r, (void)rank, (void)key, (void)blob, (void)length;
    return STRATA_ERR_NOT_FOUND;
}
static int rte_commit(struct st_rte *r)
{
    (void)r;
    fake_note("commit");
    return fake.fail & (1u << FAKE_COMMIT) ? STRATA_ERR_SYSTEM : STRATA_OK;
}
/* Not in `fake`, which the next test makes anew while a thread may still be about to end. */
static atomic_int fences_under_way;

static int fence_ends(void)
{
    while (__atomic_load_n(&fake.progressed, __ATOMIC_ACQUIRE) < __atomic_load_n(&fake.fence_polls, __ATOMIC_ACQUIRE))
        ;
    return STRATA_OK;
}
static int rte_fence(struct st_rte *r)
{
    (void)r;
    fake_note("fence");
    return fence_ends();
}
struct fence_call {
    void (*done)(void *arg, int rc);
    void *arg;
};
static void *fence_thread(void *arg)
{
    struct fence_call call = *(struct fence_call *)arg;
    free(arg);
    call.done(call.arg, fence_ends());
    atomic_fetch_sub(&fences_under_way, 1);
    return NULL;
}
static int rte_fence_begin(struct st_rte *r, void (*done)(void *arg, int rc), void *arg)
{
    (void)r;
    struct fence_call *call = malloc(sizeof(*call));
    pthread_t t;
    fake_note("fence"); /* by the caller: the thread may outlive the context */
    *call = (struct fence_call){done, arg};
    atomic_fetch_add(&fences_under_way, 1);
    if (pthread_create(&t, NULL, fence_thread, call) != 0)
        return STRATA_ERR_SYSTEM;
    pthread_detach(t);
    return STRATA_OK;
}
bool fake_fences_over(void)
{
    return atomic_load(&fences_under_way) == 0;
}
static void rte_abort(struct st_rte *r, int status, const char *reason)
{
    (void)r;
    char word[64];
    snprintf(word, sizeof(word), "abort:%d:%s", status, reason);
    fake_note(word);
}
static bool rte_is_local(struct st_rte *r, int rank)
{
    (void)r, (void)rank;
    return true;
}
static const int *rte_local_ranks(struct st_rte *r, int *n)
{
    *n = 1;
    return &r->rank;
}
static const char *rte_host_of(struct st_rte *r, int rank)
{
    (void)r, (void)rank;
    return "fakehost";
}
static void rte_watch(struct st_rte *r, void (*fn)(void *arg, int rank, const char *reason), void *arg)
{
    (void)r;
    fake.watch = fn;
    fake.watch_arg = arg;
}
static void rte_close(struct st_rte *r)
{
    fake_closes("rte-");
    free(r);
}

static const struct st_rte_ops rte_ops = {.put = rte_put,
                                          .commit = rte_commit,
                                          .get = rte_get,
                                          .fence = rte_fence,
                                          .fence_begin = rte_fence_begin,
                                          .abort = rte_abort,
                                          .is_local = rte_is_local,
                                          .local_ranks = rte_local_ranks,
                                          .host_of = rte_host_of,
                                          .watch = rte_watch,
                                          .close = rte_close};
static const struct st_rte_ops rte_ops_blocking = {.put = rte_put,
                                                   .get = rte_get,
                                                   .fence = rte_fence,
                                                   .abort = rte_abort,
                                                   .is_local = rte_is_local,
                                                   .local_ranks = rte_local_ranks,
                                                   .host_of = rte_host_of,
                                                   .close = rte_close};

static int rte_make(strata_t *s, const struct st_component *c, enum fake_stage stage, struct st_rte **out)
{
    int rc = fake_opens(s, c, stage);
    if (rc != STRATA_OK)
        return rc;
    struct st_rte *r = calloc(1, sizeof(*r));
    *r = (struct st_rte){.ops = fake.fence_blocking ? &rte_ops_blocking : &rte_ops,
                         .context = s,
                         .rank = fake.rank,
                         .size = fake.size,
                         .job_id = "fake",
                         .host = "fakehost"};
    *out = r;
    return STRATA_OK;
}
static int rte_open(strata_t *s, const struct st_component *c, const void *config, const strata_host_t *host,
                    struct st_rte **out)
{
    (void)config, (void)host;
    return rte_make(s, c, FAKE_RTE, out);
}
static int rte_open_low(strata_t *s, const struct st_component *c, const void *config, const strata_host_t *host,
                        struct st_rte **out)
{
    (void)config, (void)host;
    return rte_make(s, c, FAKE_RTE_LOW, out);
}

static const struct st_rte_component_ops rte_component = {rte_open}, rte_component_low = {rte_open_low};
const struct st_component fake_rte = {ST_COMPONENT_HEAD("rte", "frte", "1", "fake"), .ops_size = sizeof(rte_component),
                                      .priority = 90, .ops = &rte_component};
const struct st_component fake_rte_low = {ST_COMPONENT_HEAD("rte", "frtelow", "1", "fake"),
                                          .ops_size = sizeof(rte_component_low), .priority = 80,
                                          .ops = &rte_component_low};

/* ---- btl ------------------------------------------------------------------------------------------------- */

static int btl_reach(struct st_btl *b, int rank)
{
    (void)b, (void)rank;
    return STRATA_OK;
}
static int btl_connect(struct st_btl *b, int rank, struct st_btl_endpoint **out)
{
    *out = calloc(1, sizeof(**out));
    **out = (struct st_btl_endpoint){b, rank, b->caps};
    return STRATA_OK;
}
static void btl_disconnect(struct st_btl_endpoint *ep)
{
    free(ep);
}
static int btl_send(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                    uint32_t len)
{
    int module = ep->btl == fake.btl[1];
    if (fake.send_rc[module] != STRATA_OK)
        return fake.send_rc[module];
    ep->btl->messages_sent++;
    ep->btl->bytes_sent += len;
    fake.last_sent = (struct fake_sent){.am = am, .module = module, .hdr_len = hdr_len, .len = len};
    memcpy(fake.last_sent.hdr, hdr, hdr_len);
    memcpy(fake.last_sent.data, data ? data : "",
           len < sizeof(fake.last_sent.data) ? len : sizeof(fake.last_sent.data));
    return STRATA_OK;
}
static char *btl_describe(struct st_btl *b, struct st_btl_endpoint *ep)
{
    (void)b;
    return strdup(ep ? "{\"device\": \"fakedev\", \"single_copy\": \"none\"}" : "{\"rings\": 3}");
}
static void btl_mem_report(struct st_btl *b, st_mem_line_fn line, void *arg)
{
    (void)b;
    line(arg, &(strata_mem_line_t){.component = "btl_fbtla", .category = "eager rings", .bytes = 4096});
}
static void btl_close(struct st_btl *b)
{
    fake_closes("btl-");
    free(b);
}

static const struct st_btl_ops btl_ops_a = {.reach = btl_reach,
                                            .connect = btl_connect,
                                            .disconnect = btl_disconnect,
                                            .send = btl_send,
                                            .describe = btl_describe,
                                            .mem_report = btl_mem_report,
                                            .close = btl_close};
static const struct st_btl_ops btl_ops_b = {
    .reach = btl_reach, .connect = btl_connect, .disconnect = btl_disconnect, .send = btl_send, .close = btl_close};

static int btl_make(strata_t *s, const struct st_component *c, enum fake_stage stage, const struct st_btl_ops *ops,
                    struct st_btl ***mods, size_t *n)
{
    int rc = fake_opens(s, c, stage);
    if (rc != STRATA_OK)
        return rc;
    struct st_btl *b = calloc(1, sizeof(*b));
    *b = (struct st_btl){.ops = ops,
                         .context = s,
                         .caps = ST_BTL_ORDERED,
                         .eager_limit = 1024,
                         .max_send = 4096,
                         .pipeline_send = 4096,
                         .facts = {.latency_ns = 100, .bandwidth_mbs = 1000, .ask_cost = 4096}};
    fake.btl[stage == FAKE_BTL_B] = b;
    *mods = malloc(sizeof(**mods));
    **mods = b;
    *n = 1;
    return STRATA_OK;
}
static int btl_open_a(strata_t *s, const struct st_component *c, const void *config, struct st_btl ***mods, size_t *n)
{
    (void)config;
    return btl_make(s, c, FAKE_BTL_A, fake.break_btl ? fake.break_btl : &btl_ops_a, mods, n);
}
static int btl_open_b(strata_t *s, const struct st_component *c, const void *config, struct st_btl ***mods, size_t *n)
{
    (void)config;
    return btl_make(s, c, FAKE_BTL_B, &btl_ops_b, mods, n);
}

static const struct st_btl_component_ops btl_component_a = {.open = btl_open_a}, btl_component_b = {.open = btl_open_b};
const struct st_component fake_btl_a = {ST_COMPONENT_HEAD("btl", "fbtla", "1", "fake"),
                                        .ops_size = sizeof(btl_component_a), .priority = 50, .ops = &btl_component_a};
const struct st_component fake_btl_b = {ST_COMPONENT_HEAD("btl", "fbtlb", "1", "fake"),
                                        .ops_size = sizeof(btl_component_b), .priority = 40, .ops = &btl_component_b};

/* ---- bml: connects one path by the first module, or one by each
 * -------------------------------------------------------------- */

struct fbml {
    struct st_bml base;
    struct st_bml_peer *peers[64];
};

static int bml_peer(struct st_bml *m, int rank, struct st_bml_peer **out)
{
    struct st_bml_peer **p = &((struct fbml *)m)->peers[rank];
    if (!*p) {
        uint16_t n = fake.n_paths == 2 ? 2 : 1;
        *p = calloc(1, sizeof(**p) + n * sizeof(struct st_bml_path));
        (*p)->rank = rank;
        (*p)->n_paths = n;
        for (uint16_t i = 0; i < n; i++) {
            (*p)->paths[i].weight = 1.0f / (float)n;
            m->btls[i]->ops->connect(m->btls[i], rank, &(*p)->paths[i].ep);
        }
    }
    *out = *p;
    return STRATA_OK;
}
static struct st_bml_peer *bml_lookup(struct st_bml *m, int rank)
{
    return ((struct fbml *)m)->peers[rank];
}
static int bml_next(struct st_bml *m, int from)
{
    while (from < 64 && !((struct fbml *)m)->peers[from])
        from++;
    return from < 64 ? from : -1;
}
static int bml_path_failed(struct st_bml *m, struct st_bml_peer *peer, struct st_btl_endpoint *ep)
{
    (void)m, (void)peer, (void)ep;
    return STRATA_ERR_PEER;
}
static int bml_path_retry(struct st_bml *m, struct st_bml_peer *peer, uint32_t i)
{
    (void)m, (void)peer, (void)i;
    return fake.n_paths == 2 ? STRATA_OK : STRATA_ERR_UNREACHABLE;
}
static void bml_path_works(struct st_bml *m, struct st_bml_peer *peer, uint32_t i)
{
    (void)m, (void)peer, (void)i;
}
static void bml_close(struct st_bml *m)
{
    struct fbml *f = (struct fbml *)m;
    for (int i = 0; i < 64; i++) {
        for (int k = 0; f->peers[i] && k < f->peers[i]->n_paths; k++)
            m->btls[k]->ops->disconnect(f->peers[i]->paths[k].ep);
        free(f->peers[i]);
    }
    fake_closes("bml-");
    free(f);
}
static const struct st_bml_ops bml_ops = {.peer = bml_peer,
                                          .lookup = bml_lookup,
                                          .next = bml_next,
                                          .path_failed = bml_path_failed,
                                          .path_retry = bml_path_retry,
                                          .path_works = bml_path_works,
                                          .close = bml_close};
static int bml_open(strata_t *s, const struct st_component *c, const void *config, struct st_btl **btls, size_t n_btls,
                    struct st_bml **out)
{
    (void)config;
    int rc = fake_opens(s, c, FAKE_BML);
    if (rc != STRATA_OK)
        return rc;
    struct fbml *f = calloc(1, sizeof(*f));
    f->base = (struct st_bml){&bml_ops, s, btls, n_btls};
    *out = &f->base;
    return STRATA_OK;
}
static const struct st_bml_component_ops bml_component = {bml_open};
const struct st_component fake_bml = {ST_COMPONENT_HEAD("bml", "fbml", "1", "fake"), .ops_size = sizeof(bml_component),
                                      .priority = 90, .ops = &bml_component};

/* ---- set-up ----------------------------------------------------------------------------------------------- */

int fake_init_config(strata_config_t *config, const char *settings, strata_t **out)
{
    /* No plugin is looked for: only the linked-in fakes exist. */
    strata_setting_t set[16] = {{"mca_component_path", "/nonexistent"}, {"mca_param_files", "none"}};
    size_t n = 2;
    char *copy = strdup(settings ? settings : ""), *save = NULL;
    for (char *w = strtok_r(copy, " ", &save); w && n < 16; w = strtok_r(NULL, " ", &save)) {
        char *eq = strchr(w, '=');
        *eq = '\0';
        set[n++] = (strata_setting_t){w, eq + 1};
    }
    config->settings = set;
    config->n_settings = n;
    int rc = strata_init(config, out);
    config->settings = NULL;
    config->n_settings = 0;
    free(copy);
    return rc;
}

int fake_init(const char *settings, strata_t **out, char *err, size_t err_size)
{
    strata_config_t config = STRATA_CONFIG_INIT;
    config.error_text = err;
    config.error_text_size = err_size;
    return fake_init_config(&config, settings, out);
}

strata_t *fake_start(void)
{
    strata_t *s = NULL;
    char err[512];
    fake_reset(1, 4);
    CHECK_MSG(fake_init(NULL, &s, err, sizeof(err)) == STRATA_OK, "%s", err);
    return s;
}

void fake_end(strata_t *s)
{
    CHECK_OK(strata_finalize(s));
    CHECK_EQ(fake.open, 0);
}
