/* The copies under a message, made by plain memcpy without any library: the lower bound of what `compare` measures on
 * one machine. Short messages have the bare exchange of a cache line as theirs (exchange.h). */
#ifndef PERF_BARE_H
#define PERF_BARE_H

#include <stddef.h>

enum { PERF_BARE_RING_MOST = 16384 }; /* bytes of the longest message that perf_bare_ring takes */

/* One-way time in us of a message of `bytes` through a ring of slots in shared memory: one processor copies it into a
 * slot and sets the slot's flag, the other sees the flag and copies it out. Median of some batches of round trips; 0 if
 * it cannot be measured. */
double perf_bare_ring(const int cpus[2], size_t bytes);

/* MB/s (10^6 bytes) at which both processors together copy: each copies `each` messages of `bytes`, every one from and
 * to memory of its own, again and again. Median of some batches; 0 if it cannot be measured. */
double perf_bare_copies(const int cpus[2], size_t bytes, size_t each);

#endif
