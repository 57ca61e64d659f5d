/* Memory regions: making them, and checking what a key allows. */
#define _GNU_SOURCE 1
#include "cost.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

static size_t pages_of(const void *addr, size_t length, char **first)
{
    uintptr_t page = hca_page_size(), a = (uintptr_t)addr & ~(page - 1);

    *first = (char *)a;
    return length ? (((uintptr_t)addr + length + page - 1) & ~(page - 1)) - a : 0;
}

/* An adapter's driver would pin the pages: they are brought in, and what is not there or may not be written is refused.
 */
static int bring_in(void *addr, size_t length, bool write)
{
    char *first;
    size_t bytes = pages_of(addr, length, &first);
    unsigned char *seen;
    int rc;

    if (bytes == 0 || madvise(first, bytes, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0)
        return 0;
    if (errno != EINVAL)
        return errno == ENOMEM || errno == EFAULT ? EFAULT : errno;
    /* Memory that may not be written, or a kernel that does not know the question. */
    if (write && madvise(first, bytes, MADV_POPULATE_READ) == 0)
        return EFAULT;
    /* A kernel before 5.14. */
    seen = malloc(bytes / hca_page_size());
    rc = seen && mincore(first, bytes, seen) == 0 ? 0 : seen ? EFAULT : ENOMEM;
    free(seen);
    return rc;
}

static int account(size_t length)
{
    uint64_t now = atomic_load(&hca.bytes_registered);

    if (length > hca.limits.max_memlock || now > hca.limits.max_memlock - length)
        return ENOMEM;
    atomic_fetch_add(&hca.bytes_registered, length);
    atomic_store(&hca.header->bytes_registered, now + length);
    return 0;
}

/* Under hca.lock, as account() is. */
static void give_back(size_t length)
{
    atomic_fetch_sub(&hca.bytes_registered, length);
    atomic_store(&hca.header->bytes_registered, atomic_load(&hca.bytes_registered));
}

/* b: the file that it lies in; NULL: none. */
static int publish(struct hca_mr_own *mr, struct hca_pd_own *pd, const struct hca_backing *b, void *addr, size_t length,
                   uint64_t iova)
{
    static uint32_t hint;
    struct hca_mr *s;
    uint32_t slot =
        hca_slot_find((void *const *)hca.mr, hca.limits.max_mr < HCA_MRS ? hca.limits.max_mr : HCA_MRS, &hint);
    uint32_t generation;

    if (slot == HCA_NONE)
        return ENOMEM;
    s = hca_mr_at(hca.segment, slot);
    /* Another one than that of what was here before. */
    generation = s->last_generation % 255 + 1;
    s->last_generation = generation;
    s->pd = pd->number;
    s->access = mr->access;
    s->addr = iova;
    s->base = (uintptr_t)addr;
    s->length = length;
    atomic_store_explicit(&s->gone, HCA_THERE, memory_order_relaxed);
    atomic_store_explicit(hca_said_at(hca.segment, slot), 0, memory_order_relaxed);
    mr->slot = slot;
    mr->ibv.lkey = mr->ibv.rkey = slot << 8 | generation;
    hca.mr[slot] = mr;
    hca_top_raise(&hca.top_mr, &hca.header->top_mr, slot);
    s->watched = hca_watch(s);
    /* Only the kernel finds pages missing that are not watched. */
    s->file = b && s->watched ? hca_file_hold(b) : 0;
    s->file_offset = b ? b->offset : 0;
    /* Release: the key makes the rest valid. */
    atomic_store_explicit(&s->key, mr->ibv.lkey, memory_order_release);
    return 0;
}

/* Whether the device can grant these rights at all; 0 or an errno. */
static int grantable(const struct ibv_pd *pd, unsigned access)
{
    const unsigned remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

    if (hca_device_gone(hca_context(pd->context)->device->index))
        return EIO;
    if ((access & remote) && !(access & IBV_ACCESS_LOCAL_WRITE))
        return EINVAL;
    return access & (IBV_ACCESS_MW_BIND | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_ZERO_BASED) ? EOPNOTSUPP : 0;
}

struct ibv_mr *hca_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
    struct hca_backing backing;
    struct hca_mr_own *mr;
    bool in_file = false;
    int rc = grantable(pd, access);

    if (rc != 0) {
        errno = rc;
        return NULL;
    }
    mr = hca_fault_now(HCA_FAULT_MR) ? NULL : calloc(1, sizeof *mr);
    if (!mr) {
        errno = ENOMEM;
        return NULL;
    }
    rc = bring_in(addr, length, access & IBV_ACCESS_LOCAL_WRITE);
    mr->access = access;
    mr->ibv.context = pd->context;
    mr->ibv.pd = pd;
    mr->ibv.addr = addr;
    mr->ibv.length = length;
    if (rc == 0) {
        in_file = (access & IBV_ACCESS_REMOTE_WRITE) && hca_backing_find(addr, length, &backing);
        pthread_mutex_lock(&hca.lock);
        rc = account(length);
        if (rc == 0 && (rc = publish(mr, (struct hca_pd_own *)pd, in_file ? &backing : NULL, addr, length, iova)) != 0)
            give_back(length);
        pthread_mutex_unlock(&hca.lock);
    }
    if (rc != 0) {
        free(mr);
        errno = rc;
        return NULL;
    }
    atomic_fetch_add(&((struct hca_pd_own *)pd)->users, 1);
    if (hca_cost.set)
        hca_cost_region(mr->slot, addr, length);
    return &mr->ibv;
}

int hca_mr_allow(struct ibv_mr *ibv, struct ibv_pd *pd, unsigned access)
{
    struct hca_mr_own *mr = (struct hca_mr_own *)ibv;
    struct hca_mr *s = hca_mr_at(hca.segment, mr->slot);
    int rc = grantable(pd, access);

    if (rc == 0)
        rc = bring_in(ibv->addr, ibv->length, access & IBV_ACCESS_LOCAL_WRITE);
    if (rc != 0)
        return rc;
    const uint32_t before = ((struct hca_pd_own *)ibv->pd)->number;
    atomic_fetch_add(&((struct hca_pd_own *)pd)->users, 1);
    atomic_fetch_sub(&((struct hca_pd_own *)ibv->pd)->users, 1);
    ibv->pd = pd;
    mr->access = access;
    atomic_store(&s->pd, ((struct hca_pd_own *)pd)->number);
    atomic_store(&s->access, access);
    if (s->file)
        hca_pd_quiesce(before);
    return 0;
}

int hca_dereg_mr(struct ibv_mr *ibv)
{
    struct hca_mr_own *mr = (struct hca_mr_own *)ibv;
    struct hca_mr *s = hca_mr_at(hca.segment, mr->slot);

    /* Sequentially consistent: the key is cleared before users are looked at, and hca_take_hold() counts before
     * hca_mr_check() looks at the key. So a writer that saw the key has been counted. */
    atomic_store(&s->key, 0);
    if (s->file)
        hca_pd_quiesce(((struct hca_pd_own *)ibv->pd)->number);
    pthread_mutex_lock(&hca.lock);
    hca_file_let_go(s->file);
    s->file = 0;
    hca_unwatch(s);
    hca.mr[mr->slot] = NULL;
    give_back(ibv->length);
    pthread_mutex_unlock(&hca.lock);
    atomic_fetch_sub(&((struct hca_pd_own *)ibv->pd)->users, 1);
    free(mr);
    hca_cost_pay(HCA_COST_DEREG, 1, HCA_COST_DEREG, 0);
    return 0;
}

/* The owner's watcher has read that pages went away, and may not have marked whose. Bounded by the clock, since a call
 * of sched_yield(2) lasts long on a busy machine; a peer that is stopped, or has another's word in its segment, is
 * waited for once. */
static __attribute__((noinline)) void await_watcher(const struct hca_header *h)
{
    struct hca_peer *p = atomic_load(&hca.peer[HCA_ONCE(h->process) % HCA_PROCESSES]);
    const bool own = h == (struct hca_header *)(void *)hca.segment;
    const uint64_t begin = hca_now_ns();

    if (!own && !(p && (const struct hca_header *)(void *)p->segment == h))
        return; /* it says that it is somebody else */
    for (int i = 0; atomic_load(own ? &hca.watching : &h->watching); i++) {
        if (!own && atomic_load(&p->watcher_stuck) && i == 10)
            return;
        if (hca_now_ns() - begin > 2000000000u) {
            if (!own)
                atomic_store(&p->watcher_stuck, true);
            return;
        }
        sched_yield();
    }
}

/* A use of a region whose pages went away: what an adapter would do with it cannot be told from a program that works.
 */
static bool gone(char *segment, uint32_t slot, const struct hca_mr *s)
{
    const struct hca_header *h = (const struct hca_header *)(const void *)segment;

    if (atomic_load(&h->watching))
        await_watcher(h);
    if (atomic_load_explicit(&s->gone, memory_order_acquire) == HCA_THERE)
        return false;
    if (atomic_exchange(hca_said_at(segment, slot), 1) == 0)
        fprintf(stderr,
                "softhca: %.31s (pid %d): registered memory was used after it had been unmapped: region %#x, address "
                "%#llx, %llu "
                "bytes. An adapter would read or write pages that are no longer there. Deregister before unmapping.\n",
                h->program, (int)h->pid, atomic_load(&s->key), (unsigned long long)s->base,
                (unsigned long long)s->length);
    return true;
}

bool hca_mr_check(char *segment, uint32_t key, uint32_t pd, uint64_t *addr, uint64_t length, unsigned access)
{
    uint32_t slot = key >> 8;
    const struct hca_mr *s;
    uint64_t offset;

    if (length == 0)
        return true;
    if (slot >= HCA_MRS)
        return false;
    s = hca_mr_at(segment, slot);
    offset = *addr - s->addr;
    if (atomic_load_explicit(&s->key, memory_order_acquire) != key || key == 0 || s->pd != pd ||
        (s->access & access) != access || *addr < s->addr || length > s->length || offset > s->length - length ||
        gone(segment, slot, s))
        return false;
    *addr = s->base + offset;
    /* It may have been deregistered, and another made in its slot, while we looked. Sequentially consistent: pairs with
     * hca_dereg_mr(). */
    return atomic_load(&s->key) == key;
}
