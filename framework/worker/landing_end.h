/* Private to the worker: what both ends of a landing ring have. */
#ifndef ST_WORKER_LANDING_END_H
#define ST_WORKER_LANDING_END_H

#include <strata/sdk/landing_ends.h>
#include <strata/sdk/mpool.h>
#include <strata/sdk/notify.h>

/* Where memory of a ring comes from. */
enum landing_source { LANDING_NONE, LANDING_SHARED, LANDING_POOL, LANDING_HEAP };

/* Memory that is registered with the path's module. */
struct landing_memory {
    char *at;
    size_t length;
    struct st_shared_piece piece; /* LANDING_SHARED */
    enum landing_source source;
    bool registered;
    struct st_btl *btl;
    struct st_btl_reg reg;
};

/* An end: first member of the sender's and the receiver's own struct. */
struct landing_end {
    struct st_landing_where where;
    struct landing_memory memory;
    struct st_work work; /* while `queued`: `again` is to be called */
    /* Starts what the transport did not take. STRATA_ERR_AGAIN: still not. */
    int (*again)(struct landing_end *end);
    void (*fail)(struct landing_end *end, int rc);
    size_t bytes;      /* counted by the worker */
    uint32_t n_busy;   /* puts and notices under way */
    uint32_t prepared; /* bit of each struct st_notify that is, for the paths as they are */
    bool queued, logged;
};

/* Memory, registration, account. `shared`: peers may map it. On an error nothing is left. */
int landing_end_open(struct landing_end *end, const struct st_landing_where *where, size_t length, bool shared,
                     size_t others);
/* Waits for what is under way, then undoes it. Without the lock. */
void landing_end_close(struct landing_end *end);
/* `again` is called by progress, if `starved`. */
void landing_end_starved(struct landing_end *end, bool starved);
/* A put, or with len 0 a notice alone, by the end's `which`-th struct st_notify, whose `done` is set. As
 * st_worker_put_notify. */
int landing_end_put(struct landing_end *end, uint32_t which, const struct st_notify_put *put, struct st_notify *n);
/* The peer's paths have changed: STRATA_OK, or why nothing comes or goes any more by this one. */
int landing_end_changed(struct landing_end *end);
/* The peer has violated the protocol: the reason is logged, once. */
void landing_end_log(struct landing_end *end, int rc, const char *why);

#endif
