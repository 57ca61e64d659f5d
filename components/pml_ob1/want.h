/* The message that a blocking receive wants, while it polls for the first time. Most often nothing else comes then: the
 * message is known by its header, two words, and is copied where it belongs without a request. Everything else that
 * comes has the receive posted first (ob1_want_post). Only without threads: nobody else polls meanwhile. */
#ifndef OB1_WANT_H
#define OB1_WANT_H

#include <strata/sdk/pml.h>
#include <strata/sdk/copy.h>
#include "comm.h"

#define OB1_WANT_MOST 64u /* bytes; st_copy is inline up to here */
/* In `hdr_len`: no header, forged ones included, is as long. */
#define OB1_WANT_NONE UINT32_MAX       /* nothing is wanted, or the receive has been posted */
#define OB1_WANT_CAME (UINT32_MAX - 1) /* the message has come */

/* All of the receive: what is needed again after the poll lies here and not in registers that would have to be saved.
 */
struct ob1_want {
    uint64_t w[2];    /* its header: union wire_match_words */
    uint32_t hdr_len; /* of w while it is wanted */
    void *buf;
    size_t room;
    strata_comm_t *comm;
    strata_status_t *status;
    struct ob1_req *req; /* not filled in yet */
    uint32_t len;        /* bytes that have come */
};

struct ob1;
/* Posts the wanted receive, if there is one. */
void ob1_want_post(struct ob1 *pml);

/* Whether the fragment is what is wanted: then it has been received. */
ST_INLINE bool ob1_want_take(struct ob1_want *want, const struct st_frag *frag)
{
    struct ob1_cpeer *from;
    uint64_t w[2];
    size_t len = frag->len;

    if (ST_UNLIKELY(frag->hdr_len != want->hdr_len))
        return false;
    memcpy(w, frag->hdr, sizeof w); /* once: the sender may be able to change it under us */
    if (w[0] != want->w[0] || w[1] != want->w[1] || len > want->room || len > OB1_WANT_MOST)
        return false;
    from = ((struct ob1_comm *)want->comm)->from;
    if (ST_UNLIKELY(frag->rank != from->job_rank))
        return false;
    st_copy(want->buf, frag->data, len);
    from->recv_seq++;
    from->bytes_received += len;
    want->len = (uint32_t)len;
    want->hdr_len = OB1_WANT_CAME;
    return true;
}

#endif
