/* The data area of a ring, which grows in steps (ring.h) so that the first messages pay for few pages. At a grant there
 * is none. The sender asks for a step by a word in the ring; the owner reserves memory, and offers it in the ring's
 * control line; the sender says where it begins to use it by another word in the ring. */
#ifndef SM_AREA_H
#define SM_AREA_H

#include "ring.h"

struct sm_module;
struct sm_peer;

/* Kinds of words with SM_WORD_AREA. The payload's length is the step. */
enum sm_area_word {
    SM_AREA_WISH, /* the sender found the area full: a larger one, if there is memory */
    SM_AREA_NEED, /* the sender has a message that the area does not take: a larger one, or the ring is given up */
    SM_AREA_TURN  /* what follows lies in the area of this step, which was offered */
};

/* Most steps. A sender needs each once, so not more of its messages go by the queue while it has the ring. */
#define SM_AREA_STEPS 10u
_Static_assert((uint64_t)SM_AREA_FIRST << 2 * (SM_AREA_STEPS - 1) >= SM_RING_DATA_MOST, "the last step is all");

enum sm_area_answer {
    SM_AREA_LARGER, /* the area has become larger: try again */
    SM_AREA_LATER,  /* refused: until the consumer has read, or has offered more */
    SM_AREA_QUEUE   /* this one message goes by the queue */
};

/* Sender: the ring's area has no room for a payload of len bytes, which its last step would take. */
enum sm_area_answer sm_area_more(struct sm_peer *p, uint32_t len);
/* Sender: the owner offers more than is used. */
static inline bool sm_area_offered(const struct sm_ring_tx *tx)
{
    /* Acquire: pairs with the release in sm_area_offer; there is memory behind it. */
    return atomic_load_explicit(&tx->ctl->offered, memory_order_acquire) > tx->step;
}

/* The step that suits payloads of len bytes; 0: they fit descriptors. */
uint32_t sm_area_step(const struct sm_geometry *g, uint32_t len);
/* Owner: reserves memory up to a step and offers it. STRATA_ERR_NOMEM with errno set: what was offered still holds. */
int sm_area_offer(struct sm_module *m, struct sm_ring_rx *rx, uint32_t step);
/* Owner: a word with SM_WORD_AREA has been read. False: it cannot be true. */
bool sm_area_read(struct sm_module *m, struct sm_ring_rx *rx, uint64_t word);

#endif
