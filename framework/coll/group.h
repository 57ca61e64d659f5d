/* Communicators with collectives, and the failures of their members. */
#ifndef ST_COLL_GROUP_H
#define ST_COLL_GROUP_H

#include <strata/sdk/coll.h>
#include <strata/sdk/list.h>

enum { COLL_MODULES = 4, COLL_EARLY = 64 };

/* A failure that was told before the communicator had its first collective here. */
struct coll_early {
    uint32_t comm;
    int32_t rank; /* of the job */
};

/* The framework in one context, a client of the worker. */
struct colls {
    struct st_worker *w;
    struct st_coll *module[COLL_MODULES]; /* by priority */
    unsigned n;
    ST_ATOMIC(bool) open;  /* the components are; before, module[] is empty */
    struct st_node groups; /* struct group */
    size_t n_groups;
    struct coll_early early[COLL_EARLY]; /* the last ones, oldest first, each once */
    unsigned n_early;
    uint64_t n_protocol_errors;
};

struct group {
    struct st_coll_group head;
    struct st_node node;
    struct colls *colls;
    struct st_coll_slot *slot[COLL_MODULES]; /* NULL: the module does not do intercommunicators */
};

/* coll_select.c: opens the components, which wait for the first collective or the first message for one of them. With
 * the lock held. */
int coll_open(struct colls *colls);
/* The group of a communicator, made if need be. */
int coll_group_of(struct colls *colls, strata_comm_t *comm, struct group **out);
void coll_group_free(struct group *g);
/* Number of its member of that rank of the job, or -1. */
int coll_group_number_of(const struct st_coll_group *group, int job_rank);
/* group.c: a member has failed, with the lock held. */
void coll_group_fail(struct group *g, int rank);
/* client.c: tells the members of which there is contact; with the lock held. */
void coll_tell_failure(struct group *g, int rank);
/* client.c: a failure was told before the group's collectives were there. */
void coll_keep_early(struct colls *colls, uint32_t comm, int job_rank);
/* The number of the first member that was told so to have failed, or -1. Forgets all that was told of this communicator
 * and of earlier ones with its id. */
int coll_take_early(struct colls *colls, const struct st_coll_group *group);
extern const struct st_client coll_row;

#endif
