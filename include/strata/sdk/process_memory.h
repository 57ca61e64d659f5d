/* Memory of a process by the kernel's figures (proc(5): /proc/PID/smaps and status), classified by owner. */
#ifndef STRATA_SDK_PROCESS_MEMORY_H
#define STRATA_SDK_PROCESS_MEMORY_H

#include <stddef.h>
#include <sys/auxv.h>
#include <strata/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All members are in bytes. A mapping belongs to one class: the device's (an RDMA device's file, or softhca's memory),
 * a segment (shared memory and other files that are mapped shared), an image (a program, a library, any other file
 * mapped private), or none of these (heap, stacks, anonymous maps). Reserved huge pages (hugetlbfs) are included in all
 * figures except resident_most, where the kernel omits them; one that several processes map counts in full. */
struct st_process_memory {
    size_t private_bytes; /* pages that no other process maps; outside the device's and segments */
    size_t proportional;  /* PSS: each page divided by the processes that map it; outside the device's */
    size_t images;        /* of private_bytes: in images, written by the loader and the program */
    size_t stack;         /* of private_bytes: stacks of threads */
    size_t segments;      /* resident in segments */
    size_t device;        /* resident in the device's mappings */
    size_t device_share;  /* PSS of these */
    size_t page_tables;   /* VmPTE: the kernel's tables for this process, in no other figure */
    size_t resident;      /* of all mappings */
    size_t resident_most; /* VmHWM: the most that were resident so far */
};

/* Reads the figures of process `pid`, 0: this one; takes half a millisecond and no memory from malloc. STRATA_OK,
 * STRATA_ERR_NOT_FOUND when there is no such process, or STRATA_ERR_UNSUPPORTED when its maps may not be read. */
STRATA_API int st_process_memory(int pid, struct st_process_memory *out);

/* Bytes of a page of the kernel, by which mprotect(2), mincore(2), userfaultfd(2) and /proc/PID/pagemap count
 * (getauxval(3): AT_PAGESZ). sysconf(3) may be told of larger ones, by which memory to share is laid out. */
static inline size_t st_page_size(void)
{
    return (size_t)getauxval(AT_PAGESZ);
}

/* Of `length` bytes at `memory` those in pages that are there (mincore(2)): a large buffer that malloc has just mapped
 * has none. */
STRATA_API size_t st_resident_bytes(const void *memory, size_t length);

#ifdef __cplusplus
}
#endif
#endif
