/* The bare exchange of a cache line between two processors: the floor under every message, and a gauge of where the
 * processors of a virtual machine are at the moment. */
#ifndef PERF_EXCHANGE_H
#define PERF_EXCHANGE_H

/* Series of round trips around a batch or a copy: some tens of us. */
enum { EXCHANGE_SERIES = 4 };

/* One-way time in us of the fastest of so many series of round trips; 0 when it cannot be measured. */
double perf_exchange(const int cpus[2], unsigned series);

#endif
