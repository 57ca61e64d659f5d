/* An end of channels kills itself, for tests/conformance: `channel_death STATE [mends]`, three ranks, under
 * strata-run --keep-going. Rank 0 dies in STATE; rank 1 has channels from and to it and must be told by each of its
 * calls; rank 2 has a channel from rank 1, which goes on. The survivors print "rank R goes on". mends: the transport
 * makes broken connections again, so that rank 0 is a lost path first, and is known as dead later. */
#include <signal.h>
#include <strata/channel.h>
#include <unistd.h>
#include "support/channel_arrived.h"
#include "support/suite.h"
#include "support/watchdog.h"

enum { VICTIM, SURVIVOR, BYSTANDER, RANKS };
enum { RING = 4096, LONG = 64 << 20, FEW = 10, MANY = 15, BIG = 3000, TAG = 3 };

static strata_channel_sender_t *out;
static strata_channel_receiver_t *in;
static bool mends;

static _Noreturn void die(void)
{
    raise(SIGKILL);
    abort();
}
/* The survivor is in the state; the victim does its part of the protocols meanwhile. */
static void ask_to_die(struct tw_rank *r)
{
    suite_signal(r->comm, VICTIM, TAG);
}
static _Noreturn void die_when_asked(struct tw_rank *r)
{
    suite_await(r->comm, SURVIVOR, TAG);
    die();
}
/* No message between the ranks says so: puts, sends of the channel and messages may go by several connections. */
static void await_arrived(struct tw_rank *r, uint32_t n)
{
    while (channel_arrived(in) < n)
        suite_spin(r->s, 1);
}
static void open_out(struct tw_rank *r, int to)
{
    CHECK_OK(strata_channel_open_send(r->s, to, "x", &out));
}
static void open_in(struct tw_rank *r, int from)
{
    CHECK_OK(strata_channel_open_recv(r->s, from, "x", RING, &in));
}
static void send_some(int n)
{
    for (int i = 0; i < n; i++)
        CHECK_OK(strata_channel_send(out, &i, sizeof i, STRATA_CHANNEL_FOREVER));
    CHECK_OK(strata_channel_flush(out));
}
static void recv_some(int n)
{
    for (int i = 0, got; i < n; i++) {
        CHECK_OK(strata_channel_recv(in, &got, sizeof got, NULL, STRATA_CHANNEL_FOREVER));
        CHECK_EQ(got, i);
    }
}
static void await_death(struct tw_rank *r)
{
    char byte;
    CHECK_RC(strata_recv(r->comm, &byte, 1, VICTIM, TAG + 1, NULL), STRATA_ERR_PEER);
}
/* A path that is lost may come back: until the peer is known as dead, a sending end can be opened, and waits for its
 * receiver as any other; opening a receiving end waits. Both end when the death is known. */
static void opener_told(struct tw_rank *r)
{
    char byte = 1;
    int rc = strata_channel_open_send(r->s, VICTIM, "y", &out);
    CHECK(rc == STRATA_ERR_PEER || (rc == STRATA_OK && mends));
    CHECK_RC(strata_channel_open_recv(r->s, VICTIM, "y", RING, &in), STRATA_ERR_PEER);
    if (rc == STRATA_OK) {
        CHECK_RC(strata_channel_send(out, &byte, 1, STRATA_CHANNEL_FOREVER), STRATA_ERR_PEER);
        CHECK_RC(strata_channel_close_send(out), STRATA_ERR_PEER);
    }
    await_death(r);
    CHECK_RC(strata_channel_open_send(r->s, VICTIM, "y", &out), STRATA_ERR_PEER);
}
/* Every call of the sender says that the receiver is gone, and so does opening another. */
static void sender_told(struct tw_rank *r)
{
    char byte = 1;
    strata_channel_view_t v;
    int rc;
    while ((rc = strata_channel_send(out, &byte, 1, STRATA_CHANNEL_FOREVER)) == STRATA_OK)
        ; /* there may be a little room, and the death not yet be known */
    CHECK_RC(rc, STRATA_ERR_PEER);
    CHECK_RC(strata_channel_send(out, &byte, 1, 0), STRATA_ERR_PEER);
    CHECK_RC(strata_channel_reserve(out, LONG, 5, &v), STRATA_ERR_PEER);
    CHECK_RC(strata_channel_flush(out), STRATA_ERR_PEER);
    CHECK_RC(strata_channel_end(out, STRATA_CHANNEL_FOREVER), STRATA_ERR_PEER);
    CHECK_RC(strata_channel_close_send(out), STRATA_ERR_PEER);
    opener_told(r);
}
static void receiver_told(struct tw_rank *r, int rc)
{
    char byte;
    strata_channel_view_t v;
    CHECK_RC(strata_channel_recv(in, &byte, 1, NULL, STRATA_CHANNEL_FOREVER), rc);
    CHECK_RC(strata_channel_peek(in, 0, &v), rc);
    CHECK_OK(strata_channel_close_recv(in));
    if (rc == STRATA_CHANNEL_ENDED) /* which says nothing of the death */
        await_death(r);
    opener_told(r);
}

/* The receiver dies before it opens; the sender waits for it. */
static void s_no_receiver(struct tw_rank *r)
{
    open_out(r, VICTIM);
    ask_to_die(r);
    sender_told(r);
}
/* The sender dies before it opens, or idle after it has sent; the receiver sleeps. */
static void s_no_sender(struct tw_rank *r)
{
    open_in(r, VICTIM);
    ask_to_die(r);
    receiver_told(r, STRATA_ERR_PEER);
}
static void v_idle(struct tw_rank *r)
{
    open_out(r, SURVIVOR);
    send_some(FEW);
    die_when_asked(r);
}
static void s_asleep(struct tw_rank *r)
{
    open_in(r, VICTIM);
    recv_some(FEW);
    ask_to_die(r);
    receiver_told(r, STRATA_ERR_PEER);
}
/* The sender dies with messages in the ring that nobody has taken. */
static void s_arrived(struct tw_rank *r)
{
    open_in(r, VICTIM);
    await_arrived(r, FEW);
    ask_to_die(r);
    await_death(r);
    recv_some(FEW);
    receiver_told(r, STRATA_ERR_PEER);
}
/* As before, with the end of the stream behind them. */
static void v_ended(struct tw_rank *r)
{
    open_out(r, SURVIVOR);
    send_some(FEW);
    CHECK_OK(strata_channel_end(out, STRATA_CHANNEL_FOREVER));
    die_when_asked(r);
}
static void s_ended(struct tw_rank *r)
{
    open_in(r, VICTIM);
    await_arrived(r, FEW + 1);
    ask_to_die(r);
    await_death(r);
    recv_some(FEW);
    receiver_told(r, STRATA_CHANNEL_ENDED);
}
/* As before, with messages that are worth several credits, each of a put of its own. The receiver makes no progress
 * between the death and the first recv, so that its credits meet a connection whose end it has not read; or none since
 * the messages were sent. */
static void send_many(void)
{
    char bytes[BIG];
    for (int i = 0; i < MANY; i++) {
        memset(bytes, i, sizeof bytes);
        CHECK_OK(strata_channel_send(out, bytes, sizeof bytes, STRATA_CHANNEL_FOREVER));
        CHECK_OK(strata_channel_flush(out));
    }
    CHECK_OK(strata_channel_end(out, STRATA_CHANNEL_FOREVER));
}
static void recv_many(void)
{
    char bytes[BIG], want[BIG];
    for (int i = 0; i < MANY; i++) {
        memset(want, i, sizeof want);
        CHECK_OK(strata_channel_recv(in, bytes, sizeof bytes, NULL, STRATA_CHANNEL_FOREVER));
        CHECK(memcmp(bytes, want, sizeof bytes) == 0);
    }
}
static void v_many(struct tw_rank *r)
{
    int pid = getpid();
    CHECK_OK(strata_send(r->comm, &pid, sizeof pid, SURVIVOR, TAG));
    open_out(r, SURVIVOR);
    send_some(FEW);
    suite_await(r->comm, SURVIVOR, TAG);
    send_many();
}
static void v_untaken(struct tw_rank *r)
{
    v_many(r);
    die_when_asked(r);
}
static void v_unread(struct tw_rank *r)
{
    v_many(r);
    suite_spin(r->s, 1000); /* all goes to the transport, whose buffers have room */
    die();
}
static void s_many(struct tw_rank *r, bool looks)
{
    int pid;
    CHECK_OK(strata_recv(r->comm, &pid, sizeof pid, VICTIM, TAG, NULL));
    CHECK_OK(strata_channel_open_recv(r->s, VICTIM, "x", 0, &in));
    recv_some(FEW); /* all connections are up */
    suite_signal(r->comm, VICTIM, TAG);
    if (looks) {
        await_arrived(r, MANY + 1);
        ask_to_die(r);
    }
    while (kill(pid, 0) == 0)
        usleep(1000);
    usleep(100000); /* what its kernel had sent has come */
    recv_many();
    receiver_told(r, STRATA_CHANNEL_ENDED);
}
static void s_untaken(struct tw_rank *r)
{
    s_many(r, true);
}
static void s_unread(struct tw_rank *r)
{
    s_many(r, false);
}
/* The sender dies while the receiver moves a long message. */
static void v_long(struct tw_rank *r)
{
    strata_channel_view_t v;
    open_out(r, SURVIVOR);
    send_some(FEW);
    CHECK_OK(strata_channel_reserve(out, LONG, STRATA_CHANNEL_FOREVER, &v));
    CHECK_OK(strata_channel_commit(out, LONG));
    CHECK_OK(strata_channel_flush(out));
    die_when_asked(r);
}
static void s_long(struct tw_rank *r)
{
    strata_channel_view_t v;
    open_in(r, VICTIM);
    recv_some(FEW);
    await_arrived(r, 1);
    CHECK_RC(strata_channel_peek(in, 0, &v), STRATA_ERR_AGAIN);
    ask_to_die(r);
    int rc = strata_channel_peek(in, STRATA_CHANNEL_FOREVER, &v); /* it may have moved before */
    CHECK(rc == STRATA_OK || rc == STRATA_ERR_PEER);
    if (rc == STRATA_OK)
        (void)strata_channel_release(in, &v); /* the next call says whether the channel is broken */
    receiver_told(r, STRATA_ERR_PEER);
}
/* The receiver dies while the sender waits for room, for its long messages, or for the last release. */
static void v_receiver(struct tw_rank *r)
{
    open_in(r, SURVIVOR);
    die_when_asked(r);
}
static void s_room(struct tw_rank *r)
{
    char bytes[100] = {0};
    int rc;
    open_out(r, VICTIM);
    CHECK_OK(strata_channel_send(out, bytes, sizeof bytes, STRATA_CHANNEL_FOREVER)); /* there is a receiver */
    while ((rc = strata_channel_send(out, bytes, sizeof bytes, 100)) == STRATA_OK)
        ;
    CHECK_RC(rc, STRATA_ERR_TIMEOUT);
    ask_to_die(r);
    sender_told(r);
}
static void s_long_room(struct tw_rank *r)
{
    strata_channel_view_t v;
    open_out(r, VICTIM);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(strata_channel_reserve(out, LONG, STRATA_CHANNEL_FOREVER, &v));
        CHECK_OK(strata_channel_commit(out, LONG));
    }
    ask_to_die(r);
    CHECK_RC(strata_channel_reserve(out, LONG, STRATA_CHANNEL_FOREVER, &v), STRATA_ERR_PEER);
    sender_told(r);
}
static void v_closing(struct tw_rank *r)
{
    open_in(r, SURVIVOR);
    await_arrived(r, FEW + 1);
    die();
}
static void s_closing(struct tw_rank *r)
{
    open_out(r, VICTIM);
    send_some(FEW);
    CHECK_RC(strata_channel_close_send(out), STRATA_ERR_PEER);
    opener_told(r);
}
/* The receiver dies while it moves a long message. */
static void v_taking(struct tw_rank *r)
{
    strata_channel_view_t v;
    open_in(r, SURVIVOR);
    await_arrived(r, 2);
    suite_await(r->comm, SURVIVOR, TAG);
    CHECK_RC(strata_channel_peek(in, 0, &v), STRATA_ERR_AGAIN);
    die();
}

static const struct state {
    const char *name;
    tw_body_fn victim, survivor;
} states[] = {
    {"receiver_unopened", die_when_asked, s_no_receiver},
    {"sender_unopened", die_when_asked, s_no_sender},
    {"asleep", v_idle, s_asleep},
    {"arrived", v_idle, s_arrived},
    {"ended", v_ended, s_ended},
    {"untaken", v_untaken, s_untaken},
    {"unread", v_unread, s_unread},
    {"long", v_long, s_long},
    {"room", v_receiver, s_room},
    {"long_room", v_receiver, s_long_room},
    {"closing", v_closing, s_closing},
    {"taking", v_taking, s_long_room},
};

/* The channel from the survivor to the bystander goes on. */
static void others(struct tw_rank *r)
{
    if (r->rank == SURVIVOR) {
        open_out(r, BYSTANDER);
        send_some(FEW);
        CHECK_OK(strata_channel_close_send(out));
    } else {
        char byte;
        open_in(r, SURVIVOR);
        recv_some(FEW);
        CHECK_RC(strata_channel_recv(in, &byte, 1, NULL, STRATA_CHANNEL_FOREVER), STRATA_CHANNEL_ENDED);
        CHECK_OK(strata_channel_close_recv(in));
    }
    printf("rank %d goes on\n", r->rank);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct watchdog *dog = watchdog_start(test_timeout(300), 1);
    const struct state *state = NULL;
    struct tw_rank r = {0};

    mends = argc == 3 && strcmp(argv[2], "mends") == 0;
    for (size_t i = 0; (argc == 2 || mends) && i < sizeof states / sizeof states[0]; i++)
        if (strcmp(states[i].name, argv[1]) == 0)
            state = &states[i];
    if (argc == 2 && !strcmp(argv[1], "--states")) {
        for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
            puts(states[i].name);
        return 0;
    }
    CHECK_MSG(state, "usage: channel_death STATE [mends] | --states");
    CHECK_OK(strata_init(NULL, &r.s));
    r.comm = strata_world(r.s);
    r.rank = strata_rank(r.s);
    r.n = strata_size(r.s);
    CHECK_EQ(r.n, RANKS);
    if (r.rank == VICTIM)
        state->victim(&r);
    if (r.rank == SURVIVOR)
        state->survivor(&r);
    others(&r);
    (void)strata_finalize(r.s); /* may say that not everybody took part; must return */
    watchdog_stop(dog);
    return 0;
}
