/* Calls that may wait. */
#include <strata/sdk/clock.h>

#include "channel/channel.h"

struct channel_attempt {
    struct channels *ch;
    int (*attempt)(void *arg);
    void *arg;
    void (*ask)(void *arg); /* or NULL */
    uint32_t tries;
    bool asks;     /* before each attempt from now on */
    int64_t until; /* ms of the clock; negative: no limit */
    int rc;
};

static int channel_once(struct channel_attempt *a)
{
    st_worker_lock(a->ch->w);
    /* A wait on a busy machine sleeps soon. */
    a->asks = a->asks || a->tries > a->ch->w->spin || (a->tries > 0 && st_worker_is_busy(a->ch->w));
    a->tries++;
    if (a->ask && a->asks)
        a->ask(a->arg);
    a->rc = a->attempt(a->arg);
    st_worker_unlock(a->ch->w);
    return a->rc;
}

/* May be asked again after it was true, when the attempt has done its work. */
static bool channel_over(void *arg)
{
    struct channel_attempt *a = arg;

    return a->rc != STRATA_ERR_AGAIN || channel_once(a) != STRATA_ERR_AGAIN ||
           (a->until >= 0 && st_now_ms() >= a->until);
}

int channel_try_asking(struct channels *ch, int (*attempt)(void *arg), void (*ask)(void *arg), void *arg,
                       int64_t limit_ms)
{
    struct channel_attempt a = {.ch = ch, .attempt = attempt, .ask = ask, .arg = arg, .until = -1};

    if (channel_once(&a) != STRATA_ERR_AGAIN)
        return a.rc;
    if (limit_ms == 0) {
        st_worker_progress(ch->w);
        return channel_once(&a);
    }
    if (limit_ms > 0)
        a.until = st_now_ms() + limit_ms;
    st_worker_wait_acting(ch->w, channel_over, &a);
    return a.rc == STRATA_ERR_AGAIN ? STRATA_ERR_TIMEOUT : a.rc;
}

int channel_try(struct channels *ch, int (*attempt)(void *arg), void *arg, int64_t limit_ms)
{
    return channel_try_asking(ch, attempt, NULL, arg, limit_ms);
}
