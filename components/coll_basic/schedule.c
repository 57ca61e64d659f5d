/* Building and running of schedules. */
#include "schedule.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "choose.h"

struct schedule *basic_schedule_make(struct st_coll_group *group, const strata_coll_t *c, ST_ATOMIC(size_t) * in_use)
{
    struct schedule *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->comm = group->comm;
    s->group = group;
    s->in_use = in_use;
    s->c = *c;
    s->head.worker = s->comm->worker;
    s->bytes = sizeof(*s);
    return s;
}

static void schedule_free(strata_coll_request_t *req)
{
    struct schedule *s = (struct schedule *)req;
    if (s->counted)
        atomic_fetch_sub_explicit(s->in_use, s->bytes, memory_order_relaxed);
    while (s->memory) {
        void *next = *(void **)s->memory;
        free(s->memory);
        s->memory = next;
    }
    free(s->storage);
    free(s->steps);
    free(s);
}

static void schedule_add(struct schedule *s, struct basic_step step)
{
    if (s->n == s->room) {
        size_t room = s->room ? 2 * s->room : 16;
        struct basic_step *more = realloc(s->steps, room * sizeof(*more));
        if (!more) {
            s->build_rc = STRATA_ERR_NOMEM;
            return;
        }
        s->steps = more;
        s->room = room;
    }
    step.sched = s;
    s->steps[s->n++] = step;
}

void basic_send(struct schedule *s, int peer, const void *in, size_t bytes)
{
    schedule_add(s, (struct basic_step){.kind = BASIC_SEND, .peer = peer, .in = in, .bytes = bytes});
}

void basic_recv(struct schedule *s, int peer, void *out, size_t bytes)
{
    schedule_add(s, (struct basic_step){.kind = BASIC_RECV, .peer = peer, .out = out, .bytes = bytes});
}

void basic_wait(struct schedule *s)
{
    schedule_add(s, (struct basic_step){.kind = BASIC_WAIT});
}

void basic_copy(struct schedule *s, void *out, const void *in, size_t bytes)
{
    if (bytes != 0 && out != in)
        schedule_add(s, (struct basic_step){.kind = BASIC_COPY, .in = in, .out = out, .bytes = bytes});
}

void basic_reduce(struct schedule *s, const void *in, void *out, size_t bytes)
{
    if (bytes != 0)
        schedule_add(s, (struct basic_step){.kind = BASIC_REDUCE, .in = in, .out = out, .bytes = bytes});
}

char *basic_memory(struct schedule *s, size_t bytes)
{
    enum { HEAD = 64 };
    void *block = bytes < SIZE_MAX - HEAD ? malloc(HEAD + bytes) : NULL;
    if (!block) {
        s->build_rc = STRATA_ERR_NOMEM;
        return NULL;
    }
    *(void **)block = s->memory;
    s->memory = block;
    s->bytes += HEAD + bytes;
    return (char *)block + HEAD;
}

/* The first error stays. A peer that has failed ends the collectives of all members; so does one that cannot be
 * connected, as after its end. */
static void schedule_fail(struct schedule *s, int error, int peer)
{
    int ok = STRATA_OK;
    bool lost = error == STRATA_ERR_PEER || error == STRATA_ERR_UNREACHABLE;
    if (lost)
        st_coll_member_failed(s->group, peer);
    if (lost || error == STRATA_ERR_CANCELLED)
        atomic_store(&s->cut, true);
    else
        atomic_compare_exchange_strong(&s->error, &ok, error);
}

static bool schedule_group_failed(const struct schedule *s)
{
    return atomic_load(&s->group->failed) >= 0;
}

static void schedule_run(struct schedule *s);

static void schedule_completed(void *arg, strata_request_t *req, const strata_status_t *status)
{
    struct basic_step *step = arg;
    struct schedule *s = step->sched;
    (void)req;
    if (status->error != STRATA_OK)
        schedule_fail(s, status->error, step->peer);
    else if (step->kind == BASIC_RECV && status->length != step->bytes)
        schedule_fail(s, STRATA_ERR_TRUNCATE, step->peer);
    if (atomic_fetch_sub(&s->pending, 1) == 1)
        schedule_run(s);
}

static int schedule_recv(struct basic_step *step)
{
    const struct schedule *s = step->sched;
    struct st_pml_recv a = {.buf = step->out,
                            .len = step->bytes,
                            .src = step->peer,
                            .tag = s->tag,
                            .storage = step->storage,
                            .fn = schedule_completed,
                            .arg = step};
    int rc = s->comm->ops->irecv(s->comm, &a, NULL);
    /* The tags may have been revoked before it was posted: whoever revokes sets `failed` first. */
    if (rc == STRATA_OK && schedule_group_failed(s))
        (void)s->comm->ops->cancel((strata_request_t *)(void *)step->storage);
    return rc;
}

static int schedule_send(struct basic_step *step)
{
    const struct schedule *s = step->sched;
    struct st_pml_send a = {.buf = step->in,
                            .len = step->bytes,
                            .dst = step->peer,
                            .tag = s->tag,
                            .mode = STRATA_STANDARD,
                            .storage = step->storage,
                            .fn = schedule_completed,
                            .arg = step};
    return s->comm->ops->isend(s->comm, &a, NULL);
}

/* Starts a message. One that cannot start for want of something here would be waited for by its receiver: this rank
 * has failed then. */
static void schedule_message(struct basic_step *step)
{
    struct schedule *s = step->sched;
    if (schedule_group_failed(s)) {
        atomic_store(&s->cut, true);
        return;
    }
    atomic_fetch_add(&s->pending, 1);
    int rc = step->kind == BASIC_RECV ? schedule_recv(step) : schedule_send(step);
    if (rc < 0) {
        schedule_fail(s, rc, step->peer);
        st_coll_member_failed(s->group, st_coll_self(s->group));
    }
    if (rc < 0 || (rc == 1 && step->kind == BASIC_SEND))
        atomic_fetch_sub(&s->pending, 1); /* never the last: the round's own is there */
}

static void schedule_finish(struct schedule *s)
{
    struct st_worker *w = s->head.worker;
    int failed = atomic_load(&s->group->failed), error = atomic_load(&s->error);
    bool cut = atomic_load(&s->cut);
    s->head.error = error == STRATA_OK && cut ? STRATA_ERR_PEER : error;
    s->head.failed = cut ? failed : -1;
    if (s->head.error != STRATA_OK)
        st_log(w->context, ST_LOG_ERROR, "coll_basic", "%s on communicator %u ended: %s%s%d%s",
               basic_kind_name(s->c.kind), (unsigned)s->comm->id, strata_strerror(s->head.error),
               cut ? ": rank " : " (of ", cut ? st_coll_job_rank(s->group, failed) : s->comm->size,
               cut ? " of the job" : " ranks)");
    atomic_store_explicit(&s->head.done, true, memory_order_release); /* s may be gone now */
    if (w->threaded)
        st_worker_wake(w);
}

/* Goes on until messages are to be waited for, or all is done. By one thread at a time: who takes the last of
 * `pending`. */
static void schedule_run(struct schedule *s)
{
    atomic_store(&s->pending, 1);
    while (s->at < s->n) {
        struct basic_step *step = &s->steps[s->at++];
        switch (step->kind) {
        case BASIC_SEND:
        case BASIC_RECV:
            schedule_message(step);
            break;
        case BASIC_WAIT:
            if (atomic_fetch_sub(&s->pending, 1) != 1)
                return; /* the last completion goes on */
            atomic_store(&s->pending, 1);
            break;
        case BASIC_COPY:
            memmove(step->out, step->in, step->bytes);
            break;
        case BASIC_REDUCE:
            if (!atomic_load(&s->cut) && atomic_load(&s->error) == STRATA_OK)
                s->c.reduce(s->c.reduce_arg, step->in, step->out, step->bytes / s->c.element);
            break;
        }
    }
    schedule_finish(s);
}

static int schedule_place(struct schedule *s)
{
    const struct st_pml_ops *ops = s->comm->ops;
    size_t align = ops->request_align < sizeof(void *) ? sizeof(void *) : ops->request_align, n = 0;
    size_t bytes = (ops->request_size + align - 1) / align * align;
    if (s->build_rc != STRATA_OK)
        return s->build_rc;
    for (size_t i = 0; i < s->n; i++)
        n += s->steps[i].kind <= BASIC_RECV;
    if (n == 0)
        return STRATA_OK;
    void *storage = NULL;
    if (posix_memalign(&storage, align, n * bytes) != 0)
        return STRATA_ERR_NOMEM;
    memset(storage, 0, n * bytes);
    s->storage = storage;
    s->bytes += n * bytes + s->room * sizeof(*s->steps);
    for (size_t i = 0, k = 0; i < s->n; i++)
        if (s->steps[i].kind <= BASIC_RECV)
            s->steps[i].storage = s->storage + bytes * k++;
    return STRATA_OK;
}

int basic_schedule_start(struct schedule *s, ST_ATOMIC(uint32_t) * started, strata_coll_request_t **out)
{
    s->head.free = schedule_free;
    basic_wait(s);
    int rc = schedule_place(s);
    if (rc != STRATA_OK) {
        schedule_free(&s->head);
        return rc;
    }
    s->tag = INT_MIN + (int)(atomic_fetch_add_explicit(started, 1, memory_order_relaxed) % ST_COLL_TAGS);
    s->counted = true;
    atomic_fetch_add_explicit(s->in_use, s->bytes, memory_order_relaxed);
    *out = &s->head;
    atomic_store(&s->cut, schedule_group_failed(s)); /* of a member without messages, too */
    schedule_run(s);
    return STRATA_OK;
}
