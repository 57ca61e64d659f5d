/* The landing ring, sender: slots are committed in the staging ring and put into the receiver's. */
#include <string.h>

#include "framework/base/landing_slot.h"

#define NOTHING_RESERVED UINT32_MAX

int st_landing_out_create(struct st_landing_out *out, char *staging, uint32_t size, uint32_t name,
                          st_landing_put_fn put, void *arg)
{
    if (!landing_size_ok(staging, size, name))
        return STRATA_ERR_ARG;
    *out = (struct st_landing_out){.staging = staging,
                                   .put = put,
                                   .arg = arg,
                                   .lines = size / ST_LANDING_LINE,
                                   .number = LANDING_FIRST,
                                   .name = name << LANDING_NAME_SHIFT,
                                   .reserved = NOTHING_RESERVED};
    return STRATA_OK;
}

static ST_COLD int out_break(struct st_landing_out *out, int rc, const char *why)
{
    if (out->rc == STRATA_OK) {
        out->rc = rc;
        out->why = why;
    }
    out->starved = false;
    return out->rc;
}

/* Lines that the receiver has room for, and that no put reads any more. Slots by messages may lie more than a ring
 * beyond the lines that puts read. */
static uint32_t out_room(const struct st_landing_out *out)
{
    uint64_t from = out->released < out->idle ? out->released : out->idle, used = out->committed - from;

    return used < out->lines ? out->lines - (uint32_t)used : 0;
}

/* The slot behind the last one; `reserved` has been checked. A slot before it that no put has taken yet goes with it,
 * unless this one lies at the ring's beginning, where a put begins in any case. */
static void out_slot(struct st_landing_out *out, uint32_t len, uint32_t flags)
{
    char *at = out->staging + (size_t)landing_place(out->committed, out->lines) * ST_LANDING_LINE;
    struct landing_slot slot = {.len = len, .number = out->number++, .seen = out->seen, .flags = flags};
    uint32_t lines = landing_lines(len);

    if (out->committed > out->block && landing_place(out->committed, out->lines) != 0) {
        char *before = out->staging + (size_t)landing_place(out->last, out->lines) * ST_LANDING_LINE;
        ((struct landing_slot *)(void *)before)->flags |= LANDING_MORE;
    }
    memcpy(at, &slot, sizeof(slot));
    out->last = out->committed;
    out->committed += lines;
    out->pad = lines * ST_LANDING_LINE - ST_LANDING_HEAD - len;
    out->acknowledged = out->seen;
    out->reserved = NOTHING_RESERVED;
}

/* Lines below which no put is under way any more. */
static void out_retire(struct st_landing_out *out)
{
    while (out->n_puts && out->puts_done >> out->oldest & 1) {
        out->puts_done &= (uint16_t) ~(1u << out->oldest);
        out->idle = out->put_end[out->oldest];
        out->oldest = (out->oldest + 1) % ST_LANDING_PUTS;
        out->n_puts--;
    }
}

/* The next put: from `sent` to the end of the block or of the ring. What is committed belongs to one block, if the one
 * before is through. */
static int out_put(struct st_landing_out *out)
{
    bool begins = out->sent == out->block;
    uint64_t block = begins ? out->committed : out->block, end = block;
    uint32_t line = landing_place(out->sent, out->lines), which = (out->oldest + out->n_puts) % ST_LANDING_PUTS;

    if (end - out->sent > out->lines - line)
        end = out->sent + out->lines - line;
    uint32_t len = (uint32_t)(end - out->sent) * ST_LANDING_LINE;
    if (end == block)
        len -= begins ? out->pad : out->block_pad;
    out->put_end[which] = end;
    out->n_puts++;
    int rc = out->put(out->arg, which, line * ST_LANDING_LINE, len, out->name | line);
    if (rc != STRATA_OK && rc != 1) {
        out->n_puts--;
        out->starved = rc == STRATA_ERR_AGAIN;
        return rc;
    }
    if (begins) {
        out->block = block;
        out->block_pad = out->pad;
    }
    out->sent = end;
    if (rc == 1)
        out->puts_done |= (uint16_t)(1u << which);
    out_retire(out);
    return STRATA_OK;
}

static int out_push(struct st_landing_out *out)
{
    int rc = STRATA_OK;

    if (out->starting)
        return STRATA_OK;
    out->starting = true;
    out->starved = false;
    while (rc == STRATA_OK && out->rc == STRATA_OK && out->sent < out->due && out->n_puts < ST_LANDING_PUTS)
        rc = out_put(out);
    out->starting = false;
    if (rc != STRATA_OK && rc != STRATA_ERR_AGAIN)
        return out_break(out, rc, NULL);
    return out->rc != STRATA_OK ? out->rc : rc;
}

int st_landing_flush(struct st_landing_out *out)
{
    out->due = out->committed;
    return out->rc != STRATA_OK ? out->rc : out_push(out);
}

/* No room for `lines`: what waits goes. Credit that the receiver would keep back is asked for, by a slot: where it
 * returns none before a quarter of the ring is released, unless the last slot alone is that long, and where it waits
 * for acknowledgements. */
static ST_COLD int out_no_room(struct st_landing_out *out, uint32_t lines)
{
    uint32_t credit = out->lines - (uint32_t)(out->committed - out->released);
    bool large = lines > out->lines - out->lines / 4 && out->released >= out->ask_end &&
                 out->committed - out->last < out->lines / 4;
    bool silent = out->seen - out->acknowledged >= ST_LANDING_CREDITS - 1;

    if (lines > credit && (large || silent) && out_room(out) > 0) {
        out_slot(out, 0, LANDING_ASK);
        out->ask_end = out->committed;
    }
    int rc = st_landing_flush(out);
    return rc == STRATA_OK ? STRATA_ERR_AGAIN : rc;
}

/* The only slot that had not gone is on its way, up to `end`: it is a block of its own. */
static inline void out_took(struct st_landing_out *out, uint64_t end, uint32_t len)
{
    out->number++;
    out->last = out->committed;
    out->committed = out->due = out->sent = out->block = end;
    out->pad = out->block_pad = (uint32_t)(end - out->last) * ST_LANDING_LINE - ST_LANDING_HEAD - len;
    out->acknowledged = out->seen;
    out->reserved = NOTHING_RESERVED;
}

/* As reserve, commit and flush, of which nothing is left to do: no slot waits, and with no put under way the oldest
 * place is free. */
int st_landing_send(struct st_landing_out *out, const void *data, uint32_t len)
{
    uint32_t line = landing_place(out->committed, out->lines);
    char *at = out->staging + (size_t)line * ST_LANDING_LINE;
    struct landing_slot slot = {.len = len, .number = out->number, .seen = out->seen};
    uint64_t end = out->committed + landing_lines(len);

    memcpy(at, &slot, sizeof(slot));
    st_copy(at + ST_LANDING_HEAD, data, len);
    out->reserved = NOTHING_RESERVED;
    out->put_end[out->oldest] = end;
    out->n_puts = 1;
    out->starting = true;
    int rc = out->put(out->arg, out->oldest, line * ST_LANDING_LINE, ST_LANDING_HEAD + len, out->name | line);
    out->starting = false;
    if (ST_UNLIKELY(rc != STRATA_OK && rc != 1)) {
        out->n_puts = 0;
        return rc == STRATA_ERR_AGAIN ? rc : out_break(out, rc, NULL);
    }
    out_took(out, end, len);
    if (rc == 1) {
        out->idle = end;
        out->n_puts = 0;
    } else {
        out_retire(out);
    }
    return STRATA_OK;
}

/* The staging ring has a gap of the slot's lines, which no put reads: they go with the last put that is under way. */
int st_landing_send_by(struct st_landing_out *out, const void *data, uint32_t len, st_landing_slot_fn send, void *arg)
{
    struct landing_slot slot = {.len = len, .number = out->number, .seen = out->seen};
    uint64_t end = out->committed + landing_lines(len);

    int rc = send(arg, &slot, data, len, out->name | landing_place(out->committed, out->lines));
    if (ST_UNLIKELY(rc != 1))
        return rc == STRATA_ERR_AGAIN ? rc : out_break(out, rc, NULL);
    out_took(out, end, len);
    if (ST_LIKELY(out->n_puts == 0))
        out->idle = end;
    else
        out->put_end[(out->oldest + out->n_puts - 1) % ST_LANDING_PUTS] = end;
    return STRATA_OK;
}

int st_landing_reserve(struct st_landing_out *out, uint32_t len, struct st_landing_view *view)
{
    out->reserved = NOTHING_RESERVED;
    if (ST_UNLIKELY(out->rc != STRATA_OK))
        return out->rc;
    if (ST_UNLIKELY(out->ended))
        return STRATA_ERR_STATE;
    if (ST_UNLIKELY(len > landing_longest(out->lines)))
        return STRATA_ERR_ARG;
    if (ST_UNLIKELY(landing_lines(len) > out_room(out)))
        return out_no_room(out, landing_lines(len));
    landing_view(out->staging, out->lines, out->committed, len, view);
    out->reserved = len;
    return STRATA_OK;
}

int st_landing_commit(struct st_landing_out *out, uint32_t len, unsigned how)
{
    if (ST_UNLIKELY(out->rc != STRATA_OK))
        return out->rc;
    if (ST_UNLIKELY(out->reserved == NOTHING_RESERVED || len > out->reserved))
        return STRATA_ERR_ARG;
    out_slot(out, len, how & ST_LANDING_MARKED ? LANDING_MARKED : 0);
    int rc = how & ST_LANDING_KEEP ? STRATA_OK : st_landing_flush(out);
    return rc == STRATA_ERR_AGAIN ? STRATA_OK : rc;
}

int st_landing_end(struct st_landing_out *out)
{
    if (out->rc != STRATA_OK)
        return out->rc;
    if (out->ended)
        return STRATA_ERR_STATE;
    if (out_room(out) == 0)
        return out_no_room(out, 1);
    out_slot(out, 0, LANDING_END);
    out->ended = true;
    int rc = st_landing_flush(out);
    return rc == STRATA_ERR_AGAIN ? STRATA_OK : rc;
}

void st_landing_put_done(struct st_landing_out *out, uint32_t which, int rc)
{
    out->puts_done |= (uint16_t)(1u << which % ST_LANDING_PUTS);
    if (!out->starting)
        out_retire(out);
    if (rc != STRATA_OK)
        (void)out_break(out, rc, NULL);
    else if (out->rc == STRATA_OK && out->sent < out->due)
        (void)out_push(out);
}

/* Credits are taken in the order of their numbers: so whoever uses the room that one gives has acknowledged it. */
void st_landing_credit(struct st_landing_out *out, uint32_t notice)
{
    uint32_t number = notice >> LANDING_NUMBER_SHIFT & (ST_LANDING_CREDITS - 1), bit = 1u << number;

    if (out->rc != STRATA_OK)
        return;
    if (!st_landing_is_credit(notice) || out->ahead & bit) {
        (void)out_break(out, STRATA_ERR_PROTOCOL, "a credit that was given before");
        return;
    }
    out->ahead |= bit;
    out->place[number] = notice & LANDING_PLACE_MASK;
    while (number = (out->seen + 1) % ST_LANDING_CREDITS, out->ahead >> number & 1) {
        uint32_t more = (out->place[number] - (uint32_t)out->released) & LANDING_PLACE_MASK;
        if (more == 0 || more > out->sent - out->released) {
            (void)out_break(out, STRATA_ERR_PROTOCOL, "a credit for what was not sent");
            return;
        }
        out->ahead &= ~(1u << number);
        out->released += more;
        out->seen++;
    }
}

void st_landing_out_fail(struct st_landing_out *out, int rc)
{
    (void)out_break(out, rc, NULL);
}

bool st_landing_out_finished(const struct st_landing_out *out)
{
    return out->ended && out->released == out->committed && out->n_puts == 0;
}
