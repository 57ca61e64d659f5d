/* A job whose ranks are threads of one process: each has its own strata_t, joined through the embedder callbacks of
 * <strata/host.h> by a table in memory. So the same tests run under the address, undefined behaviour and thread
 * sanitizers, without a launcher.
 *
 *     static void body(struct tw_rank *r) { CHECK(strata_send(r->comm, ...) == STRATA_OK); }
 *     tw_run(&(struct tw_options){.n = 2, .settings = "btl=sm,self btl_sm_eager_limit=1k"}, body, arg);
 *
 * tw_run returns when all ranks have run `body` and finalized. A failed CHECK, or a rank that has not come back within
 * the timeout, prints what is known (for a timeout: the stack of every rank) and ends the process with status 1; Check
 * runs each test in a process of its own, so the other tests still run. */
#ifndef TEST_SUPPORT_WORLD_H
#define TEST_SUPPORT_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/host.h>

struct tw_world;

struct tw_options {
    int n;                /* ranks of the job */
    int present;          /* ranks 0..present-1 exist as threads; 0: all n. Fences count only these */
    const char *settings; /* "name=value name=value": parameters set through the API; may be NULL */
    strata_thread_level_t level;
    int timeout_s;      /* of the watchdog, see test_timeout; 0: five minutes */
    bool no_finalize;   /* body finalizes r->s itself (or leaves it) */
    size_t stack_bytes; /* of a rank's thread; 0: the system's default */
    int ranks_per_host; /* 0: all on one host; else is_local groups ranks by this number */
    bool quiet;         /* drop log lines (they are still counted) */
};

struct tw_rank {
    struct tw_world *world; /* NULL: of a job whose ranks are processes */
    strata_t *s;
    strata_comm_t *comm; /* the world's */
    int rank, n;
    void *arg;
};

typedef void (*tw_body_fn)(struct tw_rank *r);

void tw_run(const struct tw_options *o, tw_body_fn body, void *arg);

/* All present ranks meet: a barrier outside Strata (it makes no progress). */
void tw_barrier(struct tw_rank *r);
/* All present ranks meet, calling strata_progress meanwhile, so that peers' messages are served. */
void tw_quiesce(struct tw_rank *r);
void tw_quiesce_with(struct tw_rank *r, int (*poll)(void *arg), void *arg);

/* The pieces, for tests that call strata_init themselves. */
struct tw_world *tw_create(const struct tw_options *o);
void tw_destroy(struct tw_world *w);
const strata_host_t *tw_host(struct tw_world *w, int rank);
/* strata_init of `rank` with the world's settings; err may be NULL. */
int tw_init(struct tw_world *w, int rank, strata_t **out, char *err, size_t err_size);
/* Log lines of at most this level that any rank has written. */
int tw_log_count(const struct tw_world *w, int max_level);
/* How many times any rank was told that `rank` has failed. */
int tw_failures(const struct tw_world *w, int rank);
/* Whether r was. */
bool tw_was_told(const struct tw_rank *r, int rank);

/* Seconds after which a test is ended: a safety net for one that hangs, so never less than five minutes. Stretched for
 * sanitizers and by STRATA_TEST_TIMEOUT_SCALE. */
int test_timeout(int seconds);
/* True when built with a sanitizer: tests then do less of the same. */
bool test_sanitized(void);

_Noreturn void test_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Called with the reason of a failed CHECK, or of a test that hangs, before the process ends. NULL: nothing. */
void test_on_failure(void (*fn)(const char *text));

/* Assertions that any thread may make. */
#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond))                                                                                                   \
            test_fail(__FILE__, __LINE__, "%s", #cond);                                                                \
    } while (0)
#define CHECK_MSG(cond, ...)                                                                                           \
    do {                                                                                                               \
        if (!(cond))                                                                                                   \
            test_fail(__FILE__, __LINE__, __VA_ARGS__);                                                                \
    } while (0)
#define CHECK_RC(expr, want)                                                                                           \
    do {                                                                                                               \
        int check_rc_ = (expr);                                                                                        \
        if (check_rc_ != (want))                                                                                       \
            test_fail(__FILE__, __LINE__, "%s is %d (%s), not %d", #expr, check_rc_, strata_strerror(check_rc_),       \
                      (int)(want));                                                                                    \
    } while (0)
#define CHECK_OK(expr) CHECK_RC(expr, STRATA_OK)
#define CHECK_EQ(a, b)                                                                                                 \
    do {                                                                                                               \
        long long check_a_ = (long long)(a), check_b_ = (long long)(b);                                                \
        if (check_a_ != check_b_)                                                                                      \
            test_fail(__FILE__, __LINE__, "%s is %lld, %s is %lld", #a, check_a_, #b, check_b_);                       \
    } while (0)

#endif
