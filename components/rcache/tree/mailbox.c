/* See mailbox.h. A slot's life: its bit in `taken` is set (acquire: after the reader's release of it), the range is
 * written, its bit in `full` is set (release); the reader clears `full` (acquire), reads, clears `taken` (release). */
#include "mailbox.h"

void mailbox_init(struct mailbox *m)
{
    atomic_init(&m->news, 0);
    for (unsigned w = 0; w < MAILBOX_WORDS; w++) {
        atomic_init(&m->taken[w], 0);
        atomic_init(&m->full[w], 0);
    }
    atomic_init(&m->lowest, UINTPTR_MAX);
    atomic_init(&m->highest, 0);
}

void mailbox_widen(struct mailbox *m, uintptr_t from, uintptr_t to)
{
    if (from < atomic_load_explicit(&m->lowest, memory_order_relaxed))
        atomic_store_explicit(&m->lowest, from, memory_order_relaxed);
    if (to > atomic_load_explicit(&m->highest, memory_order_relaxed))
        atomic_store_explicit(&m->highest, to, memory_order_relaxed);
}

void mailbox_close(struct mailbox *m)
{
    atomic_store_explicit(&m->lowest, UINTPTR_MAX, memory_order_relaxed);
    atomic_store_explicit(&m->highest, 0, memory_order_relaxed);
}

/* A slot that is nobody's else, or -1. */
static int mailbox_claim(struct mailbox *m)
{
    for (unsigned w = 0; w < MAILBOX_WORDS; w++) {
        uint64_t have = atomic_load_explicit(&m->taken[w], memory_order_relaxed);
        /* Another thread may be quicker; each of a few attempts is for another bit. */
        for (int tries = 0; tries < 8 && ~have; tries++) {
            uint64_t bit = ~have & (have + 1);
            have = atomic_fetch_or_explicit(&m->taken[w], bit, memory_order_acquire);
            if (!(have & bit))
                return (int)(64 * w) + __builtin_ctzll(bit);
        }
    }
    return -1;
}

/* Who frees memory that the cache knows has seen what the owner wrote before, or could not know the memory is free: so
 * relaxed reads of the bounds suffice. The same argument covers `news`: whoever uses the addresses again learns of it
 * from the thread that gave them up. */
void mailbox_post(struct mailbox *m, uintptr_t from, uintptr_t to)
{
    if (from >= atomic_load_explicit(&m->highest, memory_order_relaxed) ||
        to <= atomic_load_explicit(&m->lowest, memory_order_relaxed) || from >= to)
        return;
    int i = mailbox_claim(m);
    if (i < 0) {
        atomic_fetch_or_explicit(&m->news, MAILBOX_LOST, memory_order_release);
        return;
    }
    m->slot[i].from = from;
    m->slot[i].to = to;
    atomic_fetch_or_explicit(&m->full[i / 64], (uint64_t)1 << (i % 64), memory_order_release);
    atomic_fetch_or_explicit(&m->news, (uint64_t)1 << (i / 64), memory_order_release);
}

bool mailbox_take(struct mailbox *m, void (*fn)(void *arg, uintptr_t from, uintptr_t to), void *arg)
{
    uint64_t news = atomic_exchange_explicit(&m->news, 0, memory_order_acquire);
    for (uint64_t words = news & ~MAILBOX_LOST; words; words &= words - 1) {
        int w = __builtin_ctzll(words);
        uint64_t full = atomic_exchange_explicit(&m->full[w], 0, memory_order_acquire);
        for (uint64_t bits = full; bits; bits &= bits - 1) {
            int i = 64 * w + __builtin_ctzll(bits);
            fn(arg, m->slot[i].from, m->slot[i].to);
        }
        atomic_fetch_and_explicit(&m->taken[w], ~full, memory_order_release);
    }
    return news & MAILBOX_LOST;
}
