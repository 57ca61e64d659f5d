/* Lanes: what they send, what they take, what they refuse; a peer with two paths, the test at the other end. Failing
 * paths under traffic are in components/pml_ob1/tests/path_failure_test.c and tests/conformance/clients_test.c. */
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <strata/sdk/btl_hints.h>
#include <strata/sdk/notify.h>
#include "framework/worker/lane.h"
#include "support/fake_stack.h"
#include "support/run_suite.h"

FAKE_STACK_TABLE;

enum { PEER = 2 };

static strata_t *s;
static struct st_worker *w;
static struct st_peer *peer;
static struct {
    int n, failed;
    int n_at_change; /* n when the peer's paths changed last */
    char text[64];
    struct st_btl *btl;
} got;

static void deliver(void *arg, const struct st_frag *frag)
{
    (void)arg;
    ck_assert_int_eq(frag->rank, PEER);
    ck_assert_uint_eq(frag->hdr_len, 1);
    got.n++;
    got.btl = frag->btl;
    snprintf(got.text, sizeof got.text, "%.*s", (int)frag->len, (const char *)frag->data);
}
static void peer_failed(void *arg, struct st_peer *p)
{
    (void)arg;
    ck_assert_ptr_eq(p, peer);
    got.failed++;
}
static void peer_changed(void *arg, struct st_peer *p)
{
    (void)arg;
    if (p == peer)
        got.n_at_change = got.n;
}
static const struct st_client client = {
    .am = ST_AM_TEST, .deliver = deliver, .peer_failed = peer_failed, .peer_changed = peer_changed};
static const struct st_client other = {.am = ST_AM_COLL, .deliver = deliver};

static void start(void)
{
    s = fake_start();
    fake.n_paths = 2;
    w = fake.pml->worker;
    w->paths = (struct st_worker_paths){.retry_ms = 1000, .wait_ms = 60000};
    memset(&got, 0, sizeof got);
    ck_assert_int_eq(st_worker_join(w, &client, NULL), STRATA_OK);
    ck_assert_int_eq(st_worker_peer(w, PEER, &peer), STRATA_OK);
}
static void end(void)
{
    st_worker_leave(w, &client);
    fake_end(s);
}
static int send(const char *text)
{
    struct st_btl_endpoint *ep = st_peer_way(peer, 0);
    return ep->btl->ops->send(ep, ST_AM_TEST, "h", 1, text, (uint32_t)strlen(text));
}
static struct lane_head sent(void)
{
    struct lane_head h;
    ck_assert_int_eq(fake.last_sent.am, ST_AM_LANE);
    ck_assert_uint_eq(fake.last_sent.hdr_len, sizeof h);
    memcpy(&h, fake.last_sent.hdr, sizeof h);
    return h;
}
/* A frame of the other end arrives by a module; its header is the first byte of `text`. */
static void arrives(int module, struct lane_head h, const char *text)
{
    struct st_frag frag = {.hdr = &h,
                           .hdr_len = sizeof h,
                           .data = text,
                           .len = (uint32_t)strlen(text),
                           .rank = PEER,
                           .btl = fake.btl[module]};
    st_btl_deliver(fake.btl[module], ST_AM_LANE, &frag);
}

START_TEST(numbers_and_keeps)
{
    ck_assert_int_eq(st_worker_connect(w, peer), STRATA_OK);
    ck_assert(peer->by_lane);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(send("abc"), STRATA_OK);
        struct lane_head h = sent();
        ck_assert(h.kind == ST_AM_TEST && h.hdr_len == 1 && h.seq == i && h.flags == 0);
        ck_assert_mem_eq(fake.last_sent.data, "habc", 4);
    }
    ck_assert_uint_eq(peer->lane->next - peer->lane->oldest, 3);
    arrives(1, (struct lane_head){.kind = LANE_WORD, .ack = 2}, "");
    ck_assert_uint_eq(peer->lane->next - peer->lane->oldest, 1);
    fake.send_rc[0] = STRATA_ERR_AGAIN;
    ck_assert_int_eq(send("d"), STRATA_ERR_AGAIN); /* nothing taken */
    ck_assert_uint_eq(peer->lane->next - peer->lane->oldest, 1);
}
END_TEST

/* Another client can always have a share of the window, and the first may have all but that. */
START_TEST(shares_of_the_window)
{
    uint32_t n = 0;
    ck_assert_int_eq(st_worker_join(w, &other, NULL), STRATA_OK);
    ck_assert_int_eq(st_worker_connect(w, peer), STRATA_OK);
    while (send("x") == STRATA_OK)
        n++;
    /* All but half of an equal share of each other client. */
    ck_assert_uint_eq(n, LANE_WINDOW - (worker_of(w)->n_clients - 1) * (LANE_WINDOW / 2 / worker_of(w)->n_clients));
    struct st_btl_endpoint *ep = st_peer_way(peer, 0);
    for (; ep->btl->ops->send(ep, ST_AM_COLL, "h", 1, "x", 1) == STRATA_OK; n++)
        ;
    ck_assert_uint_ge(n, LANE_WINDOW - LANE_WINDOW / 4); /* the PML and channels have their rights as well */
    arrives(0, (struct lane_head){.kind = LANE_WORD, .ack = n}, "");
    ck_assert_int_eq(send("x"), STRATA_OK);
    st_worker_leave(w, &other);
}
END_TEST

static int bulk_calls;

static int send_bulk(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                     const struct st_payload *payload)
{
    bulk_calls++;
    return ep->btl->ops->send(ep, am, hdr, hdr_len, st_payload_contiguous(payload), (uint32_t)payload->length);
}

static int send_part(const char *text)
{
    const strata_data_t flat = {.kind = STRATA_CONTIGUOUS, .length = strlen(text), .u.buffer = (void *)(uintptr_t)text};
    struct st_btl_endpoint *ep = st_peer_way(peer, 0);

    return ep->btl->hints->send_bulk(ep, ST_AM_TEST, "h", 1, &(struct st_payload){&flat, 0, flat.length});
}

/* Parts of long messages go by the paths' own way for them, also when they go again, and leave room for messages. */
START_TEST(parts_leave_room)
{
    static const struct st_btl_hints bulk = {.send_bulk = send_bulk}, none = {0};
    uint32_t parts = 0, n = 0;

    bulk_calls = 0;
    fake.btl[0]->hints = &bulk;
    fake.btl[1]->hints = &none;
    ck_assert_int_eq(st_worker_connect(w, peer), STRATA_OK);
    while (send_part("abc") == STRATA_OK)
        parts++;
    ck_assert_int_eq(bulk_calls, (int)parts);
    ck_assert_mem_eq(fake.last_sent.data, "habc", 4);
    while (send("x") == STRATA_OK)
        n++;
    ck_assert_uint_eq(n, LANE_WINDOW / 8);
    ck_assert_int_eq(bulk_calls, (int)parts);
    arrives(0, (struct lane_head){.kind = LANE_WORD, .flags = LANE_F_AGAIN, .ack = parts - 1}, "");
    (void)lane_pump(peer->lane);
    ck_assert_int_eq(bulk_calls, (int)parts + 1);
}
END_TEST

START_TEST(takes_each_number_once)
{
    arrives(0, (struct lane_head){.kind = ST_AM_TEST, .hdr_len = 1, .seq = 1}, "hsecond");
    ck_assert(got.n == 1 && strcmp(got.text, "second") == 0 && got.btl == fake.btl[0]);
    arrives(1, (struct lane_head){.kind = ST_AM_TEST, .hdr_len = 1, .seq = 0, .flags = LANE_F_DIVERTED}, "hfirst");
    ck_assert(got.n == 2 && strcmp(got.text, "first") == 0);
    ck_assert_ptr_null(got.btl); /* meant for another path, nobody knows which */
    arrives(0, (struct lane_head){.kind = ST_AM_TEST, .hdr_len = 1, .seq = 0}, "hfirst");
    arrives(0, (struct lane_head){.kind = ST_AM_TEST, .hdr_len = 1, .seq = 1}, "hsecond");
    ck_assert_int_eq(got.n, 2);
    strata_progress(s); /* connects, and says what is here */
    ck_assert_uint_eq(sent().ack, 2);
    arrives(0, (struct lane_head){.kind = ST_AM_STREAM, .hdr_len = 1, .seq = 2}, "hnobody's");
    ck_assert_int_eq(got.n, 2);
    ck_assert_uint_eq(peer->lane->expected, 3);
}
END_TEST

START_TEST(sends_again_by_another_path)
{
    ck_assert_int_eq(st_worker_connect(w, peer), STRATA_OK);
    ck_assert_int_eq(send("abc"), STRATA_OK);
    fake.btl[0]->path_failed(fake.btl[0]->peer_failed_arg, peer->bml->paths[0].ep, STRATA_ERR_PEER, "cable");
    ck_assert_uint_eq(st_peer_path_up(peer, 0), 1);
    strata_progress(s);
    ck_assert_uint_eq(w->n_paths_failed, 1);
    fake.last_sent.module = -1;
    arrives(1, (struct lane_head){.kind = LANE_WORD}, "");
    strata_progress(s);
    ck_assert_int_eq(fake.last_sent.module, 1);
    struct lane_head h = sent();
    ck_assert(h.kind == ST_AM_TEST && h.seq == 0 && h.flags == LANE_F_DIVERTED);
    ck_assert(st_worker_path_lost(peer, 0)); /* an operation by it: to be done by another */
    ck_assert_int_eq(got.failed, 0);
}
END_TEST

/* A connection that the peer made breaks before anything came by it: no failure where it is made again. The peer is
 * connected from here, so that one that is dead is found out. */
START_TEST(path_breaks_before_the_first_message)
{
    struct st_btl_endpoint ep = {.btl = fake.btl[0], .rank = PEER};

    fake.n_paths = 1;
    fake.btl[0]->caps |= ST_BTL_MENDS | (_i ? ST_BTL_KEEP : 0u);
    fake.btl[0]->path_failed(fake.btl[0]->peer_failed_arg, &ep, STRATA_ERR_PEER, "reset");
    for (int i = 0; i < 3; i++)
        strata_progress(s);
    ck_assert_int_eq(got.failed, _i ? 0 : 1);
    if (_i) {
        ck_assert(peer->bml && peer->by_lane);
        ck_assert_uint_eq(sent().kind, LANE_WORD);
        ck_assert_uint_eq(sent().flags, LANE_F_AGAIN);
    }
}
END_TEST

/* A module that notices a failure before it has read what came by the path: a message in each of its next rounds. */
static int unread;

static int fails_and_reads(struct st_btl *b)
{
    struct st_frag frag = {.hdr = "h", .hdr_len = 1, .data = "late", .len = 4, .rank = PEER, .btl = b};

    if (unread == 3)
        b->path_failed(b->peer_failed_arg, peer->bml->paths[0].ep, STRATA_ERR_PEER, "cable");
    else if (unread > 0)
        st_btl_deliver(b, ST_AM_TEST, &frag);
    return unread > 0 ? unread-- : 0;
}

/* The clients get what came by a path before they hear that it has failed: what depends on it is over then. */
START_TEST(what_came_before_the_failure)
{
    static struct st_btl_ops ops; /* until the module is closed */

    ck_assert_int_eq(st_worker_connect(w, peer), STRATA_OK);
    ops = *fake.btl[0]->ops;
    ops.progress = fails_and_reads;
    unread = 3;
    fake.btl[0]->ops = &ops;
    st_worker_poll_add(w, fake.btl[0]);
    while (w->n_paths_failed == 0)
        strata_progress(s);
    ck_assert_int_eq(got.n, 2);
    ck_assert_int_eq(got.n_at_change, 2);
    ck_assert_int_eq(got.failed, 0);
}
END_TEST

static int notice_rc;

static void notice_done(struct st_notify *n, int rc)
{
    (void)n;
    notice_rc = rc;
}

/* A notice that waits for room is lost with a path to its own peer, not with one to another. */
START_TEST(notice_that_waits)
{
    const struct st_notify_put put = {.am = ST_AM_TEST, .notice = 5};
    struct st_notify n = {.done = notice_done};
    struct st_peer *third;

    notice_rc = STRATA_ERR_AGAIN;
    ck_assert_int_eq(st_worker_connect(w, peer), STRATA_OK);
    ck_assert_int_eq(st_worker_peer(w, 3, &third), STRATA_OK);
    ck_assert_int_eq(st_worker_connect(w, third), STRATA_OK);
    fake.send_rc[0] = STRATA_ERR_AGAIN;
    ck_assert_int_eq(st_worker_put_notify(w, peer, 0, &put, &n), STRATA_OK);
    fake.btl[0]->path_failed(fake.btl[0]->peer_failed_arg, (_i ? peer : third)->bml->paths[0].ep, STRATA_ERR_PEER,
                             "cable");
    strata_progress(s);
    ck_assert_uint_eq(w->n_paths_failed, 1);
    fake.send_rc[0] = STRATA_OK;
    strata_progress(s);
    ck_assert_int_eq(notice_rc, _i ? STRATA_ERR_PEER : STRATA_OK);
}
END_TEST

/* After a failure nothing goes again before the peer has said what has arrived; then only the rest does. */
START_TEST(waits_for_what_has_arrived)
{
    ck_assert_int_eq(st_worker_connect(w, peer), STRATA_OK);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(send("abc"), STRATA_OK);
    fake.btl[0]->path_failed(fake.btl[0]->peer_failed_arg, peer->bml->paths[0].ep, STRATA_ERR_PEER, "cable");
    for (int i = 0; i < 3; i++)
        strata_progress(s);
    struct lane_head h = sent();
    ck_assert(h.kind == LANE_WORD && h.flags == LANE_F_AGAIN && h.lost != 0);
    ck_assert_int_eq(send("d"), STRATA_ERR_AGAIN);
    arrives(1, (struct lane_head){.kind = LANE_WORD, .ack = 2}, "");
    ck_assert_uint_eq(peer->lane->again_end - peer->lane->again, 1);
    strata_progress(s);
    h = sent();
    ck_assert(h.kind == ST_AM_TEST && h.seq == 2);
    ck_assert_int_eq(send("d"), STRATA_OK);
}
END_TEST

/* A peer that asks for what is missing is told what has arrived, also by an end that has nothing to send. */
START_TEST(answers_what_has_arrived)
{
    arrives(0, (struct lane_head){.kind = ST_AM_TEST, .hdr_len = 1}, "hx");
    strata_progress(s);
    fake.last_sent.module = -1;
    arrives(0, (struct lane_head){.kind = LANE_WORD, .flags = LANE_F_AGAIN, .seq = 1}, "");
    strata_progress(s);
    ck_assert_int_ge(fake.last_sent.module, 0);
    ck_assert_uint_eq(sent().ack, 1);
}
END_TEST

/* Bytes that came by the faster path, before a number that the slower one brings, are acknowledged with it: what was
 * sent meanwhile could not acknowledge them, and the peer may have no room for another message. */
START_TEST(acknowledges_bytes_behind_a_gap)
{
    enum { PIECE = 64 << 10, PIECES = 8 };
    static char piece[PIECE + 1];
    memset(piece, 'p', PIECE);
    ck_assert_int_eq(st_worker_connect(w, peer), STRATA_OK);
    for (uint32_t i = 1; i <= PIECES; i++)
        arrives(1, (struct lane_head){.kind = ST_AM_TEST, .hdr_len = 1, .seq = i}, piece);
    ck_assert_int_eq(send("mine"), STRATA_OK);
    ck_assert_uint_eq(sent().ack, 0);
    arrives(0, (struct lane_head){.kind = ST_AM_TEST, .hdr_len = 1, .seq = 0}, "hlate");
    st_worker_progress(w);
    ck_assert_uint_eq(sent().kind, LANE_WORD);
    ck_assert_uint_eq(sent().ack, PIECES + 1);
}
END_TEST

/* The peer's word takes a way down, except that which brings it, if the module has told this end before. */
START_TEST(word_by_the_way_itself)
{
    ck_assert_int_eq(st_worker_connect(w, peer), STRATA_OK);
    struct lane_head h = {.kind = LANE_WORD, .flags = LANE_F_AGAIN, .word = 1, .lost = lane_name_of(peer->lane, 0)};
    if (_i & 1)
        fake.btl[0]->caps |= ST_BTL_BOTH_TOLD;
    arrives(_i >> 1, h, "");
    bool stays = _i == 1;
    ck_assert_uint_eq(peer->lane->way[0].state, stays ? LANE_WAY_UP : LANE_WAY_DOWN);
    strata_progress(s);
    h = sent();
    ck_assert(h.flags == LANE_F_HEARD && h.word == 1);
}
END_TEST

/* A connection that is being made may have been cut by the failure of which the peer speaks, and then it stays so. */
START_TEST(word_about_a_way_that_is_tried)
{
    const struct lane_way *way;

    w->paths.retry_ms = 0;
    ck_assert_int_eq(st_worker_connect(w, peer), STRATA_OK);
    way = &peer->lane->way[0];
    fake.btl[0]->path_failed(fake.btl[0]->peer_failed_arg, peer->bml->paths[0].ep, STRATA_ERR_PEER, "cable");
    fake.send_rc[0] = STRATA_ERR_AGAIN;
    for (int i = 0; i < 1000 && way->state != LANE_WAY_TRIED; i++)
        strata_progress(s);
    ck_assert_uint_eq(way->state, LANE_WAY_TRIED);
    struct lane_head h = {.kind = LANE_WORD, .flags = LANE_F_AGAIN, .word = 1, .lost = lane_name_of(peer->lane, 0)};
    arrives(0, h, ""); /* by the connection that is made */
    ck_assert_uint_eq(way->state, LANE_WAY_TRIED);
    arrives(1, h, ""); /* said once more */
    ck_assert_uint_eq(way->state, LANE_WAY_TRIED);
    h.word++;
    arrives(1, h, "");
    ck_assert_uint_eq(way->state, LANE_WAY_DOWN);
    fake.send_rc[0] = STRATA_OK;
    for (int i = 0; i < 1000 && way->state != LANE_WAY_UP; i++)
        strata_progress(s);
    ck_assert_uint_eq(way->state, LANE_WAY_UP);
}
END_TEST

/* No path is left, and this process did not look for longer than the limit: half a second of that counts. */
START_TEST(time_without_looks)
{
    const uint64_t hour = 3600000000000ull;
    struct worker *worker = worker_of(w);

    ck_assert_int_eq(st_worker_connect(w, peer), STRATA_OK);
    for (int i = 0; i < 2; i++) {
        fake.send_rc[i] = STRATA_ERR_AGAIN;
        fake.btl[i]->path_failed(fake.btl[i]->peer_failed_arg, peer->bml->paths[i].ep, STRATA_ERR_PEER, "cable");
    }
    for (int i = 0; i < 1000 && peer->lane->stranded_ns == 0; i++)
        strata_progress(s);
    ck_assert_uint_ne(peer->lane->stranded_ns, 0);
    for (int looks = 0; looks < 100; looks++) {
        worker->mended_ns -= hour;
        peer->lane->stranded_ns -= hour;
        for (int i = 0; i < 64; i++)
            strata_progress(s);
        ck_assert_int_eq(got.failed, 0);
    }
    for (int looks = 0; looks < 40 && got.failed == 0; looks++) {
        worker->mended_ns -= hour;
        peer->lane->stranded_ns -= hour;
        for (int i = 0; i < 64; i++)
            strata_progress(s);
    }
    ck_assert_int_eq(got.failed, 1);
}
END_TEST

START_TEST(refuses_what_cannot_be)
{
    const struct {
        struct lane_head h;
        const char *text;
    } bad[] = {
        {{.kind = ST_AM_LANE, .hdr_len = 1}, "hx"},             /* a lane's within a lane's */
        {{.kind = ST_AM_LANE + 1, .hdr_len = 1}, "hx"},         /* nobody's */
        {{.kind = ST_AM_TEST, .hdr_len = 0}, "hx"},             /* without a header */
        {{.kind = ST_AM_TEST, .hdr_len = 9}, "hx"},             /* longer than it is */
        {{.kind = ST_AM_TEST, .hdr_len = 1, .ack = 1}, "hx"},   /* what was not sent has arrived */
        {{.kind = ST_AM_TEST, .hdr_len = 1, .seq = 512}, "hx"}, /* beyond the window */
    };
    const struct worker *in = (const struct worker *)w;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t before = in->n_protocol_errors;
        arrives(0, bad[i].h, bad[i].text);
        ck_assert_uint_eq(in->n_protocol_errors, before + 1);
    }
    struct st_frag cut = {.hdr = "short", .hdr_len = 5, .rank = PEER, .btl = fake.btl[0]};
    st_btl_deliver(fake.btl[0], ST_AM_LANE, &cut);
    ck_assert_uint_eq(in->n_protocol_errors, sizeof bad / sizeof bad[0] + 1);
    ck_assert_int_eq(got.n, 0);
}
END_TEST

START_TEST(a_peer_that_gives_up_has_failed)
{
    struct lane_head gives_up = {.kind = LANE_WORD, .flags = LANE_F_GAVE_UP};
    arrives(0, gives_up, "");
    strata_progress(s);
    ck_assert_int_eq(got.failed, 0); /* nothing is kept for it */
    ck_assert_int_eq(st_worker_connect(w, peer), STRATA_OK);
    ck_assert_int_eq(send("kept"), STRATA_OK);
    ck_assert_uint_gt(worker_of(w)->lane_bytes, sizeof(struct st_lane));
    arrives(0, gives_up, "");
    strata_progress(s);
    ck_assert_int_eq(got.failed, 1);
    ck_assert_uint_eq(worker_of(w)->lane_bytes, sizeof(struct st_lane));
    /* What it still sends is answered by the same word, and that is not. */
    fake.last_sent.module = -1;
    arrives(1, (struct lane_head){.kind = ST_AM_TEST, .hdr_len = 1}, "hx");
    ck_assert_int_eq(fake.last_sent.module, 1);
    ck_assert_uint_eq(sent().flags, LANE_F_GAVE_UP);
    fake.last_sent.module = -1;
    arrives(1, gives_up, "");
    ck_assert_int_eq(fake.last_sent.module, -1);
    ck_assert_int_eq(got.n, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lane");
    TCase *tc = tcase_create("lane");
    tcase_add_checked_fixture(tc, start, end);
    tcase_add_test(tc, numbers_and_keeps);
    tcase_add_test(tc, shares_of_the_window);
    tcase_add_test(tc, parts_leave_room);
    tcase_add_test(tc, takes_each_number_once);
    tcase_add_test(tc, sends_again_by_another_path);
    tcase_add_loop_test(tc, path_breaks_before_the_first_message, 0, 2);
    tcase_add_test(tc, what_came_before_the_failure);
    tcase_add_loop_test(tc, notice_that_waits, 0, 2);
    tcase_add_test(tc, waits_for_what_has_arrived);
    tcase_add_test(tc, answers_what_has_arrived);
    tcase_add_test(tc, acknowledges_bytes_behind_a_gap);
    tcase_add_loop_test(tc, word_by_the_way_itself, 0, 4);
    tcase_add_test(tc, word_about_a_way_that_is_tried);
    tcase_add_test(tc, time_without_looks);
    tcase_add_test(tc, refuses_what_cannot_be);
    tcase_add_test(tc, a_peer_that_gives_up_has_failed);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
