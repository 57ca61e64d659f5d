/* The page that the ranks of a job of one machine share: who is there, and fences. */
#ifndef RTE_PMIX_MEETING_H
#define RTE_PMIX_MEETING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct meeting_page;

struct rte_pmix_meeting {
    struct meeting_page *page;
    size_t bytes;
    int fd; /* byte `rank` of the file is locked as long as this process lives: others see by it that it does */
    int rank, size;
    uint32_t fences; /* that this rank has arrived at */
};

/* Enters by the file `path`, which the first rank makes. STRATA_ERR_STATE: this rank has been there before;
 * STRATA_ERR_PROTOCOL: it is another job's; STRATA_ERR_SYSTEM with errno. */
int rte_pmix_meeting_enter(struct rte_pmix_meeting *m, const char *path, int rank, int size);
/* Leaves: the rank counts as gone, not as dead. */
void rte_pmix_meeting_leave(struct rte_pmix_meeting *m);
/* Sleeps until all ranks have arrived. STRATA_ERR_PEER: one of them has died, or left, before it arrived. */
int rte_pmix_meeting_fence(struct rte_pmix_meeting *m);
/* Whether `rank` was there and its process is not any more, although it has not left. */
int rte_pmix_meeting_dead(const struct rte_pmix_meeting *m, int rank);

#endif
