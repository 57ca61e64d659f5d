/* Memory of a member that the others of its communicator map: counters of steps, and two buffers that take turns. What
 * others write there is data and counters; no address or length of it is used but to read another process' memory,
 * which the kernel checks. */
#ifndef COLL_SM_AREA_H
#define COLL_SM_AREA_H

#include <strata/sdk/atomic.h>
#include <strata/sdk/shared_map.h>

enum area_state {
    AREA_UNKNOWN, /* its owner has not yet mapped all others */
    AREA_REFUSED, /* and cannot */
    AREA_COPIES,  /* it has */
    AREA_READS    /* it has, and may read the memory of all others */
};

/* One writer for each line: the owner; but `readers`. */
struct area {
    _Alignas(64) ST_ATOMIC(uint32_t) state; /* enum area_state */
    uint64_t key;                           /* as in the card: what a trial read must find */
    _Alignas(64)
        ST_ATOMIC(uint64_t) posted; /* steps whose input of the owner is there; pairs with the readers' acquire */
    uint64_t lent[2];               /* address of the owner's input where it is read there, by parity of the step */
    /* 0; or 1 + the member whose failure has ended the owner's operations: what it lent may be overwritten. Pairs with
     * kind_withdrawn. */
    ST_ATOMIC(int32_t) ended;
    _Alignas(64) ST_ATOMIC(uint64_t) done;    /* steps in which the owner has taken what it needs of the others */
    _Alignas(64) ST_ATOMIC(uint32_t) readers; /* members that read the owner's memory at the moment */
};

enum { AREA_HEAD = 4096 };
_Static_assert(sizeof(struct area) <= AREA_HEAD, "the buffers begin on a page");

/* A member's card, sent to all others at the first operation. */
struct card {
    uint64_t address; /* of area.key in the owner */
    uint64_t key;
    struct st_shared_name name; /* of the area; length 0: there is none */
    uint64_t half;              /* bytes of a buffer */
    uint32_t pid, spare;
};

/* A member's own area. */
struct own_area {
    struct area *at;
    size_t bytes;
    int fd;
};

/* Makes one with two buffers of `half` bytes, all pages reserved. STRATA_ERR_NOMEM, STRATA_ERR_UNSUPPORTED. */
int cs_area_make(size_t half, struct own_area *out);
/* Others that have mapped it keep it until they unmap it. */
void cs_area_drop(struct own_area *own);

static inline char *area_half(const struct area *a, size_t half, uint64_t step)
{
    return (char *)(uintptr_t)a + AREA_HEAD + (step & 1u) * half;
}

#endif
