/* The landing ring, receiver: finds the slots in order, checks what the peer wrote, returns credit. */
#include <stdlib.h>
#include <string.h>

#include "framework/base/landing_slot.h"

int st_landing_in_create(struct st_landing_in *in, const char *ring, uint32_t size, uint32_t name,
                         st_landing_tell_fn tell, void *arg)
{
    if (!landing_size_ok(ring, size, name))
        return STRATA_ERR_ARG;
    *in = (struct st_landing_in){.ring = ring,
                                 .tell = tell,
                                 .arg = arg,
                                 .lines = size / ST_LANDING_LINE,
                                 .number = LANDING_FIRST,
                                 .name = name << LANDING_NAME_SHIFT | 1u << LANDING_KIND_SHIFT};
    in->landed = calloc((in->lines + 63) / 64, sizeof(*in->landed));
    return in->landed ? STRATA_OK : STRATA_ERR_NOMEM;
}

void st_landing_in_destroy(struct st_landing_in *in)
{
    free(in->landed);
    in->landed = NULL;
}

size_t st_landing_in_bytes(const struct st_landing_in *in)
{
    return in->landed ? (in->lines + 63) / 64 * sizeof(*in->landed) : 0;
}

static ST_COLD int in_break(struct st_landing_in *in, int rc, const char *why)
{
    if (in->rc == STRATA_OK) {
        in->rc = rc;
        in->why = why;
    }
    in->ready = in->starved = in->drains = false;
    return in->rc;
}

/* Whether slots are still read: the ring is whole, or was lost with messages in it. */
static bool in_reads(const struct st_landing_in *in)
{
    return in->rc == STRATA_OK || in->drains;
}

static bool in_landed(const struct st_landing_in *in, uint32_t line)
{
    return in->landed[line / 64] >> line % 64 & 1;
}
static void in_land(struct st_landing_in *in, uint32_t line)
{
    in->landed[line / 64] |= 1ull << line % 64;
}
static void in_take(struct st_landing_in *in, uint32_t line)
{
    in->landed[line / 64] &= ~(1ull << line % 64);
}

/* ---- release ---- */

/* Lines below `read` are released while an older message is held. No notice can be about them: the sender has no credit
 * for their places. */
static void in_mark(struct st_landing_in *in, uint64_t begin, uint32_t lines)
{
    for (uint32_t i = 0; i < lines; i++)
        in_land(in, landing_place(begin + i, in->lines));
}

/* Goes past lines that were marked; all are when no message is held. */
static inline void in_pass_marked(struct st_landing_in *in)
{
    while (in->released < in->read && (in->held == 0 || in_landed(in, landing_place(in->released, in->lines))))
        in_take(in, landing_place(in->released++, in->lines));
}

/* ---- credit ---- */

static inline bool in_is_last(const struct st_landing_in *in)
{
    return in->ended && in->released == in->read;
}
/* Whether what was released since the last credit is worth one. */
static inline bool in_owes(const struct st_landing_in *in)
{
    uint64_t more = in->released - in->told;

    if (ST_LIKELY(more < in->lines / 4 && in->ask_end <= in->told && !in->ended))
        return false;
    return more != 0 &&
           (more >= in->lines / 4 || (in->ask_end > in->told && in->released >= in->ask_end) || in_is_last(in));
}

/* Whether the sender may wait for credit that in_owes holds back. A sender without an ASK lacks room only when a
 * quarter of the ring is not returned. */
static inline bool in_owes_rest(const struct st_landing_in *in)
{
    return in->held != 0 && in->released != in->told &&
           (in->read - in->told >= in->lines / 4 || in->ask_end > in->told);
}

void st_landing_return(struct st_landing_in *in)
{
    bool last = in_is_last(in), owes = in_owes(in) || (in->starved && in_owes_rest(in));

    in->starved = false;
    if (!owes || in->rc != STRATA_OK)
        return;
    /* The last one that may be unacknowledged is for the end, behind which no slot acknowledges anything. */
    if (in->credits - in->acknowledged >= ST_LANDING_CREDITS - !last)
        return;
    uint32_t number = (in->credits + 1) % ST_LANDING_CREDITS;
    int rc = in->tell(in->arg, number,
                      in->name | number << LANDING_NUMBER_SHIFT | ((uint32_t)in->released & LANDING_PLACE_MASK));
    if (rc == STRATA_ERR_AGAIN) {
        in->starved = true;
    } else if (rc != STRATA_OK && rc != 1) {
        st_landing_in_fail(in, rc); /* what has landed is handed out all the same */
    } else {
        in->credits++;
        in->told = in->released;
    }
}

void st_landing_return_rest(struct st_landing_in *in)
{
    if (ST_LIKELY(in->ready || !in_owes_rest(in)))
        return;
    in->starved = true;
    st_landing_return(in);
}

/* ---- slots ---- */

/* The peer may write there at any time: each word is read once. */
static struct landing_slot in_slot(const struct st_landing_in *in, uint32_t line)
{
    const uint64_t *at = (const uint64_t *)(const void *)(in->ring + (size_t)line * ST_LANDING_LINE);
    uint64_t words[2] = {__atomic_load_n(&at[0], __ATOMIC_RELAXED), __atomic_load_n(&at[1], __ATOMIC_RELAXED)};
    struct landing_slot slot;

    _Static_assert(sizeof(words) == sizeof(slot), "two words");
    memcpy(&slot, words, sizeof(slot));
    return slot;
}

/* The contradiction in the slot at `read`, or NULL. */
static const char *in_wrong(const struct st_landing_in *in, const struct landing_slot *slot)
{
    uint32_t kind = slot->flags & (LANDING_ASK | LANDING_END);

    if (slot->number != in->number)
        return "a slot out of turn";
    if (slot->flags & ~(uint32_t)LANDING_FLAGS || (kind && (slot->len || slot->flags & LANDING_MARKED)) ||
        kind == (LANDING_ASK | LANDING_END))
        return "a slot with unknown flags";
    if (slot->len > landing_longest(in->lines) || in->read + landing_lines(slot->len) > in->told + in->lines)
        return "a slot that is longer than the credit";
    if (slot->seen - in->acknowledged > in->credits - in->acknowledged)
        return "a slot that acknowledges what was not given";
    return NULL;
}

/* Goes past the slot at `read`. */
static void in_pass(struct st_landing_in *in, uint32_t lines, bool joins)
{
    in->read += lines;
    in->joined = joins && landing_place(in->read, in->lines) != 0;
}

/* Whether a slot that has landed is to be looked at. */
static inline bool in_has_more(const struct st_landing_in *in)
{
    return !in->ready && !in->ended && in_reads(in) &&
           (in->joined || in_landed(in, landing_place(in->read, in->lines)));
}

/* The slot at `read`, which is there: a message becomes ready, others are dealt with. False: nothing more to do. */
static bool in_look_once(struct st_landing_in *in)
{
    uint32_t line = landing_place(in->read, in->lines);
    struct landing_slot slot = in_slot(in, line);
    const char *wrong = in_wrong(in, &slot);
    if (wrong) {
        (void)in_break(in, STRATA_ERR_PROTOCOL, wrong);
        return false;
    }
    uint32_t lines = landing_lines(slot.len);
    if (line + lines > in->lines) {
        if (!in_landed(in, 0))
            return false; /* its second part is on its way */
        in_take(in, 0);
    }
    in_take(in, line);
    in->number++;
    in->acknowledged = slot.seen;
    if (slot.flags & (LANDING_ASK | LANDING_END)) {
        in_pass(in, lines, slot.flags & LANDING_MORE);
        in->ended = slot.flags & LANDING_END;
        if (slot.flags & LANDING_ASK)
            in->ask_end = in->read;
        if (in->held == 0)
            in->released = in->read;
        else
            in_mark(in, in->read - lines, lines);
    } else {
        in->ready = true;
        in->marked = slot.flags & LANDING_MARKED;
        in->len = slot.len;
        in->slot_lines = lines;
        in->joins = slot.flags & LANDING_MORE;
    }
    return true;
}

/* Whatever has landed at `read` was acted upon afterwards, also if nobody peeks: acknowledgements, and wishes. */
static void in_look(struct st_landing_in *in)
{
    bool any = false;

    while (in_has_more(in) && in_look_once(in))
        any = true;
    if (any && ST_UNLIKELY(in_owes(in)))
        st_landing_return(in);
}

/* The reason why a notice cannot be true, or NULL. */
static const char *in_notice_wrong(const struct st_landing_in *in, uint32_t notice)
{
    uint32_t line = notice & LANDING_LINE_MASK;
    uint64_t from = in->read + (in->ready ? in->slot_lines : 0);

    if (st_landing_is_credit(notice) || notice & LANDING_DATA_ZERO || line >= in->lines || in->ended)
        return "a malformed notice";
    if (from + landing_place(line - from, in->lines) >= in->told + in->lines)
        return "a notice of data without credit";
    return in_landed(in, line) ? "a notice that came before" : NULL;
}

void st_landing_notice(struct st_landing_in *in, uint32_t notice)
{
    if (in->rc != STRATA_OK)
        return;
    const char *wrong = in_notice_wrong(in, notice);
    if (ST_UNLIKELY(wrong != NULL)) {
        (void)in_break(in, STRATA_ERR_PROTOCOL, wrong);
        return;
    }
    in_land(in, notice & LANDING_LINE_MASK);
    in_look(in);
}

void st_landing_arrive(struct st_landing_in *in, uint32_t notice, const void *data, uint32_t len)
{
    uint32_t line = notice & LANDING_LINE_MASK;

    if (in->rc != STRATA_OK)
        return;
    if (line >= in->lines || len > (in->lines - line) * ST_LANDING_LINE) {
        (void)in_break(in, STRATA_ERR_PROTOCOL, "data for beyond the ring");
        return;
    }
    st_copy_long((char *)(uintptr_t)in->ring + (size_t)line * ST_LANDING_LINE, data, len);
    st_landing_notice(in, notice);
}

/* Behind the message that was copied and given back: what has landed there. */
static inline void in_gave_back(struct st_landing_in *in, uint32_t lines, bool joins)
{
    in_pass(in, lines, joins);
    in->released = in->read;
    while (in_has_more(in) && in_look_once(in))
        ;
}

/* Credit behind the message of a reader that waited: the sender that has half of the ring left and has not asked can
 * wait for it until the reader goes on, which may have an answer to give first. */
static inline void in_owe_later(struct st_landing_in *in)
{
    if (ST_LIKELY(!in_owes(in)))
        return;
    if (in->released - in->told < in->lines / 2 && in->ask_end <= in->told && !in->ended)
        in->starved = true;
    else
        st_landing_return(in);
}

/* A reader waits for the slot at `read`, and this is one with a message. */
static inline bool in_is_awaited(const struct st_landing_in *in, uint32_t line, const struct landing_slot *slot)
{
    return !in->ready && in->held == 0 && !in->joined && line == landing_place(in->read, in->lines) && slot->flags == 0;
}

bool st_landing_arrive_slot(struct st_landing_in *in, uint32_t notice, const void *head, const void *data, uint32_t len,
                            void *to, size_t size)
{
    uint32_t line = notice & LANDING_LINE_MASK;
    struct st_landing_view view;
    struct landing_slot slot;

    if (in->rc != STRATA_OK)
        return false;
    memcpy(&slot, head, sizeof(slot));
    const char *wrong = in_notice_wrong(in, notice);
    if (!wrong && (len != slot.len || len > landing_longest(in->lines)))
        wrong = "a slot that is longer than its message";
    bool awaited = !wrong && to && len <= size && in_is_awaited(in, line, &slot);
    if (awaited)
        wrong = in_wrong(in, &slot);
    bool wraps = !wrong && line + landing_lines(len) > in->lines;
    if (wraps && in_landed(in, 0))
        wrong = "a notice that came before";
    if (ST_UNLIKELY(wrong != NULL)) {
        (void)in_break(in, STRATA_ERR_PROTOCOL, wrong);
        return false;
    }
    if (ST_LIKELY(awaited)) {
        st_copy(to, data, len);
        in->number++;
        in->acknowledged = slot.seen;
        in_gave_back(in, landing_lines(len), false);
        in_owe_later(in);
        return true;
    }
    memcpy((char *)(uintptr_t)in->ring + (size_t)line * ST_LANDING_LINE, &slot, sizeof(slot));
    landing_view((char *)(uintptr_t)in->ring, in->lines, line, len, &view);
    st_landing_fill(&view, data);
    in_land(in, line);
    if (wraps)
        in_land(in, 0);
    in_look(in);
    return false;
}

int st_landing_peek(struct st_landing_in *in, struct st_landing_view *view)
{
    if (ST_UNLIKELY(!in_reads(in)))
        return in->rc;
    if (!in->ready && in->ended)
        return ST_LANDING_ENDED;
    if (!in->ready) {
        st_landing_return_rest(in);
        return in->rc != STRATA_OK ? in->rc : STRATA_ERR_AGAIN;
    }
    landing_view((char *)(uintptr_t)in->ring, in->lines, in->read, in->len, view);
    view->marked = in->marked;
    in->ready = false;
    in->held++;
    in_pass(in, in->slot_lines, in->joins);
    in_look(in);
    return STRATA_OK;
}

int st_landing_take(struct st_landing_in *in, void *to, size_t size, uint32_t *len)
{
    struct st_landing_view view;

    if (!in->ready)
        return in->ended || in->rc != STRATA_OK ? STRATA_ERR_UNSUPPORTED : STRATA_ERR_AGAIN;
    if (ST_UNLIKELY(in->marked || in->held || in->rc != STRATA_OK))
        return STRATA_ERR_UNSUPPORTED;
    *len = in->len;
    landing_view((char *)(uintptr_t)in->ring, in->lines, in->read, in->len, &view);
    if (ST_LIKELY(in->len <= size && view.second_len == 0)) {
        st_copy(to, view.first, in->len);
    } else {
        size_t first = view.first_len < size ? view.first_len : size;
        size_t second = view.second_len < size - first ? view.second_len : size - first;
        st_copy(to, view.first, first);
        if (second)
            st_copy((char *)to + first, view.second, second);
    }
    in->ready = false;
    in_gave_back(in, in->slot_lines, in->joins);
    if (ST_UNLIKELY(in_owes(in)))
        st_landing_return(in);
    return STRATA_OK;
}

int st_landing_release(struct st_landing_in *in, const struct st_landing_view *view)
{
    uint32_t len = st_landing_length(view);

    if (ST_UNLIKELY(!in_reads(in)))
        return in->rc;
    bool held = in->held != 0 && view->end <= in->read && view->end > in->released && len <= landing_longest(in->lines);
    uint32_t lines = held ? landing_lines(len) : 0;
    uint64_t begin = view->end - lines;
    if (!held || view->end - in->released < lines || in_landed(in, landing_place(begin, in->lines)))
        return in->rc != STRATA_OK ? in->rc : STRATA_ERR_ARG;
    in->held--;
    if (ST_LIKELY(begin == in->released))
        in->released = view->end;
    else
        in_mark(in, begin, lines);
    in_pass_marked(in);
    st_landing_return(in);
    return in_reads(in) ? STRATA_OK : in->rc;
}

/* A slot that has landed stays in this process's memory, whatever becomes of the peer. */
void st_landing_in_fail(struct st_landing_in *in, int rc)
{
    if (in->rc != STRATA_OK)
        return;
    in->rc = rc;
    in->starved = false;
    in->drains = true;
}

bool st_landing_in_finished(const struct st_landing_in *in)
{
    return in->ended && in->held == 0 && in->told == in->read;
}
