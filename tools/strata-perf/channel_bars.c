/* The targets of `channel`: one row judged beside the other libraries and Strata's own messages. */
#include "channel.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "report.h"

/* A bar: the other way takes at least `times` the channel's time. `wires`: bit per wire. */
static const struct bar {
    enum channel_table table;
    enum channel_way way;
    unsigned wires;
    size_t from, to; /* sizes or workers, both included */
    double times;
} bars[] = {
    {TABLE_STREAM, WAY_SEND, 7, 10, 10, 2.0},
    {TABLE_STREAM, WAY_SEND, 7, 100, SIZE_MAX, 1.0},
    {TABLE_STREAM, WAY_OPENMPI, 7, 0, SIZE_MAX, 1.0},
    {TABLE_STREAM, WAY_MPICH, 7, 0, SIZE_MAX, 1.0},
    {TABLE_STREAM, WAY_ZMQ, 1u << WIRE_SM, 1024, SIZE_MAX, 5.0},
    {TABLE_STREAM, WAY_ZMQ, 1u << WIRE_TCP, 0, SIZE_MAX, 1.5},
    {TABLE_PING_PONG, WAY_SEND, 7, 0, SIZE_MAX, 1.0},
    {TABLE_PING_PONG, WAY_OPENMPI, 7, 0, SIZE_MAX, 1.0},
    {TABLE_PING_PONG, WAY_MPICH, 7, 0, SIZE_MAX, 1.0},
    {TABLE_PING_PONG, WAY_ZMQ, 1u << WIRE_SM, 0, 1024, 20.0},
    {TABLE_PING_PONG, WAY_ZMQ, 1u << WIRE_TCP, 0, SIZE_MAX, 1.0},
    {TABLE_TASKS, WAY_ZMQ, 1u << WIRE_SM | 1u << WIRE_TCP, 8, 8, 1.3},
};

double channel_median(const struct channel_line *line, enum channel_way way)
{
    return line->of[way].n ? perf_summarise(line->of[way].v, line->of[way].n).median : 0;
}

/* From any of many channels at most 1.2 times as long as from one. */
static bool judge_from_any(const struct channel_bench *b, const struct channel_line *line, char *text, size_t size)
{
    double mine = channel_median(line, WAY_CHANNEL), one = 0;
    for (size_t i = 0; i < b->n_lines; i++)
        if (b->lines[i].table == TABLE_FROM_ANY && b->lines[i].wire == line->wire && b->lines[i].number == 1)
            one = channel_median(&b->lines[i], WAY_CHANNEL);
    if (line->number == 1 || one <= 0 || mine <= 0)
        return false;
    if (mine / one > 1.2)
        snprintf(text, size, "%.2f times one channel's, of 1.2", mine / one);
    return true;
}

/* The farm whose tasks sleep: at most a twentieth longer than it has to take. */
static bool judge_sleep(const struct channel_line *line, char *text, size_t size)
{
    static const double ideal = 2.025; /* s: tools/channel-twin/farm.h */
    double mine = channel_median(line, WAY_CHANNEL);
    if (mine <= 0)
        return false;
    if (mine / ideal > 1.05)
        snprintf(text, size, "%.3f of the ideal time, of 1.050", mine / ideal);
    return true;
}

bool channel_judge(const struct channel_bench *b, const struct channel_line *line, char *text, size_t size)
{
    double mine = channel_median(line, WAY_CHANNEL);
    bool asked = false;
    text[0] = 0;
    if (line->table == TABLE_FROM_ANY)
        return judge_from_any(b, line, text, size);
    if (line->table == TABLE_SLEEP)
        return judge_sleep(line, text, size);
    for (size_t i = 0; mine > 0 && i < sizeof bars / sizeof bars[0]; i++) {
        const struct bar *bar = &bars[i];
        double other = channel_median(line, bar->way);
        size_t used = strlen(text);
        if (bar->table != line->table || !(bar->wires & 1u << line->wire) || line->number < bar->from ||
            line->number > bar->to || other <= 0)
            continue;
        asked = true;
        if (other / mine < bar->times)
            snprintf(text + used, size - used, "%s%s %.2f of %.1f", used ? ", " : "", channel_way_name(bar->way),
                     other / mine, bar->times);
    }
    return asked;
}
