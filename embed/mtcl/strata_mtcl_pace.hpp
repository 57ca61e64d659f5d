/* How often the mover looks after what it watches. Only arithmetic, so that it can be tested without a clock. */
#ifndef STRATA_MTCL_PACE_HPP
#define STRATA_MTCL_PACE_HPP

#include <algorithm>
#include <chrono>

namespace strata_mtcl
{

/* Pauses between two rounds: `soonest` after one that has moved something, twice as long after each one that has not,
 * up to `alert` while long messages are sent, and up to `resting` where none was in the last `watchful` rounds. Waking
 * the thread takes a processor from somebody, on a busy machine for long: a long message wakes it from a rest only. */
class pace
{
  public:
    using duration = std::chrono::microseconds;
    static constexpr duration soonest{50}, alert{1000}, resting{10000};
    static constexpr unsigned watchful = 50;

    /* Something is to be done soon; the thread is woken. */
    void at_once() { pause_ = soonest; }
    /* A round is over; `sent`: long messages were sent since the last. The pause until the next. */
    duration round(bool moved, bool sent)
    {
        if (sent)
            watchful_ = watchful;
        duration most = watchful_ > 0 ? alert : resting;
        watchful_ -= watchful_ > 0;
        pause_ = moved ? soonest : std::min(2 * pause_, most);
        return pause_;
    }

  private:
    duration pause_ = resting;
    unsigned watchful_ = 0; /* rounds that are left */
};

} // namespace strata_mtcl

#endif
