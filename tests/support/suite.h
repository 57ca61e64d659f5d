/* The conformance suite of message semantics: cases that hold over every transport, with ranks as threads
 * (tests/conformance) or as processes under a launcher (tools/strata-conformance).
 *
 * A case is run by `ranks` ranks, 0..ranks-1 of the world; it leaves no request, no message and no communicator. */
#ifndef TEST_SUPPORT_SUITE_H
#define TEST_SUPPORT_SUITE_H

#include "support/pattern.h"
#include "support/random.h"
#include "support/world.h"

enum {
    SUITE_MULTIPLE = 1u << 0, /* needs STRATA_THREAD_MULTIPLE */
    SUITE_SLOW = 1u << 1      /* more than about a second: on few variants */
};

struct suite_case {
    const char *name;
    int ranks;
    unsigned flags;
    tw_body_fn body;
};

struct suite_group {
    const char *name;
    const struct suite_case *cases;
    size_t n;
};
extern const struct suite_group suite_basic, suite_modes, suite_matching, suite_truncate, suite_comms, suite_data,
    suite_order, suite_requests, suite_host, suite_threads, suite_traffic;
/* All of them, NULL-terminated. */
extern const struct suite_group *const suite_all[];
#define SUITE_GROUP(group, table) const struct suite_group group = {#group, table, sizeof(table) / sizeof(table)[0]}

/* Sizes 0, 1, ... and just below, at and above every limit of every transport that the context has open, ascending;
 * at most `max` entries, none above `limit` bytes. */
size_t suite_sizes(strata_t *s, size_t limit, size_t *out, size_t max);
/* A size that goes by rendezvous by what the transports know so far, and the largest that goes eagerly to any peer. */
size_t suite_long(strata_t *s);
size_t suite_short(strata_t *s);
/* A size that is announced to `rank`, whose paths are measured by the first message to it: call this after one. */
size_t suite_announced(strata_t *s, int rank);

/* A guarded buffer: check complains about bytes written outside. */
void *suite_buffer(size_t len);
void suite_buffer_free(void *buf, size_t len);

/* Sends or receives a pattern of `len` bytes named by `seed`, checking everything. */
void suite_send(strata_comm_t *c, size_t len, int dst, int tag, uint64_t seed);
void suite_recv(strata_comm_t *c, size_t len, int src, int tag, uint64_t seed);
/* Empty messages as signals. */
void suite_signal(strata_comm_t *c, int dst, int tag);
void suite_await(strata_comm_t *c, int src, int tag);
/* Returns when a matching message has arrived (it is left there). */
void suite_arrived(strata_comm_t *c, int src, int tag);
/* Polls a while. */
void suite_spin(strata_t *s, int polls);
/* Whether a guest test runs in the short form: an emulated processor is as slow as a sanitizer. */
bool suite_emulated(void);
/* A number of repetitions: n / 10 when sanitized or emulated, n / 4 in the short form of other tests. */
int suite_scale(int n);
/* Whether step i is run: in the short form every n-th is. What i counts should meet each size and each way in turn. */
bool suite_every(size_t i, size_t n);

#endif
