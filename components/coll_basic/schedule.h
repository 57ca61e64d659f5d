/* A collective under way: a list of steps, made when it starts, that completions of its messages move on.
 *
 * It is never cut short: when a member fails, the others still send and receive all that they would have, with a word
 * of the failure in place of the data, so that nobody waits for a message that will not come. */
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
    uint32_t word[2];       /* a short message, or word of a failure */
};

struct schedule {
    strata_coll_request_t head;
    strata_comm_t *comm;
    strata_coll_t c; /* its arrays are not to be used after the start */
    int tag;
    struct basic_step *steps;
    size_t n, room, at;
    ST_ATOMIC(uint32_t) pending; /* messages of the round, and one for who starts it */
    ST_ATOMIC(int) error;
    ST_ATOMIC(int) failed;
    int build_rc; /* STRATA_ERR_NOMEM: a step or memory is missing */
    void *memory; /* list of blocks */
    char *storage;
};

struct schedule *basic_schedule_make(strata_comm_t *comm, const strata_coll_t *c, int tag);
/* Starts it, or frees it when it could not be built. */
int basic_schedule_start(struct schedule *s, strata_coll_request_t **out);

/* Steps. Between two waits a step may touch nothing that a message of the same round does. */
void basic_send(struct schedule *s, int peer, const void *in, size_t bytes);
void basic_recv(struct schedule *s, int peer, void *out, size_t bytes);
void basic_wait(struct schedule *s);
void basic_copy(struct schedule *s, void *out, const void *in, size_t bytes);
/* Combines `bytes` of elements: out = in op out. */
void basic_reduce(struct schedule *s, const void *in, void *out, size_t bytes);
/* Memory that lives as long as the schedule; never NULL, but too short once build_rc says so: only steps may use it. */
char *basic_memory(struct schedule *s, size_t bytes);

#endif
