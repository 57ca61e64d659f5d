/* Waiting for requests. */
#include "ob1.h"
#include "ob1_inl.h"
#include "request.h"

static bool ob1_wait_done(void *arg)
{
    return ob1_req_done(arg);
}

/* For callers that have polled already: they go on with counting. */
void ob1_wait_req(struct ob1 *pml, struct ob1_req *req)
{
    if (!ob1_req_done(req))
        st_worker_wait_long(pml->head.worker, ob1_wait_done, req);
}

/* Another thread that polls may ask, too: then a poll may be lost from the count. */
struct counting {
    struct ob1_req *req;
    ST_ATOMIC(uint32_t) polls;
};

static bool ob1_wait_count(void *arg)
{
    struct counting *c = arg;

    atomic_store_explicit(&c->polls, atomic_load_explicit(&c->polls, memory_order_relaxed) + 1, memory_order_relaxed);
    return ob1_req_done(c->req);
}

uint32_t ob1_wait_new(struct ob1 *pml, struct ob1_req *req)
{
    struct counting c = {.req = req};

    st_worker_wait(pml->head.worker, ob1_wait_count, &c);
    return atomic_load_explicit(&c.polls, memory_order_relaxed);
}

bool ob1_drained(void *arg)
{
    const struct ob1 *pml = arg;

    return pml->detached == 0 && pml->fins.n == 0;
}
