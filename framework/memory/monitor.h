/* Who in this process wants to be told when memory goes away. */
#ifndef ST_MEMORY_MONITOR_H
#define ST_MEMORY_MONITOR_H

#include <strata/sdk/memory.h>

/* One that is told. `gone` is called as st_memory_gone is: by any thread, and it takes no lock, allocates nothing. */
struct st_memory_listener {
    void (*gone)(struct st_memory_listener *listener, uintptr_t from, uintptr_t to);
    /* Called by a thread that is about to fork, after `gone` of everything; it waits for no other thread. May be NULL.
     */
    void (*fork)(struct st_memory_listener *listener);
};

/* From now on it is told. STRATA_ERR_NOMEM: too many are. */
int st_memory_subscribe(struct st_memory_listener *listener);
/* When this returns no thread is inside its `gone`, and none will be. */
void st_memory_unsubscribe(struct st_memory_listener *listener);

#endif
