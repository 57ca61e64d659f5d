/* Messages that a client keeps in the slots of a ring: their bytes stay until they are released, in any order, or until
 * the ring needs the slots; the sender never lacks slots for long; nothing is kept beyond the ring's end. */
/* one thread */
#include "eager_rdma/kept.h"
#include "ring_rig.h"
#include "support/run_suite.h"

static const int detections[] = {IB_PARAM_FLAG, IB_PARAM_SEAL, IB_PARAM_IMM};
enum { DETECTIONS = 3, KEPT_MOST = SLOTS / 4 };

/* A message that the client at side 1 keeps; `n` bytes of message `i` are at `data`. */
static struct keeper {
    struct st_btl_kept head;
    const char *data;
    uint32_t i, n;
    bool used;
} keepers[KEPT_MOST + 1];
static uint32_t n_kept, n_ever, n_left;
static uint32_t keeps;       /* of so many messages one is kept; 0: none */
static bool release_at_once; /* within its delivery */
static bool spoilt;          /* the peer has written to kept slots */

static struct ib_module *receiver(void)
{
    return &side[1].m;
}

static struct ib_ring_in *ring(void)
{
    return &receiver()->eager.rings[0];
}

static void check_kept(const struct keeper *k)
{
    for (uint32_t at = 0; at < k->n && !spoilt; at++)
        HOLDS((uint8_t)k->data[at] == (uint8_t)k->i);
}

static void forget(struct keeper *k)
{
    HOLDS(k->used);
    check_kept(k);
    memset(k, 0xdb, sizeof *k);
    k->used = false;
    n_kept--;
}

static void leave(struct st_btl_kept *head)
{
    n_left++;
    forget(ST_CONTAINER(head, struct keeper, head));
}

static void release(struct keeper *k)
{
    HOLDS(k->used);
    check_kept(k); /* before others are written there */
    ib_release(&receiver()->btl, &k->head);
    k->n = 0;
    forget(k);
}

static void release_any(void)
{
    struct keeper *k = &keepers[any(KEPT_MOST + 1)];

    if (k->used)
        release(k);
}

static void release_all(void)
{
    for (uint32_t i = 0; i <= KEPT_MOST; i++)
        if (keepers[i].used)
            release(&keepers[i]);
    HOLDS(n_kept == 0);
}

static void deliver_and_keep(void *arg, const struct st_frag *f)
{
    struct keeper *k = keepers, other = {.head.leave = leave};

    deliver(arg, f);
    if (!keeps || any(keeps) != 0 || f->len == 0)
        return;
    while (k->used)
        HOLDS(++k < keepers + KEPT_MOST + 1);
    *k = (struct keeper){.head.leave = leave, .data = f->data, .i = side[1].got - 1, .n = f->len};
    HOLDS(!ib_keep(&receiver()->btl, k->data - 1, k->n, &other.head));
    HOLDS(!ib_keep(&receiver()->btl, k->data + 1, k->n, &other.head));
    k->used = ib_keep(&receiver()->btl, k->data, k->n, &k->head);
    n_kept += k->used;
    n_ever += k->used;
    HOLDS(!k->used || !ib_keep(&receiver()->btl, k->data, k->n, &other.head));
    if (k->used && release_at_once)
        release(k);
}

static void open_kept(int detect, uint8_t first, uint32_t slots)
{
    open_both(UINT16_MAX - 400, detect, IB_POLL_PRIORITISED, first);
    receiver()->eager.ring_slots = slots;
    for (int i = 0; i < ST_AM_COUNT; i++)
        receiver()->btl.am[i].fn = deliver_and_keep;
    memset(keepers, 0, sizeof keepers);
    n_kept = n_ever = n_left = keeps = 0;
    release_at_once = spoilt = false;
}

static void close_kept(void)
{
    release_all();
    close_both();
}

static void progress_both(uint32_t times)
{
    for (uint32_t i = 0; i < times; i++) {
        progress(&side[1]), progress(&side[0]);
        HOLDS(ring()->order.held <= ring()->order.n / 4);
    }
}

static void send_one(void)
{
    for (int tries = 0; send_number(&side[0], side[1].got) != STRATA_OK; tries++) {
        HOLDS(tries < 1000);
        progress_both(1);
    }
    progress_both(3);
}

/* Until the peer has a ring. */
static void grant(void)
{
    uint32_t sent = side[1].got;

    for (; !side[0].p->ring_out || side[0].p->slots == 0; sent++) {
        HOLDS(sent < 100);
        send_one();
    }
    ck_assert_int_eq(receiver()->eager.hot.places[0].state, ST_HOT_GRANTED);
}

/* All slots are the sender's again, or on the way to it. */
static void no_slot_is_lost(void)
{
    progress_both(50);
    ck_assert_uint_eq(ring()->order.held, 0);
    ck_assert_uint_eq(side[0].p->slots + side[1].p->owed_slots, ring()->order.n);
    ck_assert_ptr_null(side[0].p->error);
    ck_assert_ptr_null(side[1].p->error);
}

/* Messages of all lengths in bursts; kept ones are released in any order, some at once. */
START_TEST(released_in_any_order)
{
    uint32_t sent = 0, n = 100000;

    open_kept(detections[_i % DETECTIONS], (uint8_t)(_i * 7 % SLOTS), SLOTS);
    side[1].answers = _i >= DETECTIONS;
    keeps = 2;
    for (uint32_t round = 0; side[1].got < n; round++) {
        HOLDS(round < 40 * n);
        release_at_once = any(10) == 0;
        for (uint32_t burst = any(8); burst > 0 && sent < n; burst--)
            if (send_number(&side[0], sent) == STRATA_OK)
                sent++;
        progress_both(any(9));
        for (uint32_t times = any(6); times > 0; times--)
            release_any();
    }
    release_all();
    no_slot_is_lost();
    ck_assert_uint_gt(n_ever, 1000);
    ck_assert_uint_gt(n_left, 100);
    ck_assert_uint_gt(n_ever - n_left, 100);
    ck_assert_uint_eq(receiver()->count.ring_kept, n_ever);
    ck_assert_uint_eq(receiver()->count.ring_copied, n_left);
    close_kept();
}
END_TEST

/* A message that nobody receives: the ring takes its slots back, and goes on as if nothing had been kept. */
START_TEST(a_ring_does_not_starve)
{
    uint64_t by_ring;

    open_kept(detections[_i], 0, SLOTS);
    grant();
    keeps = 1;
    while (n_kept == 0)
        send_one();
    keeps = 0;
    by_ring = side[0].m.count.ring_sent;
    for (int i = 0; i < 1000; i++)
        send_one();
    ck_assert_uint_eq(n_left, 1);
    ck_assert_uint_gt(side[0].m.count.ring_sent - by_ring, 500);
    no_slot_is_lost();
    keeps = 1; /* nobody receives any */
    by_ring = side[0].m.count.ring_sent;
    for (int i = 0; i < 1000; i++)
        send_one();
    ck_assert_uint_gt(side[0].m.count.ring_sent - by_ring, 500);
    close_kept();
}
END_TEST

/* Rings that are too small to spare a slot. */
START_TEST(a_small_ring_keeps_nothing)
{
    open_kept(IB_PARAM_FLAG, 0, 3);
    grant();
    keeps = 1;
    for (int i = 0; i < 100; i++)
        send_one();
    ck_assert_uint_eq(n_ever, 0);
    close_kept();
}
END_TEST

static void keep_some(void)
{
    keeps = 1;
    while (n_kept < 2)
        send_one();
    keeps = 0;
}

/* A revoked ring has its kept messages until the farewell. Its place serves again at once. */
START_TEST(a_revoked_ring_is_emptied)
{
    open_kept(detections[_i], 1, SLOTS);
    for (int round = 0; round < 20; round++) {
        uint32_t kept;
        grant();
        keep_some();
        kept = n_kept;
        st_hot_revoke_all(&receiver()->eager.hot);
        ck_assert_uint_eq(n_kept, kept);
        progress_both(50);
        ck_assert_uint_eq(n_kept, 0);
        ck_assert_int_eq(receiver()->eager.hot.places[0].state, ST_HOT_FREE);
        ck_assert_ptr_null(side[1].p->error);
    }
    close_kept();
}
END_TEST

/* The connection ends, after an error or without. The memory is the test's own, and is not released. */
START_TEST(a_lost_ring_is_emptied)
{
    open_kept(detections[_i % DETECTIONS], 1, SLOTS);
    grant();
    keep_some();
    if (_i >= DETECTIONS)
        ib_peer_broken(side[1].p, "the test says so");
    if (_i >= 2 * DETECTIONS) { /* a message is received until the connection has ended */
        for (uint32_t i = 0; n_kept > 1; i++)
            if (keepers[i].used)
                release(&keepers[i]);
    }
    ring()->memory.mr = NULL;
    ib_eager_reset(side[1].p);
    ck_assert_uint_eq(n_kept, 0);
    ck_assert_uint_ge(n_left, 1);
    ck_assert_ptr_null(ring()->peer);
    close_kept();
}
END_TEST

/* The peer writes to slots that are kept: where they are released, and how many, does not depend on their bytes. */
START_TEST(a_peer_that_writes_to_kept_slots)
{
    open_kept(detections[_i], 1, SLOTS);
    grant();
    spoilt = true;
    for (int round = 0; round < 1000; round++) {
        keep_some();
        for (uint32_t i = 0; i <= KEPT_MOST; i++) {
            struct keeper *k = &keepers[i];
            if (k->used) { /* header and footer as well */
                char *begin = side[1].ring + (k->data - side[1].ring) / SLOT * SLOT;
                memset(begin, round, SLOT);
            }
        }
        release_all();
        no_slot_is_lost();
        for (uint32_t i = 0; i < SLOTS; i++) /* what was written is no message of another lap */
            side[1].ring[sizeof side[1].ring - 1 - i * SLOT] = 0;
    }
    close_kept();
}
END_TEST

static bool takes(uint32_t i, uint32_t slots)
{
    return ib_slot_bytes(header_of(i) + bytes_of(i), ring()->detect == IB_DETECT_SEAL) > (slots - 1) * SLOT;
}

/* A kept message in the last slot; the next one takes all slots, although that one was not returned. */
START_TEST(a_peer_that_writes_over_kept_slots)
{
    enum { FEW = 8 };
    uint32_t i;
    uint64_t by_ring;

    open_kept(detections[_i], 0, FEW);
    grant();
    for (i = side[1].got; ring()->flag != ring()->bottom + SLOT || bytes_of(i) == 0 || !takes(i + 1, FEW);
         i = side[1].got) {
        HOLDS(i < 100000);
        beside = any(10) == 0; /* so that a length does not always come to the same slot */
        send_one();
    }
    beside = false;
    keeps = 1;
    by_ring = side[0].m.count.ring_sent;
    send_one();
    ck_assert_uint_eq(side[0].m.count.ring_sent, by_ring + 1);
    ck_assert_uint_eq(n_kept, 1);
    side[0].p->slots = FEW;
    spoilt = true;
    HOLDS(send_number(&side[0], i + 1) == STRATA_OK);
    ck_assert_uint_eq(side[0].m.count.ring_sent, by_ring + 2);
    (void)ib_rings_poll(receiver()); /* without the reports of broken peers */
    (void)ib_poll_high(receiver());
    ck_assert_ptr_nonnull(side[1].p->error);
    ck_assert_str_eq(side[1].p->error, IB_RING_OVERRUN);
    ck_assert_uint_eq(side[1].got, i + 1);
    close_kept();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ring_kept");
    TCase *t = tcase_create("ring_kept");

    tcase_add_loop_test(t, released_in_any_order, 0, 2 * DETECTIONS);
    tcase_add_loop_test(t, a_ring_does_not_starve, 0, DETECTIONS);
    tcase_add_test(t, a_small_ring_keeps_nothing);
    tcase_add_loop_test(t, a_revoked_ring_is_emptied, 0, DETECTIONS);
    tcase_add_loop_test(t, a_lost_ring_is_emptied, 0, 3 * DETECTIONS);
    tcase_add_loop_test(t, a_peer_that_writes_to_kept_slots, 0, DETECTIONS);
    tcase_add_loop_test(t, a_peer_that_writes_over_kept_slots, 0, DETECTIONS);
    suite_add_tcase(s, t);
    return run_suite(s);
}
