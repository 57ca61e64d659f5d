/* Messages from any of many channels in C++17, header only. */
#ifndef STRATA_CHANNEL_SET_HPP
#define STRATA_CHANNEL_SET_HPP

#include <iterator>
#include <unordered_map>
#include <vector>

#include <strata/channel.hpp>

namespace strata_cxx
{

/* A set that owns receiving ends and returns messages from any of them. */
class channel_set
{
  public:
    channel_set() = default;
    explicit channel_set(strata_t *s)
    {
        strata_channel_set_t *at = nullptr;
        detail::check(strata_channel_set_create(s, &at), "strata_channel_set_create");
        set_ = owner_t(at);
    }
    channel_set(channel_set &&) = default;
    channel_set(const channel_set &) = delete;
    channel_set &operator=(const channel_set &) = delete;
    /* Takes ownership of the end; next() returns `id` with its messages. */
    void add(channel_receiver &&end, int id)
    {
        detail::check(strata_channel_set_add(set_.get(), end.handle()), "strata_channel_set_add");
        strata_channel_receiver_t *key = end.handle();
        ends_.emplace(key, entry{std::move(end), id, 0});
    }
    /* Waits for the next message of any end, and returns it with the end's id; ends with messages take turns. nullopt
     * when all streams have ended. The error of one end is thrown once, with its id; the next call continues with the
     * others. */
    std::optional<std::pair<int, channel_message>> next()
    {
        for (;;) {
            close_over();
            strata_channel_receiver_t *from;
            strata_channel_view_t view;
            int rc = strata_channel_set_next(set_.get(), STRATA_CHANNEL_FOREVER, &from);
            if (detail::check(rc, "strata_channel_set_next") == STRATA_CHANNEL_ENDED)
                return std::nullopt;
            rc = strata_channel_peek(from, 0, &view);
            if (rc == STRATA_ERR_AGAIN)
                continue; /* a long message has begun to move */
            auto at = ends_.find(from);
            if (rc == STRATA_OK)
                return std::make_pair(at->second.id, channel_message(from, view, &at->second.n_out));
            detail::check(strata_channel_set_remove(set_.get(), from), "strata_channel_set_remove");
            int id = at->second.id;
            over_.insert(ends_.extract(at)); /* the others go on */
            detail::check(rc, "strata_channel_peek", id);
        }
    }
    /* Number of open ends. */
    std::size_t size() const noexcept { return ends_.size(); }

  private:
    struct entry {
        channel_receiver end;
        int id;
        unsigned n_out; /* messages that the user has */
    };
    /* Ends whose streams have ended stay open until their last messages are released. */
    void close_over()
    {
        for (auto at = over_.begin(); at != over_.end();)
            at = at->second.n_out ? std::next(at) : over_.erase(at);
    }
    using owner_t = detail::owner<strata_channel_set_t, strata_channel_set_destroy>;
    owner_t set_;
    std::unordered_map<strata_channel_receiver_t *, entry> ends_, over_; /* behind set_: closed first */
};

/* Receives from many senders, each with a channel_sender of that name; next() returns the sender's rank with each
 * message. */
class channel_gather
{
  public:
    channel_gather(strata_t *s, const std::vector<int> &ranks, const std::string &name, std::size_t ring = 0) : set_(s)
    {
        for (int rank : ranks)
            set_.add(channel_receiver(s, rank, name, ring), rank);
    }
    std::optional<std::pair<int, channel_message>> next() { return set_.next(); }
    std::size_t size() const noexcept { return set_.size(); }

  private:
    channel_set set_;
};

} // namespace strata_cxx

#endif
