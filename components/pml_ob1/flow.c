/* See flow.h. */
#include "flow.h"

void ob1_flow_enter(struct ob1_flow *t, const void *place, uint32_t messages_heard, uint64_t bytes_heard)
{
    if (t->place == place && bytes_heard >= t->bytes_heard)
        return;
    t->place = place;
    t->heard = messages_heard;
    t->bytes_heard = bytes_heard;
    t->bytes_paid = 0;
}

bool ob1_flow_alone(struct ob1_flow *t, uint32_t messages_heard)
{
    bool answered = t->heard != messages_heard;

    if (t->long_sends)
        return false;
    t->heard = messages_heard;
    if (t->late) {
        t->late--;
        return false;
    }
    return answered;
}

bool ob1_flow_crosses(struct ob1_flow *t, uint64_t bytes_heard, uint64_t length)
{
    uint64_t come = bytes_heard - t->bytes_heard;

    t->bytes_heard = bytes_heard;
    t->bytes_paid += come < OB1_CROSSING ? 2 * come : OB1_CROSSING;
    if (t->bytes_paid > OB1_CROSSING)
        t->bytes_paid = OB1_CROSSING;
    if (t->bytes_paid < length)
        return false;
    t->bytes_paid -= length;
    return true;
}
