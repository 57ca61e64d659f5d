/* Channels in C++17: classes that own ends and messages (strata/channel.h), header only. Ends and messages can be
 * moved, but not copied. Every error status is thrown as strata_cxx::channel_error. A receiver or set must outlive the
 * messages that it has returned.
 *
 * Destructors close the end and discard errors; call close() to see them. Closing a sender waits until the receiver has
 * released all messages. A sender that is destroyed by an exception is aborted instead: it does not wait, and the
 * receiver gets STRATA_ERR_PEER after the messages that have arrived. Declare receivers behind senders, so that they
 * close first. */
#ifndef STRATA_CHANNEL_HPP
#define STRATA_CHANNEL_HPP

#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <strata/channel_error.hpp>

namespace strata_cxx
{

namespace detail
{
/* A handle with one owner. Abort is called instead of Close when an exception destroys it. */
template <class T, int (*Close)(T *), int (*Abort)(T *) = Close> class owner
{
  public:
    owner() = default;
    explicit owner(T *at) : at_(at) {}
    owner(owner &&other) noexcept : at_(std::exchange(other.at_, nullptr)) {}
    owner &operator=(owner &&other) noexcept
    {
        std::swap(at_, other.at_);
        return *this;
    }
    owner(const owner &) = delete;
    owner &operator=(const owner &) = delete;
    ~owner() { (void)(std::uncaught_exceptions() > n_exceptions_ ? abort() : close()); }
    T *get() const noexcept { return at_; }
    int close() noexcept { return end(Close); }
    int abort() noexcept { return end(Abort); }

  private:
    int end(int (*how)(T *)) noexcept { return at_ ? how(std::exchange(at_, nullptr)) : static_cast<int>(STRATA_OK); }
    T *at_ = nullptr;
    const int n_exceptions_ = std::uncaught_exceptions(); /* that were under way when it was made */
};
} // namespace detail

/* The sending end. */
class channel_sender
{
  public:
    channel_sender() = default;
    channel_sender(strata_t *s, int rank, const std::string &name) : rank_(rank)
    {
        strata_channel_sender_t *at = nullptr;
        check(strata_channel_open_send(s, rank, name.c_str(), &at), "strata_channel_open_send");
        end_ = owner_t(at);
    }
    /* Sends a copy of `size` bytes; waits for room. */
    void send(const void *data, std::size_t size)
    {
        check(strata_channel_send(end_.get(), data, size, STRATA_CHANNEL_FOREVER), "strata_channel_send");
    }
    /* Sends the bytes of an object without pointers. */
    template <class T> void send(const T &value)
    {
        static_assert(std::is_trivially_copyable<T>::value, "its bytes are sent");
        send(&value, sizeof(value));
    }
    /* Writes a message of `size` bytes in place: fill(view) is called once. */
    template <class Fill> void emplace(std::size_t size, Fill &&fill)
    {
        strata_channel_view_t view;
        check(strata_channel_reserve(end_.get(), size, STRATA_CHANNEL_FOREVER, &view), "strata_channel_reserve");
        std::forward<Fill>(fill)(view);
        check(strata_channel_commit(end_.get(), size), "strata_channel_commit");
    }
    void flush() { check(strata_channel_flush(end_.get()), "strata_channel_flush"); }
    /* Ends the stream; does not wait until the receiver has taken it. close() follows. */
    void end() { check(strata_channel_end(end_.get(), STRATA_CHANNEL_FOREVER), "strata_channel_end"); }
    /* Ends the stream. True: the receiver has released all messages within the limit in milliseconds, so that close
     * does not wait. */
    bool finish(int64_t limit_ms)
    {
        int rc = strata_channel_finish(end_.get(), limit_ms);
        if (rc == STRATA_ERR_AGAIN || rc == STRATA_ERR_TIMEOUT)
            return false;
        check(rc, "strata_channel_finish");
        return true;
    }
    /* Ends the stream, waits until the receiver has released all messages, and frees the end. */
    void close() { check(end_.close(), "strata_channel_close_send"); }
    /* Abandons the stream without waiting for the receiver, which gets the messages that have arrived, then
     * STRATA_ERR_PEER. */
    void abort() noexcept { (void)end_.abort(); }
    strata_channel_sender_t *handle() const noexcept { return end_.get(); }

  private:
    void check(int rc, const char *call) const { detail::check(rc, call, rank_); }
    using owner_t = detail::owner<strata_channel_sender_t, strata_channel_close_send, strata_channel_abort_send>;
    owner_t end_;
    int rank_ = -1;
};

/* A message in the memory where it landed; the destructor releases it. Messages of a channel may be released in any
 * order. */
class channel_message
{
  public:
    /* n_out: counter of messages of a set's end that are not released yet, or nullptr. */
    channel_message(strata_channel_receiver_t *from, const strata_channel_view_t &view, unsigned *n_out = nullptr)
        : from_(from), view_(view), n_out_(n_out)
    {
        if (n_out_)
            ++*n_out_;
    }
    channel_message(channel_message &&other) noexcept
        : from_(std::exchange(other.from_, nullptr)), view_(other.view_), n_out_(std::exchange(other.n_out_, nullptr))
    {
    }
    channel_message &operator=(channel_message &&other) noexcept
    {
        std::swap(from_, other.from_);
        std::swap(view_, other.view_);
        std::swap(n_out_, other.n_out_);
        return *this;
    }
    channel_message(const channel_message &) = delete;
    channel_message &operator=(const channel_message &) = delete;
    ~channel_message()
    {
        if (from_)
            (void)strata_channel_release(from_, &view_);
        if (n_out_)
            --*n_out_;
    }
    std::size_t size() const noexcept { return view_.first_len + view_.second_len; }
    /* The message as one part, or as two where the ring wraps. */
    const strata_channel_view_t &view() const noexcept { return view_; }
    /* Copies size() bytes to `to`. */
    void copy(void *to) const noexcept
    {
        if (view_.first_len)
            std::memcpy(to, view_.first, view_.first_len);
        if (view_.second_len)
            std::memcpy(static_cast<char *>(to) + view_.first_len, view_.second, view_.second_len);
    }
    /* Returns the message as an object without pointers. Throws STRATA_ERR_TRUNCATE if the size differs. */
    template <class T> T as() const
    {
        static_assert(std::is_trivially_copyable<T>::value, "its bytes were sent");
        T value;
        if (size() != sizeof(value))
            throw channel_error(STRATA_ERR_TRUNCATE, "channel_message::as");
        copy(&value);
        return value;
    }

  private:
    strata_channel_receiver_t *from_;
    strata_channel_view_t view_;
    unsigned *n_out_;
};

/* The receiving end. */
class channel_receiver
{
  public:
    channel_receiver() = default;
    channel_receiver(strata_t *s, int rank, const std::string &name, std::size_t ring = 0) : rank_(rank)
    {
        strata_channel_receiver_t *at = nullptr;
        detail::check(strata_channel_open_recv(s, rank, name.c_str(), ring, &at), "strata_channel_open_recv", rank);
        end_ = owner_t(at);
    }
    /* Waits for the next message; nullopt when the stream has ended. */
    std::optional<channel_message> next()
    {
        strata_channel_view_t view;
        int rc = strata_channel_peek(end_.get(), STRATA_CHANNEL_FOREVER, &view);
        if (detail::check(rc, "strata_channel_peek", rank_) == STRATA_CHANNEL_ENDED)
            return std::nullopt;
        return channel_message(end_.get(), view);
    }
    /* The same as an object; see channel_message::as. */
    template <class T> std::optional<T> take()
    {
        std::optional<channel_message> message = next();
        if (!message)
            return std::nullopt;
        return message->as<T>();
    }
    void close() { detail::check(end_.close(), "strata_channel_close_recv"); }
    strata_channel_receiver_t *handle() const noexcept { return end_.get(); }

  private:
    using owner_t = detail::owner<strata_channel_receiver_t, strata_channel_close_recv>;
    owner_t end_;
    int rank_ = -1;
};

} // namespace strata_cxx

#endif
