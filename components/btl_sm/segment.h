/* A process's shared segment: one memfd that the owner makes and peers map.
 *
 *   header page | directory | queue slots | coop descriptors || cells | rings
 *
 * What is left of || is reserved when the segment is made, each cell and ring when it is first needed. All of the
 * file's size is fixed and sealed, so that no access can fault for want of size; owners touch nothing they have not
 * reserved. Who writes what: see docs/design/btl_sm.md. */
#ifndef SM_SEGMENT_H
#define SM_SEGMENT_H

#include <stdatomic.h>
#include <strata/sdk/component.h>
#include "copy_facts.h"
#include "directory.h"

#define SM_LINE           64u
#define SM_MAGIC          0x5354524154412d73ull
#define SM_VERSION        8u
#define SM_SLOT_BYTES     256u
#define SM_COOP_SLOTS     32u
#define SM_RING_CTL       256u /* bytes of a ring before its descriptors */
#define SM_MAX_SEGMENT    ((size_t)1 << 40)
#define SM_RING_DATA_MOST (1u << 30)

/* The numbers from which the layout follows. Read from a peer's header they are checked by sm_layout_make. */
struct sm_geometry {
    uint32_t n_dir;
    uint32_t queue_slots; /* power of two */
    uint32_t n_cells;
    uint32_t cell_data; /* multiple of 64 */
    uint32_t n_rings;
    uint32_t ring_slots; /* power of two */
    uint32_t ring_data;  /* power of two */
    uint32_t spare;
};

/* Offsets from the start of the segment. */
struct sm_layout {
    size_t directory, queue, coop, base_end, cells, cell_stride, rings, ring_stride, total;
};

struct sm_header {
    /* Constant once made. */
    _Alignas(SM_LINE) uint64_t magic;
    uint32_t version;
    uint32_t rank;
    uint64_t job;
    uint8_t key[16];
    uint64_t probe; /* what a peer's probing read must find */
    struct sm_geometry geometry;
    int32_t package; /* of its processors, or SM_ROAMS */
    /* How the owner sleeps (wake.h), or 0. Written by the owner when it goes to sleep and by the sender that wakes it;
     * read by senders after each send. */
    _Alignas(SM_LINE) _Atomic(uint32_t) sleeping;
    /* Futex word: counted up by the sender that wakes the owner. */
    _Alignas(SM_LINE) _Atomic(uint32_t) wake;
    /* Where producers of the shared queue claim next: written by all of them, not read by the owner. */
    _Alignas(SM_LINE) _Atomic(uint64_t) tail;
    /* Seldom written, looked at when there is nothing else to do. Hints but for `closing`: see senders.c. */
    _Alignas(SM_LINE) _Atomic(uint32_t) leavers; /* counted up by each process that lets go of its entry */
    _Atomic(uint32_t) crowd;                     /* counted up by processes that find the directory full */
    _Atomic(uint32_t) closing;                   /* set by the owner: nobody reads here any more */
    _Atomic(uint64_t) starved;                   /* a bit for each sender that sleeps until there is room: room.c */
    /* Times of copies, by distance. */
    _Alignas(SM_LINE) struct sm_copy_facts facts[SM_DISTANCES];
};
_Static_assert(sizeof(struct sm_header) <= 1024, "the header is part of one page");
_Static_assert(sizeof(struct sm_copy_facts) * SM_DISTANCES <= 2 * SM_LINE, "what others look at is two lines");

/* One cell of a sender: the state in a line of its own, then the data. The owner sets in_use, the receiver clears it.
 */
struct sm_cell {
    _Alignas(SM_LINE) _Atomic(uint32_t) in_use;
    _Alignas(SM_LINE) uint8_t data[];
};

struct sm_segment {
    int fd;
    uint8_t *base;
    struct sm_geometry geometry;
    struct sm_layout at;
    size_t limit;    /* most bytes to reserve; 0: none */
    size_t reserved; /* bytes reserved so far */
    bool owner;
};

/* STRATA_ERR_PROTOCOL when the numbers cannot be those of a segment. */
int sm_layout_make(const struct sm_geometry *g, struct sm_layout *out);
/* Makes and maps a segment with its base reserved. On failure errno tells why (EFBIG: the limit). */
int sm_segment_create(const struct sm_geometry *g, size_t limit, struct sm_segment *out);
/* Maps a segment made by someone else after checking type, seals, size and geometry. Does not take the fd. */
int sm_segment_map(int fd, struct sm_segment *out);
void sm_segment_destroy(struct sm_segment *seg);
/* Makes sure that [offset, offset + length), which nobody has used yet, has memory behind it, of zeros; where it begins
 * inside a page, what lies before it was reserved before. STRATA_ERR_NOMEM with errno set. */
int sm_segment_reserve(struct sm_segment *seg, size_t offset, size_t length);
/* Enters memory that was reserved into this process's page table, many pages at a time, and not each page at its first
 * use, which takes a microsecond. */
void sm_segment_enter(const uint8_t *from, size_t length);

static inline struct sm_header *sm_header(uint8_t *base)
{
    return (struct sm_header *)(void *)base;
}
static inline struct sm_cell *sm_cell(uint8_t *base, const struct sm_layout *at, uint32_t i)
{
    return (struct sm_cell *)(void *)(base + at->cells + (size_t)i * at->cell_stride);
}
static inline uint8_t *sm_ring_base(uint8_t *base, const struct sm_layout *at, uint32_t i)
{
    return base + at->rings + (size_t)i * at->ring_stride;
}
static inline uint32_t sm_pow2(uint32_t v)
{
    uint32_t p = 1;
    while (p < v && p < (1u << 31))
        p <<= 1;
    return p;
}

#endif
