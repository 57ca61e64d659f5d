/* Messages by channels of which a link that is lost breaks one after the other: both ends close, open the next, and go
 * on from the first message that was not taken. Each message is checked, and comes once. */
#ifndef TEST_SUPPORT_CHANNEL_RESUME_H
#define TEST_SUPPORT_CHANNEL_RESUME_H

#include <strata/channel.h>
#include "support/suite.h"

enum { RESUME_TAG = 21, RESUME_RING = 4096, RESUME_LONGEST = 60000 };

/* The receiver's word, before each channel and after the last. */
struct resume_word {
    uint32_t next; /* message that it wants first */
    uint32_t done;
};

static inline size_t resume_length(uint32_t n)
{
    struct rnd rnd = {n + 1};
    return rnd_below(&rnd, n % 17 == 3 ? RESUME_LONGEST : n % 5 ? 100 : 3000);
}

static inline strata_channel_receiver_t *resume_open_in(strata_t *s, int from, uint32_t channel)
{
    strata_channel_receiver_t *c;
    char name[16];
    snprintf(name, sizeof name, "%u", channel);
    CHECK_OK(strata_channel_open_recv(s, from, name, RESUME_RING, &c));
    return c;
}

/* Takes messages up to `all`. Returns how many channels it took. */
static inline uint32_t resume_in(strata_t *s, strata_comm_t *comm, int from, uint32_t all)
{
    struct resume_word word = {0};
    uint32_t channels = 0;
    char *data = malloc(RESUME_LONGEST);
    CHECK(data);
    while (!word.done) {
        strata_channel_receiver_t *c = resume_open_in(s, from, channels++);
        size_t len;
        int rc;
        CHECK_OK(strata_send(comm, &word, sizeof word, from, RESUME_TAG));
        while ((rc = strata_channel_recv(c, data, RESUME_LONGEST, &len, STRATA_CHANNEL_FOREVER)) == STRATA_OK) {
            CHECK_EQ(len, resume_length(word.next));
            CHECK_EQ(pattern_check(data, len, word.next), -1);
            word.next++;
        }
        word.done = rc == STRATA_CHANNEL_ENDED;
        CHECK_MSG(word.done || rc == STRATA_ERR_PEER, "channel %u: %s", channels - 1, strata_strerror(rc));
        CHECK_OK(strata_channel_close_recv(c));
    }
    CHECK_EQ(word.next, all);
    CHECK_OK(strata_send(comm, &word, sizeof word, from, RESUME_TAG));
    free(data);
    return channels;
}

/* Sends messages up to `all`; `paced`, unless NULL, is called before each. */
static inline void resume_out(strata_t *s, strata_comm_t *comm, int to, uint32_t all, void (*paced)(uint32_t n))
{
    char *data = malloc(RESUME_LONGEST), name[16];
    struct resume_word word;
    CHECK(data);
    for (uint32_t channel = 0;; channel++) {
        strata_channel_sender_t *c;
        int rc = STRATA_OK;
        CHECK_OK(strata_recv(comm, &word, sizeof word, to, RESUME_TAG, NULL));
        if (word.done)
            break;
        snprintf(name, sizeof name, "%u", channel);
        CHECK_OK(strata_channel_open_send(s, to, name, &c));
        for (uint32_t n = word.next; n < all && rc == STRATA_OK; n++) {
            size_t len = resume_length(n);
            if (paced)
                paced(n);
            pattern_fill(data, len, n);
            rc = strata_channel_send(c, data, len, STRATA_CHANNEL_FOREVER);
        }
        int closed = strata_channel_close_send(c);
        CHECK_MSG(rc == STRATA_OK || rc == STRATA_ERR_PEER, "channel %u: %s", channel, strata_strerror(rc));
        CHECK(closed == STRATA_ERR_PEER || (rc == STRATA_OK && closed == STRATA_OK));
    }
    CHECK_EQ(word.next, all);
    free(data);
}

#endif
