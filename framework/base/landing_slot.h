/* Private to the landing ring: slots and notices as they travel. */
#ifndef ST_BASE_LANDING_SLOT_H
#define ST_BASE_LANDING_SLOT_H

#include <strata/sdk/hint.h>
#include <strata/sdk/landing_ring.h>

/* Header of a slot. */
struct landing_slot {
    uint32_t len;
    uint32_t number;
    uint32_t seen; /* credits that the sender had received */
    uint32_t flags;
};
_Static_assert(sizeof(struct landing_slot) == ST_LANDING_HEAD, "as it travels");
#define LANDING_FIRST 1u /* number of the first slot: cleared memory is none */

enum {
    LANDING_MORE = 1u << 0,   /* the next slot comes by the same put */
    LANDING_ASK = 1u << 1,    /* no message: credit is wanted */
    LANDING_END = 1u << 2,    /* no message: nothing follows */
    LANDING_MARKED = 1u << 3, /* a message with the client's mark */
    LANDING_FLAGS = LANDING_MORE | LANDING_ASK | LANDING_END | LANDING_MARKED
};

#define LANDING_KIND_SHIFT   27
#define LANDING_NAME_SHIFT   17
#define LANDING_NUMBER_SHIFT 15
#define LANDING_LINE_MASK    0x3fffu /* the line of a notice of data */
#define LANDING_PLACE_MASK   0x7fffu /* the position of a credit */
#define LANDING_DATA_ZERO    0x1c000u
_Static_assert(ST_LANDING_MOST / ST_LANDING_LINE == LANDING_LINE_MASK + 1, "each line has a number");
_Static_assert(ST_LANDING_NAMES == 1u << (LANDING_KIND_SHIFT - LANDING_NAME_SHIFT), "each name has a number");
_Static_assert(ST_LANDING_CREDITS == 1u << (LANDING_NAME_SHIFT - LANDING_NUMBER_SHIFT), "so has each credit");

/* Lines of a slot whose message has len bytes, len <= UINT32_MAX - ST_LANDING_HEAD - ST_LANDING_LINE. */
static inline uint32_t landing_lines(uint32_t len)
{
    return (len + ST_LANDING_HEAD + ST_LANDING_LINE - 1) / ST_LANDING_LINE;
}
static inline uint32_t landing_longest(uint32_t lines)
{
    return lines * ST_LANDING_LINE - ST_LANDING_HEAD;
}
static inline bool landing_size_ok(const char *memory, uint32_t size, uint32_t name)
{
    return size >= ST_LANDING_LEAST && size <= ST_LANDING_MOST && (size & (size - 1)) == 0 &&
           (uintptr_t)memory % ST_LANDING_LINE == 0 && name < ST_LANDING_NAMES;
}
/* The line at which a position lies. */
static inline uint32_t landing_place(uint64_t position, uint32_t lines)
{
    return (uint32_t)position & (lines - 1);
}

/* The message of the slot at a line. */
static inline void landing_view(char *ring, uint32_t lines, uint64_t position, uint32_t len,
                                struct st_landing_view *view)
{
    uint32_t at = landing_place(position, lines) * ST_LANDING_LINE + ST_LANDING_HEAD;
    uint32_t rest = lines * ST_LANDING_LINE - at;
    bool wraps = len > rest;

    view->first = ring + at;
    view->first_len = wraps ? rest : len;
    view->second = wraps ? ring : NULL;
    view->second_len = wraps ? len - rest : 0;
    view->end = position + landing_lines(len);
    view->marked = false;
}

#endif
