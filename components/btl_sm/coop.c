/* Copying together: both sides claim chunks of one copy from a counter in the initiator's segment.
 *
 * The initiator never waits for the helper to begin: it claims as well, and does everything itself if nobody comes. It
 * waits only for chunks that the helper has claimed and not finished; a helper that fails says so, and a helper that
 * dies is found by its pid. */
#define _GNU_SOURCE 1
#include "single_copy.h"
#include "send.h"
#include "senders.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE      4096u
#define MIN_CHUNK 32768u

uint32_t sm_coop_claim(struct sm_coop_desc *d, uint32_t generation, uint32_t n_chunks)
{
    uint64_t t = atomic_load_explicit(&d->turn, memory_order_acquire);

    /* Compare-and-swap and not addition: a late helper must not take from the descriptor's next use. */
    while ((uint32_t)(t >> 32) == generation && (uint32_t)t < n_chunks) {
        if (atomic_compare_exchange_weak_explicit(&d->turn, &t, t + 1, memory_order_acq_rel, memory_order_acquire))
            return (uint32_t)t;
    }
    return SM_CLAIM_NONE;
}

uint32_t sm_coop_close(struct sm_coop_desc *d, uint32_t generation, uint32_t n_chunks)
{
    uint64_t t = atomic_load_explicit(&d->turn, memory_order_acquire);

    while ((uint32_t)(t >> 32) == generation && (uint32_t)t < n_chunks) {
        if (atomic_compare_exchange_weak_explicit(&d->turn, &t, (uint64_t)generation << 32 | UINT32_MAX,
                                                  memory_order_acq_rel, memory_order_acquire))
            return (uint32_t)t;
    }
    return n_chunks;
}

static struct sm_coop_desc *sm_coop_desc_at(uint8_t *base, size_t coop, uint32_t i)
{
    return (struct sm_coop_desc *)(void *)(base + coop) + i;
}

static size_t sm_coop_chunk_length(size_t len, uint32_t chunk, uint32_t i)
{
    size_t at = (size_t)i * chunk;
    return len - at < chunk ? len - at : chunk;
}

/* Calls in a row that nobody came to, after which so many operations are done without one. */
enum { CALLS_IN_VAIN = 4, WITHOUT_A_CALL = 28 };

bool sm_coop_worth_a_call(struct sm_peer *p)
{
    if (p->calls_in_vain < CALLS_IN_VAIN)
        return true;
    if (++p->calls_in_vain < CALLS_IN_VAIN + WITHOUT_A_CALL)
        return false;
    p->calls_in_vain = CALLS_IN_VAIN - 1;
    return true;
}

bool sm_coop_start(struct sm_module *m, struct sm_op *op)
{
    uint32_t i;

    if (m->coop_used == UINT32_MAX)
        return false;
    i = (uint32_t)__builtin_ctz(~m->coop_used);
    m->coop_used |= 1u << i;
    op->index = (uint8_t)i;
    op->desc = sm_coop_desc_at(m->seg.base, m->seg.at.coop, i);
    /* Some chunks for each side, but large ones: every call costs the kernel a look-up of both processes' pages. */
    op->chunk = (uint32_t)(op->len / 4 / PAGE * PAGE);
    if (op->chunk < MIN_CHUNK)
        op->chunk = MIN_CHUNK;
    if (op->chunk > m->par->coop_chunk)
        op->chunk = (uint32_t)m->par->coop_chunk;
    op->n_chunks = (uint32_t)((op->len + op->chunk - 1) / op->chunk);
    if (++m->coop_generation == 0)
        m->coop_generation = 1;
    op->generation = m->coop_generation;
    atomic_store_explicit(&op->desc->done_by_helper, 0, memory_order_relaxed);
    atomic_store_explicit(&op->desc->helper_failed, 0, memory_order_relaxed);
    /* Release: opens the generation; pairs with the acquire in sm_coop_claim. */
    atomic_store_explicit(&op->desc->turn, (uint64_t)op->generation << 32, memory_order_release);
    m->count.coop++;
    return true;
}

static void sm_coop_finish(struct sm_module *m, struct sm_op *op)
{
    op->peer->calls_in_vain = op->mine < op->n_chunks ? 0 : (uint8_t)(op->peer->calls_in_vain + 1);
    sm_coop_close(op->desc, op->generation, op->n_chunks);
    m->coop_used &= ~(1u << op->index);
}

static void sm_coop_call_helper(struct sm_module *m, struct sm_op *op)
{
    struct sm_coop_call call = {.initiator_address = (uint64_t)(uintptr_t)op->local,
                                .helper_address = op->remote,
                                .len = op->len,
                                .chunk = op->chunk,
                                .n_chunks = op->n_chunks,
                                .index = op->index,
                                .generation = op->generation,
                                .direction = (uint32_t)op->dir};

    (void)m;
    if (sm_send_ctl(op->peer, SM_CTL_COOP, &call, sizeof call) != STRATA_ERR_AGAIN)
        op->called = 1;
}

/* All chunks are claimed: what is the helper still holding? */
static int sm_coop_await_helper(struct sm_module *m, struct sm_op *op)
{
    uint32_t theirs = op->n_chunks - op->mine;
    /* Acquire: pairs with the helper's release after its last copy; its bytes are here. */
    uint32_t done = atomic_load_explicit(&op->desc->done_by_helper, memory_order_acquire);

    if (done < theirs) {
        if ((++op->waits & 1023u) == 0 && !sm_process_alive(op->peer->pid)) {
            sm_coop_finish(m, op);
            return STRATA_ERR_PEER;
        }
        return 1;
    }
    sm_coop_finish(m, op);
    if (atomic_load_explicit(&op->desc->helper_failed, memory_order_relaxed)) {
        /* Which chunks failed is not worth knowing: from here on alone, from the start. */
        op->desc = NULL;
        op->at = 0;
        return 1;
    }
    return STRATA_OK;
}

int sm_coop_step(struct sm_module *m, struct sm_op *op)
{
    uint32_t i;
    int rc;

    if (!op->called)
        sm_coop_call_helper(m, op);
    if (op->closed)
        return sm_coop_await_helper(m, op);
    i = sm_coop_claim(op->desc, op->generation, op->n_chunks);
    if (i == SM_CLAIM_NONE) {
        op->closed = true;
        return sm_coop_await_helper(m, op);
    }
    rc = sm_copy_part(op, op->local + (size_t)i * op->chunk, op->remote + (uint64_t)i * op->chunk,
                      sm_coop_chunk_length(op->len, op->chunk, i));
    if (rc == STRATA_OK) {
        op->mine++;
        return 1;
    }
    op->mine++;
    if (rc == STRATA_ERR_AGAIN) { /* short of kernel memory: stop here, then alone from the start */
        atomic_store_explicit(&op->desc->helper_failed, 1, memory_order_relaxed);
        rc = STRATA_OK;
    }
    sm_copy_abandon(op, rc);
    return 1;
}

void sm_coop_withdraw(struct sm_op *op, int64_t timeout_ms)
{
    sm_copy_abandon(op, STRATA_ERR_STATE);
    for (int64_t waited = 0; waited < timeout_ms * 10; waited++) {
        if (atomic_load_explicit(&op->desc->done_by_helper, memory_order_acquire) >= op->n_chunks - op->mine ||
            !sm_process_alive(op->peer->pid))
            return;
        usleep(100);
    }
}

void sm_copy_abandon(struct sm_op *op, int rc)
{
    op->error = rc;
    if (!op->desc)
        return;
    /* Nobody may claim more; complete only when the helper has left the chunks that it holds. */
    if (!op->closed)
        op->n_chunks = sm_coop_close(op->desc, op->generation, op->n_chunks);
    op->closed = true;
}

bool sm_coop_help(struct sm_module *m, struct sm_help *h)
{
    struct sm_peer *p = h->peer;
    const struct sm_coop_call *c = &h->call;
    struct sm_layout at;
    struct sm_coop_desc *d;
    size_t offset;
    uint32_t i;

    sm_layout_make(&p->geometry, &at);
    d = sm_coop_desc_at(p->base, at.coop, c->index);
    i = sm_coop_claim(d, c->generation, c->n_chunks);
    if (i == SM_CLAIM_NONE)
        return false;
    offset = (size_t)i * c->chunk;
    if (sm_copy_bytes(p->pid, c->direction == SM_COPY_GET ? SM_COPY_PUT : SM_COPY_GET,
                      (void *)(uintptr_t)(c->helper_address + offset), c->initiator_address + offset,
                      sm_coop_chunk_length(c->len, c->chunk, i)) != STRATA_OK)
        atomic_store_explicit(&d->helper_failed, 1, memory_order_relaxed);
    /* Release: pairs with sm_coop_await_helper. */
    atomic_fetch_add_explicit(&d->done_by_helper, 1, memory_order_release);
    m->count.helped++;
    return true;
}

void sm_coop_called(struct sm_module *m, uint32_t src, const void *what, uint32_t len)
{
    struct sm_help *h;
    struct sm_coop_call c;
    struct sm_peer *p;

    if (len != sizeof c) {
        sm_peer_violation(m, sm_rank_at(m, src), "a call for help of the wrong size");
        return;
    }
    memcpy(&c, what, sizeof c); /* once; checked below */
    if (c.index >= SM_COOP_SLOTS || c.chunk == 0 || c.n_chunks == 0 || c.generation == 0 || c.direction > SM_COPY_PUT ||
        c.n_chunks != (c.len + c.chunk - 1) / c.chunk) {
        sm_peer_violation(m, sm_rank_at(m, src), "a call for help that makes no sense");
        return;
    }
    p = sm_peer_at(m, src);
    if (!p || p->single_copy == SM_COPY_OFF)
        return; /* the initiator does it alone */
    h = malloc(sizeof *h);
    if (!h)
        return;
    h->next = NULL;
    h->peer = p;
    h->call = c;
    if (m->helps_last)
        m->helps_last->next = h;
    else
        m->helps = h;
    m->helps_last = h;
    m->work++;
}
