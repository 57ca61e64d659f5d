/* Long messages at the receiver. */
#include <string.h>

#include "channel/long.h"
#include "channel/slots.h"

static struct st_peer *in_peer(const struct channel_in *in)
{
    return in->c->with->peer;
}

static struct st_btl_endpoint *in_path(const struct channel_in *in)
{
    return st_peer_path(in_peer(in), in->c->path);
}

/* The status of the ring; once it is broken no transfer begins. */
static int in_broken(const struct channel_in *in)
{
    return channel_slots_in_rc(in->c);
}

/* The message is there, or cannot be had: wakes the thread that waits for it. */
static void in_end(struct channel_in *in, int rc)
{
    in->rc = rc;
    channel_set_ready(in->c);
    st_worker_wake(in->c->ch->w);
}

/* ---- by get ---- */

static void in_got(struct channel_in *in, int rc)
{
    if (rc == STRATA_ERR_UNSUPPORTED)
        in->by_parts = true;
    else if (rc != STRATA_OK && in->rc == STRATA_ERR_AGAIN)
        in->rc = rc;
}

static int in_run(void *arg, struct st_work *work);

static void in_drop(void *arg, struct st_work *work, int rc)
{
    struct channel_in *in = ST_CONTAINER(work, struct channel_in, work);

    (void)arg;
    in->queued = false;
    in_end(in, in->rc == STRATA_ERR_AGAIN ? rc : in->rc);
}

static const struct st_work_ops in_work = {ST_AM_STREAM, in_run, in_drop};

static void in_go(struct channel_in *in)
{
    if (in->queued)
        return;
    in->queued = true;
    st_worker_queue(in->c->ch->w, in_peer(in), ST_WORK_BULK, &in->work);
}

static void in_get_done(struct st_btl_op *op, int rc)
{
    struct channel_get *get = ST_CONTAINER(op, struct channel_get, op);
    struct channel_in *in = get->in;

    get->busy = false;
    in->n_gets--;
    in_got(in, rc);
    if (in->n_gets == 0 && in->next == in->want && !in->by_parts && in->rc == STRATA_ERR_AGAIN && !in->queued)
        in_end(in, in_broken(in) != STRATA_OK ? in_broken(in) : STRATA_OK);
    else
        in_go(in);
}

/* Starts one get. 1: it is done already. */
static int in_get(struct channel_in *in)
{
    uint64_t left = in->want - in->next;
    size_t len = left < CHANNEL_GET_BYTES ? (size_t)left : CHANNEL_GET_BYTES;
    struct st_btl_endpoint *ep = in_path(in);
    struct channel_get *get = in->gets;

    while (get->busy)
        get++;
    get->op.done = in_get_done;
    get->in = in;
    int rc = ep->btl->rdma->get(ep, in->memory.at + in->next, in->d.address + in->next, in->d.key, len,
                                in->memory.btl ? &in->memory.reg : NULL, &get->op);
    if (rc == STRATA_ERR_AGAIN)
        return rc;
    in->next += len;
    if (rc == STRATA_OK) {
        get->busy = true;
        in->n_gets++;
    }
    return rc;
}

/* ---- by parts ---- */

/* Asks for the next parts, or ends. */
static void in_pull(struct channel_in *in)
{
    uint64_t left = in->want - in->next, most = (uint64_t)CHANNEL_PARTS * in->d.part;
    uint64_t length = left < most ? left : most, parts = (length + in->d.part - 1) / in->d.part;
    struct channel_head head = {
        .kind = CHANNEL_PULL, .ring = in->c->ring, .id = in->d.id, .offset = in->next, .length = length};

    in->window = in->next;
    in->next += length;
    in->missing = (uint32_t)((1ull << parts) - 1);
    int rc = channel_tell(in->c->ch, in_peer(in), &head, NULL, 0);
    if (rc != STRATA_OK)
        in_end(in, rc);
}

const char *channel_in_part(strata_channel_receiver_t *c, const struct channel_head *head, const struct st_frag *frag)
{
    struct channel_in *in = c->coming;

    if (!in || head->id != in->d.id || in->rc != STRATA_ERR_AGAIN)
        return NULL; /* of a message that was given up */
    if (!in->by_parts || head->offset < in->window || head->offset >= in->next ||
        (head->offset - in->window) % in->d.part)
        return "a part of a channel's message that nobody asked for";
    uint32_t bit = 1u << (head->offset - in->window) / in->d.part;
    uint64_t left = in->next - head->offset;
    if (!(in->missing & bit) || frag->len != (left < in->d.part ? left : in->d.part))
        return "a part of a channel's message that cannot be true";
    st_copy_long(in->memory.at + head->offset, frag->data, frag->len);
    in->missing &= ~bit;
    if (in->missing == 0 && in->next == in->want)
        in_end(in, STRATA_OK);
    else if (in->missing == 0)
        in_pull(in);
    return NULL;
}

/* ---- both ---- */

/* Progress takes the message on: a get at a time, so that others have their turn. */
static int in_run(void *arg, struct st_work *work)
{
    struct channel_in *in = ST_CONTAINER(work, struct channel_in, work);
    int rc = in_broken(in);

    (void)arg;
    in->queued = false;
    if (in->rc == STRATA_ERR_AGAIN && rc != STRATA_OK)
        in->rc = rc;
    while (in->rc == STRATA_ERR_AGAIN && !in->by_parts && in->next < in->want && in->n_gets < CHANNEL_GETS) {
        rc = in_get(in);
        if (rc == STRATA_ERR_AGAIN || (rc == 1 && in->next < in->want)) {
            in->queued = true;
            return rc == 1 ? ST_WORK_MORE : rc;
        }
        in_got(in, rc == 1 ? STRATA_OK : rc);
    }
    if (in->n_gets)
        return STRATA_OK; /* the last one that is done comes back here */
    if (in->rc != STRATA_ERR_AGAIN) {
        in_end(in, in->rc);
    } else if (in->by_parts) {
        in->next = 0;
        in_pull(in);
    } else if (in->next == in->want) {
        in_end(in, STRATA_OK);
    }
    return STRATA_OK;
}

/* The descriptor is the peer's memory: what is checked and used is a copy. */
static const char *in_read(struct channel_in *in)
{
    if (st_landing_length(&in->slot) != sizeof(in->d))
        return "a descriptor of a long message that is none";
    st_landing_copy(&in->slot, &in->d);
    if (in->d.part == 0 || in->d.has_key > 1 || in->d.length > SIZE_MAX / 2)
        return "a descriptor of a long message that cannot be true";
    return NULL;
}

int channel_in_begin(strata_channel_receiver_t *c, const struct st_landing_view *slot)
{
    struct channel_in *in = channel_alloc(c->ch, sizeof(*in));
    int rc = STRATA_ERR_NOMEM;

    if (in) {
        in->c = c;
        in->slot = *slot;
        in->rc = STRATA_ERR_AGAIN;
        in->work = (struct st_work){.ops = &in_work, .path = c->path, .rdma = true};
        const char *wrong = in_read(in);
        if (!wrong) {
            c->coming = in;
            return STRATA_OK;
        }
        channel_log(c->ch, c->with->peer, wrong);
        channel_free(c->ch, in, sizeof(*in));
        rc = STRATA_ERR_PROTOCOL;
    }
    c->rc = rc;
    st_landing_receiver_fail(c->landing, rc);
    return rc;
}

/* Where the bytes go to. */
static int in_place(struct channel_in *in, void *buffer, size_t size)
{
    in->want = in->d.length;
    if (buffer) {
        in->memory = (struct channel_memory){.at = buffer};
        in->want = in->want < size ? in->want : size;
        return STRATA_OK;
    }
    return channel_memory_get(in->c->ch, &in->memory, in->d.length);
}

static int in_start(struct channel_in *in, void *buffer, size_t size)
{
    struct st_btl_endpoint *ep = in_path(in);
    int rc = in_broken(in);

    if (rc == STRATA_OK)
        rc = in_place(in, buffer, size);
    if (rc != STRATA_OK)
        return rc;
    in->by_parts = !in->d.has_key || !(ep->caps & ST_BTL_GET);
    if (!in->by_parts && in->want) {
        rc = channel_memory_register(&in->memory, ep->btl, in->want, ST_BTL_ANY_USE);
        if (rc == STRATA_ERR_AGAIN) {
            channel_memory_put(in->c->ch, &in->memory);
            return rc;
        }
        in->by_parts = rc != STRATA_OK;
    }
    in->by_parts = in->by_parts && in->want;
    in->started = true;
    if (in_run(in->c->ch, &in->work) != STRATA_OK) /* the rest: what takes turns, or waits for the transport */
        st_worker_queue(in->c->ch->w, in_peer(in), ST_WORK_BULK, &in->work);
    return STRATA_OK;
}

int channel_in_move(strata_channel_receiver_t *c, void *buffer, size_t size)
{
    struct channel_in *in = c->coming;
    int rc = in->started ? STRATA_OK : in_start(in, buffer, size);

    if (rc != STRATA_OK)
        return rc;
    /* By parts nothing comes back when the ring breaks. */
    if (in->rc == STRATA_ERR_AGAIN && in->n_gets == 0 && in_broken(in) != STRATA_OK)
        in->rc = in_broken(in);
    if (in->rc == STRATA_ERR_AGAIN || in->n_gets)
        return STRATA_ERR_AGAIN;
    if (in->rc != STRATA_OK) {
        channel_memory_put(c->ch, &in->memory);
        st_landing_receiver_fail(c->landing, in->rc);
        return in->rc;
    }
    struct channel_head taken = {.kind = CHANNEL_TAKEN, .ring = c->ring, .id = in->d.id};
    rc = channel_tell(c->ch, c->with->peer, &taken, NULL, 0);
    if (rc == STRATA_ERR_NOMEM) /* the sender would wait for ever */
        st_landing_receiver_fail(c->landing, rc);
    if (in->memory.btl)
        in->memory.btl->rdma->dereg(in->memory.btl, &in->memory.reg);
    in->memory.btl = NULL;
    return STRATA_OK;
}

bool channel_in_has_news(const struct channel_in *in)
{
    if (!in->started)
        return true;
    return in->n_gets == 0 && (in->rc != STRATA_ERR_AGAIN || in_broken(in) != STRATA_OK);
}

void channel_in_free(struct channel_in *in)
{
    if (in->queued)
        st_list_remove(&in->work.node);
    struct channels *ch = in->c->ch;
    channel_memory_put(ch, &in->memory);
    channel_free(ch, in, sizeof(*in));
}
