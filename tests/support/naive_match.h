/* Reference for matching: two plain lists searched from the front, as MPI's rules are usually stated. Slow, and
 * obviously right. -1 is the wildcard of source and tag; ids are >= 0. */
#ifndef TEST_SUPPORT_NAIVE_MATCH_H
#define TEST_SUPPORT_NAIVE_MATCH_H

#include <stdint.h>

struct naive_match;
struct naive_match *naive_create(void);
void naive_destroy(struct naive_match *m);
/* A receive is posted: id of the unexpected message that it takes, or -1 and it is queued under `id`. */
int64_t naive_post(struct naive_match *m, int src, int tag, int64_t id);
/* A message arrives: id of the posted receive that it completes, or -1 and it is queued under `id`. */
int64_t naive_arrive(struct naive_match *m, int src, int tag, int64_t id);
/* Removes a posted receive; 1 when it was still there. */
int naive_cancel(struct naive_match *m, int64_t id);
/* Id of the unexpected message that a receive would take, or -1. take: removes it (matched probe). */
int64_t naive_probe(struct naive_match *m, int src, int tag, int take);
uint64_t naive_posted(const struct naive_match *m);
uint64_t naive_unexpected(const struct naive_match *m);

#endif
