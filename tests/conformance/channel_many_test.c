/* A thousand channels open at once in a process, over every transport that strata-info finds: a message through each,
 * one look for all, and what they take by strata_mem_report. */
#include <strata/channel.h>
#include <time.h>
#include "support/suite.h"
#include "support/over_transports.h"

enum { THOUSAND = 1000, RING = 4096, ENDS = 1024, OTHERS = 4096 };

static void add_line(void *arg, const strata_mem_line_t *line)
{
    uint64_t *sum = arg;
    if (strcmp(line->component, "channel") == 0)
        sum[0] += line->bytes;
    else if (strcmp(line->category, "landing rings") == 0)
        sum[1] += line->bytes;
}

/* Per channel, at either end: its records below 1 kB, its ring once, and what the transport needs of a ring beside. A
 * sender that has mapped the receiver's ring needs none of its own. */
static void check_memory(struct tw_rank *r, const uint64_t before[2], bool sender)
{
    uint64_t now[2] = {0, 0};
    CHECK_OK(strata_mem_report(r->s, add_line, now));
    uint64_t ends = now[0] - before[0], rings = now[1] - before[1];
    CHECK_MSG(ends > 0 && ends <= (uint64_t)THOUSAND * ENDS, "%llu bytes of ends", (unsigned long long)ends);
    CHECK_MSG((rings >= (uint64_t)THOUSAND * RING || (sender && rings == 0)) &&
                  rings <= (uint64_t)THOUSAND * (RING + OTHERS),
              "%llu bytes of rings", (unsigned long long)rings);
}

static void thousand_out(struct tw_rank *r, strata_channel_sender_t **c)
{
    uint64_t before[2] = {0, 0};
    char name[16];
    CHECK_OK(strata_mem_report(r->s, add_line, before));
    for (int i = 0; i < THOUSAND; i++) {
        snprintf(name, sizeof name, "%d", i);
        CHECK_OK(strata_channel_open_send(r->s, 1, name, &c[i]));
    }
    for (int i = THOUSAND - 1; i >= 0; i--)
        CHECK_OK(strata_channel_send(c[i], &i, sizeof i, STRATA_CHANNEL_FOREVER));
    for (int i = 0; i < THOUSAND; i++)
        CHECK_OK(strata_channel_flush(c[i]));
    check_memory(r, before, true);
    for (int i = 0; i < THOUSAND; i++)
        CHECK_OK(strata_channel_end(c[i], STRATA_CHANNEL_FOREVER));
    for (int i = 0; i < THOUSAND; i++)
        CHECK_OK(strata_channel_close_send(c[i]));
}

static void thousand_in(struct tw_rank *r, strata_channel_receiver_t **c)
{
    strata_channel_receiver_t *got;
    strata_channel_set_t *set;
    uint64_t before[2] = {0, 0}, sum = 0;
    char name[16];
    int n = 0, value, rc;
    CHECK_OK(strata_mem_report(r->s, add_line, before));
    CHECK_OK(strata_channel_set_create(r->s, &set));
    for (int i = 0; i < THOUSAND; i++) {
        snprintf(name, sizeof name, "%d", i);
        CHECK_OK(strata_channel_open_recv(r->s, 0, name, RING, &c[i]));
        CHECK_OK(strata_channel_set_add(set, c[i]));
    }
    check_memory(r, before, false);
    while ((rc = strata_channel_set_next(set, STRATA_CHANNEL_FOREVER, &got)) == STRATA_OK) {
        rc = strata_channel_recv(got, &value, sizeof value, NULL, 0);
        if (rc == STRATA_CHANNEL_ENDED) {
            CHECK_OK(strata_channel_set_remove(set, got));
            continue;
        }
        CHECK_OK(rc);
        CHECK(value >= 0 && value < THOUSAND && c[value] == got);
        sum += (uint64_t)value;
        n++;
    }
    CHECK_RC(rc, STRATA_CHANNEL_ENDED);
    CHECK_EQ(n, THOUSAND);
    CHECK_EQ(sum, (uint64_t)THOUSAND * (THOUSAND - 1) / 2);
    for (int i = 0; i < THOUSAND; i++)
        CHECK_OK(strata_channel_close_recv(c[i]));
    CHECK_OK(strata_channel_set_destroy(set));
}

/* A pair has room for about a thousand rings; those that are being closed make room for others. */
static void opened_again(struct tw_rank *r)
{
    void **ends = calloc(THOUSAND, sizeof *ends);
    char name[16];
    CHECK(ends);
    for (int round = 0; round < 3 && r->rank < 2; round++) {
        for (int i = 0; i < THOUSAND; i++) {
            snprintf(name, sizeof name, "%d.%d", round, i);
            CHECK_OK(r->rank == 0
                         ? strata_channel_open_send(r->s, 1, name, (strata_channel_sender_t **)&ends[i])
                         : strata_channel_open_recv(r->s, 0, name, RING, (strata_channel_receiver_t **)&ends[i]));
        }
        if (r->rank == 0) /* without progress: the receiver comes to the next round first */
            nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        for (int i = 0; i < THOUSAND; i++)
            if (r->rank == 0) /* STRATA_ERR_PEER: the receiver has gone before */
                (void)strata_channel_close_send(ends[i]);
            else
                CHECK_OK(strata_channel_close_recv(ends[i]));
    }
    free(ends);
}

static void thousand(struct tw_rank *r)
{
    void **ends = calloc(THOUSAND, sizeof *ends);
    CHECK(ends);
    if (r->rank == 0)
        thousand_out(r, (strata_channel_sender_t **)ends);
    else
        thousand_in(r, (strata_channel_receiver_t **)ends);
    free(ends);
}

static const struct over_case cases[] = {
    {"thousand", thousand, 2, STRATA_THREAD_SINGLE, OVER_PROCESSES},
    {"opened_again", opened_again, 2, STRATA_THREAD_SINGLE, OVER_PROCESSES},
};

OVER_SUITE(channel_many, OVER_PUTS, cases, NULL);
