/* Conformance: random traffic among all. Every rank draws the same script from the same seed: who sends what to whom,
 * with which tag, size, mode and context; the receiver checks that each message is the next of its (source, tag,
 * context). */
#include "support/suite.h"

enum { RANKS = 4, TAGS = 3, COMMS = 2, WINDOW = 24 };

struct out {
    strata_request_t *req;
    char *b;
    size_t len;
};

struct state {
    struct tw_rank *r;
    strata_comm_t *comm[COMMS];
    size_t size[80], n_sizes, longest;
    struct out out[WINDOW];
    uint32_t sent[RANKS][TAGS][COMMS];
    uint32_t got[RANKS][TAGS][COMMS];
    int expected, received;
};

struct step {
    int src, dst, tag, comm, kind;
    size_t len;
};

static struct step draw_step(struct state *t, struct rnd *rnd)
{
    struct step s;
    s.src = (int)rnd_below(rnd, RANKS);
    s.dst = (int)rnd_below(rnd, RANKS);
    s.tag = (int)rnd_below(rnd, TAGS);
    s.comm = (int)rnd_below(rnd, COMMS);
    s.kind = (int)rnd_below(rnd, 8);
    s.len = rnd_below(rnd, 30) == 0 ? t->longest : t->size[rnd_below(rnd, (uint32_t)t->n_sizes)];
    return s;
}

/* A message says which it is by its first bytes; shorter ones carry what fits. */
static uint64_t seed_of(int src, int tag, int comm, uint32_t serial)
{
    return ((uint64_t)serial << 8) + (uint64_t)(src * 16 + tag * 4 + comm);
}

static void check_one(struct state *t, int comm, const char *b, const strata_status_t *st)
{
    uint32_t serial = t->got[st->source][st->tag][comm]++;
    ptrdiff_t bad = pattern_check(b, st->length, seed_of(st->source, st->tag, comm, serial));
    CHECK_MSG(bad < 0, "from %d, tag %d, context %d, message %u of %zu bytes: byte %td is wrong", st->source, st->tag,
              comm, serial, st->length, bad);
    t->received++;
}

/* Takes one message, if any is there, in one of several ways. */
static void take(struct state *t, struct rnd *rnd, char *room)
{
    int comm = (int)rnd_below(rnd, COMMS), found = 0;
    int src = rnd_below(rnd, 2) ? STRATA_ANY_SOURCE : (int)rnd_below(rnd, RANKS);
    int tag = rnd_below(rnd, 2) ? STRATA_ANY_TAG : (int)rnd_below(rnd, TAGS);
    strata_status_t st;
    strata_message_t *m = NULL;
    strata_request_t *q = NULL;
    switch (rnd_below(rnd, 3)) {
    case 0:
        CHECK_OK(strata_iprobe(t->comm[comm], src, tag, &found, &st));
        if (!found)
            return;
        CHECK_OK(strata_recv(t->comm[comm], room, st.length, st.source, st.tag, &st));
        break;
    case 1:
        CHECK_OK(strata_improbe(t->comm[comm], src, tag, &found, &m, &st));
        if (!found)
            return;
        CHECK_OK(strata_mrecv(&m, room, st.length, &st));
        break;
    default: /* posted, and cancelled when nothing comes */
        CHECK_OK(strata_irecv(t->comm[comm], room, t->longest, src, tag, &q));
        suite_spin(t->r->s, 2);
        CHECK_OK(strata_cancel(q));
        int rc = strata_wait(&q, &st);
        if (rc == STRATA_ERR_CANCELLED)
            return;
        CHECK_OK(rc);
        break;
    }
    check_one(t, comm, room, &st);
}

static void send_one(struct state *t, const struct step *s, struct rnd *rnd, char *room)
{
    struct out *o = &t->out[rnd_below(rnd, WINDOW)];
    int done = o->req == NULL;
    while (!done) {
        CHECK_OK(strata_test(&o->req, &done, NULL));
        if (!done)
            take(t, rnd, room);
    }
    uint32_t serial = t->sent[s->dst][s->tag][s->comm]++;
    o->len = s->len;
    pattern_fill(o->b, o->len, seed_of(s->src, s->tag, s->comm, serial));
    CHECK_OK(strata_isend_mode(t->comm[s->comm], o->b, o->len, s->dst, s->tag,
                               s->kind == 0 ? STRATA_SYNCHRONOUS : STRATA_STANDARD, &o->req));
}

static void random_traffic(struct tw_rank *r)
{
    struct state *t = calloc(1, sizeof *t);
    struct rnd script = {99}, own = {(uint64_t)r->rank + 1000};
    int steps = suite_scale(8000);
    CHECK(t);
    t->r = r;
    t->longest = suite_long(r->s);
    t->n_sizes = suite_sizes(r->s, t->longest / 2, t->size, 80);
    for (int c = 0; c < COMMS; c++) {
        strata_comm_spec_t spec = {.size = sizeof spec, .id = 50 + (uint32_t)c, .rank = r->rank, .n_ranks = RANKS};
        CHECK_OK(strata_comm_create(r->s, &spec, &t->comm[c]));
    }
    for (int i = 0; i < WINDOW; i++)
        t->out[i].b = suite_buffer(t->longest);
    char *room = suite_buffer(t->longest);
    for (int i = 0; i < steps; i++) {
        struct step s = draw_step(t, &script);
        t->expected += s.dst == r->rank;
        if (s.src == r->rank)
            send_one(t, &s, &own, room);
        else if (rnd_below(&own, 4) == 0)
            take(t, &own, room);
    }
    while (t->received < t->expected)
        take(t, &own, room);
    for (int i = 0; i < WINDOW; i++) {
        CHECK_OK(strata_wait(&t->out[i].req, NULL));
        suite_buffer_free(t->out[i].b, t->longest);
    }
    suite_buffer_free(room, t->longest);
    for (int c = 0; c < COMMS; c++)
        CHECK_OK(strata_comm_free(t->comm[c]));
    free(t);
}

/* Everybody sends to everybody at once, receives posted first. */
static void all_to_all(struct tw_rank *r)
{
    size_t len[] = {8, 1500, suite_long(r->s)};
    for (int i = 0; i < 3; i++) {
        strata_request_t *q[2 * RANKS];
        char *in[RANKS], *out[RANKS];
        for (int p = 0; p < RANKS; p++) {
            in[p] = suite_buffer(len[i]);
            out[p] = suite_buffer(len[i]);
            pattern_fill(out[p], len[i], (uint64_t)(r->rank * 10 + p));
            CHECK_OK(strata_irecv(r->comm, in[p], len[i], p, 4, &q[p]));
        }
        for (int p = 0; p < RANKS; p++)
            CHECK_OK(strata_isend(r->comm, out[p], len[i], p, 4, &q[RANKS + p]));
        CHECK_OK(strata_waitall(2 * RANKS, q, NULL));
        for (int p = 0; p < RANKS; p++) {
            CHECK_EQ(pattern_check(in[p], len[i], (uint64_t)(p * 10 + r->rank)), -1);
            suite_buffer_free(in[p], len[i]);
            suite_buffer_free(out[p], len[i]);
        }
    }
}

static const struct suite_case cases[] = {
    {"random_traffic", RANKS, 0, random_traffic},
    {"all_to_all", RANKS, 0, all_to_all},
};
SUITE_GROUP(suite_traffic, cases);
