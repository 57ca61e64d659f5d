/* Fuzzing softhca: a healthy process (the victim) works with one whose shared state is scribbled on (the hostile one).
 * Everything follows from a seed, as far as two processes that run at the same time let it. */
#ifndef SOFTHCA_FUZZ_H
#define SOFTHCA_FUZZ_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- numbers: a generator of our own, so that a seed means the same everywhere ---- */

struct rng {
    uint64_t s;
};
static inline struct rng rng_from(uint64_t seed)
{
    return (struct rng){seed * 0x9e3779b97f4a7c15u ^ 0x5851f42d4c957f2du};
}
static inline uint64_t rng_next(struct rng *r)
{
    r->s ^= r->s << 13;
    r->s ^= r->s >> 7;
    r->s ^= r->s << 17;
    return r->s * 0x2545f4914f6cdd1du;
}
static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
    return (uint32_t)((rng_next(r) >> 32) % n);
}

/* ---- what is scribbled on ---- */

enum form {
    FORM_OWN,   /* the hostile process's own segment */
    FORM_PEER,  /* the victim's, which its peers may write */
    FORM_BOTH,  /* each */
    FORM_FAKE,  /* no library at all: a socket of the right name, and memory that looks like a segment */
    FORM_CLEAN, /* nothing: the victim's own steps must be right */
    FORMS
};
extern const char *const form_name[FORMS];

/* What the two tell each other, over a socket pair. */
struct end_info {
    uint32_t type; /* of the queue pair that is asked for: enum ibv_qp_type; 0: there is none */
    uint32_t qpn, rkey;
    uint16_t lid;
    uint64_t addr;
    uint32_t bytes;
    uint32_t pid;
};
#define FUZZ_MEMORY 65536u
#define FUZZ_QKEY   0x1234567u

/* scribble.c: the segment of a process of softhca, mapped as a peer has it; NULL: it has none. */
char *segment_of(pid_t pid);
uint32_t segment_index(const char *segment);
/* Changes one thing in it. `friend`: an index of the fabric that is in use. */
void scribble(char *segment, uint32_t friend, struct rng *r);

/* hostile.c, fake.c: serve `fd` until it is closed; never return. */
_Noreturn void hostile_main(int fd, enum form form, uint64_t seed);
_Noreturn void fake_main(int fd, uint64_t seed);
/* victim.c: so many steps, then everything is destroyed; the exit status. */
int victim_main(int fd, enum form form, uint64_t seed, unsigned steps);

/* requests.c: the outstanding requests of one queue; what a program that casts wr_id to a pointer does with them. */
struct requests {
    struct request *first, *last;
};
uint64_t request_add(struct requests *of, bool receive, uint64_t room); /* a wr_id */
void request_not_posted(struct requests *of, uint64_t wr_id);
bool request_is_receive(const struct ibv_wc *wc);
/* It is over, and with a send those before it. Aborts when it is none of these, or says what cannot be. */
void request_completed(struct requests *of, enum ibv_qp_type type, const struct ibv_wc *wc);
void requests_end(struct requests *of); /* no more completions will come */

/* ends.c: a process's objects, made anew as often as steps destroy them. */
struct side {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_port_attr port;
};
bool side_open(struct side *s);
char *file_memory(void); /* FUZZ_MEMORY bytes of a file that peers may map; NULL: it cannot be had */
/* A queue pair in RESET. */
struct ibv_qp *make_qp(struct side *s, enum ibv_qp_type type, struct ibv_cq *send, struct ibv_cq *recv,
                       struct ibv_srq *srq);
/* From RESET on, or as far as that goes. */
bool connect_qp(struct side *s, struct ibv_qp *qp, const struct end_info *to);
/* One random work request, to `to`. `keep`: its wr_id is a request's there; NULL: any number. */
void post_random(struct ibv_qp *qp, struct ibv_mr *mr, const struct end_info *to, struct ibv_ah *ah,
                 struct requests *keep, struct rng *r);
void post_receive(struct ibv_qp *qp, struct ibv_srq *srq, struct ibv_mr *mr, struct requests *keep, struct rng *r);
/* Two new queue pairs of this process exchange a message. */
bool works_with_itself(struct side *s);

#endif
