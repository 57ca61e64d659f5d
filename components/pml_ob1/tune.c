/* See tune.h. */
#include "tune.h"

#include <string.h>

/* Pauses, in blocks: before the first try, after one that changed something or has to be confirmed, the longest. */
#define PAUSE_BEGIN   2u
#define PAUSE_CONFIRM 1u
#define PAUSE_FIRST   64u
#define PAUSE_MOST    4096u
#define BLOCKS        4u
#define REST          1u   /* messages under way when one window has ended and the next one begins */
#define OVER_MOST     512u /* messages that a part of a block waits for the backlog to shrink */

/* A message that travels alone has ended when the next one begins. Else as many are under way as a window has, and a
 * block is to have all of one. */
struct ob1_tune_pace ob1_tune_pace(enum ob1_class traffic)
{
    return traffic == OB1_ALONE ? (struct ob1_tune_pace){2, 14} : (struct ob1_tune_pace){64, 64};
}

static uint32_t tune_block(struct ob1_tune_pace pace)
{
    return (uint32_t)pace.skipped + pace.timed;
}

static enum ob1_tune_way tune_other(uint8_t way)
{
    return way == OB1_TUNE_ASKED ? OB1_TUNE_LIMITS : OB1_TUNE_ASKED;
}

static enum ob1_tune_way tune_way_of_block(const struct ob1_tune_cell *c)
{
    return c->block % 2 == 0 && c->block ? tune_other(c->way) : (enum ob1_tune_way)c->way;
}

void ob1_tune_begin(struct ob1_tune_cell *c, enum ob1_tune_way way, struct ob1_tune_pace pace)
{
    memset(c, 0, sizeof(*c));
    c->way = (uint8_t)way;
    c->pause = PAUSE_FIRST * tune_block(pace);
    c->left = PAUSE_BEGIN * tune_block(pace);
}

static void tune_pause(struct ob1_tune_cell *c, uint32_t messages)
{
    c->block = 0;
    c->left = messages;
}

/* All four blocks have ended. */
static void tune_judge(struct ob1_tune_cell *c, struct ob1_tune_pace pace)
{
    uint32_t first = PAUSE_FIRST * tune_block(pace), most = PAUSE_MOST * tune_block(pace);
    float mine = c->least[c->way], other = c->least[tune_other(c->way)];

    c->tries++;
    if (mine == 0 || other == 0) { /* too much came between: nothing is known */
        tune_pause(c, c->pause);
        return;
    }
    if (other <= mine * (1 - OB1_TUNE_GAIN)) {
        c->pause = first;
        if (++c->wins < OB1_TUNE_WINS) {
            tune_pause(c, PAUSE_CONFIRM * tune_block(pace));
            return;
        }
        c->wins = 0;
        c->way = (uint8_t)tune_other(c->way);
        c->changes++;
        tune_pause(c, first);
        return;
    }
    c->wins = 0;
    tune_pause(c, c->pause);
    c->pause = other > mine * OB1_TUNE_FAR || c->pause > most / 2 ? most : 2 * c->pause;
    if (other > mine * OB1_TUNE_FAR)
        c->left = most;
}

/* The block is over: its mean, if at least half of its messages have been timed. */
static void tune_close_block(struct ob1_tune_cell *c, struct ob1_tune_pace pace)
{
    float *least = &c->least[tune_way_of_block(c)], mean;

    if (c->timed >= pace.timed / 2) {
        mean = c->sum / (float)c->timed;
        *least = *least == 0 || mean < *least ? mean : *least;
    }
}

/* The first part of a block: what went before, by the other way, comes to its end. */
static void tune_open_block(struct ob1_tune_cell *c, uint8_t block, struct ob1_tune_pace pace)
{
    c->block = block;
    c->left = pace.skipped;
    c->over = 0;
    c->times = false;
}

static void tune_time_block(struct ob1_tune_cell *c, uint32_t backlog, struct ob1_tune_pace pace)
{
    c->left = pace.timed;
    c->over = 0;
    c->times = true;
    c->backlog = backlog > REST ? backlog : REST;
    c->sum = 0;
    c->timed = 0;
}

/* The pause, or a part of a block, may end here: no more is under way than when it began, or than at rest. */
static bool tune_may_end(struct ob1_tune_cell *c, uint32_t backlog)
{
    if (c->left)
        return false;
    if (c->block == 0 || backlog <= (c->times ? c->backlog : REST))
        return true;
    if (c->over < OVER_MOST)
        return false;
    if (c->times)
        c->timed = 0; /* posted, not sent: the times say nothing */
    return true;
}

enum ob1_tune_way ob1_tune_step(struct ob1_tune_cell *c, uint64_t ns, uint32_t backlog, struct ob1_tune_pace pace)
{
    /* The interval that ends here is of the message before, which was of this part. */
    if (c->block && c->times && ns) {
        c->sum += (float)ns;
        c->timed++;
    }
    if (tune_may_end(c, backlog)) {
        if (c->block == 0) {
            c->least[0] = c->least[1] = 0;
            tune_open_block(c, 1, pace);
        } else if (!c->times) {
            tune_time_block(c, backlog, pace);
        } else {
            tune_close_block(c, pace);
            if (c->block == BLOCKS)
                tune_judge(c, pace);
            else
                tune_open_block(c, (uint8_t)(c->block + 1), pace);
        }
    }
    if (c->left)
        c->left--;
    else
        c->over++;
    return tune_way_of_block(c);
}
