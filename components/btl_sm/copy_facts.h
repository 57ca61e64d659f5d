/* Times of copies between two processes, for each distance between processors: measured once, then learnt from
 * messages; published in the segment, taken over by all that attach it. */
#ifndef SM_COPY_FACTS_H
#define SM_COPY_FACTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* How far the processors of two processes lie apart. */
enum sm_distance {
    SM_NEAR, /* both stay in the same package */
    SM_ANY,  /* another one, or not known: one of them may run anywhere */
    SM_DISTANCES
};
#define SM_WHOLE      65536u /* bytes that times of copies are of */
#define SM_FACTS_ROOM 16384u /* bytes of the other's memory that are read */
#define SM_ROAMS      (-1)   /* no package of its own */

/* Times in ns, the least of three: 64 KiB, 16 KiB and 8 bytes out of the other's segment by the kernel; 64 KiB by
 * memcpy within the caches; and the kernel's first 16 and 64 KiB, whose pages and lines nobody here had touched.
 * By what parts of messages have taken lately, 64 KiB out of a ring, into one, and by the kernel for messages above
 * 64 KiB (`copy`) and for others (`small`); 0: not known. */
struct sm_copy_times {
    uint64_t kernel, cache, call, kernel_16k, cold_16k, cold_64k, ring, fill, copy, small;
};

/* In the segment's header. Written by the owner: once, but for `ring` and `fill`. */
struct sm_copy_facts {
    uint32_t kernel, cache, call, kernel_16k, cold_16k, cold_64k;
    _Atomic(uint32_t) known; /* release and acquire: what stands above is there */
    _Atomic(uint32_t) ring;  /* out of the owner's rings; 0: not known */
    _Atomic(uint32_t) fill;  /* by the owner into rings; 0: not known */
};

/* Times that parts of messages have taken: of four the least, weighed in by a quarter unless they have changed by half.
 */
struct sm_part_times {
    uint32_t least, n; /* of the present four */
    uint32_t ns;       /* of 64 KiB; 0: not known yet */
};
#define SM_RING_TIMED  8192u /* bytes of the shortest fragment that counts */
#define SM_TIMED_EVERY 8u    /* of such fragments one is timed; a power of two */
/* A part of `bytes` has taken `ns`. True: t->ns is new. */
bool sm_part_times_add(struct sm_part_times *t, uint32_t bytes, uint64_t ns);

/* The package of the processors that this process may run on, or SM_ROAMS. Two files of sysfs are read. */
int32_t sm_package(void);
enum sm_distance sm_distance_of(int32_t mine, int32_t theirs);

void sm_facts_publish(struct sm_copy_facts *to, const struct sm_copy_times *t);
/* `ring` or `fill` alone: others read it from time to time, so it is written when it has changed by more than an
 * eighth.
 */
void sm_facts_publish_part(_Atomic(uint32_t) *to, uint32_t ns);
/* 0: not known, or it cannot be true. */
uint32_t sm_facts_read_part(const _Atomic(uint32_t) *from);
/* False: nothing has been published, or it cannot be true. */
bool sm_facts_read(const struct sm_copy_facts *from, struct sm_copy_times *out);

/* Measures against the memory [remote, remote + SM_FACTS_ROOM) of process pid, about 0.1 ms. A sample during which the
 * kernel has switched to another thread does not count, unless there are no others. False: the kernel refuses, or there
 * is no memory. */
bool sm_facts_measure(uint32_t pid, uint64_t remote, struct sm_copy_times *out);

#endif
