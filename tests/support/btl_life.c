/* BTL conformance: what a module says about itself, connecting again, sleeping and being woken. */
#include "support/btl_suite.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void count(void *arg, const struct st_frag *f)
{
    (void)f;
    ++*(int *)arg;
}

static void see_line(void *arg, const strata_mem_line_t *line)
{
    static const char *const known[] = {"queue pairs",   "shared receive queues",
                                        "eager rings",   "registered",
                                        "shared memory", "unexpected",
                                        "requests",      "peers",
                                        "other"};
    bool found = false;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        found |= !strcmp(line->category, known[i]);
    CHECK_MSG(found, "category '%s' is not one of the contract's", line->category);
    CHECK(line->component && *line->component && line->bytes < (4ull << 30));
    ++*(int *)arg;
}

static void introspection(struct btl_under_test *u)
{
    int lines = 0, got = 0;
    btl_handler(u, count, &got);
    u->t->ops->mem_report(u->t, see_line, &lines);
    struct st_btl_endpoint *about[] = {NULL, u->ep[u->peer]};
    for (int i = 0; i < 2; i++) {
        char *text = u->t->ops->describe(u->t, about[i]);
        CHECK(!text || (text[0] == '{' && text[strlen(text) - 1] == '}'));
        free(text);
    }
    uint64_t before = u->t->messages_sent;
    uint32_t hdr = 1;
    for (int i = 0; i < 10; i++)
        btl_send_all(u, u->peer, &hdr, 4, "abcdefgh", 8);
    CHECK(u->t->messages_sent >= before + 10);
    while (got < 10)
        btl_poll(u);
    btl_meet(u);
}

/* What was sent before a disconnect arrives; the peer can be connected again, very often. */
static void reconnect(struct btl_under_test *u)
{
    int got = 0, sent = 0;
    uint32_t hdr = 2;
    btl_handler(u, count, &got);
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 5; i++, sent++)
            btl_send_all(u, u->peer, &hdr, 4, &i, sizeof i);
        u->t->ops->disconnect(u->ep[u->peer]);
        u->ep[u->peer] = NULL;
        CHECK_OK(u->t->ops->connect(u->t, u->peer, &u->ep[u->peer]));
    }
    while (got < sent)
        btl_poll(u);
    btl_meet(u);
    CHECK_EQ(got, sent);
}

enum { SLEEP_S = 200 }; /* a safety net: a busy machine does not make a wake-up this late */

/* Sleeps as the base would. False: nobody woke it. */
static bool sleep_on(const struct st_btl_wait *w)
{
    if (w->word) {
        struct timespec t = {.tv_sec = SLEEP_S};
        return syscall(SYS_futex, w->word, FUTEX_WAIT, w->expect, &t, NULL, 0) == 0 || errno != ETIMEDOUT;
    }
    struct pollfd p = {.fd = w->fd, .events = POLLIN};
    return poll(&p, 1, SLEEP_S * 1000) != 0;
}

/* Rank 1 sleeps until a message of rank 0 wakes it, many times; a wake-up that is lost shows as a full sleep. */
static void wake_up(struct btl_under_test *u)
{
    int got = 0, rounds = 300;
    uint32_t hdr = 3;
    struct rnd rnd = {4};
    btl_handler(u, count, &got);
    if (!u->t->ops->arm || u->r->n == 1) {
        btl_meet(u);
        return;
    }
    for (int i = 0; i < rounds; i++) {
        if (u->r->rank == 0) {
            uint32_t pause = rnd_below(&rnd, 4) ? rnd_below(&rnd, 60) : 2000;
            struct timespec t = {.tv_nsec = (long)pause * 1000};
            nanosleep(&t, NULL);
            btl_send_all(u, 1, &hdr, 4, &i, sizeof i);
            while (got <= i) /* the answer */
                btl_poll(u);
            continue;
        }
        while (got <= i) {
            struct st_btl_wait w = {.fd = -1, .by_fd = i % 2 == 1};
            if (btl_poll(u))
                continue;
            int rc = u->t->ops->arm(u->t, &w);
            CHECK(rc == STRATA_OK || rc == STRATA_ERR_AGAIN);
            if (rc != STRATA_OK)
                continue;
            CHECK(!(w.word && (w.fd >= 0 || w.by_fd))); /* ours have a descriptor each */
            if (!w.word && w.fd < 0) {                  /* nothing from outside wakes it */
                u->t->ops->disarm(u->t);
                continue;
            }
            if (w.deaf) { /* not everything wakes it: the base looks again soon */
                nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
                u->t->ops->disarm(u->t);
                continue;
            }
            CHECK_MSG(sleep_on(&w), "round %d: nobody woke the sleeper in %d s", i, SLEEP_S);
            u->t->ops->disarm(u->t);
        }
        btl_send_all(u, 0, &hdr, 4, &i, sizeof i);
    }
    btl_meet(u);
}

/* Empty header, empty payload. */
static void empty(struct btl_under_test *u)
{
    int got = 0;
    btl_handler(u, count, &got);
    for (int i = 0; i < 100; i++)
        btl_send_all(u, u->peer, NULL, 0, NULL, 0);
    while (got < 100)
        btl_poll(u);
    btl_meet(u);
}

const struct btl_case btl_life_cases[] = {{"introspection", 2, introspection, false},
                                          {"reconnect", 2, reconnect, false},
                                          {"wake_up", 2, wake_up, false},
                                          {"empty", 2, empty, false}};
const size_t n_btl_life_cases = sizeof btl_life_cases / sizeof btl_life_cases[0];
