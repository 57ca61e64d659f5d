/* Progress of links while no user call is in them, and the end of connections: one thread of the protocol for both. MTCL
 * expects that `send` and `close` need no later call, as with a socket. A long message may need the sender's processor
 * until the receiver has taken it, and a stream is freed once the receiver has taken its end. */
#ifndef STRATA_MTCL_MOVER_HPP
#define STRATA_MTCL_MOVER_HPP

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <strata/channel_link.h>
#include <thread>
#include <utility>
#include <vector>

namespace strata_mtcl
{

/* The sending end of a closed connection, and its link where that is of the connection alone. */
struct closing {
    strata_channel_sender_t *out; /* or NULL */
    strata_channel_link_t *link; /* or NULL */
};

/* Any thread may call. */
class mover
{
  public:
    mover() = default;
    ~mover() { stop(); }
    mover(const mover &) = delete;
    mover &operator=(const mover &) = delete;

    /* Makes progress on a link from now on. */
    void watch(strata_channel_link_t *link)
    {
        std::lock_guard<std::mutex> guard(lock_);
        links_.push_back(link);
        start();
    }
    /* A long message was sent: looks often for a while. */
    void hurry()
    {
        {
            std::lock_guard<std::mutex> guard(lock_);
            hurry_until_ = clock::now() + std::chrono::milliseconds(50);
        }
        wake_.notify_one();
    }
    /* Frees a sending end and its link once the receiver has taken everything. */
    void close(const closing &c)
    {
        {
            std::lock_guard<std::mutex> guard(lock_);
            closing_.push_back(c);
            hurry_until_ = clock::now() + std::chrono::milliseconds(50);
            start();
        }
        wake_.notify_one();
    }
    /* Waits until all closed connections are freed; `wait`: without a limit, else for a second. False: some are left.
     */
    bool finish(bool wait)
    {
        std::unique_lock<std::mutex> guard(lock_);
        auto all = [this] { return closing_.empty(); };
        if (wait)
            freed_.wait(guard, all);
        else
            (void)freed_.wait_for(guard, std::chrono::seconds(1), all);
        return closing_.empty();
    }
    /* No progress is made any more. */
    void stop()
    {
        {
            std::lock_guard<std::mutex> guard(lock_);
            over_ = true;
        }
        wake_.notify_one();
        if (thread_.joinable())
            thread_.join();
        over_ = false;
        links_.clear();
    }

  private:
    using clock = std::chrono::steady_clock;

    void start() /* with the lock held */
    {
        if (!thread_.joinable())
            thread_ = std::thread([this] { run(); });
    }

    /* Those whose streams were taken; with the lock held. */
    std::vector<closing> taken()
    {
        std::vector<closing> found;
        for (auto c = closing_.begin(); c != closing_.end();) {
            if (c->out && strata_channel_finish(c->out, 0) == STRATA_ERR_AGAIN) {
                ++c;
                continue;
            }
            if (c->link)
                links_.erase(std::remove(links_.begin(), links_.end(), c->link), links_.end());
            found.push_back(*c);
            c = closing_.erase(c);
        }
        return found;
    }

    void run()
    {
        std::unique_lock<std::mutex> guard(lock_);
        while (!over_) {
            for (strata_channel_link_t *link : links_)
                (void)strata_progress(strata_channel_link_context(link));
            for (const closing &c : taken()) {
                if (c.out)
                    (void)strata_channel_close_send(c.out);
                if (c.link)
                    (void)strata_channel_link_close(c.link);
            }
            if (closing_.empty())
                freed_.notify_all();
            bool hurry = clock::now() < hurry_until_;
            (void)wake_.wait_for(guard, hurry ? std::chrono::microseconds(50) : std::chrono::milliseconds(10));
        }
    }

    std::mutex lock_;
    std::condition_variable wake_, freed_;
    std::list<closing> closing_;
    std::vector<strata_channel_link_t *> links_;
    clock::time_point hurry_until_{};
    bool over_ = false;
    std::thread thread_;
};

} // namespace strata_mtcl

#endif
