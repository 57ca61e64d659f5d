/* Patterns of channels in C++17, header only: scatter, broadcast, gather from any, farms on demand, all-gather. Both
 * sides of a pattern open it by the same name. */
#ifndef STRATA_CHANNEL_PATTERNS_HPP
#define STRATA_CHANNEL_PATTERNS_HPP

#include <cstdint>
#include <vector>

#include <strata/channel_farm.hpp>

namespace strata_cxx
{

namespace detail
{
template <class Call> void to_all(std::vector<channel_sender> &all, Call &&call)
{
    first_error errors;
    for (channel_sender &to : all)
        errors.from([&] { call(to); });
    errors.raise();
}
inline void close_all(std::vector<channel_sender> &all)
{
    first_error errors;
    errors.from([&] { to_all(all, [](channel_sender &to) { to.end(); }); });
    errors.from([&] { to_all(all, [](channel_sender &to) { to.close(); }); });
    errors.raise();
}
} // namespace detail

/* Sends to many receivers, each with a channel_receiver of that name. */
class channel_scatter
{
  public:
    channel_scatter(strata_t *s, const std::vector<int> &ranks, const std::string &name)
    {
        for (int rank : ranks)
            to_.emplace_back(s, rank, name);
    }
    /* Sends to each receiver in turn, waiting for room: a slow one delays the others; channel_farm avoids this. */
    void send(const void *data, std::size_t size) { to_[turn_++ % to_.size()].send(data, size); }
    /* Sends to the receiver that belongs to the key: equal keys, same receiver. */
    void send_by_key(std::uint64_t key, const void *data, std::size_t size)
    {
        to_[static_cast<std::size_t>(key % to_.size())].send(data, size);
    }
    /* Sends to all. This and the following calls serve the other receivers if one is lost, then throw the first error.
     */
    void broadcast(const void *data, std::size_t size)
    {
        detail::to_all(to_, [&](channel_sender &to) { to.send(data, size); });
    }
    /* Ends all streams without waiting for the receivers, so that their answers can be received before close. */
    void end()
    {
        detail::to_all(to_, [](channel_sender &to) { to.end(); });
    }
    /* Ends all streams first, then waits until the receivers have taken all messages. */
    void close() { detail::close_all(to_); }

  private:
    std::vector<channel_sender> to_;
    std::size_t turn_ = 0;
};

/* Repeated exchange of one value between all ranks of a list. */
template <class T> class channel_all_gather
{
  public:
    /* `ranks`: the same list on all of them, including this rank. */
    channel_all_gather(strata_t *s, const std::vector<int> &ranks, const std::string &name)
    {
        for (int rank : ranks)
            from_.emplace_back(s, rank, name);
        for (int rank : ranks)
            to_.emplace_back(s, rank, name);
    }
    /* Sends `mine` to all, and returns the values of all in the order of the list. */
    std::vector<T> exchange(const T &mine)
    {
        std::vector<T> all;
        detail::to_all(to_, [&](channel_sender &to) {
            to.send(mine);
            to.flush();
        });
        for (channel_receiver &from : from_) {
            std::optional<T> value = from.template take<T>();
            if (!value)
                throw channel_error(STRATA_ERR_PEER, "channel_all_gather: a rank has left");
            all.push_back(*value);
        }
        return all;
    }
    /* After the last exchange. */
    void close()
    {
        detail::first_error errors;
        errors.from([&] { detail::to_all(to_, [](channel_sender &to) { to.end(); }); });
        for (channel_receiver &from : from_)
            errors.from([&] {
                if (from.next())
                    throw channel_error(STRATA_ERR_STATE, "channel_all_gather: a rank exchanges once more");
            });
        errors.from([&] { detail::close_all(to_); });
        errors.raise();
    }

  private:
    std::vector<channel_sender> to_;
    std::vector<channel_receiver> from_; /* behind to_: closed first */
};

} // namespace strata_cxx

#endif
