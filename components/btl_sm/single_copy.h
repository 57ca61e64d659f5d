/* Single copy inside the component: the system calls, and operations that are under way. */
#ifndef SM_SINGLE_COPY_H
#define SM_SINGLE_COPY_H

#include <strata/sdk/btl_rdma.h>
#include "attach.h"
#include "copy_facts.h"
#include "op_list.h"
#include "peer.h"

struct sm_card;
struct sm_map;
struct sm_module;
struct sm_op;

#define SM_COPY_AT_ONCE 16384u /* up to here a copy is made inside the call */

enum sm_direction { SM_COPY_GET, SM_COPY_PUT };

/* Copies between `local` here and `remote` in process pid. STRATA_ERR_PEER: there is no such process;
 * STRATA_ERR_UNSUPPORTED: not permitted, or an address is bad; STRATA_ERR_AGAIN: the kernel is out of memory. */
int sm_copy_bytes(uint32_t pid, enum sm_direction dir, void *local, uint64_t remote, size_t len);
/* The pair can no longer copy: capabilities are withdrawn, one line says so. */
void sm_copy_demote(struct sm_peer *p);
/* Copies a part of an operation of this process, as sm_copy_bytes; its time counts (learn.h). */
int sm_copy_part(const struct sm_op *op, void *local, uint64_t remote, size_t len);

void sm_copy_probe(struct sm_peer *p, const struct sm_card *card);
int sm_get(struct st_btl_endpoint *ep, void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
           struct st_btl_reg *reg, struct st_btl_op *op);
int sm_put(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
           struct st_btl_reg *reg, struct st_btl_op *op);
int sm_copy_progress(struct sm_module *m);
void sm_copy_cancel(struct sm_peer *p);                                /* operations with p end with STRATA_ERR_PEER */
bool sm_copy_busy(const struct sm_module *m, const struct sm_peer *p); /* a copy that is under way needs p */
void sm_copy_close(struct sm_module *m);
void sm_coop_called(struct sm_module *m, uint32_t src, const void *what, uint32_t len);

/* calibrate.c: the distance of a peer, and what copies cost there: once for a distance, unless parameters say. Measures
 * for about 0.1 ms where neither this process nor the peer's segment knows. peer_base: where the segment is in the
 * peer. */
void sm_calibrate(struct sm_peer *p, uint64_t peer_base);
void sm_facts_of(const struct st_btl_endpoint *ep, struct st_btl_facts *facts); /* st_btl_ops.facts */
/* From which size single copy pays. */
size_t sm_choose_rdma_min(const struct sm_copy_times *t, bool both_sides);
/* The same for a message that travels alone, by the attributes of the module: a power of two; while t->ring is not
 * known, no length that would be a stream; 0: never. */
uint32_t sm_choose_alone(const struct sm_copy_times *t, const struct st_btl *btl);

/* A copy that both sides work on. In the initiator's segment, so that the helper can claim; the words are written by
 * both. turn: generation << 32 | next chunk; a generation of 0 is never open. */
struct sm_coop_desc {
    _Alignas(SM_LINE) _Atomic(uint64_t) turn;
    _Atomic(uint32_t) done_by_helper; /* chunks that the helper has finished, failed ones too */
    _Atomic(uint32_t) helper_failed;
};
_Static_assert(sizeof(struct sm_coop_desc) == SM_LINE, "one line each");

/* The call for help: payload of SM_CTL_COOP. Everything that the helper needs but the claims. */
struct sm_coop_call {
    uint64_t initiator_address, helper_address;
    uint64_t len;
    uint32_t chunk;
    uint32_t n_chunks;
    uint32_t index; /* of the descriptor */
    uint32_t generation;
    uint32_t direction; /* as the initiator sees it: enum sm_direction */
    uint32_t spare;
};

#define SM_CLAIM_NONE UINT32_MAX
/* Claims the next chunk of an open generation, or SM_CLAIM_NONE. */
uint32_t sm_coop_claim(struct sm_coop_desc *d, uint32_t generation, uint32_t n_chunks);
/* Closes the descriptor: no claims are granted after it returns. Returns how many chunks had been claimed. */
uint32_t sm_coop_close(struct sm_coop_desc *d, uint32_t generation, uint32_t n_chunks);

/* coop.c: the initiator's and the helper's work; single_copy_ops.c drives them. */
struct sm_op {
    struct sm_op *next;
    struct sm_peer *peer;
    struct st_btl_op *user;
    uint8_t *local;
    uint64_t remote;
    size_t len;
    size_t at;                 /* one-sided: bytes done */
    struct sm_coop_desc *desc; /* NULL: one-sided */
    uint32_t generation;
    uint32_t n_chunks, chunk, mine; /* mine: chunks done here */
    enum sm_direction dir;
    uint8_t called; /* the helper has been told */
    uint8_t index;
    bool fresh;  /* its turn has not come */
    bool closed; /* all chunks are claimed */
    bool notify; /* put_notify.c: a message with `word` follows the data */
    uint32_t word;
    int error; /* a copy of ours failed; reported when the helper is out */
    uint32_t waits;
    uint8_t *to;        /* where `remote` is mapped here; NULL: by the kernel's copy */
    struct sm_map *map; /* held: that mapping */
};

struct sm_help {
    struct sm_help *next;
    struct sm_peer *peer; /* the initiator */
    struct sm_coop_call call;
};

static inline void sm_op_push(struct sm_op_list *list, struct sm_op *op)
{
    op->next = NULL;
    if (list->last)
        list->last->next = op;
    else
        list->first = op;
    list->last = op;
}
/* The first one; NULL: there is none. */
static inline struct sm_op *sm_op_pop(struct sm_op_list *list)
{
    struct sm_op *op = list->first;

    if (op && !(list->first = op->next))
        list->last = NULL;
    return op;
}

/* single_copy_ops.c */
struct sm_op *sm_op_new(struct sm_peer *p, const struct sm_op *what); /* NULL: no memory */
void sm_op_begin(struct sm_module *m, struct sm_op *op);              /* progress does the rest */
void sm_op_end(struct sm_module *m, struct sm_op *op, int rc);        /* calls done; op is in no list */
/* A copy that is made at once. */
int sm_copy_now(struct sm_peer *p, enum sm_direction dir, void *local, uint64_t remote, size_t len);

/* put_notify.c */
int sm_put_notify(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
                  struct st_btl_reg *reg, uint32_t word, struct st_btl_op *user);
void sm_store(struct sm_peer *p, uint8_t *to, const uint8_t *from, size_t len);
/* Sends the message that follows op's data. True: there is no room, and op waits for it in m->notices; else it has
 * ended. */
bool sm_notice_waits(struct sm_module *m, struct sm_op *op);
int sm_notices_progress(struct sm_module *m);

/* Does some of op's work. 1: more to do; STRATA_OK: complete; else the error. */
int sm_coop_step(struct sm_module *m, struct sm_op *op);
/* Ends op with an error, as soon as no helper is in its memory any more. */
void sm_copy_abandon(struct sm_op *op, int rc);
/* At close: waits, for a while, until the helper has left op's memory. */
void sm_coop_withdraw(struct sm_op *op, int64_t timeout_ms);
bool sm_coop_worth_a_call(struct sm_peer *p); /* whether the peer has come lately; asked once for an operation */
bool sm_coop_start(struct sm_module *m, struct sm_op *op);
/* Does one chunk. False: nothing is left to claim. */
bool sm_coop_help(struct sm_module *m, struct sm_help *h);

#endif
