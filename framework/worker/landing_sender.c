/* A landing ring's end at the sender. */
#include <stdlib.h>

#include "framework/worker/landing_end.h"

struct st_landing_sender {
    struct landing_end end;
    struct st_landing_out out;
    struct st_landing_card card;
    st_landing_send_fn send; /* the client's, or NULL */
    void *send_arg;
    const bool *offers; /* whether it is asked */
    struct sender_put {
        struct st_notify n;
        struct st_landing_sender *s;
    } puts[ST_LANDING_PUTS];
};

/* A wait for room, or for the end. */
struct sender_wait {
    struct st_landing_sender *s;
    struct st_landing_view *view;
    uint32_t len;
    int rc;
};

static struct st_landing_sender *sender_of(struct landing_end *end)
{
    return ST_CONTAINER(end, struct st_landing_sender, end);
}

/* After each use of the ring. */
static inline int sender_after(struct st_landing_sender *s, int rc)
{
    if (ST_UNLIKELY(s->out.rc != STRATA_OK || s->out.starved)) {
        landing_end_log(&s->end, s->out.rc, s->out.why);
        landing_end_starved(&s->end, s->out.starved);
    }
    return rc;
}

static void sender_put_done(struct st_notify *n, int rc)
{
    struct sender_put *p = ST_CONTAINER(n, struct sender_put, n);

    p->s->end.n_busy--;
    st_landing_put_done(&p->s->out, (uint32_t)(p - p->s->puts), rc);
    (void)sender_after(p->s, rc);
}

static int sender_put(void *arg, uint32_t which, uint32_t offset, uint32_t len, uint32_t notice)
{
    struct st_landing_sender *s = arg;
    struct st_notify_put put = {.local = s->end.memory.at + offset,
                                .reg = &s->end.memory.reg,
                                .remote = s->card.base + offset,
                                .key = s->card.key,
                                .len = len,
                                .notice = notice};

    if (s->send && *s->offers) {
        int rc = s->send(s->send_arg, put.local, len, notice);
        if (rc != STRATA_ERR_UNSUPPORTED)
            return rc;
    }
    return landing_end_put(&s->end, which, &put, &s->puts[which].n);
}

static int sender_again(struct landing_end *end)
{
    struct st_landing_sender *s = sender_of(end);
    int rc = st_landing_flush(&s->out);

    landing_end_log(end, s->out.rc, s->out.why);
    return rc == STRATA_ERR_AGAIN ? rc : STRATA_OK;
}

static void sender_broken(struct landing_end *end, int rc)
{
    st_landing_out_fail(&sender_of(end)->out, rc);
}

int st_landing_sender_open(const struct st_landing_where *where, const struct st_landing_card *card,
                           struct st_landing_sender **out)
{
    struct st_landing_sender *s;
    struct st_landing_out check;

    if (st_landing_out_create(&check, NULL, card->size, card->name, sender_put, NULL) != STRATA_OK)
        return STRATA_ERR_ARG; /* before memory of that size is allocated */
    s = calloc(1, sizeof(*s));
    if (!s)
        return STRATA_ERR_NOMEM;
    s->end.again = sender_again;
    s->end.fail = sender_broken;
    s->card = *card;
    for (unsigned i = 0; i < ST_LANDING_PUTS; i++)
        s->puts[i] = (struct sender_put){.n.done = sender_put_done, .s = s};
    int rc = landing_end_open(&s->end, where, card->size, false, sizeof(*s));
    if (rc != STRATA_OK) {
        free(s);
        return rc;
    }
    (void)st_landing_out_create(&s->out, s->end.memory.at, card->size, card->name, sender_put, s);
    if (!(st_peer_path(where->peer, where->path)->caps & ST_BTL_PUT))
        st_landing_out_fail(&s->out, STRATA_ERR_UNSUPPORTED);
    *out = s;
    return STRATA_OK;
}

void st_landing_sender_by_message(struct st_landing_sender *s, st_landing_send_fn send, void *arg, const bool *offers)
{
    s->send = send;
    s->offers = offers;
    s->send_arg = arg;
}

void st_landing_sender_close(struct st_landing_sender *s)
{
    landing_end_close(&s->end);
    free(s);
}

const struct st_landing_out *st_landing_sender_out(const struct st_landing_sender *s)
{
    return &s->out;
}

int st_landing_sender_send(struct st_landing_sender *s, const void *data, uint32_t len)
{
    return sender_after(s, st_landing_send(&s->out, data, len));
}

int st_landing_sender_send_by(struct st_landing_sender *s, const void *data, uint32_t len, st_landing_slot_fn send,
                              void *arg)
{
    return sender_after(s, st_landing_send_by(&s->out, data, len, send, arg));
}

int st_landing_sender_reserve(struct st_landing_sender *s, uint32_t len, struct st_landing_view *view)
{
    int rc = st_landing_reserve(&s->out, len, view);

    return rc == STRATA_OK ? rc : sender_after(s, rc);
}

int st_landing_sender_commit(struct st_landing_sender *s, uint32_t len, unsigned how)
{
    return sender_after(s, st_landing_commit(&s->out, len, how));
}

int st_landing_sender_flush(struct st_landing_sender *s)
{
    int rc = sender_after(s, st_landing_flush(&s->out));

    return rc == STRATA_ERR_AGAIN ? STRATA_OK : rc;
}

int st_landing_sender_end(struct st_landing_sender *s)
{
    return sender_after(s, st_landing_end(&s->out));
}

void st_landing_sender_notified(struct st_landing_sender *s, uint32_t notice)
{
    st_landing_credit(&s->out, notice);
    (void)sender_after(s, STRATA_OK);
}

void st_landing_sender_changed(struct st_landing_sender *s)
{
    int rc = landing_end_changed(&s->end);

    if (rc != STRATA_OK)
        st_landing_sender_fail(s, rc);
}

void st_landing_sender_fail(struct st_landing_sender *s, int rc)
{
    st_landing_out_fail(&s->out, rc);
    st_worker_wake(s->end.where.worker);
}

static bool sender_has_room(void *arg)
{
    struct sender_wait *wait = arg;

    st_worker_lock(wait->s->end.where.worker);
    wait->rc = st_landing_sender_reserve(wait->s, wait->len, wait->view);
    st_worker_unlock(wait->s->end.where.worker);
    return wait->rc != STRATA_ERR_AGAIN;
}

int st_landing_sender_wait(struct st_landing_sender *s, uint32_t len, struct st_landing_view *view)
{
    struct sender_wait wait = {s, view, len, STRATA_ERR_AGAIN};

    st_worker_wait_acting(s->end.where.worker, sender_has_room, &wait);
    return wait.rc;
}

static bool sender_has_finished(void *arg)
{
    struct sender_wait *wait = arg;
    struct st_landing_sender *s = wait->s;

    st_worker_lock(s->end.where.worker);
    if (!s->out.ended)
        (void)st_landing_sender_end(s);
    wait->rc = s->out.rc;
    bool done = wait->rc != STRATA_OK || st_landing_out_finished(&s->out);
    st_worker_unlock(s->end.where.worker);
    return done;
}

int st_landing_sender_finish(struct st_landing_sender *s)
{
    struct sender_wait wait = {.s = s};

    st_worker_wait_acting(s->end.where.worker, sender_has_finished, &wait);
    return wait.rc;
}
