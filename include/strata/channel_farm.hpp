/* A farm on demand in C++17, header only. Emitter and workers open it by the same name, of at most 30 bytes. Its
 * channels have that name, followed by '>' for tasks and '<' for demands. */
#ifndef STRATA_CHANNEL_FARM_HPP
#define STRATA_CHANNEL_FARM_HPP

#include <strata/channel_set.hpp>

namespace strata_cxx
{

/* The emitter of a farm on demand: a task goes to a worker that has requested one, so that a slow worker gets fewer.
 *
 * The loss of a worker is thrown once, with its rank as the error's id, by the send or close that detects it. That send
 * has sent nothing. The program can send the tasks of that worker without a result again, then close. */
class channel_farm
{
  public:
    channel_farm(strata_t *s, const std::vector<int> &ranks, const std::string &name)
        : demands_(s, ranks, name + "<", 256)
    {
        for (int rank : ranks)
            tasks_.emplace(rank, channel_sender(s, rank, name + ">"));
    }
    /* Waits for a request, sends the task to that worker, and returns its rank. */
    int send(const void *data, std::size_t size)
    {
        for (;;) {
            auto demand = next_demand();
            if (!demand)
                throw channel_error(STRATA_ERR_PEER, "channel_farm: no worker is left");
            auto to = tasks_.find(demand->first);
            if (to == tasks_.end())
                continue; /* it was lost since it asked */
            try {
                to->second.send(data, size);
                to->second.flush();
            } catch (const channel_error &) {
                lose(to);
                throw;
            }
            return demand->first;
        }
    }
    template <class T> int send(const T &value)
    {
        static_assert(std::is_trivially_copyable<T>::value, "its bytes are sent");
        return send(&value, sizeof(value));
    }
    /* Ends all streams, then waits until the workers have taken all tasks, also if some workers are lost. Throws the
     * first error. */
    void close()
    {
        detail::first_error errors;
        for (auto &to : tasks_)
            errors.from([&] { to.second.end(); });
        while (demands_.size() > 0) /* until each worker has closed */
            errors.from([&] { (void)next_demand(); });
        for (auto &to : tasks_)
            errors.from([&] { to.second.close(); });
        errors.raise();
    }

  private:
    /* An error that was thrown by a send is not thrown again. */
    std::optional<std::pair<int, channel_message>> next_demand()
    {
        for (;;) {
            try {
                return demands_.next();
            } catch (const channel_error &e) {
                auto to = tasks_.find(e.id());
                if (to == tasks_.end() && e.id() >= 0)
                    continue;
                if (to != tasks_.end())
                    lose(to);
                throw;
            }
        }
    }
    void lose(std::unordered_map<int, channel_sender>::iterator to)
    {
        to->second.abort();
        tasks_.erase(to);
    }
    std::unordered_map<int, channel_sender> tasks_;
    channel_gather demands_; /* behind tasks_: closed first */
};

/* A worker of a farm on demand. */
class channel_worker
{
  public:
    /* `ahead`: number of tasks requested in advance; 1: the worker requests the next task after the last one. */
    channel_worker(strata_t *s, int emitter, const std::string &name, unsigned ahead = 1, std::size_t ring = 0)
        : demands_(s, emitter, name + "<"), tasks_(s, emitter, name + ">", ring)
    {
        for (unsigned i = 0; i < ahead; i++)
            ask();
    }
    /* Waits for the next task, after a request for another; nullopt when there are no more. Release the task before the
     * next call. If the emitter is lost, the tasks that have arrived are returned before the error. */
    std::optional<channel_message> next()
    {
        if (!first_)
            try {
                ask();
            } catch (const channel_error &) { /* tasks_ says so behind its last one */
            }
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
    channel_sender demands_;
    channel_receiver tasks_; /* behind demands_: closed first */
    bool first_ = true;
};

} // namespace strata_cxx

#endif
