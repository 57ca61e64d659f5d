/* Landing rings between the ranks of a test: a client of the worker that has rings by peer and name, and messages whose
 * length and bytes follow from sender, name and number. */
#ifndef TEST_SUPPORT_LANDING_RINGS_H
#define TEST_SUPPORT_LANDING_RINGS_H

#include <strata/sdk/landing_ends.h>
#include <strata/sdk/pml.h>
#include "framework/base/base_params.h"
#include "framework/base/context.h"
#include "support/pattern.h"
#include "support/suite.h"

enum { RANKS = 3, RINGS = 200, RING = 16384, LONGEST = RING - ST_LANDING_HEAD, IN_TURN = 255, CARD = 1 };

/* A rank's rings by peer and name. */
struct rings {
    struct tw_rank *r;
    struct st_worker *w;
    struct st_landing_receiver *in[RANKS][RINGS];
    struct st_landing_sender *out[RANKS][RINGS];
};

/* What travels when a ring is opened. */
struct opening {
    struct st_landing_card card;
    uint32_t path, from;
};

static inline void deliver(void *arg, const struct st_frag *frag)
{
    (void)arg, (void)frag;
    CHECK_MSG(false, "this client gets no messages");
}
static inline void notified(void *arg, int rank, uint32_t notice)
{
    struct rings *u = arg;
    uint32_t name = st_landing_name(notice);
    CHECK(rank >= 0 && rank < RANKS);
    if (name >= RINGS)
        return;
    if (st_landing_is_credit(notice) && u->out[rank][name])
        st_landing_sender_notified(u->out[rank][name], notice);
    else if (!st_landing_is_credit(notice) && u->in[rank][name])
        st_landing_receiver_notified(u->in[rank][name], notice);
}
static inline void changed(void *arg, struct st_peer *peer)
{
    struct rings *u = arg;
    for (int i = 0; i < RINGS; i++) {
        if (u->in[peer->rank][i])
            st_landing_receiver_changed(u->in[peer->rank][i]);
        if (u->out[peer->rank][i])
            st_landing_sender_changed(u->out[peer->rank][i]);
    }
}
static const struct st_client row = {
    .am = ST_AM_TEST, .deliver = deliver, .notified = notified, .peer_changed = changed, .peer_failed = changed};

static inline struct rings *join(struct tw_rank *r)
{
    struct rings *u = calloc(1, sizeof *u);
    CHECK(u);
    u->r = r;
    u->w = r->comm->worker;
    /* Nobody wakes by himself: a wake-up that is missed shows. */
    ((struct st_base_config *)(uintptr_t)r->s->base)->sleep_max_us = 1000000000;
    CHECK_OK(st_worker_join(u->w, &row, u));
    tw_barrier(r);
    return u;
}

struct sum {
    size_t bytes;
    int lines;
};
static inline void add(void *arg, const strata_mem_line_t *line)
{
    struct sum *sum = arg;
    if (strcmp(line->category, "landing rings") == 0) {
        sum->bytes += line->bytes;
        sum->lines++;
    }
}
static inline size_t reported(const struct rings *u)
{
    struct sum sum = {0};
    CHECK_OK(strata_mem_report(u->r->s, add, &sum));
    CHECK_EQ(sum.lines, sum.bytes != 0);
    return sum.bytes;
}

/* All rings have been closed. */
static inline void leave(struct rings *u)
{
    CHECK_EQ(reported(u), 0);
    st_worker_leave(u->w, &row);
    free(u);
}

static inline struct st_landing_where where(struct rings *u, int rank, uint8_t path)
{
    struct st_landing_where at = {.worker = u->w, .path = path, .am = ST_AM_TEST};
    CHECK_OK(st_worker_peer(u->w, rank, &at.peer));
    if (!at.peer->failed)
        CHECK_OK(st_worker_connect(u->w, at.peer));
    return at;
}

/* By `path`, or by one of the first two, in turn, when it works. */
static inline void open_in_by(struct rings *u, int from, uint32_t name, uint32_t size, uint8_t path, uint32_t first)
{
    struct opening o = {.from = first, .path = path == IN_TURN ? name % 2 : path};
    int rc;
    do {
        st_worker_lock(u->w);
        struct st_landing_where at = where(u, from, (uint8_t)o.path);
        rc = st_landing_receiver_open(&at, size, name, &u->in[from][name], &o.card);
        st_worker_unlock(u->w);
        if (rc != STRATA_OK)
            suite_spin(u->r->s, 1);
    } while (rc == STRATA_ERR_AGAIN || (path == IN_TURN && rc == STRATA_ERR_PEER));
    CHECK_OK(rc);
    CHECK_OK(strata_send(u->r->comm, &o, sizeof o, from, CARD));
}
static inline void open_in(struct rings *u, int from, uint32_t name, uint32_t size)
{
    open_in_by(u, from, name, size, 0, 0);
    CHECK(reported(u) > size);
}
static inline struct opening hear(struct rings *u, int from)
{
    struct opening o;
    CHECK_OK(strata_recv(u->r->comm, &o, sizeof o, from, CARD, NULL));
    return o;
}
static inline int open_out_by(struct rings *u, int to, const struct opening *o)
{
    int rc;
    do {
        st_worker_lock(u->w);
        struct st_landing_where at = where(u, to, (uint8_t)o->path);
        rc = st_landing_sender_open(&at, &o->card, &u->out[to][o->card.name]);
        st_worker_unlock(u->w);
        if (rc != STRATA_OK)
            suite_spin(u->r->s, 1);
    } while (rc == STRATA_ERR_AGAIN);
    return rc;
}
static inline struct opening open_out(struct rings *u, int to)
{
    struct opening o = hear(u, to);
    CHECK_OK(open_out_by(u, to, &o));
    return o;
}

static inline void close_in(struct rings *u, int from, uint32_t name)
{
    struct st_landing_receiver *in = u->in[from][name];
    st_landing_receiver_close(in);
    u->in[from][name] = NULL;
}
static inline void close_out(struct rings *u, int to, uint32_t name)
{
    struct st_landing_sender *out = u->out[to][name];
    if (out)
        st_landing_sender_close(out);
    u->out[to][name] = NULL;
}

static inline uint32_t length_of(uint64_t seed)
{
    struct rnd rnd = {seed};
    uint32_t kind = rnd_below(&rnd, 8);
    return kind == 0 ? rnd_below(&rnd, LONGEST + 1) : kind < 3 ? rnd_below(&rnd, 3000) : rnd_below(&rnd, 100);
}
static inline uint64_t seed_of(int from, uint32_t name, uint32_t number)
{
    return (uint64_t)(from + 1) << 50 ^ (uint64_t)name << 32 ^ number;
}

/* Writes a message in place. */
static inline void commit(struct rings *u, struct st_landing_sender *out, const struct st_landing_view *v,
                          uint64_t seed, bool keep)
{
    pattern_fill_at(v->first, 0, v->first_len, seed);
    pattern_fill_at(v->second, v->first_len, v->second_len, seed);
    st_worker_lock(u->w);
    int rc = st_landing_sender_commit(out, st_landing_length(v), keep);
    st_worker_unlock(u->w);
    CHECK(rc == STRATA_OK || rc == STRATA_ERR_PEER);
}
/* Blocks for room. */
static inline int send_one(struct rings *u, int to, uint32_t name, uint32_t number)
{
    uint64_t seed = seed_of(u->r->rank, name, number);
    struct st_landing_view v;
    int rc = st_landing_sender_wait(u->out[to][name], length_of(seed), &v);
    if (rc == STRATA_OK)
        commit(u, u->out[to][name], &v, seed, false);
    return rc;
}
static inline void check(const struct st_landing_view *v, uint64_t seed)
{
    CHECK_EQ(st_landing_length(v), length_of(seed));
    CHECK_EQ(pattern_check_at(v->first, 0, v->first_len, seed), -1);
    CHECK_EQ(pattern_check_at(v->second, v->first_len, v->second_len, seed), -1);
}
/* Takes a message, if there is one, and checks it where it landed. */
static inline int take_one(struct rings *u, int from, uint32_t name, uint32_t number)
{
    struct st_landing_view v;
    st_worker_lock(u->w);
    int rc = st_landing_receiver_peek(u->in[from][name], &v);
    st_worker_unlock(u->w);
    if (rc != STRATA_OK)
        return rc;
    check(&v, seed_of(from, name, number));
    st_worker_lock(u->w);
    rc = st_landing_receiver_release(u->in[from][name], &v);
    st_worker_unlock(u->w);
    CHECK(rc == STRATA_OK || rc == STRATA_ERR_PEER);
    return STRATA_OK;
}
/* Blocks for it. */
static inline int receive_one(struct rings *u, int from, uint32_t name, uint32_t number)
{
    int rc = st_landing_receiver_wait(u->in[from][name]);
    return rc == STRATA_OK ? take_one(u, from, name, number) : rc;
}
static inline void finish_out(struct rings *u, int to, uint32_t name)
{
    CHECK_OK(st_landing_sender_finish(u->out[to][name]));
    close_out(u, to, name);
}
static inline void finish_in(struct rings *u, int from, uint32_t name)
{
    CHECK_EQ(st_landing_receiver_wait(u->in[from][name]), ST_LANDING_ENDED);
    while (!st_landing_in_finished(st_landing_receiver_in(u->in[from][name])))
        suite_spin(u->r->s, 1);
    close_in(u, from, name);
}

#endif
