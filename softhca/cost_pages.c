/* The pages of memory regions, as an adapter counts them: ordinary ones, and huge ones (hugetlb) by their own size.
 * Transparent huge pages are not such: the kernel may split them at any time. */
#include "cost.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ORDINARY_SHIFT 12
/* What is shorter than this is counted in ordinary pages without a look: that would take longer than registering. */
#define HUGE_LEAST (1u << 21)

static _Atomic(uint8_t) shift_of[HCA_MRS];

/* Linux 6.11 and later answer by this, of /proc/PID/maps, what they know of the mapping of an address. */
struct mapping_query {
    uint64_t size, flags, addr;
    uint64_t start, end, mapping_flags, page_size, offset, inode;
    uint32_t device_major, device_minor, name_size, build_id_size;
    uint64_t name_addr, build_id_addr;
};
#define MAPPING_QUERY _IOWR('f', 17, struct mapping_query)

static uint8_t shift_at(const void *addr)
{
    struct mapping_query q = {.size = sizeof q, .addr = (uintptr_t)addr};
    const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    const bool known = fd >= 0 && ioctl(fd, MAPPING_QUERY, &q) == 0 && q.page_size > 1u << ORDINARY_SHIFT;

    if (fd >= 0)
        close(fd);
    return known ? (uint8_t)__builtin_ctzll(q.page_size) : ORDINARY_SHIFT;
}

unsigned hca_cost_page_shift(uint32_t slot)
{
    const unsigned shift = slot < HCA_MRS ? atomic_load_explicit(&shift_of[slot], memory_order_relaxed) : 0;

    return shift ? shift : ORDINARY_SHIFT;
}

void hca_cost_region(uint32_t slot, const void *addr, uint64_t length)
{
    struct hca_charge c = {.begin = hca_cost_ticks()};
    uint64_t pages = 0;

    if (length && (hca_cost_is(HCA_COST_PAGE) || hca_cost_is(HCA_COST_COLD))) {
        const uint8_t shift = length < HUGE_LEAST ? ORDINARY_SHIFT : shift_at(addr);
        atomic_store_explicit(&shift_of[slot], shift, memory_order_relaxed);
        pages = (((uintptr_t)addr + length - 1) >> shift) - ((uintptr_t)addr >> shift) + 1;
    }
    hca_charge_add(&c, HCA_COST_REG, 1);
    hca_charge_add(&c, HCA_COST_PAGE, pages);
    hca_charge_spend(&c);
}
