/* The framework with sources of the test's own: the self-test misses what is not reported, the selection follows it,
 * and the monitor tells whom it should, no longer than it should. This program's own munmap, mmap and so on take the
 * place of the C library's, so that a source sees exactly what a test lets it see. */
#define _GNU_SOURCE
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/single_threaded.h>
#include <sys/wait.h>
#include <unistd.h>

#include "framework/base/context.h"
#include "framework/memory/memory_select.h"
#include "framework/memory/monitor.h"
#include "framework/rcache/rcache_select.h"
#include "support/fake_stack.h"
#include "support/form.h"
#include "support/heard_calls.h"
#include "support/world.h"
#include "support/let_run.h"
#include "support/run_suite.h"

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
enum { ALL = (1u << ST_MEMORY_EVENTS) - 1 };
#else /* nobody can see what a sanitizer's free does */
enum { ALL = ((1u << ST_MEMORY_EVENTS) - 1) & ~(1u << ST_MEMORY_MALLOC) };
#endif

/* ---- sources ----------------------------------------------------------------------------------------------------- */

static _Atomic(uint64_t) beat;
static int settled, starts;
static bool settle_well, vouching;

static bool settle(struct st_memory_source *source, uintptr_t from, uintptr_t to)
{
    (void)source, (void)from, (void)to;
    settled++;
    beat = 0;
    return settle_well;
}
static bool vouches(struct st_memory_source *source, enum st_memory_event e)
{
    (void)source;
    return vouching && e == ST_MEMORY_BRK;
}
static bool refuses(struct st_memory_source *source, uintptr_t from, uintptr_t to)
{
    (void)source, (void)from, (void)to;
    return false;
}

static struct st_memory_source hearing = {.name = "hearing", .pulse = &beat, .settle = settle, .vouches = vouches};

static int start_hearing(strata_t *s, const struct st_component *c, const void *config, const strata_host_t *host,
                         struct st_memory_source **out)
{
    (void)s, (void)c, (void)config, (void)host;
    starts++;
    ears.on = true;
    *out = &hearing;
    return STRATA_OK;
}
static const struct st_memory_component_ops hearing_ops = {.start = start_hearing};
static const struct st_component c_hearing = {ST_COMPONENT_HEAD("memory", "hearing", "1", "sees what the test lets it"),
                                              .ops_size = sizeof(hearing_ops), .priority = 5, .ops = &hearing_ops};

static struct st_memory_source deaf = {.name = "deaf", .pulse = &beat};

static int start_deaf(strata_t *s, const struct st_component *c, const void *config, const strata_host_t *host,
                      struct st_memory_source **out)
{
    (void)s, (void)c, (void)config, (void)host;
    starts++;
    *out = &deaf;
    return STRATA_OK;
}
static const struct st_memory_component_ops deaf_ops = {.start = start_deaf};
static const struct st_component c_deaf = {ST_COMPONENT_HEAD("memory", "deaf", "1", "reports nothing"),
                                           .ops_size = sizeof(deaf_ops), .priority = 9, .ops = &deaf_ops};

/* ---- a cache that keeps --------------------------------------------------------------------------------------------
 */

static struct {
    struct st_rcache cache;
    _Atomic(int) told;
    _Atomic(uintptr_t) from, to;
} keeper;

static void invalidate(struct st_rcache *cache, uintptr_t from, uintptr_t to)
{
    (void)cache;
    keeper.from = from;
    keeper.to = to;
    keeper.told++;
}
static void close_keeper(struct st_rcache *cache)
{
    cache->memory = NULL;
}
static struct st_rcache_ops keeper_ops;

/* The rest of its ops are fake_rcache's, which is taken for them from a cache of its own. */
static int open_keeper(strata_t *s, const struct st_component *c, const void *config, struct st_rcache **out)
{
    const struct st_rcache_component_ops *other = fake_rcache.ops;
    struct st_rcache *cache;
    int rc = other->open(s, c, config, &cache);
    if (rc != STRATA_OK)
        return rc;
    keeper_ops = *cache->ops;
    cache->ops->close(cache);
    keeper_ops.invalidate = invalidate;
    keeper_ops.close = close_keeper;
    keeper.cache = (struct st_rcache){.ops = &keeper_ops, .context = s, .page = 4096};
    *out = &keeper.cache;
    return STRATA_OK;
}
static const struct st_rcache_component_ops keeps_ops = {.open = open_keeper, .keeps = true};
static const struct st_component c_keeper = {ST_COMPONENT_HEAD("rcache", "keeper", "1", "keeps"),
                                             .ops_size = sizeof(keeps_ops), .priority = 95, .ops = &keeps_ops};

extern const struct st_component *const st_component_table[];
const struct st_component *const st_component_table[] = {&fake_rte,   &c_hearing, &c_deaf,   &c_keeper, &fake_rcache,
                                                         &fake_btl_a, &fake_bml,  &fake_pml, NULL};

static void setup(void)
{
    fake_reset(0, 2);
    ears.on = ears.late = hearing.before = hearing.tested = settle_well = vouching = false;
    ears.deaf = 0;
    ears.segment = 2 * (size_t)sysconf(_SC_PAGESIZE);
    hearing.cover = NULL;
    settled = starts = 0;
    keeper.told = 0;
}

/* ---- the self-test --------------------------------------------------------------------------------------------- */

START_TEST(every_deaf_spot_is_found)
{
    setup();
    ck_assert_uint_eq(st_memory_test(&hearing), ALL);
    ears.on = true;
    ck_assert_uint_eq(st_memory_test(&hearing), 0);
    for (unsigned e = 0; e < ST_MEMORY_EVENTS; e++) {
        ears.deaf = 1u << e;
        ck_assert_uint_eq(st_memory_test(&hearing), ALL & 1u << e);
    }
}
END_TEST

START_TEST(a_report_that_comes_late_is_none)
{
    setup();
    ears.on = true;
    hearing.before = true;
    ck_assert_uint_eq(st_memory_test(&hearing), 0);
    ears.late = true;
    /* Pages that were freed by advice keep what they hold until the kernel needs them. */
    ck_assert_uint_eq(st_memory_test(&hearing), ALL & ~(1u << ST_MEMORY_FREE));
    hearing.before = false; /* it promises no more than that */
    ck_assert_uint_eq(st_memory_test(&hearing), 0);
}
END_TEST

START_TEST(a_source_that_cannot_settle_fails)
{
    setup();
    ears.on = true;
    beat = 1;
    ck_assert_uint_ne(st_memory_test(&hearing), 0);
    beat = 1;
    settle_well = true;
    ck_assert_uint_eq(st_memory_test(&hearing), 0);
    ck_assert_int_ge(settled, 2);
}
END_TEST

/* Memory of System V and the heap may be refused, plain memory may not: nothing would be kept. */
START_TEST(memory_that_is_refused)
{
    setup();
    ears.on = true;
    hearing.cover = refuses;
    uint32_t missed = st_memory_test(&hearing);
    ck_assert(missed & (1u << ST_MEMORY_MUNMAP));
    ck_assert(!(missed & (1u << ST_MEMORY_SHMDT | 1u << ST_MEMORY_BRK)));
}
END_TEST

static void *nothing(void *arg)
{
    return arg;
}

START_TEST(the_heap_is_left_alone_beside_other_threads)
{
    pthread_t t;
    setup();
    ck_assert_int_eq(pthread_create(&t, NULL, nothing, NULL), 0);
    pthread_join(t, NULL);
    ck_assert(!__libc_single_threaded);
    uintptr_t end = (uintptr_t)syscall(SYS_brk, 0);
    ears.on = true;
    ck_assert_uint_eq(st_memory_test(&hearing), 1u << ST_MEMORY_BRK);
    vouching = true;
    ck_assert_uint_eq(st_memory_test(&hearing), 0);
    ck_assert_uint_eq((uintptr_t)syscall(SYS_brk, 0), end);
}
END_TEST

/* ---- selection -----------------------------------------------------------------------------------------------------
 */

static char said[4096];

static void take_line(void *user, int level, const char *text)
{
    size_t at = strlen(said);
    (void)user;
    snprintf(said + at, sizeof(said) - at, "%d %s\n", level, text);
}
static int host_put(void *user, const char *key, const void *blob, size_t length)
{
    (void)user, (void)key, (void)blob, (void)length;
    return STRATA_OK;
}
static int host_get(void *user, int rank, const char *key, void **blob, size_t *length)
{
    (void)user, (void)rank, (void)key, (void)blob, (void)length;
    return STRATA_ERR_NOT_FOUND;
}
static int host_fence(void *user)
{
    (void)user;
    return STRATA_OK;
}

static char why[1024];

static int start(const char *settings, strata_t **out)
{
    static strata_host_t host = {
        .size = sizeof(host), .n_ranks = 2, .put = host_put, .get = host_get, .fence = host_fence, .log = take_line};
    strata_config_t config = STRATA_CONFIG_INIT;
    config.host = &host;
    config.error_text = why;
    config.error_text_size = sizeof(why);
    said[0] = why[0] = '\0';
    return fake_init_config(&config, settings, out);
}

START_TEST(nothing_is_started_for_a_program_that_registers_nothing)
{
    strata_t *s;
    setup();
    CHECK_OK(start("mca_base_verbose=2", &s));
    ck_assert_int_eq(starts, 0);
    ck_assert_ptr_null(s->rcache);
    ck_assert(st_mca_waits(s->mca, "rcache") && st_mca_waits(s->mca, "memory"));
    CHECK_OK(strata_finalize(s));
    ck_assert_str_eq(said, "");
    CHECK_OK(start("memory_deaf_priority=9 rcache_keeper_priority=9", &s)); /* loaded, since they are named */
    ck_assert_int_eq(starts, 0);
    ck_assert_ptr_null(s->rcache);
    ck_assert_ptr_nonnull(strstr(st_mca_reject_reason(s->mca, &c_keeper), "registers memory"));
    ck_assert_ptr_nonnull(strstr(st_mca_reject_reason(s->mca, &c_deaf), "registers memory"));
    CHECK_OK(strata_finalize(s));
}
END_TEST

START_TEST(a_source_that_passes_makes_the_cache_keep)
{
    strata_t *s;
    setup();
    CHECK_OK(start("mca_base_verbose=1", &s));
    struct st_rcache *cache = st_rcache(s);
    ck_assert_ptr_eq(cache, &keeper.cache);
    ck_assert_ptr_eq(cache->memory, &hearing);
    ck_assert_int_eq(starts, 2); /* deaf ranks higher, and fails */
    ck_assert_ptr_nonnull(strstr(st_mca_reject_reason(s->mca, &c_deaf), "did not see: munmap, mremap that moves"));
    ck_assert_ptr_eq(st_rcache(s), cache);
    ck_assert_int_eq(starts, 2);
    void *at = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    keeper.told = 0;
    munmap(at, 8192);
    ck_assert_int_eq(keeper.told, 1);
    ck_assert_uint_eq(keeper.from, (uintptr_t)at);
    ck_assert_uint_eq(keeper.to, (uintptr_t)at + 8192);
    strata_host_memory_gone((void *)4096, SIZE_MAX);
    ck_assert_uint_eq(keeper.to, UINTPTR_MAX);
    CHECK_OK(strata_finalize(s));
    keeper.told = 0;
    st_memory_gone(4096, 8192);
    ck_assert_int_eq(keeper.told, 0);
    ck_assert_str_eq(said, ""); /* nobody asked for deaf */
}
END_TEST

START_TEST(without_a_source_nothing_is_kept_and_one_line_says_why)
{
    strata_t *s;
    setup();
    ears.deaf = 1u << ST_MEMORY_BRK;
    CHECK_OK(start("mca_base_verbose=2", &s));
    struct st_rcache *cache = st_rcache(s);
    ck_assert_ptr_nonnull(cache);
    ck_assert_ptr_ne(cache, &keeper.cache);
    ck_assert_ptr_null(s->memory);
    CHECK_OK(strata_finalize(s));
    ck_assert_msg(said[0] == '2' && strstr(said, "no registration is kept: deaf: its self-test did not see: munmap"),
                  "said: %s", said);
    ck_assert_ptr_nonnull(strstr(said, "hearing: its self-test did not see: a lowered brk"));
    ck_assert_ptr_eq(strchr(said, '\n') + 1, said + strlen(said));
}
END_TEST

START_TEST(one_that_is_named_must_work)
{
    strata_t *s = NULL;
    setup();
    ck_assert_int_ne(start("memory=deaf", &s), STRATA_OK);
    ck_assert_msg(strstr(why, "deaf: its self-test did not see: munmap") != NULL, "says: %s", why);
    ck_assert_int_eq(fake.open, 0);
    CHECK_OK(start("memory=hearing", &s)); /* before anybody needs it */
    ck_assert_ptr_eq(s->memory, &hearing);
    ck_assert_ptr_eq(s->rcache, &keeper.cache);
    CHECK_OK(strata_finalize(s));
    CHECK_OK(start("memory=^hearing,deaf", &s));
    ck_assert_ptr_nonnull(st_rcache(s));
    ck_assert_ptr_null(s->memory);
    CHECK_OK(strata_finalize(s));
}
END_TEST

/* ---- the monitor ----------------------------------------------------------------------------------------------------
 */

struct counting {
    struct st_memory_listener base;
    _Atomic(uint64_t) alive; /* 1 while it may be called */
    _Atomic(uint64_t) told;
};

static void count(struct st_memory_listener *l, uintptr_t from, uintptr_t to)
{
    struct counting *c = (struct counting *)l;
    (void)from, (void)to;
    CHECK(c->alive == 1);
    c->told++;
    CHECK(c->alive == 1);
}

static _Atomic(int) stop;

static void *keep_reporting(void *arg)
{
    uint64_t *n = arg;
    while (!stop) {
        st_memory_gone(4096, 8192);
        ++*n;
    }
    return NULL;
}

START_TEST(nobody_is_told_after_it_has_left)
{
    enum { THREADS = 4, SHORT = 500, FULL = 2000 };
    int n_listeners = (int)test_quick_form(SHORT, FULL);
    pthread_t t[THREADS];
    uint64_t n[THREADS] = {0}, told = 0;
    struct counting always = {.base = {.gone = count}, .alive = 1};
    test_form_print(0, (unsigned long)n_listeners, FULL, "listeners that come and go");
    setup();
    CHECK_OK(st_memory_subscribe(&always.base));
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, keep_reporting, &n[i]), 0);
    for (int i = 0; i < n_listeners || told == 0; i++) {
        struct counting c = {.base = {.gone = count}, .alive = 1};
        CHECK_OK(st_memory_subscribe(&c.base));
        if (i % 64 == 0)
            let_run();
        st_memory_unsubscribe(&c.base);
        c.alive = 0;
        told += c.told;
    }
    stop = 1;
    uint64_t sum = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
        sum += n[i];
    }
    st_memory_unsubscribe(&always.base);
    ck_assert_uint_eq(always.told, sum); /* no report is lost while others come and go */
}
END_TEST

START_TEST(there_may_be_too_many)
{
    static struct counting c[1025];
    setup();
    for (int i = 0; i < 1024; i++) {
        c[i] = (struct counting){.base = {.gone = count}, .alive = 1};
        CHECK_OK(st_memory_subscribe(&c[i].base));
    }
    c[1024].base.gone = count;
    ck_assert_int_eq(st_memory_subscribe(&c[1024].base), STRATA_ERR_NOMEM);
    st_memory_gone(1, 2);
    for (int i = 0; i < 1024; i++) {
        ck_assert_uint_eq(c[i].told, 1);
        st_memory_unsubscribe(&c[i].base);
    }
}
END_TEST

/* ---- fork
 * ------------------------------------------------------------------------------------------------------------- */

struct stuck {
    struct st_memory_listener base;
    _Atomic(int) inside, leave;
    _Atomic(uintptr_t) from, to;
};

static void get_stuck(struct st_memory_listener *l, uintptr_t from, uintptr_t to)
{
    struct stuck *s = (struct stuck *)l;
    if (from == 1 && to == 2) {
        s->inside = 1;
        while (!s->leave)
            usleep(100);
        return;
    }
    s->from = from;
    s->to = to;
}

static void *report_one(void *arg)
{
    st_memory_gone(1, 2);
    return arg;
}

START_TEST(a_fork_voids_what_is_kept_and_the_child_can_go_on)
{
    struct stuck s = {.base = {.gone = get_stuck}};
    pthread_t t;
    int status;
    setup();
    CHECK_OK(st_memory_subscribe(&s.base));
    ck_assert_int_eq(pthread_create(&t, NULL, report_one, NULL), 0);
    while (!s.inside)
        usleep(100);
    s.from = 1;
    pid_t child = fork();
    if (child == 0) {
        alarm(240);
        st_memory_unsubscribe(&s.base); /* does not wait for a thread that is not there */
        _exit(s.from == 0 && s.to == UINTPTR_MAX ? 0 : 1);
    }
    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(s.from, 0);
    ck_assert_uint_eq(s.to, UINTPTR_MAX);
    s.leave = 1;
    pthread_join(t, NULL);
    st_memory_unsubscribe(&s.base);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("memory");
    TCase *t = tcase_create("all");
    if (!test_sanitized()) { /* which has a thread of its own: the heap would not be tried */
        tcase_add_test(t, every_deaf_spot_is_found);
        tcase_add_test(t, a_report_that_comes_late_is_none);
        tcase_add_test(t, a_source_that_cannot_settle_fails);
        tcase_add_test(t, memory_that_is_refused);
        tcase_add_test(t, the_heap_is_left_alone_beside_other_threads);
        tcase_add_test(t, a_source_that_passes_makes_the_cache_keep);
        tcase_add_test(t, without_a_source_nothing_is_kept_and_one_line_says_why);
        tcase_add_test(t, one_that_is_named_must_work);
    }
    tcase_add_test(t, nothing_is_started_for_a_program_that_registers_nothing);
    tcase_add_test(t, nobody_is_told_after_it_has_left);
    tcase_add_test(t, there_may_be_too_many);
    tcase_add_test(t, a_fork_voids_what_is_kept_and_the_child_can_go_on);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
