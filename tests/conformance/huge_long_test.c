/* Conformance: messages of more than 2 and more than 4 GiB, whose length does not fit into 31 or 32 bits. They need no
 * such memory: a window of WINDOW bytes is mapped again and again, and generic data has no memory at all. The short
 * form sends each kind of message and uses each transport, but not every pair. */
#define _GNU_SOURCE
#include <check.h>
#include <sys/mman.h>
#include <unistd.h>
#include "support/form.h"
#include "support/suite.h"
#include "support/run_suite.h"

#define WINDOW ((size_t)8 << 20)
#define SEED   77

enum { PLAIN = 1, TRUNCATED = 2, GENERIC = 4 }; /* kinds of message */

struct run {
    size_t len, settings;
    unsigned kinds;
};

static const size_t lengths[] = {((size_t)2 << 30) + 5, ((size_t)4 << 30) + 5};
static const char *const settings[] = {
    "btl=sm,self",
    "btl=sm,self btl_sm_single_copy=off",
    "btl=sm,self btl_sm_single_copy=one_sided btl_sm_rdma_min=64k btl_sm_stream_limit=64k",
    "btl=sm,self btl_sm_single_copy=cooperative btl_sm_rdma_min=64k btl_sm_stream_limit=64k",
};

/* `len` bytes of address space that repeat one window. */
static char *repeated(size_t len, size_t *mapped)
{
    int fd = memfd_create("huge", MFD_CLOEXEC);
    CHECK(fd >= 0 && ftruncate(fd, (off_t)WINDOW) == 0);
    *mapped = (len + WINDOW - 1) / WINDOW * WINDOW;
    char *base = mmap(NULL, *mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(base != MAP_FAILED);
    for (size_t at = 0; at < *mapped; at += WINDOW)
        CHECK(mmap(base + at, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
    close(fd);
    return base;
}

/* Generic data: the stream repeats `window`; what is unpacked is compared and counted. */
struct stream {
    const char *window;
    size_t bytes;
};

static ptrdiff_t pack(void *user, size_t offset, void *dst, size_t length)
{
    const struct stream *t = user;
    size_t at = offset % WINDOW, n = WINDOW - at < length ? WINDOW - at : length;
    memcpy(dst, t->window + at, n);
    return (ptrdiff_t)n;
}

static ptrdiff_t unpack(void *user, size_t offset, const void *src, size_t length)
{
    struct stream *t = user;
    size_t at = offset % WINDOW, n = WINDOW - at < length ? WINDOW - at : length;
    CHECK_MSG(memcmp(src, t->window + at, n) == 0, "wrong bytes at %zu", offset);
    t->bytes += n;
    return (ptrdiff_t)n;
}

static void sender(struct tw_rank *r, const struct run *run)
{
    size_t mapped, len = run->len;
    char *b = repeated(len, &mapped);
    struct stream t = {b, 0};
    strata_data_t generic = {.kind = STRATA_GENERIC, .length = len, .u.convert = {pack, unpack, &t}};
    pattern_fill(b, WINDOW, SEED);
    if (run->kinds & PLAIN)
        CHECK_OK(strata_send(r->comm, b, len, 1, 1));
    if (run->kinds & TRUNCATED)
        CHECK_OK(strata_send(r->comm, b, len, 1, 2));
    if (run->kinds & GENERIC)
        CHECK_OK(strata_send_data(r->comm, &generic, 1, 3, STRATA_STANDARD));
    CHECK_EQ(munmap(b, mapped), 0);
}

static void receive_plain(struct tw_rank *r, size_t len, const char *window)
{
    size_t mapped;
    char *b = repeated(len, &mapped);
    strata_status_t st;
    CHECK_OK(strata_recv(r->comm, b, len, 0, 1, &st));
    CHECK(st.length == len && st.sent == len);
    CHECK(memcmp(b, window, WINDOW) == 0);
    CHECK_EQ(munmap(b, mapped), 0);
}

static void receive_truncated(struct tw_rank *r, size_t len, const char *window)
{
    size_t room = 1000;
    char *small = suite_buffer(room);
    strata_status_t st;
    CHECK_OK(strata_probe(r->comm, 0, 2, &st));
    CHECK(st.length == len);
    CHECK_RC(strata_recv(r->comm, small, room, 0, 2, &st), STRATA_ERR_TRUNCATE);
    CHECK(st.length == room && st.sent == len);
    CHECK(memcmp(small, window, room) == 0);
    suite_buffer_free(small, room);
}

static void receive_generic(struct tw_rank *r, size_t len, const char *window)
{
    struct stream t = {window, 0};
    strata_data_t generic = {.kind = STRATA_GENERIC, .length = len, .u.convert = {pack, unpack, &t}};
    strata_status_t st;
    CHECK_OK(strata_recv_data(r->comm, &generic, 0, 3, &st));
    CHECK(st.length == len && st.sent == len && t.bytes == len);
}

static void receiver(struct tw_rank *r, const struct run *run)
{
    char *window = malloc(WINDOW);
    CHECK(window);
    pattern_fill(window, WINDOW, SEED);
    if (run->kinds & PLAIN)
        receive_plain(r, run->len, window);
    if (run->kinds & TRUNCATED)
        receive_truncated(r, run->len, window);
    if (run->kinds & GENERIC)
        receive_generic(r, run->len, window);
    free(window);
}

static void between(struct tw_rank *r)
{
    if (r->rank == 0)
        sender(r, r->arg);
    else
        receiver(r, r->arg);
}

static void to_self(struct tw_rank *r)
{
    size_t len = *(const size_t *)r->arg, mapped;
    char *out = repeated(len, &mapped), *in = repeated(len, &mapped);
    strata_request_t *q = NULL;
    strata_status_t st;
    pattern_fill(out, WINDOW, SEED);
    CHECK_OK(strata_irecv(r->comm, in, len, r->rank, 1, &q));
    CHECK_OK(strata_send(r->comm, out, len, r->rank, 1));
    CHECK_OK(strata_wait(&q, &st));
    CHECK(st.length == len && st.sent == len && memcmp(in, out, WINDOW) == 0);
    CHECK_EQ(munmap(out, mapped), 0);
    CHECK_EQ(munmap(in, mapped), 0);
}

/* One of each transport's: both lengths, and all kinds of message. */
static const struct run short_runs[] = {
    {((size_t)2 << 30) + 5, 0, TRUNCATED},
    {((size_t)2 << 30) + 5, 1, GENERIC},
    {((size_t)4 << 30) + 5, 2, TRUNCATED},
    {((size_t)4 << 30) + 5, 3, PLAIN},
};
enum {
    N_SETTINGS = sizeof settings / sizeof settings[0],
    N_LENGTHS = sizeof lengths / sizeof lengths[0],
    N_SHORT = sizeof short_runs / sizeof short_runs[0]
};

START_TEST(huge)
{
    struct run run = {lengths[_i % N_LENGTHS], (size_t)_i / N_LENGTHS, PLAIN | TRUNCATED | GENERIC};
    if (test_form(true, false))
        run = short_runs[_i];
    tw_run(&(struct tw_options){.n = 2, .settings = settings[run.settings]}, between, &run);
}
END_TEST

START_TEST(huge_to_self)
{
    size_t len = lengths[_i];
    tw_run(&(struct tw_options){.n = 1, .settings = "btl=self"}, to_self, &len);
}
END_TEST

int main(void)
{
    if (test_sanitized())
        return 77;
    Suite *s = suite_create("conformance-huge");
    TCase *tc = tcase_create("huge");
    tcase_set_timeout(tc, 0); /* each world has a watchdog that says more */
    int runs = (int)test_form(N_SHORT, N_SETTINGS * N_LENGTHS), to_self_runs = (int)test_form(1, N_LENGTHS);
    tcase_add_loop_test(tc, huge, 0, runs);
    tcase_add_loop_test(tc, huge_to_self, 0, to_self_runs);
    test_form_print(SEED, (unsigned long)(runs + to_self_runs), N_SETTINGS * N_LENGTHS + N_LENGTHS, "runs");
    suite_add_tcase(s, tc);
    return run_suite(s);
}
