/* Patterns of channels in C++17, header only: scatter, broadcast, gather from any, farms on demand, all-gather. Both
 * sides of a pattern name it; its channels' names begin with that, and end in '>' for tasks and '<' for demands. */
#ifndef STRATA_CHANNEL_PATTERNS_HPP
#define STRATA_CHANNEL_PATTERNS_HPP

#include <cstdint>
#include <vector>

#include <strata/channel.hpp>

namespace strata_cxx
{

/* One sender, many receivers, each of which has a plain channel_receiver of that name. */
class channel_scatter
{
  public:
    channel_scatter(strata_t *s, const std::vector<int> &ranks, const std::string &name)
    {
        for (int rank : ranks)
            to_.emplace_back(s, rank, name);
    }
    /* To each in turn, whether or not it has room: a slow one holds the others up, for which see channel_farm. */
    void send(const void *data, std::size_t size) { to_[turn_++ % to_.size()].send(data, size); }
    /* Equal keys go to the same receiver. */
    void send_by_key(std::uint64_t key, const void *data, std::size_t size)
    {
        to_[static_cast<std::size_t>(key % to_.size())].send(data, size);
    }
    /* To all. */
    void broadcast(const void *data, std::size_t size)
    {
        for (channel_sender &to : to_)
            to.send(data, size);
    }
    /* Ends all streams without waiting for the receivers, whose answers can be taken before close. */
    void end()
    {
        for (channel_sender &to : to_)
            to.end();
    }
    /* Ends all streams first, then waits until all has been taken. */
    void close()
    {
        end();
        for (channel_sender &to : to_)
            to.close();
    }

  private:
    std::vector<channel_sender> to_;
    std::size_t turn_ = 0;
};

/* Many senders, each of which has a plain channel_sender of that name; messages are named by the sender's rank. */
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

/* The emitter of a farm on demand: a task goes to a worker that has asked for one, so that a slow worker gets fewer. */
class channel_farm
{
  public:
    channel_farm(strata_t *s, const std::vector<int> &ranks, const std::string &name)
        : demands_(s, ranks, name + "<", 256)
    {
        for (int rank : ranks)
            tasks_.emplace(rank, channel_sender(s, rank, name + ">"));
    }
    /* Waits for a worker that asks; its rank. */
    int send(const void *data, std::size_t size)
    {
        auto demand = demands_.next();
        if (!demand)
            throw channel_error(STRATA_ERR_PEER, "channel_farm: no worker is left");
        channel_sender &to = tasks_.at(demand->first);
        to.send(data, size);
        to.flush();
        return demand->first;
    }
    template <class T> int send(const T &value)
    {
        static_assert(std::is_trivially_copyable<T>::value, "its bytes are sent");
        return send(&value, sizeof(value));
    }
    /* Ends all streams, then waits until the workers have taken all. */
    void close()
    {
        for (auto &to : tasks_)
            to.second.end();
        while (demands_.next()) /* until each worker has closed */
            ;
        for (auto &to : tasks_)
            to.second.close();
    }

  private:
    channel_gather demands_;
    std::unordered_map<int, channel_sender> tasks_;
};

/* A worker of a farm on demand. */
class channel_worker
{
  public:
    /* `ahead`: tasks that it has asked for when it waits for one; 1: it asks for the next when it has done the last. */
    channel_worker(strata_t *s, int emitter, const std::string &name, unsigned ahead = 1, std::size_t ring = 0)
        : tasks_(s, emitter, name + ">", ring), demands_(s, emitter, name + "<")
    {
        for (unsigned i = 0; i < ahead; i++)
            ask();
    }
    /* The next task, for which another is asked; nothing when there are no more. Release the task before the next. */
    std::optional<channel_message> next()
    {
        if (!first_)
            ask();
        first_ = false;
        std::optional<channel_message> task = tasks_.next();
        if (!task)
            demands_.end();
        return task;
    }
    template <class T> std::optional<T> take()
    {
        std::optional<channel_message> task = next();
        if (!task)
            return std::nullopt;
        return task->as<T>();
    }

  private:
    void ask()
    {
        demands_.send(nullptr, 0);
        demands_.flush();
    }
    channel_receiver tasks_;
    channel_sender demands_;
    bool first_ = true;
};

/* Each of the ranks tells all others a value, again and again. */
template <class T> class channel_all_gather
{
  public:
    /* `ranks`: the same everywhere, this one included. */
    channel_all_gather(strata_t *s, const std::vector<int> &ranks, const std::string &name)
    {
        for (int rank : ranks)
            from_.emplace_back(s, rank, name);
        for (int rank : ranks)
            to_.emplace_back(s, rank, name);
    }
    /* The values of all, in the order of the ranks. */
    std::vector<T> exchange(const T &mine)
    {
        std::vector<T> all;
        for (channel_sender &to : to_) {
            to.send(mine);
            to.flush();
        }
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
        for (channel_sender &to : to_)
            to.end();
        for (channel_receiver &from : from_)
            if (from.next())
                throw channel_error(STRATA_ERR_STATE, "channel_all_gather: a rank exchanges once more");
        for (channel_sender &to : to_)
            to.close();
    }

  private:
    std::vector<channel_receiver> from_;
    std::vector<channel_sender> to_;
};

} // namespace strata_cxx

#endif
