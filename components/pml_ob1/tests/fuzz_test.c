/* Fragments that no honest peer sends: random types, lengths, ids, offsets and sequence numbers, handed to the PML as
 * if a transport had received them. Nothing may be written outside of what is posted (the sanitizers watch), and other
 * contexts go on working. Addresses are valid ones: within one process a forged address is beyond what a receiver could
 * check. */
#include <check.h>
#include <unistd.h>
#include <strata/sdk/pml.h>
#include "support/pattern.h"
#include "support/random.h"
#include "support/world.h"
#include "peer.h"
#include "wire.h"
#include "support/run_suite.h"

enum { POOL = 1 << 16, POSTED = 64 };

static char pool[POOL], inbox[POSTED][3000];

union header {
    struct wire_match match;
    struct wire_sync sync;
    struct wire_stream stream;
    struct wire_rndv rndv;
    struct wire_stream_data stream_data;
    struct wire_data data;
    struct wire_control control;
    struct wire_request request;
    struct wire_put put;
    struct wire_batch batch;
    uint8_t bytes[ST_BTL_HDR_MAX];
};

static uint64_t some_id(struct rnd *rnd)
{
    return (uint64_t)rnd_below(rnd, 6) << 32 | rnd_below(rnd, 40);
}

static uint32_t some_length(struct rnd *rnd)
{
    const uint32_t edges[] = {0, 1, 64, 65, 2999, 3000, 3001, 4096, POOL};
    return rnd_below(rnd, 2) ? edges[rnd_below(rnd, 9)] : rnd_below(rnd, 5000);
}

/* A header of a random type that is near to being right. */
static void forge(struct rnd *rnd, union header *h, uint16_t *seq)
{
    uint64_t wide = rnd_below(rnd, 20) ? some_length(rnd) : rnd_next(rnd);

    for (size_t i = 0; i < sizeof(h->bytes); i++)
        h->bytes[i] = (uint8_t)rnd_next(rnd);
    h->match.type = (uint8_t)rnd_below(rnd, OB1_BATCH + 1);
    h->match.flags = (uint8_t)(rnd_below(rnd, 4) ? 0 : rnd_below(rnd, 256));
    if (h->match.type <= OB1_LAST_MATCHED) {
        h->match.seq = rnd_below(rnd, 10) ? *seq : (uint16_t)(*seq + rnd_below(rnd, 70));
        *seq = (uint16_t)(*seq + (h->match.seq == *seq));
        h->match.context = rnd_below(rnd, 50) ? 0 : rnd_below(rnd, 9) + 100;
        h->match.tag = (int32_t)rnd_below(rnd, 40) - (rnd_below(rnd, 30) == 0 ? 39 : 0);
        h->match.src = rnd_below(rnd, 20) ? 0 : (int32_t)rnd_next(rnd);
    }
    switch (h->match.type) {
    case OB1_EAGER_SYNC:
        h->sync.id = some_id(rnd);
        break;
    case OB1_STREAM:
        h->stream.total = some_length(rnd);
        h->stream.stream = rnd_below(rnd, 5);
        break;
    case OB1_RNDV:
        h->rndv.length = some_length(rnd);
        h->rndv.id = some_id(rnd);
        h->rndv.address = (uint64_t)(uintptr_t)pool;
        break;
    case OB1_STREAM_DATA:
        h->stream_data.stream = rnd_below(rnd, 5);
        h->stream_data.offset = (uint32_t)(rnd_below(rnd, 20) ? some_length(rnd) : rnd_next(rnd));
        h->stream_data.total = (uint32_t)wide;
        break;
    case OB1_DATA:
        h->data.id = some_id(rnd);
        h->data.offset = wide;
        break;
    case OB1_ACK:
    case OB1_FIN:
    case OB1_THROTTLE:
        h->control.id = some_id(rnd);
        h->control.bytes = wide;
        h->control.status = rnd_below(rnd, 3) ? 0 : -(int32_t)rnd_below(rnd, 19);
        break;
    case OB1_CTS:
    case OB1_PUT:
        h->request.id = some_id(rnd);
        h->request.answer = some_id(rnd);
        h->request.offset = rnd_below(rnd, 4) ? 0 : wide;
        h->request.length = wide;
        if (h->match.type == OB1_PUT)
            h->put.address = (uint64_t)(uintptr_t)pool;
        break;
    case OB1_BATCH:
        h->batch.seq = rnd_below(rnd, 10) ? *seq : (uint16_t)(*seq + rnd_below(rnd, 70));
        h->batch.context = rnd_below(rnd, 50) ? 0 : rnd_below(rnd, 9) + 100;
        h->batch.src = rnd_below(rnd, 20) ? 0 : (int32_t)rnd_next(rnd);
        break;
    default:
        break;
    }
}

/* Messages that came together, of which the last may be longer than what is left; how many bytes. */
static uint32_t forge_parts(struct rnd *rnd, char parts[static 600], uint16_t *seq)
{
    uint32_t at = 0;

    while (rnd_below(rnd, 8) && at + 64 <= 600) {
        struct wire_part part = {(int32_t)rnd_below(rnd, 40) - (rnd_below(rnd, 30) == 0 ? 39 : 0),
                                 rnd_below(rnd, 20) ? rnd_below(rnd, 49) : (uint32_t)rnd_next(rnd)};
        memcpy(parts + at, &part, sizeof(part));
        at += (uint32_t)sizeof(part) + (part.len < 49 ? (part.len + 7) / 8 * 8 : 0);
        ++*seq;
    }
    return rnd_below(rnd, 10) ? at : rnd_below(rnd, 600);
}

/* Reports about other messages behind a report. */
static uint32_t forge_more(struct rnd *rnd, struct wire_fin more[static 8])
{
    for (int i = 0; i < 8; i++)
        more[i] = (struct wire_fin){some_id(rnd), some_length(rnd)};
    return rnd_below(rnd, 10) ? rnd_below(rnd, 9) * (uint32_t)sizeof(*more) : rnd_below(rnd, 8 * sizeof(*more));
}

static void attack(struct tw_rank *r)
{
    struct rnd rnd = {(uint64_t) * (int *)r->arg + 1};
    struct st_btl *btl = r->comm->worker->bml->btls[0];
    strata_request_t *q[POSTED] = {NULL}, *out[8] = {NULL};
    strata_comm_spec_t spec = {.size = sizeof(spec), .id = 5, .rank = 0, .n_ranks = 1};
    strata_comm_t *other;
    uint16_t seq = 0;

    CHECK_OK(strata_comm_create(r->s, &spec, &other));
    for (int step = 0; step < (test_sanitized() ? 30000 : 200000); step++) {
        uint32_t k = rnd_below(&rnd, POSTED), o = rnd_below(&rnd, 8);
        struct wire_fin more[8];
        char parts[600] = {0};
        union header h;
        int done;
        if (q[k])
            strata_test(&q[k], &done, NULL);
        else
            CHECK_OK(strata_irecv(r->comm, inbox[k], some_length(&rnd) % 3001, rnd_below(&rnd, 2) ? 0 : -1,
                                  (int)rnd_below(&rnd, 41) - 1, &q[k]));
        if (out[o])
            strata_test(&out[o], &done, NULL);
        else /* in the honest context: what they forge about it must not crash us either */
            CHECK_OK(
                strata_isend_mode(other, pool, 20000, 0, 1, o % 2 ? STRATA_STANDARD : STRATA_SYNCHRONOUS, &out[o]));
        forge(&rnd, &h, &seq);
        struct st_frag frag = {.hdr = &h,
                               .hdr_len = rnd_below(&rnd, 10) ? ST_BTL_HDR_MAX : rnd_below(&rnd, ST_BTL_HDR_MAX + 1),
                               .data = pool,
                               .len = some_length(&rnd) % 16000,
                               .rank = rnd_below(&rnd, 30) ? 0 : 1,
                               .btl = btl};
        if (h.match.type == OB1_FIN) {
            frag.len = forge_more(&rnd, more);
            frag.data = more;
        } else if (h.match.type == OB1_BATCH) {
            frag.len = forge_parts(&rnd, parts, &seq);
            frag.data = parts;
        }
        btl->am[ST_AM_PML].fn(btl->am[ST_AM_PML].arg, &frag);
        if (rnd_below(&rnd, 4) == 0)
            strata_progress(r->s);
    }
    /* The recorded answers about receives are in range. */
    const struct ob1_answers *answers = &ob1_peer_of(st_worker_peer_known(r->comm->worker, 0))->flow.answers;
    CHECK(answers->n <= OB1_ANSWERS && answers->habit <= OB1_HABIT_LATE);
    /* A context that nobody lied about works. */
    strata_comm_t *fresh;
    char text[8] = "works", back[8] = "";
    spec.id = 77;
    CHECK_OK(strata_comm_create(r->s, &spec, &fresh));
    CHECK_OK(strata_irecv(fresh, back, sizeof(back), 0, 3, &q[0]));
    CHECK_OK(strata_send(fresh, text, sizeof(text), 0, 3));
    CHECK_OK(strata_wait(&q[0], NULL));
    CHECK(strcmp(text, back) == 0);
    fflush(NULL);
    _exit(0); /* requests that were lied about never end: no orderly finalize */
}

START_TEST(forged)
{
    int seed = _i;
    struct tw_options o = {.n = 2,
                           .present = 1,
                           /* No yields: beside other work each costs a time slice, and nobody is waited for. */
                           .settings = "btl=self btl_self_ring=256k pml_ob1_unexpected_max=1m mca_base_spin=1000000000",
                           .quiet = true,
                           .no_finalize = true};
    tw_run(&o, attack, &seed);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ob1_fuzz");
    TCase *tc = tcase_create("fuzz");
    tcase_set_timeout(tc, 0);
    tcase_add_loop_test(tc, forged, 0, 6);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
