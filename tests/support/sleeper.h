/* A worker of modules that do nothing but be waited for, made by hand. */
#ifndef TEST_SUPPORT_SLEEPER_H
#define TEST_SUPPORT_SLEEPER_H

#include <check.h>
#include <stdatomic.h>
#include "framework/base/context.h"
#include "framework/worker/worker.h"

/* A module: what its arm gives, and what it was asked. */
struct sleeper_module {
    struct st_btl btl;
    _Atomic(uint32_t) *word;
    int fd; /* -1: none */
    bool pending;
    int armed, disarmed;
};

enum { SLEEPER_MODULES = 3 };

/* Longer than a test may last: a sleep that nothing ends shows. */
enum { TOO_LONG_US = 1000000000 };

struct sleeper {
    struct st_base_config config;
    strata_t context;
    struct st_bml bml;
    struct worker w;
    struct st_worker_poll poll[SLEEPER_MODULES + 1];
    struct sleeper_module module[SLEEPER_MODULES];
};

static inline int sleeper_arm(struct st_btl *b, struct st_btl_wait *w)
{
    struct sleeper_module *m = (struct sleeper_module *)b;
    ck_assert_int_eq(w->fd, -1);
    ck_assert_ptr_null(w->word);
    if (m->pending)
        return STRATA_ERR_AGAIN;
    m->armed++;
    if (m->fd >= 0 && (w->by_fd || !m->word)) {
        w->fd = m->fd;
    } else if (m->word) {
        w->word = m->word;
        w->expect = atomic_load(m->word);
    }
    return STRATA_OK;
}
static inline void sleeper_disarm(struct st_btl *b)
{
    ((struct sleeper_module *)b)->disarmed++;
}
static inline int sleeper_progress(struct st_btl *b)
{
    (void)b;
    return 0;
}

/* n modules with these ops. */
static inline void sleeper_make(struct sleeper *s, int n, const struct st_btl_ops *ops)
{
    *s = (struct sleeper){.config = {.sleep_max_us = TOO_LONG_US}};
    s->context.base = &s->config;
    s->bml.n_btls = (size_t)n;
    s->w.head = (struct st_worker){.context = &s->context, .bml = &s->bml, .poll = s->poll};
    s->w.poll = s->poll;
    pthread_mutex_init(&s->w.head.mutex, NULL);
    for (int i = 0; i < n; i++) {
        s->module[i] = (struct sleeper_module){.btl.ops = ops, .fd = -1};
        s->poll[i] = (struct st_worker_poll){ops->progress, &s->module[i].btl};
    }
    s->w.n_poll = (uint32_t)n;
    worker_crowd_create(&s->w);
    ck_assert_int_eq(worker_sleep_create(&s->w), STRATA_OK);
}

static inline void sleeper_end(struct sleeper *s)
{
    worker_sleep_destroy(&s->w);
    worker_crowd_destroy(&s->w);
    pthread_mutex_destroy(&s->w.head.mutex);
}

#endif
