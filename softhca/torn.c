/* The fault `torn`: the cache lines of an RDMA write become visible in any order, with a pause between two of them. The
 * bytes of one line come in order. */
#include "hca.h"

#include <time.h>

#define LINE 64u

/* Of several threads' writes none has to be told from another: a lost step of the seed repeats an order. */
static uint64_t torn_random(uint64_t bound)
{
    static _Atomic(uint64_t) seed;
    uint64_t x = atomic_fetch_add_explicit(&seed, 0x9e3779b97f4a7c15u, memory_order_relaxed) + hca_now_ns();

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (x ^ x >> 31) % bound;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* `length` bytes of a list, from the byte at `skip` on. */
static void torn_part(const struct hca_source *all, uint64_t skip, uint64_t length, struct hca_source *part)
{
    part->n = 0;
    part->is_inline = all->is_inline;
    for (uint32_t i = 0; i < all->n && length > 0; i++) {
        const struct hca_sge *sge = &all->sge[i];
        if (skip >= sge->length) {
            skip -= sge->length;
            continue;
        }
        const uint64_t here = sge->length - skip < length ? sge->length - skip : length;
        part->sge[part->n++] = (struct hca_sge){sge->addr + skip, (uint32_t)here, sge->lkey};
        length -= here;
        skip = 0;
    }
}

static void torn_pause(uint32_t most_us)
{
    const uint64_t ns = 1000 * (1 + torn_random(most_us));

    (void)nanosleep(&(struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)}, NULL);
}

enum hca_copied hca_torn_write(uint32_t most_us, struct hca_peer *p, const struct hca_source *from,
                               const struct hca_sge *to, hca_write_fn write)
{
    const uint64_t first = to->addr / LINE, n = to->length ? (to->addr + to->length - 1) / LINE - first + 1 : 0;
    struct hca_source part;

    if (n < 2)
        return write(p, from, to);
    /* A step that has no divisor in common with n comes to each line once. */
    uint64_t step = 1 + torn_random(n - 1), line = torn_random(n);
    const uint64_t pause_at = 1 + torn_random(n - 1);
    while (common_divisor(step, n) != 1)
        step = step % n + 1;
    for (uint64_t i = 0; i < n; i++, line = (line + step) % n) {
        const uint64_t begin = line == 0 ? to->addr : (first + line) * LINE;
        const uint64_t end = line == n - 1 ? to->addr + to->length : (first + line + 1) * LINE;
        const struct hca_sge there = {begin, (uint32_t)(end - begin), to->lkey};
        if (i == pause_at)
            torn_pause(most_us);
        torn_part(from, begin - to->addr, end - begin, &part);
        const enum hca_copied how = write(p, &part, &there);
        if (how != HCA_COPIED)
            return how;
    }
    return HCA_COPIED;
}
