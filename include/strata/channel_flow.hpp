/* Nodes of a flow graph of oneTBB whose edges cross processes, C++17, header only: a source takes messages from
 * channels, a sink sends them. The only header of Strata that needs oneTBB.
 *
 * A source occupies a thread of its arena while it waits for a message. An arena needs one thread for each source of
 * its graphs and one more: see tbb::global_control and tbb::task_arena. Several threads use the nodes of a process:
 * initialise Strata with STRATA_THREAD_MULTIPLE. graph::wait_for_all throws the errors of channels. */
#ifndef STRATA_CHANNEL_FLOW_HPP
#define STRATA_CHANNEL_FLOW_HPP

#include <memory>
#include <vector>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/task_arena.h>
#include <strata/channel_patterns.hpp>

namespace strata_cxx
{

/* Converts an object to a message and back, by its bytes. Specialise it for types that own memory. */
template <class T> struct channel_codec {
    static void send(channel_sender &to, const T &value) { to.send(value); }
    static T decode(const channel_message &message) { return message.as<T>(); }
};

/* For a vector of objects without pointers: the message has its elements. */
template <class T> struct channel_codec<std::vector<T>> {
    static_assert(std::is_trivially_copyable<T>::value, "its elements' bytes are sent");
    static void send(channel_sender &to, const std::vector<T> &value)
    {
        to.send(value.data(), value.size() * sizeof(T));
    }
    static std::vector<T> decode(const channel_message &message)
    {
        if (message.size() % sizeof(T) != 0)
            throw channel_error(STRATA_ERR_TRUNCATE, "channel_codec: part of an element");
        std::vector<T> value(message.size() / sizeof(T));
        message.copy(value.data());
        return value;
    }
};

/* An input_node that produces the messages of one rank, or of any of several; idle until activate(), finished when all
 * streams have ended. A message stays in its ring until the graph takes it: a slow graph delays its senders by their
 * credits, and nothing is queued here. */
template <class T> class channel_source : public tbb::flow::input_node<T>
{
  public:
    channel_source(tbb::flow::graph &graph, strata_t *s, const std::vector<int> &ranks, const std::string &name,
                   std::size_t ring = 0)
        : channel_source(graph, std::make_shared<channel_gather>(s, ranks, name, ring))
    {
    }
    channel_source(tbb::flow::graph &graph, strata_t *s, int rank, const std::string &name, std::size_t ring = 0)
        : channel_source(graph, s, std::vector<int>{rank}, name, ring)
    {
    }

  private:
    /* The graph copies it, and all copies take from the same channels. */
    class body
    {
      public:
        explicit body(std::shared_ptr<channel_gather> from) : from_(std::move(from)) {}
        T operator()(tbb::flow_control &control)
        {
            if (tbb::this_task_arena::max_concurrency() < 2)
                throw channel_error(STRATA_ERR_STATE, "channel_source: its arena has one thread only");
            auto got = from_->next();
            if (!got) {
                control.stop();
                return T();
            }
            return channel_codec<T>::decode(got->second);
        }

      private:
        std::shared_ptr<channel_gather> from_;
    };
    channel_source(tbb::flow::graph &graph, std::shared_ptr<channel_gather> from)
        : tbb::flow::input_node<T>(graph, body(std::move(from)))
    {
    }
};

/* A serial function_node that sends its input to one rank, or to several in turn. A message leaves at once. */
template <class T> class channel_sink : public tbb::flow::function_node<T>
{
  public:
    channel_sink(tbb::flow::graph &graph, strata_t *s, const std::vector<int> &ranks, const std::string &name)
        : channel_sink(graph, std::make_shared<ends>(s, ranks, name))
    {
    }
    channel_sink(tbb::flow::graph &graph, strata_t *s, int rank, const std::string &name)
        : channel_sink(graph, s, std::vector<int>{rank}, name)
    {
    }
    /* After wait_for_all: ends all streams without waiting for the receivers. */
    void end()
    {
        detail::to_all(to_->to, [](channel_sender &to) { to.end(); });
    }
    /* Ends all streams, and waits until the receivers have taken all messages. end and close serve the other receivers
     * if one is lost. */
    void close() { detail::close_all(to_->to); }

  private:
    struct ends {
        ends(strata_t *s, const std::vector<int> &ranks, const std::string &name)
        {
            for (int rank : ranks)
                to.emplace_back(s, rank, name);
        }
        std::vector<channel_sender> to;
        std::size_t turn = 0;
    };
    channel_sink(tbb::flow::graph &graph, const std::shared_ptr<ends> &to)
        : tbb::flow::function_node<T>(graph, tbb::flow::serial,
                                      [to](const T &value) {
                                          channel_sender &next = to->to[to->turn++ % to->to.size()];
                                          channel_codec<T>::send(next, value);
                                          next.flush();
                                          return tbb::flow::continue_msg();
                                      }),
          to_(to)
    {
    }
    std::shared_ptr<ends> to_;
};

} // namespace strata_cxx

#endif
