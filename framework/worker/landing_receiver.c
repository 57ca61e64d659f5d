/* A landing ring's end at the receiver. */
#include <stdlib.h>
#include <string.h>

#include "framework/worker/landing_end.h"

struct st_landing_receiver {
    struct landing_end end;
    struct st_landing_in in;
    struct receiver_credit {
        struct st_notify n;
        struct st_landing_receiver *r;
        bool under_way;
    } credits[ST_LANDING_CREDITS];
};

static struct st_landing_receiver *receiver_of(struct landing_end *end)
{
    return ST_CONTAINER(end, struct st_landing_receiver, end);
}

/* After each use of the ring. */
static inline int receiver_after(struct st_landing_receiver *r, int rc)
{
    if (ST_UNLIKELY(r->in.rc != STRATA_OK || r->in.starved)) {
        landing_end_log(&r->end, r->in.rc, r->in.why);
        landing_end_starved(&r->end, r->in.starved);
    }
    return rc;
}

static void receiver_credit_done(struct st_notify *n, int rc)
{
    struct receiver_credit *c = ST_CONTAINER(n, struct receiver_credit, n);
    struct st_landing_receiver *r = c->r;

    r->end.n_busy--;
    c->under_way = false;
    if (rc != STRATA_OK)
        st_landing_in_fail(&r->in, rc);
    else if (r->in.starved)
        st_landing_return(&r->in);
    (void)receiver_after(r, rc);
}

/* A credit that meets a lost path waits: the transport has reported the loss, and the client hears of it when what had
 * come is delivered (st_landing_receiver_changed). Notifications that come until then still count. */
static int receiver_tell(void *arg, uint32_t which, uint32_t notice)
{
    struct st_landing_receiver *r = arg;
    struct receiver_credit *c = &r->credits[which];
    struct st_notify_put put = {.notice = notice};

    if (c->under_way)
        return STRATA_ERR_AGAIN;
    c->under_way = true;
    int rc = landing_end_put(&r->end, which, &put, &c->n);
    if (rc != STRATA_OK)
        c->under_way = false;
    return rc == STRATA_ERR_PEER ? STRATA_ERR_AGAIN : rc;
}

static int receiver_again(struct landing_end *end)
{
    struct st_landing_receiver *r = receiver_of(end);

    st_landing_return(&r->in);
    return r->in.starved ? STRATA_ERR_AGAIN : STRATA_OK;
}

static void receiver_broken(struct landing_end *end, int rc)
{
    st_landing_in_fail(&receiver_of(end)->in, rc);
}

int st_landing_receiver_open(const struct st_landing_where *where, uint32_t size, uint32_t name,
                             struct st_landing_receiver **out, struct st_landing_card *card)
{
    struct st_landing_receiver *r = calloc(1, sizeof(*r));

    if (!r)
        return STRATA_ERR_NOMEM;
    r->end.again = receiver_again;
    r->end.fail = receiver_broken;
    for (unsigned i = 0; i < ST_LANDING_CREDITS; i++)
        r->credits[i] = (struct receiver_credit){.n.done = receiver_credit_done, .r = r};
    /* The bit map first: of a size that cannot be nothing is allocated. */
    int rc = st_landing_in_create(&r->in, NULL, size, name, receiver_tell, r);
    if (rc == STRATA_OK)
        rc = landing_end_open(&r->end, where, (size_t)size + where->more, true,
                              sizeof(*r) + st_landing_in_bytes(&r->in));
    if (rc != STRATA_OK) {
        st_landing_in_destroy(&r->in);
        free(r);
        return rc;
    }
    r->in.ring = r->end.memory.at;
    *card = (struct st_landing_card){.base = (uint64_t)(uintptr_t)r->end.memory.at, .size = size, .name = name};
    memcpy(card->key, r->end.memory.reg.key, sizeof(card->key));
    *out = r;
    return STRATA_OK;
}

void st_landing_receiver_close(struct st_landing_receiver *r)
{
    landing_end_close(&r->end);
    st_landing_in_destroy(&r->in);
    free(r);
}

const struct st_landing_in *st_landing_receiver_in(const struct st_landing_receiver *r)
{
    return &r->in;
}

int st_landing_receiver_peek(struct st_landing_receiver *r, struct st_landing_view *view)
{
    return receiver_after(r, st_landing_peek(&r->in, view));
}

int st_landing_receiver_release(struct st_landing_receiver *r, const struct st_landing_view *view)
{
    return receiver_after(r, st_landing_release(&r->in, view));
}

void st_landing_receiver_return_rest(struct st_landing_receiver *r)
{
    st_landing_return_rest(&r->in);
    (void)receiver_after(r, STRATA_OK);
}

int st_landing_receiver_take(struct st_landing_receiver *r, void *to, size_t size, uint32_t *len)
{
    return receiver_after(r, st_landing_take(&r->in, to, size, len));
}

void st_landing_receiver_notified(struct st_landing_receiver *r, uint32_t notice)
{
    st_landing_notice(&r->in, notice);
    (void)receiver_after(r, STRATA_OK);
}

void st_landing_receiver_arrived(struct st_landing_receiver *r, uint32_t notice, const void *data, uint32_t len)
{
    st_landing_arrive(&r->in, notice, data, len);
    (void)receiver_after(r, STRATA_OK);
}

bool st_landing_receiver_arrived_slot(struct st_landing_receiver *r, uint32_t notice, const void *head,
                                      const void *data, uint32_t len, void *to, size_t size)
{
    bool taken = st_landing_arrive_slot(&r->in, notice, head, data, len, to, size);

    if (!taken)
        (void)receiver_after(r, STRATA_OK);
    return taken;
}

void st_landing_receiver_pay(struct st_landing_receiver *r)
{
    (void)receiver_after(r, STRATA_OK);
}

void st_landing_receiver_changed(struct st_landing_receiver *r)
{
    int rc = landing_end_changed(&r->end);

    if (rc != STRATA_OK)
        st_landing_receiver_fail(r, rc);
}

void st_landing_receiver_fail(struct st_landing_receiver *r, int rc)
{
    st_landing_in_fail(&r->in, rc);
    st_worker_wake(r->end.where.worker);
}

static bool receiver_has_news(void *arg)
{
    struct st_landing_receiver *r = arg;

    st_worker_lock(r->end.where.worker);
    bool news = r->in.ready || r->in.ended || r->in.rc != STRATA_OK;
    st_worker_unlock(r->end.where.worker);
    return news;
}

int st_landing_receiver_wait(struct st_landing_receiver *r)
{
    struct st_worker *w = r->end.where.worker;

    st_worker_wait(w, receiver_has_news, r);
    st_worker_lock(w);
    int rc = r->in.ready ? STRATA_OK : r->in.ended ? ST_LANDING_ENDED : r->in.rc;
    st_worker_unlock(w);
    return rc;
}
