/* A collective under way: a list of steps, made when it starts, that completions of its messages move on.
 *
 * When a member fails nothing more is begun; receives under way are cancelled and sends complete, here and at all other
 * members, since the PML discards what nobody receives (st_pml_ops.revoke). */
#ifndef COLL_BASIC_SCHEDULE_H
#define COLL_BASIC_SCHEDULE_H

#include <strata/sdk/coll.h>

enum basic_step_kind { BASIC_SEND, BASIC_RECV, BASIC_WAIT, BASIC_COPY, BASIC_REDUCE };

struct basic_step {
    enum basic_step_kind kind;
    int peer;       /* of a message, in the communicator */
    const void *in; /* sent, copied, or the operand of lower ranks */
    void *out;      /* received, copied to, or the other operand and the result */
    size_t bytes;
    char *storage;          /* the PML's request */
    struct schedule *sched; /* for a completion, which is told the step */
};

struct schedule {
    strata_coll_request_t head;
    strata_comm_t *comm;
    struct st_coll_group *group;
    ST_ATOMIC(size_t) * in_use; /* bytes of all schedules of the module */
    strata_coll_t c;            /* its arrays are not to be used after the start */
    int tag;
    struct basic_step *steps;
    size_t n, room, at;
    ST_ATOMIC(uint32_t) pending; /* messages of the round, and one for who starts it */
    ST_ATOMIC(int) error;        /* of a message, other than that a member failed */
    ST_ATOMIC(bool) cut;         /* a message is missing since a member failed */
    bool counted;                /* bytes are in *in_use */
    int build_rc;                /* STRATA_ERR_NOMEM: a step or memory is missing */
    size_t bytes;                /* of its memory */
    void *memory;                /* list of blocks */
    char *storage;
};

struct schedule *basic_schedule_make(struct st_coll_group *group, const strata_coll_t *c, ST_ATOMIC(size_t) * in_use);
/* Starts it, or frees it when it could not be built. `started` counts those that were: their numbers are the tags,
 * which stay the same at all members when one of them has no memory and tries again. */
int basic_schedule_start(struct schedule *s, ST_ATOMIC(uint32_t) * started, strata_coll_request_t **out);

/* Steps. Between two waits a step may touch nothing that a message of the same round does. */
void basic_send(struct schedule *s, int peer, const void *in, size_t bytes);
void basic_recv(struct schedule *s, int peer, void *out, size_t bytes);
void basic_wait(struct schedule *s);
void basic_copy(struct schedule *s, void *out, const void *in, size_t bytes);
/* Combines `bytes` of elements: out = in op out. */
void basic_reduce(struct schedule *s, const void *in, void *out, size_t bytes);
/* Memory that lives as long as the schedule. NULL: there is none, the schedule will not start and needs no more steps.
 */
char *basic_memory(struct schedule *s, size_t bytes);

#endif
