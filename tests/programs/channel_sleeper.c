/* Channels to a receiver that makes no progress, for tests/openib: `channel_sleeper CHANNELS FILE`, two ranks. Rank 0
 * fills the rings of all channels until no message goes any more, then makes FILE; rank 1 calls nothing before that,
 * then takes and checks every message. Prints the number of messages. */
#include <fcntl.h>
#include <stdlib.h>
#include <strata/channel.h>
#include <time.h>
#include <unistd.h>
#include "support/suite.h"
#include "support/watchdog.h"

/* A ring of 16 slots of one line each; rounds without a message that went, after which none will. */
enum { RING = 1024, MOST = 64, IDLE = 5000, TAG = 4 };

struct message {
    uint32_t channel, number;
};

static void name_of(uint32_t channel, char name[16])
{
    snprintf(name, 16, "%u", channel);
}

static uint32_t fill(struct tw_rank *r, uint32_t n, const char *file)
{
    strata_channel_sender_t *c[MOST];
    uint32_t sent[MOST] = {0}, all = 0;
    char name[16];
    for (uint32_t i = 0; i < n; i++) {
        name_of(i, name);
        CHECK_OK(strata_channel_open_send(r->s, 1, name, &c[i]));
        struct message m = {i, sent[i]++};
        CHECK_OK(strata_channel_send(c[i], &m, sizeof m, STRATA_CHANNEL_FOREVER)); /* its ring is offered */
    }
    suite_await(r->comm, 1, TAG);
    for (int idle = 0; idle < IDLE; idle++) {
        for (uint32_t i = 0; i < n; i++) {
            struct message m = {i, sent[i]};
            int rc = strata_channel_send(c[i], &m, sizeof m, 0);
            CHECK(rc == STRATA_OK || rc == STRATA_ERR_AGAIN);
            sent[i] += rc == STRATA_OK;
            idle = rc == STRATA_OK ? 0 : idle;
        }
        strata_progress(r->s);
    }
    int fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    close(fd);
    for (uint32_t i = 0; i < n; i++) {
        all += sent[i];
        CHECK_OK(strata_channel_close_send(c[i]));
    }
    return all;
}

static uint32_t take(struct tw_rank *r, uint32_t n, const char *file)
{
    strata_channel_receiver_t *c[MOST];
    struct message m;
    uint32_t all = 0;
    char name[16];
    for (uint32_t i = 0; i < n; i++) {
        name_of(i, name);
        CHECK_OK(strata_channel_open_recv(r->s, 0, name, RING, &c[i]));
    }
    for (uint32_t i = 0; i < n; i++) {
        CHECK_OK(strata_channel_recv(c[i], &m, sizeof m, NULL, STRATA_CHANNEL_FOREVER));
        CHECK(m.channel == i && m.number == 0);
    }
    suite_signal(r->comm, 0, TAG);
    while (access(file, F_OK) != 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    for (uint32_t i = 0; i < n; i++, all++) {
        int rc;
        for (uint32_t k = 1; (rc = strata_channel_recv(c[i], &m, sizeof m, NULL, STRATA_CHANNEL_FOREVER)) == STRATA_OK;
             k++, all++)
            CHECK(m.channel == i && m.number == k);
        CHECK_EQ(rc, STRATA_CHANNEL_ENDED);
        CHECK_OK(strata_channel_close_recv(c[i]));
    }
    return all;
}

int main(int argc, char **argv)
{
    struct watchdog *dog = watchdog_start(test_timeout(300), 1);
    struct tw_rank r = {0};
    CHECK_MSG(argc == 3, "usage: channel_sleeper CHANNELS FILE");
    uint32_t n = (uint32_t)strtoul(argv[1], NULL, 10);
    CHECK(n > 0 && n <= MOST);
    CHECK_OK(strata_init(NULL, &r.s));
    r.comm = strata_world(r.s);
    r.rank = strata_rank(r.s);
    CHECK_EQ(strata_size(r.s), 2);
    printf("rank %d: %u messages\n", r.rank, r.rank == 0 ? fill(&r, n, argv[2]) : take(&r, n, argv[2]));
    fflush(stdout);
    CHECK_OK(strata_finalize(r.s));
    watchdog_stop(dog);
    return 0;
}
