/* Ping-pong: one message to and fro; and the round trips of reads and atomics, which one side makes alone. */
#include "config.h"
#include "pattern.h"

#include <string.h>
#include "post_inl.h"
#include "wait_inl.h"

/* Completions that wait_in_one_queue() waits for. */
#define OWN    1u
#define THEIRS 2u

/* The processor's counter, or the clock where it has none that programs may read. */
static inline uint64_t stamp_now(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return miba_now();
#endif
}

/* The last byte of a write says which message it is, other than the one before. */
static unsigned char mark_of(uint32_t i)
{
    return (unsigned char)(i % 127 + 1);
}

static enum miba_status wait_write(struct endpoint *e)
{
    volatile unsigned char *last = (unsigned char *)endpoint_rx(e, traffic_buffer(&e->t, e->received)) + e->t.size - 1;
    const unsigned char mark = mark_of(e->received);
    struct idle w = {0};

    while (*last != mark) {
        if (__builtin_expect(++w.turns % WATCH_TURNS == 0, 0)) {
            endpoint_look(e, &w);
            if (e->over)
                return MIBA_OK;
        }
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (e->t.check_order) {
        const unsigned char *first = (unsigned char *)endpoint_rx(e, traffic_buffer(&e->t, e->received));
        bool whole = true;
        for (uint32_t i = 0; i + 1 < e->t.size; i++)
            whole &= first[i] == mark;
        e->checked++;
        e->torn += !whole;
    }
    /* Of several buffers each is used again much later, with any mark. One alone is left as it is: to clear it, the
     * processor would have to take its line from the other side's once more. */
    if (e->t.buffers > 1)
        *last = 0;
    e->received++;
    return MIBA_OK;
}

/* A message has come, and its receive is posted again. */
static enum miba_status take(struct endpoint *e, const struct ibv_wc *wc)
{
    e->received++;
    const int error = endpoint_repost(e, wc);
    return error ? miba_fail(&e->m->why, MIBA_FAILED, "ibv_post_recv: %s", strerror(error)) : MIBA_OK;
}

static enum miba_status receive(struct endpoint *e)
{
    if (!miba_op_takes_receive(e->t.op))
        return wait_write(e);
    struct ibv_wc wc;
    const enum miba_status status = wait_one(e, e->rcq, &wc);
    return status || e->over ? status : take(e, &wc);
}

static enum miba_status post_one(struct endpoint *e)
{
    if (e->t.stamps)
        e->stamps[e->stamped++ % STAMPS] = stamp_now();
    if (e->t.check_order)
        memset(endpoint_tx(e, 0), mark_of(e->sent), e->t.size);
    else if (e->t.op == OP_WRITE)
        ((unsigned char *)endpoint_tx(e, traffic_buffer(&e->t, e->sent)))[e->t.size - 1] = mark_of(e->sent);
    const int error = endpoint_post(e, 1, true);
    return error ? miba_fail_verb(&e->m->why, error, "ibv_post_send", miba_op_name(e->t.op)) : MIBA_OK;
}

/* Waits for what `need` says, in the queue of both directions: the own message, the other side's, or both. */
static enum miba_status wait_in_one_queue(struct endpoint *e, unsigned need)
{
    struct ibv_wc wc[2];
    struct idle w = {0};

    for (unsigned seen = 0; (seen & need) != need;) {
        const int n = ibv_poll_cq(e->scq, 2, wc);
        if (n < 0)
            return miba_fail(&e->m->why, MIBA_FAILED, "ibv_poll_cq: %d", n);
        for (int i = 0; i < n; i++) {
            if (wc[i].status != IBV_WC_SUCCESS)
                return endpoint_failed(e, &wc[i]);
            if (!(wc[i].opcode & IBV_WC_RECV)) {
                seen |= OWN;
                continue;
            }
            seen |= THEIRS;
            const enum miba_status status = take(e, &wc[i]);
            if (status)
                return status;
        }
        const enum miba_status status = n ? MIBA_OK : wait_turn(e, e->scq, &w);
        if (status || e->over)
            return status;
    }
    return MIBA_OK;
}

/* Ping-pong with one queue for both directions: the own completion is awaited together with the next message. */
static enum miba_status pingpong_in_one_queue(struct endpoint *e, bool first, unsigned n, uint64_t *ns)
{
    uint64_t begin = 0;
    enum miba_status status = MIBA_OK;

    for (unsigned i = 0; i < n + WARM_UP; i++) {
        if (i == WARM_UP)
            begin = miba_now();
        if (!first)
            status = wait_in_one_queue(e, i ? OWN | THEIRS : THEIRS);
        if (!status && !e->over)
            status = post_one(e);
        if (first && !status && !e->over)
            status = wait_in_one_queue(e, OWN | THEIRS);
        if (status || e->over)
            return status;
    }
    *ns = n ? miba_now() - begin : 0;
    return first ? MIBA_OK : wait_in_one_queue(e, OWN);
}

enum miba_status pingpong(struct endpoint *e, bool first, unsigned n, uint64_t *ns)
{
    if (e->t.one_cq)
        return pingpong_in_one_queue(e, first, n, ns);
    struct ibv_wc wc;
    uint64_t begin = 0;
    enum miba_status status = MIBA_OK;

    for (unsigned i = 0; i < n + WARM_UP; i++) {
        if (i == WARM_UP)
            begin = miba_now();
        if (!first)
            status = receive(e);
        if (!status && !e->over)
            status = post_one(e);
        /* The completion comes while the message travels, so that the next message does not wait for it to be polled.
         */
        if (!status && !e->over)
            status = wait_one(e, e->scq, &wc);
        if (first && !status && !e->over)
            status = receive(e);
        if (status || e->over)
            return status;
    }
    *ns = n ? miba_now() - begin : 0;
    return MIBA_OK;
}

enum miba_status round_trips(struct endpoint *e, unsigned n, uint64_t *ns)
{
    const uint64_t begin = miba_now();
    struct ibv_wc wc;

    for (unsigned i = 0; i < n; i++) {
        enum miba_status status = post_one(e);
        if (!status)
            status = wait_one(e, e->scq, &wc);
        if (status || e->over)
            return status;
    }
    *ns = miba_now() - begin;
    return MIBA_OK;
}
