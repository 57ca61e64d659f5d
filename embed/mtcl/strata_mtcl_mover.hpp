/* Progress of links while no user call is in them, and the end of connections: one thread of the protocol for both.
 * MTCL expects that `send` and `close` need no later call, as with a socket. A long message may need the sender's
 * processor until the receiver has taken it, and a stream is freed once the receiver has taken its end. */
#ifndef STRATA_MTCL_MOVER_HPP
#define STRATA_MTCL_MOVER_HPP

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <strata/channel_link.h>
#include <thread>
#include <vector>

#include "strata_mtcl_pace.hpp"

namespace strata_mtcl
{

/* The sending end of a connection. */
struct sending {
    strata_channel_sender_t *out = nullptr;
    std::atomic<bool> owes{false}; /* it has sent a long message, and the receiver may not have taken it */
};
/* A link, and what its connections leave to the mover. */
struct watched {
    explicit watched(strata_channel_link_t *l) : link(l) {}
    strata_channel_link_t *link;
    std::atomic<int> inside{0};  /* calls that wait in it: these make progress for all */
    std::vector<sending *> ends; /* the mover's, under its lock */
};
/* A call that may wait in a link. */
class visit
{
  public:
    explicit visit(watched &w) : w_(w) { w_.inside++; }
    ~visit() { w_.inside--; }
    visit(const visit &) = delete;
    visit &operator=(const visit &) = delete;

  private:
    watched &w_;
};

/* A closed connection. */
struct closing {
    strata_channel_sender_t *out; /* or NULL */
    watched *at;
    bool with_link; /* it is of this connection alone */
};

/* Any thread may call. */
class mover
{
  public:
    /* What it has done so far. */
    struct counts {
        uint64_t rounds;   /* in all */
        uint64_t awakened; /* times that a long message has ended a rest */
    };

    mover() = default;
    ~mover() { stop(); }
    mover(const mover &) = delete;
    mover &operator=(const mover &) = delete;

    /* Looks after a link from now on, until it is closed. */
    watched *watch(strata_channel_link_t *link)
    {
        std::lock_guard<std::mutex> guard(lock_);
        links_.push_back(std::make_unique<watched>(link));
        start();
        return links_.back().get();
    }
    void open(watched &at, sending &end)
    {
        std::lock_guard<std::mutex> guard(lock_);
        at.ends.push_back(&end);
    }
    /* The end has sent a long message that the receiver has not taken. Without the lock, whose holder may have lost the
     * processor: the thread rests or sees `sent_`. */
    void sends_long(sending &end)
    {
        end.owes = true;
        sent_ = true;
        if (rests_.exchange(false))
            wake(true);
    }
    /* Frees a sending end and its link once the receiver has taken everything. */
    void close(sending &end, const closing &c)
    {
        {
            std::lock_guard<std::mutex> guard(lock_);
            c.at->ends.erase(std::remove(c.at->ends.begin(), c.at->ends.end(), &end), c.at->ends.end());
            closing_.push_back(c);
            start();
        }
        wake(false);
    }
    /* Waits until all closed connections are freed; `wait`: without a limit, else for a second. */
    void finish(bool wait)
    {
        std::unique_lock<std::mutex> guard(lock_);
        auto all = [this] { return closing_.empty(); };
        if (wait)
            freed_.wait(guard, all);
        else
            (void)freed_.wait_for(guard, std::chrono::seconds(1), all);
    }
    /* No progress is made any more. Connections that are left end with an error at the peer. */
    void stop()
    {
        {
            std::lock_guard<std::mutex> guard(lock_);
            over_ = woken_ = true;
        }
        wake_.notify_one();
        if (thread_.joinable())
            thread_.join();
        over_ = woken_ = false;
        for (const closing &c : closing_)
            drop(c, strata_channel_abort_send);
        closing_.clear();
        links_.clear();
    }
    counts done_so_far()
    {
        std::lock_guard<std::mutex> guard(lock_);
        return counts_;
    }

  private:
    void start() /* with the lock held */
    {
        if (!thread_.joinable())
            thread_ = std::thread([this] { run(); });
    }
    void wake(bool from_rest)
    {
        {
            std::lock_guard<std::mutex> guard(lock_);
            counts_.awakened += from_rest;
            pace_.at_once();
            woken_ = true;
        }
        wake_.notify_one();
    }

    /* ---- by the thread, with the lock held ---- */

    /* Progress of a link, where it has to be made here. Whether anything has moved. */
    static bool help(watched &w, bool rests)
    {
        auto owes = [](const sending *e) { return e->owes.load(); };
        bool moved = false;
        if (w.inside == 0 && (rests || std::any_of(w.ends.begin(), w.ends.end(), owes)))
            moved = strata_progress(strata_channel_link_context(w.link)) > 0;
        for (sending *e : w.ends)
            if (e->owes.exchange(false) && strata_channel_taken(e->out) == STRATA_ERR_AGAIN)
                e->owes = true;
        return moved;
    }

    void drop(const closing &c, int (*end)(strata_channel_sender_t *))
    {
        if (c.out)
            (void)end(c.out);
        if (c.with_link) {
            strata_channel_link_t *link = c.at->link;
            links_.remove_if([&c](const std::unique_ptr<watched> &w) { return w.get() == c.at; });
            (void)strata_channel_link_close(link);
        }
    }
    /* Frees one whose stream was taken. */
    bool part(const closing &c)
    {
        if (c.out && strata_channel_finish(c.out, 0) == STRATA_ERR_AGAIN)
            return false;
        drop(c, strata_channel_close_send);
        return true;
    }

    bool round(bool rests)
    {
        bool moved = false;
        counts_.rounds++;
        for (auto &w : links_)
            moved |= help(*w, rests);
        for (auto c = closing_.begin(); c != closing_.end();) {
            bool gone = part(*c);
            moved |= gone;
            c = gone ? closing_.erase(c) : std::next(c);
        }
        if (closing_.empty())
            freed_.notify_all();
        return moved;
    }

    void run()
    {
        std::unique_lock<std::mutex> guard(lock_);
        bool rests = true;
        while (!over_) {
            bool moved = round(rests);
            pace::duration pause = pace_.round(moved, sent_.exchange(false));
            rests = pause > pace::alert;
            rests_ = rests;
            if (rests && sent_) { /* just now: whoever sent may not have seen that a rest begins */
                rests_ = false;
                pace_.at_once();
            } else {
                (void)wake_.wait_for(guard, pause, [this] { return woken_; });
            }
            woken_ = false;
        }
    }

    std::mutex lock_;
    std::condition_variable wake_, freed_;
    std::list<closing> closing_;
    std::list<std::unique_ptr<watched>> links_;
    pace pace_;
    counts counts_{};
    bool over_ = false, woken_ = false;
    std::atomic<bool> rests_{false}; /* the thread does, for long */
    std::atomic<bool> sent_{false};  /* a long message, since the last round */
    std::thread thread_;
};

} // namespace strata_mtcl

#endif
