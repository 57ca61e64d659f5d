/* Who sends to the owner of a segment: the directory, in the segment, one entry for each process that does.
 *
 * A process that wants to send claims a free entry by compare-and-swap and writes its rank; the index of the entry is
 * its name in that segment: queue slots carry it, and its grant lies there. So nobody needs to know beforehand who will
 * come. The process lets go of the entry by SM_DIR_LEFT; only the owner makes it free again, when nothing that came
 * under that name is left unread, or when it finds the process dead.
 *
 * Peers can write all of this: the owner believes an entry once, after checking it, and then its own copy
 * (struct sm_sender). */
#ifndef SM_DIRECTORY_H
#define SM_DIRECTORY_H

#include <stdatomic.h>
#include <stdint.h>

#define SM_DIR_LEFT (1u << 31)
#define SM_DIR_NONE UINT32_MAX /* no index */

struct sm_dir_entry {
    _Atomic(uint32_t) name;  /* 0: free; rank + 1; with SM_DIR_LEFT when the process will not write here any more */
    _Atomic(uint32_t) grant; /* of a ring: written by the owner, read by the process before each send (polling.c) */
};
_Static_assert(sizeof(struct sm_dir_entry) == 8, "the budget of a peer in a segment");

static inline uint32_t sm_dir_name(int rank)
{
    return (uint32_t)rank + 1u;
}
/* A free entry of n, now named for rank; SM_DIR_NONE when there is none. */
uint32_t sm_dir_claim(struct sm_dir_entry *dir, uint32_t n, int rank);

#endif
