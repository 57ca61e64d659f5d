/* Matching contexts, and the table of them. */
#ifndef OB1_COMM_H
#define OB1_COMM_H

#include <strata/sdk/pml.h>
#include <strata/sdk/rank_table.h>
#include "match.h"
#include "peer.h"

struct ob1;

struct ob1_comm {
    struct strata_comm head;
    struct ob1_cpeer *to, *from; /* used last; never NULL */
    struct ob1_match match;
    uint32_t n_held;            /* members with messages that are ahead of their turn */
    int revoked;                /* messages with tags below are discarded; INT_MIN: none */
    struct st_rank_table held;  /* struct st_reorder by rank */
    struct st_rank_table peers; /* struct ob1_cpeer by rank */
    struct ob1_comm *next;      /* of the same slot in the table of contexts */
};

/* comm.c */
int ob1_comm_add(strata_comm_t *comm);
void ob1_comm_del(strata_comm_t *comm);
void ob1_comms_destroy(struct ob1 *pml);

/* comm_table.c */
struct ob1_comm *ob1_comm_find(struct ob1 *pml, uint32_t id);
int ob1_comm_rank_of(const struct ob1_comm *c, int job_rank); /* -1: not a member */
int ob1_comm_table_room(struct ob1 *pml);                     /* for one more: STRATA_OK, STRATA_ERR_NOMEM */
void ob1_comm_table_add(struct ob1 *pml, struct ob1_comm *c);
void ob1_comm_table_remove(struct ob1 *pml, struct ob1_comm *c); /* if it is there */

#endif
