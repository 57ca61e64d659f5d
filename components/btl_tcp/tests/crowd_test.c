/* Connections of a crowded machine, on which an answer takes a turn of all processes: a peer that answers is not given
 * up for its age, and a caller whose words have arrived is not sent away. Counted in calls, not in time. */
#include <stdio.h>
#include <strata/sdk/clock.h>
#include "raw_peer.h"

enum { CALLERS = 40 };

static void setup(void)
{
    memset(rig_card, 0, sizeof rig_card);
    rig_local = true;
    rig_open(0);
}

static void teardown(void)
{
    for (int i = 0; i < RANKS; i++)
        rig_close(i);
}

/* ---- a dialler, whose peer is a raw socket ---- */

/* Its time is over by far, and it lives: it answers each call, and hangs up. In the end it takes one. */
START_TEST(answers_and_hangs_up)
{
    int listener = raw_listen(), fd;
    struct st_btl_endpoint *ep = rig_connect(0, 1);
    struct tcp_head ready = {TCP_MAGIC, TCP_READY, TCP_ACCEPT};
    struct tcp_response response;
    struct tcp_said said;

    for (unsigned i = 0; i < 2 * TCP_HANG_UPS; i++) {
        fd = raw_accept(listener, ep);
        dial_of(ep)->began = 1; /* long ago */
        raw_challenge(fd, &said);
        ck_assert(raw_read(fd, &response, sizeof response));
        close(fd);
    }
    fd = raw_accept(listener, ep);
    raw_challenge(fd, &said);
    ck_assert(raw_read(fd, &response, sizeof response));
    raw_write(fd, &ready, sizeof ready);
    AWAIT(rig_send(ep, 1, NULL, 0) == STRATA_OK, rig_poll());
    ck_assert_uint_eq(rig[0].lost, 0);
    close(fd);
    close(listener);
}
END_TEST

/* One that hangs up without a proof has failed when its time is over, but not before so many calls. */
START_TEST(hangs_up)
{
    int listener = raw_listen();
    struct st_btl_endpoint *ep = rig_connect(0, 1);

    for (unsigned i = 0; i < TCP_HANG_UPS; i++) {
        int fd = raw_accept(listener, ep);
        ck_assert_uint_eq(rig[0].lost, 0);
        dial_of(ep)->began = 1;
        close(fd);
    }
    AWAIT(rig[0].lost == 1, rig_poll());
    ck_assert_ptr_nonnull(strstr(rig[0].why, "closed the connection"));
    ck_assert_int_eq(rig_send(ep, 1, NULL, 0), STRATA_ERR_PEER);
    close(listener);
}
END_TEST

/* One that hangs up is not called again at once, however long it had the call: it has too many callers. */
START_TEST(pause_after_a_hang_up)
{
    int listener = raw_listen();
    struct st_btl_endpoint *ep = rig_connect(0, 1);

    for (unsigned i = 1; i <= 8; i++) {
        int fd = raw_accept(listener, ep);
        uint64_t dials = rig[0].m->count.dials, now = st_now_ns();
        AWAIT(((struct tcp_peer *)ep)->taken, rig_poll());
        dial_of(ep)->next_at = 1;
        close(fd);
        AWAIT(dial_of(ep)->n_hung_up == i, rig_poll());
        ck_assert_uint_eq(rig[0].m->count.dials, dials);
        ck_assert_uint_ge(dial_of(ep)->next_at, now + (TCP_DIAL_AGAIN << (i < 6 ? i - 1 : 5)));
    }
    close(listener);
}
END_TEST

/* The kernel takes the call, and nobody answers: the time alone counts. Nothing listens at the address of the second.
 */
START_TEST(time_without_an_answer)
{
    int listener = raw_listen();
    struct st_btl_endpoint *ep = rig_connect(0, 1);
    int fd = raw_accept(listener, ep);

    close(fd);
    AWAIT(dial_of(ep)->n_hung_up == 1, rig_poll());
    fd = raw_accept(listener, ep);
    for (int i = 0; i < 1000; i++) { /* a peer that computes: no limit */
        dial_of(ep)->began = 1;
        rig_poll();
    }
    ck_assert_uint_eq(rig[0].lost, 0);
    close(fd);
    close(listener);
    AWAIT(rig[0].lost == 1, dial_at_once(ep); rig_poll());
    ck_assert_ptr_nonnull(strstr(rig[0].why, "refused"));
}
END_TEST

/* A peer on another machine hangs up, and then its link is cut: it has failed when the next call is not answered. At a
 * bridge, which this machine may have as well, a hang-up does not count. */
START_TEST(dark_after_a_hang_up)
{
    int listener, fds[16], fd, n;
    struct st_btl_endpoint *ep;

    rig_local = false;
    listener = raw_listen();
    ck_assert_int_eq(listen(listener, 0), 0); /* from now on */
    rig_card[1].address[0].flags = (uint8_t)(_i == 0 ? 0 : TCP_VIRTUAL);
    ep = rig_connect(0, 1);
    fd = raw_accept(listener, ep);
    AWAIT(((struct tcp_peer *)ep)->taken, rig_poll());
    n = fill_queue(rig_card[1].address[0].ip, fds, 16);
    rig[0].par.connect_timeout_ms = 300;
    dial_of(ep)->began = 1; /* long ago */
    close(fd);
    AWAIT(!((struct tcp_peer *)ep)->taken, rig_poll());
    ck_assert_uint_eq(dial_of(ep)->n_hung_up, _i == 0);
    AWAIT(rig[0].lost == 1, rig_poll());
    ck_assert_uint_le(rig[0].m->count.dials, 2);
    for (int i = 0; i < n; i++)
        close(fds[i]);
    close(listener);
}
END_TEST

/* ---- turns ---- */

/* Connects module 0 to ranks 1, 2 and 3, one at a time; their listeners. */
static void dial_in_turns(int listener[RANKS], struct st_btl_endpoint *ep[RANKS])
{
    rig[0].par.dials = 1;
    for (int i = 1; i < RANKS; i++)
        listener[i] = raw_listen_as(i);
    for (int i = 1; i < RANKS; i++)
        ep[i] = rig_connect(0, i);
}

static void polls(void)
{
    for (int i = 0; i < 100; i++)
        rig_poll();
}

static int accepted(int listener)
{
    int fd = -1;

    AWAIT((fd = accept(listener, NULL, NULL)) >= 0, rig_poll());
    return fd;
}

/* A peer is dialled when the one before it is connected. */
START_TEST(one_after_the_other)
{
    struct st_btl_endpoint *ep[RANKS];
    int listener[RANKS], fd[RANKS];

    dial_in_turns(listener, ep);
    for (int i = 1; i < RANKS; i++) {
        fd[i] = accepted(listener[i]);
        if (dial_of(ep[i])->young) { /* a slow machine may have ended its turn */
            dial_of(ep[i])->called = st_now_ns() + 3600000 * TCP_MS;
            polls();
            ck_assert_uint_eq(rig[0].m->count.dials, (unsigned)i);
            ck_assert_uint_eq(rig[0].m->n_young, 1);
        }
        raw_meet(fd[i]);
        AWAIT(rig_send(ep[i], 1, NULL, 0) == STRATA_OK, rig_poll());
    }
    polls();
    ck_assert_uint_eq(rig[0].m->count.dials, RANKS - 1);
    ck_assert_uint_eq(rig[0].m->n_young, 0);
    for (int i = 1; i < RANKS; i++) {
        close(fd[i]);
        close(listener[i]);
    }
}
END_TEST

/* One that does not answer holds up no other one for long. */
START_TEST(turn_without_an_answer)
{
    struct st_btl_endpoint *ep[RANKS];
    int listener[RANKS], fd[RANKS];

    dial_in_turns(listener, ep);
    for (int i = 1; i < RANKS; i++) {
        fd[i] = accepted(listener[i]);
        ck_assert_uint_ne(dial_of(ep[i])->called, 0);
        ck_assert(i + 1 == RANKS || dial_of(ep[i + 1])->called == 0 || !dial_of(ep[i])->young);
    }
    AWAIT(rig[0].m->n_young == 0, rig_poll());
    ck_assert_uint_eq(rig[0].m->count.dials, RANKS - 1);
    ck_assert_uint_eq(rig[0].lost, 0);
    for (int i = RANKS - 1; i > 0; i--) { /* all are still waited for */
        raw_meet(fd[i]);
        AWAIT(rig_send(ep[i], 1, NULL, 0) == STRATA_OK, rig_poll());
        close(fd[i]);
        close(listener[i]);
    }
}
END_TEST

/* One that calls while it waits to be dialled is dialled no more. */
START_TEST(called_while_it_waits)
{
    struct st_btl_endpoint *ep[RANKS];
    int listener[RANKS], fd;

    dial_in_turns(listener, ep);
    dial_of(ep[1])->called = st_now_ns() + 3600000 * TCP_MS;
    fd = raw_join(3, 0);
    AWAIT(rig_send(ep[3], 1, NULL, 0) == STRATA_OK, rig_poll());
    ck_assert_ptr_null(dial_of(ep[3]));
    ck_assert_uint_eq(rig[0].m->count.dials, 1);
    ck_assert_uint_eq(dial_of(ep[2])->called, 0);
    close(fd);
    for (int i = 1; i < RANKS; i++)
        close(listener[i]);
}
END_TEST

/* ---- a listener, with raw callers ---- */

static struct tcp_conn *first_stranger(void)
{
    for (struct st_node *n = rig[0].m->conns.next; n != &rig[0].m->conns; n = n->next)
        if (!ST_CONTAINER(n, struct tcp_conn, node)->peer)
            return ST_CONTAINER(n, struct tcp_conn, node);
    return NULL;
}

static void callers_late(void)
{
    for (struct st_node *n = rig[0].m->conns.next; n != &rig[0].m->conns; n = n->next)
        ST_CONTAINER(n, struct tcp_conn, node)->deadline = 1;
}

/* More have answered than one round reads, when the listener comes to look, too late for all of them. */
START_TEST(late_listener)
{
    struct tcp_said said[CALLERS];
    int fd[CALLERS];

    rig[0].par.strangers = CALLERS;
    for (int i = 0; i < CALLERS; i++) {
        fd[i] = raw_dial(0);
        raw_hello(fd[i], 1 + i % 3, 0, &said[i]);
    }
    AWAIT(rig[0].m->n_strangers == CALLERS, rig_poll());
    for (int i = 0; i < CALLERS; i++) {
        struct tcp_challenge challenge;
        struct tcp_response r = {.head = {TCP_MAGIC, TCP_RESPONSE, TCP_NONE}};
        ck_assert(raw_read(fd[i], &challenge, sizeof challenge));
        said[i].listener_max_send = challenge.max_send;
        memcpy(said[i].listener, challenge.nonce, TCP_NONCE);
        tcp_prove(rig_card[0].key, true, &said[i], r.proof);
        raw_write(fd[i], &r, sizeof r);
    }
    callers_late();
    rig[0].m->swept = 0;
    AWAIT(rig[0].m->n_strangers == 0, rig_poll());
    ck_assert_uint_eq(rig[0].m->count.refused, 0);
    ck_assert_uint_eq(rig[0].m->count.duplicates, CALLERS - 3);
    ck_assert_uint_eq(rig[0].m->n_peers, 3);
    for (int i = 0; i < CALLERS; i++)
        close(fd[i]);
}
END_TEST

/* Nothing was read for longer than callers may take: half a second of that counts, at each look. */
START_TEST(absent_listener)
{
    int fd = raw_dial(0);
    uint64_t deadline;

    rig[0].par.handshake_timeout_ms = 5000;
    AWAIT(rig[0].m->n_strangers == 1, rig_poll());
    deadline = first_stranger()->deadline;
    rig[0].m->looked -= 7000 * TCP_MS;
    rig_poll();
    ck_assert_uint_eq(rig[0].m->n_strangers, 1);
    ck_assert_uint_ge(first_stranger()->deadline, deadline + 6000 * TCP_MS);
    first_stranger()->deadline = st_now_ns() + 5000 * TCP_MS;
    for (int looks = 0; rig[0].m->n_strangers == 1; looks++) { /* silent all the time: at the end it goes */
        ck_assert_int_le(looks, 11);
        rig[0].m->looked -= 1000000 * TCP_MS;
        first_stranger()->deadline -= 1000000 * TCP_MS;
        rig[0].m->swept = 0;
        rig_poll();
    }
    ck_assert_uint_eq(rig[0].m->count.refused, 1);
    close(fd);
}
END_TEST

/* Room is made at the cost of callers that have said nothing, before those that were challenged. */
START_TEST(room_for_callers)
{
    enum { STRANGERS = 8, SILENT = 3 };
    int fd[STRANGERS], more[SILENT];
    struct tcp_said said;

    for (int i = 0; i < STRANGERS; i++) {
        struct tcp_challenge challenge;
        fd[i] = raw_dial(0);
        if (i < STRANGERS - SILENT) {
            raw_hello(fd[i], 1, 0, &said);
            ck_assert(raw_read(fd[i], &challenge, sizeof challenge));
        }
    }
    AWAIT(rig[0].m->n_strangers == STRANGERS, rig_poll());
    for (struct st_node *n = rig[0].m->conns.next; n != &rig[0].m->conns; n = n->next)
        ST_CONTAINER(n, struct tcp_conn, node)->deadline -= 1000 * TCP_MS; /* all came a second ago */
    for (int i = 0; i < SILENT; i++)
        more[i] = raw_dial(0);
    AWAIT(rig[0].m->count.refused == SILENT, rig_poll());
    for (int i = 0; i < 1000; i++)
        rig_poll();
    ck_assert_uint_eq(rig[0].m->count.refused, SILENT);
    ck_assert_uint_eq(rig[0].m->n_strangers, STRANGERS);
    for (int i = 0; i < STRANGERS; i++)
        ck_assert(raw_is_closed(fd[i]) == (i >= STRANGERS - SILENT));
    for (int i = 0; i < STRANGERS; i++)
        close(fd[i]);
    for (int i = 0; i < SILENT; i++)
        close(more[i]);
}
END_TEST

static void callers_until(uint64_t deadline)
{
    for (struct st_node *n = rig[0].m->conns.next; n != &rig[0].m->conns; n = n->next)
        ST_CONTAINER(n, struct tcp_conn, node)->deadline = deadline;
}

/* Callers that were challenged and do not answer hold all places. Those beyond half of the places go after a second,
 * and a member gets through. */
START_TEST(room_among_challenged)
{
    enum { STRANGERS = 8, MORE = 4 };
    int fd[STRANGERS], more[MORE];
    struct tcp_said said;

    for (int i = 0; i < STRANGERS; i++) {
        struct tcp_challenge challenge;
        fd[i] = raw_dial(0);
        raw_hello(fd[i], 1, 0, &said);
        ck_assert(raw_read(fd[i], &challenge, sizeof challenge));
    }
    for (int i = 0; i < MORE; i++)
        more[i] = raw_dial(0);
    callers_until(st_now_ns() + 3600000 * TCP_MS); /* all have just come */
    polls();
    ck_assert_uint_eq(rig[0].m->count.refused, 0);
    callers_until(st_now_ns() + ((uint64_t)rig[0].par.handshake_timeout_ms - 1000) * TCP_MS);
    ck_assert(raw_prove(more[MORE - 1], 3, 0, rig_card[0].key));
    ck_assert_uint_eq(rig[0].m->count.refused, STRANGERS / 2);
    for (int i = 0; i < STRANGERS; i++) {
        ck_assert(raw_is_closed(fd[i]) == (i >= STRANGERS / 2));
        close(fd[i]);
    }
    for (int i = 0; i < MORE; i++)
        close(more[i]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tcp connections in a crowd");
    TCase *tc = tcase_create("crowd");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, answers_and_hangs_up);
    tcase_add_test(tc, hangs_up);
    tcase_add_test(tc, pause_after_a_hang_up);
    tcase_add_test(tc, time_without_an_answer);
    tcase_add_loop_test(tc, dark_after_a_hang_up, 0, 2);
    tcase_add_test(tc, one_after_the_other);
    tcase_add_test(tc, turn_without_an_answer);
    tcase_add_test(tc, called_while_it_waits);
    tcase_add_test(tc, late_listener);
    tcase_add_test(tc, absent_listener);
    tcase_add_test(tc, room_for_callers);
    tcase_add_test(tc, room_among_challenged);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
