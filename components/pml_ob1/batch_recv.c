/* Short messages that came as one fragment (coalesce.c): each is delivered as if it had come alone. */
#include "ob1.h"
#include "ob1_inl.h"
#include "recv.h"
#include "wire.h"

/* The next one of `left` bytes at `at`; false: what it says of itself cannot be. */
static bool ob1_batch_next_part(const char *at, uint32_t left, struct wire_part *part)
{
    if (left < sizeof(*part))
        return false;
    memcpy(part, at, sizeof(*part)); /* once: the sender may be able to change it under us */
    left -= (uint32_t)sizeof(*part);
    return part->len <= left && wire_padded(part->len) <= left;
}

void ob1_on_batch(struct ob1 *pml, const struct st_frag *frag, const union wire_any *h)
{
    const char *at = frag->data, *end = at + frag->len;
    struct wire_part part;

    for (uint16_t seq = h->batch.seq; at != end; seq++) {
        union wire_match_words match;
        if (!ob1_batch_next_part(at, (uint32_t)(end - at), &part)) {
            ob1_protocol_error(pml, frag, "messages that are longer than what they came in");
            return;
        }
        at += sizeof(part);
        ob1_match_words(&match, OB1_EAGER, seq, h->batch.context, part.tag, h->batch.src);
        struct st_frag one = {
            .hdr = &match, .hdr_len = sizeof(match), .data = at, .len = part.len, .rank = frag->rank, .btl = frag->btl};
        ob1_deliver(pml, &one);
        at += wire_padded(part.len);
    }
}
