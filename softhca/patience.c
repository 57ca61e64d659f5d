/* Waiting for a process that holds a lock, or that has said that it changes something. It may be broken, and never end;
 * but on a busy machine one that works may get no processor for seconds. So the limit is on the processor time that it
 * uses meanwhile. */
#define _GNU_SOURCE 1
#include "hca.h"

#include <time.h>

#define LONGEST_WORK 1000000000u           /* ns of processor time: a hundred thousand times what such work takes */
#define LONGEST_WAIT (60u * 1000000000ull) /* ns by the clock: it may be stopped for good */

/* Processor time of all threads of a process, or, where the kernel does not tell, the time by the clock. */
static uint64_t used_ns(const struct hca_peer *p)
{
    struct timespec t;
    clockid_t id;

    if (clock_getcpuclockid(p->pid, &id) != 0 || clock_gettime(id, &t) != 0)
        return hca_now_ns();
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool hca_patience_over(const struct hca_peer *p, struct hca_patience *w)
{
    const uint64_t now = hca_now_ns();

    if (w->of != p) {
        *w = (struct hca_patience){p, now, used_ns(p)};
        return false;
    }
    return now - w->begin_ns > LONGEST_WAIT || used_ns(p) - w->used_ns > LONGEST_WORK;
}
