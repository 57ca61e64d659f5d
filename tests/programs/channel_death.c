/* An end of channels kills itself, for tests/conformance and tests/openib: `channel_death STATE`, three ranks, under
 * strata-run --keep-going. Rank 0 dies in STATE; rank 1 has channels from and to it and must be told by each of its
 * calls; rank 2 has a channel from rank 1, which goes on. The survivors print "rank R goes on". */
#include <signal.h>
#include <strata/channel.h>
#include "support/suite.h"
#include "support/watchdog.h"

enum { VICTIM, SURVIVOR, BYSTANDER, RANKS };
enum { RING = 4096, LONG = 64 << 20, FEW = 10, TAG = 3 };

static strata_channel_sender_t *out;
static strata_channel_receiver_t *in;

static _Noreturn void die(struct tw_rank *r)
{
    (void)r;
    raise(SIGKILL);
    abort();
}
static void meet(struct tw_rank *r, int other)
{
    for (int i = 0; i < 10; i++) { /* what was put has arrived by then */
        suite_signal(r->comm, other, TAG);
        suite_await(r->comm, other, TAG);
    }
}
static void open_out(struct tw_rank *r, int to)
{
    CHECK_OK(strata_channel_open_send(r->s, to, "x", &out));
}
static void open_in(struct tw_rank *r, int from)
{
    CHECK_OK(strata_channel_open_recv(r->s, from, "x", RING, &in));
}
static void send_few(void)
{
    for (int i = 0; i < FEW; i++)
        CHECK_OK(strata_channel_send(out, &i, sizeof i, STRATA_CHANNEL_FOREVER));
    CHECK_OK(strata_channel_flush(out));
}
static void recv_few(void)
{
    for (int i = 0, got; i < FEW; i++) {
        CHECK_OK(strata_channel_recv(in, &got, sizeof got, NULL, STRATA_CHANNEL_FOREVER));
        CHECK_EQ(got, i);
    }
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
    CHECK_RC(strata_channel_open_send(r->s, VICTIM, "y", &out), STRATA_ERR_PEER);
}
static void receiver_told(struct tw_rank *r, int rc)
{
    char byte;
    strata_channel_view_t v;
    CHECK_RC(strata_channel_recv(in, &byte, 1, NULL, STRATA_CHANNEL_FOREVER), rc);
    CHECK_RC(strata_channel_peek(in, 0, &v), rc);
    CHECK_OK(strata_channel_close_recv(in));
    (void)r;
}
static void await_death(struct tw_rank *r)
{
    char byte;
    CHECK_RC(strata_recv(r->comm, &byte, 1, VICTIM, TAG + 1, NULL), STRATA_ERR_PEER);
}

/* The receiver dies before it opens; the sender waits for it. */
static void v_unopened(struct tw_rank *r)
{
    meet(r, SURVIVOR);
    die(r);
}
static void s_no_receiver(struct tw_rank *r)
{
    open_out(r, VICTIM);
    meet(r, VICTIM);
    sender_told(r);
}
/* The sender dies before it opens, or idle after it has sent; the receiver sleeps. */
static void s_no_sender(struct tw_rank *r)
{
    open_in(r, VICTIM);
    meet(r, VICTIM);
    receiver_told(r, STRATA_ERR_PEER);
}
static void v_idle(struct tw_rank *r)
{
    open_out(r, SURVIVOR);
    send_few();
    meet(r, SURVIVOR);
    die(r);
}
static void s_asleep(struct tw_rank *r)
{
    open_in(r, VICTIM);
    recv_few();
    meet(r, VICTIM);
    receiver_told(r, STRATA_ERR_PEER);
}
/* The sender dies with messages in the ring that nobody has taken. */
static void s_arrived(struct tw_rank *r)
{
    open_in(r, VICTIM);
    meet(r, VICTIM);
    await_death(r);
    recv_few();
    receiver_told(r, STRATA_ERR_PEER);
}
/* As before, with the end of the stream behind them. */
static void v_ended(struct tw_rank *r)
{
    open_out(r, SURVIVOR);
    send_few();
    CHECK_OK(strata_channel_end(out, STRATA_CHANNEL_FOREVER));
    meet(r, SURVIVOR);
    die(r);
}
static void s_ended(struct tw_rank *r)
{
    open_in(r, VICTIM);
    meet(r, VICTIM);
    await_death(r);
    recv_few();
    receiver_told(r, STRATA_CHANNEL_ENDED);
}
/* The sender dies while the receiver moves a long message. */
static void v_long(struct tw_rank *r)
{
    strata_channel_view_t v;
    open_out(r, SURVIVOR);
    send_few();
    CHECK_OK(strata_channel_reserve(out, LONG, STRATA_CHANNEL_FOREVER, &v));
    CHECK_OK(strata_channel_commit(out, LONG));
    CHECK_OK(strata_channel_flush(out));
    meet(r, SURVIVOR);
    die(r);
}
static void s_long(struct tw_rank *r)
{
    strata_channel_view_t v;
    open_in(r, VICTIM);
    recv_few();
    int rc = strata_channel_peek(in, 0, &v);
    CHECK_RC(rc, STRATA_ERR_AGAIN);
    meet(r, VICTIM);
    rc = strata_channel_peek(in, STRATA_CHANNEL_FOREVER, &v); /* it may have moved before */
    CHECK(rc == STRATA_OK || rc == STRATA_ERR_PEER);
    receiver_told(r, STRATA_ERR_PEER);
}
/* The receiver dies while the sender waits for room, for its long messages, or for the last release. */
static void v_receiver(struct tw_rank *r)
{
    open_in(r, SURVIVOR);
    meet(r, SURVIVOR);
    die(r);
}
static void s_room(struct tw_rank *r)
{
    char bytes[100] = {0};
    int rc;
    open_out(r, VICTIM);
    while ((rc = strata_channel_send(out, bytes, sizeof bytes, 100)) == STRATA_OK)
        ;
    CHECK_RC(rc, STRATA_ERR_TIMEOUT);
    meet(r, VICTIM);
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
    meet(r, VICTIM);
    CHECK_RC(strata_channel_reserve(out, LONG, STRATA_CHANNEL_FOREVER, &v), STRATA_ERR_PEER);
    sender_told(r);
}
static void s_closing(struct tw_rank *r)
{
    open_out(r, VICTIM);
    send_few();
    meet(r, VICTIM);
    CHECK_RC(strata_channel_close_send(out), STRATA_ERR_PEER);
}
/* The receiver dies while it moves a long message. */
static void v_taking(struct tw_rank *r)
{
    strata_channel_view_t v;
    open_in(r, SURVIVOR);
    meet(r, SURVIVOR);
    (void)strata_channel_peek(in, 0, &v);
    die(r);
}

static const struct state {
    const char *name;
    tw_body_fn victim, survivor;
} states[] = {
    {"receiver_unopened", v_unopened, s_no_receiver},
    {"sender_unopened", v_unopened, s_no_sender},
    {"asleep", v_idle, s_asleep},
    {"arrived", v_idle, s_arrived},
    {"ended", v_ended, s_ended},
    {"long", v_long, s_long},
    {"room", v_receiver, s_room},
    {"long_room", v_receiver, s_long_room},
    {"closing", v_receiver, s_closing},
    {"taking", v_taking, s_long_room},
};

/* The channel from the survivor to the bystander goes on. */
static void others(struct tw_rank *r)
{
    if (r->rank == SURVIVOR) {
        open_out(r, BYSTANDER);
        send_few();
        CHECK_OK(strata_channel_close_send(out));
    } else {
        char byte;
        open_in(r, SURVIVOR);
        recv_few();
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

    for (size_t i = 0; argc == 2 && i < sizeof states / sizeof states[0]; i++)
        if (strcmp(states[i].name, argv[1]) == 0)
            state = &states[i];
    if (argc == 2 && !strcmp(argv[1], "--states")) {
        for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
            puts(states[i].name);
        return 0;
    }
    CHECK_MSG(state, "usage: channel_death STATE | --states");
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
