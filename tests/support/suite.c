/* Helpers of the conformance suite; see suite.h. */
#include "support/suite.h"
#include "support/form.h"
#include "support/let_run.h"
#include "framework/base/context.h"
#include <strata/sdk/peer.h>
#include <strata/sdk/pml.h>
#include <strata/sdk/thresholds.h>
#include <strata/sdk/worker.h>

const struct suite_group *const suite_all[] = {&suite_basic, &suite_modes,   &suite_matching, &suite_truncate,
                                               &suite_comms, &suite_data,    &suite_order,    &suite_requests,
                                               &suite_host,  &suite_threads, &suite_traffic,  NULL};

static int by_size(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return x < y ? -1 : x > y;
}

/* A module's facts are measured, and changed, under the context's lock, when its first peer is connected. */
static struct st_thresholds thresholds_of(strata_t *s, const struct st_btl *t)
{
    struct st_thresholds out;

    st_worker_lock(s->worker);
    st_thresholds_derive(t, &t->facts, &out);
    st_worker_unlock(s->worker);
    return out;
}

size_t suite_sizes(strata_t *s, size_t limit, size_t *out, size_t max)
{
    static const size_t fixed[] = {0, 1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 65, 100, 1000, 4095, 4096, 4097};
    size_t n = 0;
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0] && n < max; i++)
        if (fixed[i] <= limit)
            out[n++] = fixed[i];
    for (size_t b = 0; b < s->n_btls; b++) {
        const struct st_btl *t = s->btls[b];
        struct st_thresholds from = thresholds_of(s, t);
        size_t at[] = {t->eager_limit,
                       t->pipeline_send,
                       t->max_send,
                       2 * (size_t)t->max_send,
                       from.rdma_min,
                       from.stream_limit,
                       t->rdma_pipeline,
                       t->rdma_pipeline + t->max_send,
                       3 * t->rdma_pipeline + 17};
        for (size_t i = 0; i < sizeof at / sizeof at[0]; i++)
            for (int d = -1; d <= 1; d++) {
                size_t v = at[i] + (size_t)d;
                if (at[i] && v <= limit && n < max)
                    out[n++] = v;
            }
    }
    qsort(out, n, sizeof *out, by_size);
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        if (m == 0 || out[i] != out[m - 1])
            out[m++] = out[i];
    return m;
}

/* A size that is announced where streams have at most `limit` bytes. */
static size_t suite_above(size_t limit)
{
    return limit < 65536 ? 131072 : 2 * limit;
}

size_t suite_long(strata_t *s)
{
    size_t l = 0;
    for (size_t b = 0; b < s->n_btls; b++) {
        const struct st_btl *t = s->btls[b];
        struct st_thresholds from = thresholds_of(s, t);
        size_t v = from.stream_limit > t->max_send ? from.stream_limit : t->max_send;
        /* A transport without an upper limit for streaming (self) does not count. */
        if (v < (64u << 20) && v > l)
            l = v;
    }
    return suite_above(l);
}

size_t suite_announced(strata_t *s, int rank)
{
    struct st_peer *peer;
    size_t most = 0;

    st_worker_lock(s->worker);
    CHECK_OK(st_worker_peer(s->worker, rank, &peer));
    CHECK(peer->bml);
    for (uint16_t i = 0; i < peer->bml->n_paths; i++) {
        struct st_btl_endpoint *ep = st_peer_path(peer, (uint8_t)i);
        struct st_btl_facts facts = st_btl_facts_of(ep);
        struct st_thresholds t;
        st_thresholds_derive(ep->btl, &facts, &t);
        if (t.stream_limit > most)
            most = t.stream_limit;
    }
    st_worker_unlock(s->worker);
    return suite_above(most);
}

size_t suite_short(strata_t *s)
{
    size_t l = 64;
    for (size_t b = 0; b < s->n_btls; b++)
        if (s->btls[b]->eager_limit < l)
            l = s->btls[b]->eager_limit;
    return l / 2;
}

void *suite_buffer(size_t len)
{
    char *p = malloc(len + 2 * (size_t)PATTERN_GUARD);
    CHECK(p);
    pattern_guard_set(p);
    memset(p + PATTERN_GUARD, 0x5a, len);
    pattern_guard_set(p + PATTERN_GUARD + len);
    return p + PATTERN_GUARD;
}

void suite_buffer_free(void *buf, size_t len)
{
    char *p = (char *)buf - PATTERN_GUARD;
    CHECK_MSG(pattern_guard_ok(p), "bytes before a buffer of %zu were written", len);
    CHECK_MSG(pattern_guard_ok(p + PATTERN_GUARD + len), "bytes behind a buffer of %zu were written", len);
    free(p);
}

void suite_send(strata_comm_t *c, size_t len, int dst, int tag, uint64_t seed)
{
    void *b = suite_buffer(len);
    pattern_fill(b, len, seed);
    CHECK_OK(strata_send(c, b, len, dst, tag));
    suite_buffer_free(b, len);
}

void suite_recv(strata_comm_t *c, size_t len, int src, int tag, uint64_t seed)
{
    strata_status_t st;
    void *b = suite_buffer(len);
    CHECK_OK(strata_recv(c, b, len, src, tag, &st));
    CHECK_EQ(st.length, len);
    CHECK_EQ(st.sent, len);
    CHECK_EQ(st.error, STRATA_OK);
    CHECK(src == STRATA_ANY_SOURCE || st.source == src);
    CHECK(tag == STRATA_ANY_TAG || st.tag == tag);
    ptrdiff_t bad = pattern_check(b, len, seed);
    CHECK_MSG(bad < 0, "message of %zu bytes with tag %d: byte %td is wrong", len, tag, bad);
    suite_buffer_free(b, len);
}

void suite_signal(strata_comm_t *c, int dst, int tag)
{
    CHECK_OK(strata_send(c, NULL, 0, dst, tag));
}

void suite_await(strata_comm_t *c, int src, int tag)
{
    CHECK_OK(strata_recv(c, NULL, 0, src, tag, STRATA_STATUS_IGNORE));
}

void suite_arrived(strata_comm_t *c, int src, int tag)
{
    CHECK_OK(strata_probe(c, src, tag, STRATA_STATUS_IGNORE));
}

void suite_spin(strata_t *s, int polls)
{
    for (int i = 0; i < polls; i++)
        if (strata_progress(s) == 0)
            let_run();
}

bool suite_emulated(void)
{
    return getenv("STRATA_IN_GUEST") && test_form(true, false);
}

int suite_scale(int n)
{
    return test_sanitized() || suite_emulated() ? n / 10 : n / (int)test_form(4, 1);
}

bool suite_every(size_t i, size_t n)
{
    return i % n == 0 || test_form(false, true);
}
