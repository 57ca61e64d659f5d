/* Both ends of a landing ring with a simulated transport between them: puts and notices take effect late and in any
 * order, and may be refused. One pair in a test program. */
#ifndef TEST_SUPPORT_LANDING_PAIR_H
#define TEST_SUPPORT_LANDING_PAIR_H

#include <stdlib.h>
#include <string.h>
#include <strata/sdk/landing_ring.h>
#include "framework/base/landing_slot.h"
#include "support/pattern.h"
#include "support/random.h"
#include "support/world.h"

enum { PUTS = ST_LANDING_PUTS, NOTICES = 64, NAME = 37 };

/* A slot by a message. */
struct message {
    uint32_t notice, len;
    char head[ST_LANDING_HEAD], *data;
};
/* A put: the bytes are read and written when it moves, the notice comes after that, and the end some time. */
struct put {
    bool moved, told, used;
    uint32_t offset, len, notice;
};
static struct {
    struct st_landing_out out;
    struct st_landing_in in;
    char *staging, *ring;
    uint32_t size;
    struct put put[PUTS];
    uint32_t credit[NOTICES], n_credits;
    uint32_t n_puts, n_tells;       /* ever */
    uint32_t late[NOTICES], n_late; /* notices of puts that were done when they began */
    struct message message[NOTICES];
    uint32_t n_messages;
    char *to; /* of a reader that waits, with room for to_size bytes, or NULL */
    uint32_t to_size, to_len;
    bool to_taken; /* a message came there */
    int refuse;    /* percent */
    int at_once;   /* percent of puts that are done when they begin */
    int lost;      /* STRATA_OK, or the error of each credit from now on */
    struct rnd rnd;
} p;

static inline bool chance(int percent)
{
    return rnd_below(&p.rnd, 100) < (uint32_t)percent;
}

static inline int put(void *arg, uint32_t which, uint32_t offset, uint32_t len, uint32_t notice)
{
    CHECK(arg == &p);
    if (chance(p.refuse))
        return STRATA_ERR_AGAIN;
    CHECK(which < PUTS);
    CHECK(!p.put[which].used);
    CHECK(len > 0 && offset % ST_LANDING_LINE == 0 && offset + len <= p.size);
    CHECK(!st_landing_is_credit(notice));
    CHECK_EQ(st_landing_name(notice), NAME);
    CHECK(notice <= (1u << 28) - 1);
    if (p.at_once && p.n_late < NOTICES && chance(p.at_once)) {
        memcpy(p.ring + offset, p.staging + offset, len);
        p.late[p.n_late++] = notice;
        p.n_puts++;
        return 1;
    }
    p.put[which] = (struct put){.used = true, .offset = offset, .len = len, .notice = notice};
    p.n_puts++;
    return STRATA_OK;
}
static inline int tell(void *arg, uint32_t which, uint32_t notice)
{
    CHECK(arg == &p);
    if (p.lost != STRATA_OK)
        return p.lost;
    if (chance(p.refuse))
        return STRATA_ERR_AGAIN;
    CHECK(which < ST_LANDING_CREDITS);
    CHECK(st_landing_is_credit(notice));
    CHECK_EQ(st_landing_name(notice), NAME);
    CHECK(p.n_credits < NOTICES);
    p.credit[p.n_credits++] = notice;
    p.n_tells++;
    return p.n_tells % 2; /* both mean that it goes */
}

static inline int send_message(void *arg, const void *head, const void *data, uint32_t len, uint32_t notice)
{
    CHECK(arg == &p);
    CHECK_EQ(st_landing_name(notice), NAME);
    if (chance(p.refuse) || p.n_messages == NOTICES)
        return STRATA_ERR_AGAIN;
    struct message *m = &p.message[p.n_messages++];
    *m = (struct message){.notice = notice, .len = len, .data = malloc(len + 1)};
    CHECK(m->data);
    memcpy(m->head, head, sizeof m->head);
    memcpy(m->data, data, len);
    return 1;
}

static inline void begin(uint32_t size, uint64_t seed)
{
    memset(&p, 0, sizeof p);
    p.size = size;
    p.rnd.state = seed;
    p.staging = aligned_alloc(64, size);
    p.ring = aligned_alloc(64, size);
    memset(p.ring, 0xee, size);
    memset(p.staging, 0xdd, size);
    CHECK_EQ(st_landing_out_create(&p.out, p.staging, size, NAME, put, &p), STRATA_OK);
    CHECK_EQ(st_landing_in_create(&p.in, p.ring, size, NAME, tell, &p), STRATA_OK);
}
static inline void end(void)
{
    st_landing_in_destroy(&p.in);
    st_landing_in_destroy(&p.in); /* once more does no harm */
    free(p.staging);
    free(p.ring);
}

static inline void move(struct put *at)
{
    if (!at->moved)
        memcpy(p.ring + at->offset, p.staging + at->offset, at->len);
    at->moved = true;
}
/* One thing that the transport may do next. */
static inline bool step_put(uint32_t i)
{
    struct put *at = &p.put[i];
    if (!at->used)
        return false;
    if (!at->moved) {
        move(at);
    } else if (!at->told && chance(60)) {
        at->told = true;
        st_landing_notice(&p.in, at->notice);
    } else if (at->told) {
        at->used = false;
        st_landing_put_done(&p.out, i, STRATA_OK);
    }
    return true;
}
static inline bool step_credit(void)
{
    if (!p.n_credits)
        return false;
    uint32_t i = rnd_below(&p.rnd, p.n_credits), notice = p.credit[i];
    p.credit[i] = p.credit[--p.n_credits];
    st_landing_credit(&p.out, notice);
    return true;
}
static inline bool step_late(void)
{
    if (!p.n_late)
        return false;
    uint32_t i = rnd_below(&p.rnd, p.n_late), notice = p.late[i];
    p.late[i] = p.late[--p.n_late];
    st_landing_notice(&p.in, notice);
    return true;
}
static inline bool step_message(void)
{
    if (!p.n_messages)
        return false;
    uint32_t i = rnd_below(&p.rnd, p.n_messages);
    struct message m = p.message[i];
    p.message[i] = p.message[--p.n_messages];
    if (st_landing_arrive_slot(&p.in, m.notice, m.head, m.data, m.len, p.to, p.to_size)) {
        CHECK(p.to && m.len <= p.to_size);
        p.to = NULL;
        p.to_len = m.len;
        p.to_taken = true;
    }
    free(m.data);
    return true;
}
static inline void step(void)
{
    if (chance(30))
        (void)step_credit();
    else if (p.n_late && chance(50))
        (void)step_late();
    else if (p.n_messages && chance(50))
        (void)step_message();
    else
        (void)step_put(rnd_below(&p.rnd, PUTS));
    if (p.out.starved)
        (void)st_landing_flush(&p.out);
    if (p.in.starved)
        st_landing_return(&p.in);
}
/* Until nothing is on its way. */
static inline void settle(void)
{
    for (bool any = true; any;) {
        any = step_credit() || step_late() || step_message() || p.out.starved || p.in.starved;
        for (uint32_t i = 0; i < PUTS; i++)
            any |= step_put(i);
        if (p.out.starved)
            (void)st_landing_flush(&p.out);
        if (p.in.starved)
            st_landing_return(&p.in);
    }
    CHECK_EQ(p.out.rc, STRATA_OK);
    CHECK_EQ(p.in.rc, STRATA_OK);
}

static inline void check_view(const struct st_landing_view *v, const char *memory)
{
    CHECK(v->first >= memory && v->first + v->first_len <= memory + p.size);
    CHECK(v->second_len == 0 ? !v->second : v->second == memory);
    CHECK(v->second_len <= p.size);
}

static inline int try_send(uint32_t len, uint64_t number, bool keep)
{
    struct st_landing_view v;
    char bytes[ST_LANDING_MOST / 8];
    int rc = st_landing_reserve(&p.out, len, &v);
    if (rc != STRATA_OK)
        return rc;
    CHECK(len <= sizeof bytes);
    check_view(&v, p.staging);
    CHECK_EQ(st_landing_length(&v), len);
    pattern_fill(bytes, len, number);
    st_landing_fill(&v, bytes);
    unsigned mark = number % 3 == 0 ? ST_LANDING_MARKED : 0;
    CHECK_EQ(st_landing_commit(&p.out, len, (keep ? ST_LANDING_KEEP : 0) | mark), STRATA_OK);
    return rc;
}
static inline void check_message(const struct st_landing_view *v, uint32_t len, uint64_t number)
{
    char bytes[ST_LANDING_MOST / 8];
    check_view(v, p.ring);
    CHECK_EQ(v->marked, number % 3 == 0);
    CHECK_EQ(st_landing_length(v), len);
    st_landing_copy(v, bytes);
    CHECK_EQ(pattern_check(bytes, len, number), -1);
}
static inline void take(uint32_t len, uint64_t number)
{
    struct st_landing_view v;
    CHECK_EQ(st_landing_peek(&p.in, &v), STRATA_OK);
    check_message(&v, len, number);
    CHECK_EQ(st_landing_release(&p.in, &v), STRATA_OK);
}

#endif
