/* Channels over a link that goes down and comes up again: the channels on it break with an error at both ends, whoever
 * waits returns, what had arrived is handed out in order, and fresh ones carry the rest. Over the ways of btl_shuffle,
 * where paths break after some fragments and are made again: of three paths two, or the only one. */
/* starts first */
#include "support/channel_resume.h"
#include "support/over_transports.h"

enum { CHANNELS = RESUME_TAG + 1 };

static bool breaks(const struct tw_rank *r)
{
    return strstr(r->arg, "break_after") != NULL;
}

/* How many fragments the messages take depends on how many of them go together. Where they were too few for a path to
 * break, all are sent once more. */
static void link_down_and_up(struct tw_rank *r)
{
    uint32_t all = (uint32_t)suite_scale(2000), channels = 1;
    if (!breaks(r))
        return;
    for (int tries = 0; tries < 5 && channels == 1; tries++) {
        if (r->rank == 0) {
            resume_out(r->s, r->comm, 1, all, NULL);
            CHECK_OK(strata_recv(r->comm, &channels, sizeof channels, 1, CHANNELS, NULL));
        } else {
            channels = resume_in(r->s, r->comm, 0, all);
            CHECK_OK(strata_send(r->comm, &channels, sizeof channels, 0, CHANNELS));
        }
    }
    if (r->rank == 1)
        fprintf(stderr, "%u channels\n", channels);
    CHECK(channels > 1);
    tw_quiesce(r);
}

static const struct over_case cases[] = {
    {"link_down_and_up", link_down_and_up, 2, STRATA_THREAD_SINGLE, OVER_QUIET},
};

/* Without registration an operation under way could touch memory that its owner has given back after the break. */
#define BREAKS "btl=shuffle,self pml_ob1_path_retry_ms=1 btl_shuffle_break_after=60 btl_shuffle_needs_reg=1 "
#define SOME   BREAKS "btl_shuffle_rails=3 btl_shuffle_break_rails=2 "
#define ONLY   BREAKS "btl_shuffle_rails=1 btl_shuffle_break_rails=1 pml_ob1_path_keep=1 "

OVER_SUITE(channel_break, OVER_PUTS, cases, SOME, SOME "btl_shuffle_break_silent=1", ONLY,
           ONLY "btl_shuffle_async_percent=100", ONLY "btl_shuffle_get=0 pml_ob1_path_retry_ms=20");
