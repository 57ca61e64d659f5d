/* The table of ways: for each class of traffic and range of lengths a byte that says how a message starts, filled by
 * the pure function that reports use as well (ways.h), so that a message costs one load. Lengths are in four ranges for
 * each power of two. Where a threshold lies within a range, so that the byte could not be right for all of it, the byte
 * is OB1_WAY_CUT, and the pure function is asked: limits hold to the byte.
 *
 * Peers that the same facts, limits and abilities hold for share a table: one for each distance, as a rule. It is made
 * when a peer connects, and another one is taken when something that it was made of changes (ob1_peer_limits). */
#ifndef OB1_TABLE_H
#define OB1_TABLE_H

#include "ways.h"

struct ob1;
struct ob1_peer;
struct ob1_req;
struct ob1_tune;

#define OB1_TABLE_FIRST 10u /* log2: lengths up to 1 KiB are one range */
#define OB1_TABLE_LAST  22u /* those above 4 MiB another */
#define OB1_TABLE_SIZES (4u * (OB1_TABLE_LAST - OB1_TABLE_FIRST) + 2u)
#define OB1_TABLES_MOST 64u /* of a context; peers beyond ask the function */
#define OB1_WAY_CUT     0xffu

struct ob1_table {
    struct ob1_table *next;
    struct ob1_tune *tune;                       /* of the paths that it is for, or NULL */
    struct ob1_ways_of of;                       /* what it was made of */
    uint8_t announced;                           /* enum ob1_protocol of an announcement of contiguous memory */
    uint8_t start[OB1_CLASSES][OB1_TABLE_SIZES]; /* as ob1_way_start, or OB1_WAY_CUT */
    uint8_t answer[2][OB1_TABLE_SIZES];          /* as ob1_way_answer; [1]: of a message to be fetched at once */
};

/* Of (4 KiB, 5 KiB], (5 KiB, 6 KiB] and so on: the range of a length. */
static inline uint32_t ob1_table_size(uint64_t length)
{
    uint64_t last = length ? length - 1 : 0; /* limits are powers of two, and belong to what is below */
    uint32_t power, n;

    if (last < 1u << OB1_TABLE_FIRST)
        return 0;
    power = 63u - (uint32_t)__builtin_clzll(last);
    n = 1 + 4 * (power - OB1_TABLE_FIRST) + ((uint32_t)(last >> (power - 2)) & 3);
    return n < OB1_TABLE_SIZES ? n : OB1_TABLE_SIZES - 1;
}

/* Fills all but `next` and `tune`. Pure. */
void ob1_table_fill(struct ob1_table *table, const struct ob1_ways_of *of);
/* The table for paths of which this holds, made if need be; NULL: no memory, or there are too many. */
const struct ob1_table *ob1_table_of(struct ob1 *pml, const struct ob1_ways_of *of, struct ob1_tune *tune);
void ob1_tables_destroy(struct ob1 *pml);

/* As ob1_way_answer, for a range of a receive to be fetched from an endpoint; OB1_WAY_CUT: not known. The table is for
 * the one path of a peer without a lane, and for contiguous memory that was announced as this process would. Where the
 * transport has learnt another cost of RDMA since, the peer gets another table. */
uint8_t ob1_table_answer(struct ob1 *pml, const struct ob1_req *req, const struct st_btl_endpoint *ep, uint64_t length);
/* As ob1_way_start, for a message to a connected peer. */
uint8_t ob1_table_start(const struct ob1 *pml, const struct ob1_peer *peer, enum ob1_class traffic, uint64_t length);

#endif
