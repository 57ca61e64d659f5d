/* Strata as a protocol of MTCL, the communication library of FastFlow: include it behind MTCL's own `mtcl.hpp`, then
 *   MTCL::Manager::registerType<strata_mtcl::protocol>("STRATA");   before MTCL::Manager::init
 * and use addresses "STRATA:HOST:PORT" or "STRATA:/path". Each connection is a link (strata/channel_link.h) with a
 * channel each way. A message of no bytes is the end of the stream to MTCL: send refuses it. README.md. */
#ifndef STRATA_MTCL_HPP
#define STRATA_MTCL_HPP

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <strata/channel_link.h>
#include <string>
#include <vector>

namespace strata_mtcl
{

/* errno for a status. */
inline ssize_t failed(int rc)
{
    switch (rc) {
    case STRATA_ERR_AGAIN:
    case STRATA_ERR_TIMEOUT:
        errno = EWOULDBLOCK;
        break;
    case STRATA_ERR_PEER:
        errno = ECONNRESET;
        break;
    case STRATA_ERR_NOMEM:
        errno = ENOMEM;
        break;
    default:
        errno = EINVAL;
        break;
    }
    return -1;
}

/* A request that was complete when it was made. */
class done_request : public MTCL::request_internal
{
  public:
    explicit done_request(ssize_t n) : n_(n) {}
    int test(int &result) override
    {
        result = 1;
        return 0;
    }
    ssize_t count() const override { return n_; }

  private:
    ssize_t n_;
};

/* A connection. The thread that has it sends and receives; the manager's thread looks for messages after a yield. */
class connection : public MTCL::Handle
{
  public:
    /* `number` of the other process; `own`: the link is of this connection alone. */
    connection(MTCL::ConnType *parent, strata_channel_link_t *link, bool own)
        : MTCL::Handle(parent), link_(link), own_(own)
    {
    }
    ~connection() override { finish(); }
    connection(const connection &) = delete;
    connection &operator=(const connection &) = delete;

    bool open(int number)
    {
        strata_t *s = strata_channel_link_context(link_);
        return strata_channel_open_recv(s, number, "mtcl", 0, &in_) == STRATA_OK &&
               strata_channel_open_send(s, number, "mtcl", &out_) == STRATA_OK;
    }

    ssize_t sendEOS() override
    {
        int rc = out_ ? strata_channel_end(out_, STRATA_CHANNEL_FOREVER) : STRATA_ERR_STATE;
        return rc == STRATA_OK ? 0 : failed(rc);
    }

    ssize_t send(const void *data, size_t size) override
    {
        if (size == 0 || !out_)
            return failed(STRATA_ERR_ARG);
        int rc = strata_channel_send(out_, data, size, STRATA_CHANNEL_FOREVER);
        if (rc == STRATA_OK)
            rc = strata_channel_flush(out_); /* nobody may call into the context for long */
        return rc == STRATA_OK ? static_cast<ssize_t>(size) : failed(rc);
    }
    ssize_t isend(const void *data, size_t size, MTCL::Request &r) override
    {
        ssize_t n = send(data, size);
        if (n >= 0)
            r.__setInternalR(new done_request(n));
        return n < 0 ? -1 : 0;
    }
    ssize_t isend(const void *data, size_t size, MTCL::RequestPool &) override { return send(data, size) < 0 ? -1 : 0; }

    /* 0: the stream has ended, once and for all. */
    ssize_t probe(size_t &size, const bool blocking = true) override
    {
        int rc = look(blocking ? STRATA_CHANNEL_FOREVER : 0);
        if (rc == STRATA_CHANNEL_ENDED) {
            size = 0;
            return 0;
        }
        if (rc != STRATA_OK)
            return failed(rc);
        size = view_.first_len + view_.second_len;
        return static_cast<ssize_t>(sizeof(size_t));
    }

    ssize_t receive(void *buffer, size_t size) override
    {
        size_t length = 0;
        ssize_t rc = probe(length, true);
        if (rc <= 0)
            return rc;
        if (length > size) {
            errno = EMSGSIZE; /* the message stays */
            return -1;
        }
        std::memcpy(buffer, view_.first, view_.first_len);
        if (view_.second_len)
            std::memcpy(static_cast<char *>(buffer) + view_.first_len, view_.second, view_.second_len);
        held_ = false;
        int released = strata_channel_release(in_, &view_);
        return released == STRATA_OK ? static_cast<ssize_t>(length) : failed(released);
    }
    ssize_t ireceive(void *buffer, size_t size, MTCL::Request &r) override
    {
        ssize_t n = receive(buffer, size);
        if (n >= 0)
            r.__setInternalR(new done_request(n));
        return n < 0 ? -1 : 0;
    }
    ssize_t ireceive(void *buffer, size_t size, MTCL::RequestPool &) override
    {
        return receive(buffer, size) < 0 ? -1 : 0;
    }

    /* Also true at the end of the stream and for an error: the next probe says so. */
    bool peek() override { return look(0) != STRATA_ERR_AGAIN; }

    /* Frees the ends; the other process is told. Once. */
    void finish()
    {
        if (in_) {
            if (held_)
                (void)strata_channel_release(in_, &view_);
            (void)strata_channel_close_recv(in_);
        }
        if (out_)
            (void)strata_channel_close_send(out_);
        in_ = nullptr;
        out_ = nullptr;
        if (own_ && link_)
            (void)strata_channel_link_close(link_);
        link_ = nullptr;
    }

  private:
    /* The next message, which stays where it landed until it is received. */
    int look(int64_t limit_ms)
    {
        if (held_)
            return STRATA_OK;
        if (ended_)
            return STRATA_CHANNEL_ENDED;
        int rc = in_ ? strata_channel_peek(in_, limit_ms, &view_) : STRATA_ERR_STATE;
        held_ = rc == STRATA_OK;
        ended_ = rc == STRATA_CHANNEL_ENDED;
        return rc;
    }

    strata_channel_link_t *link_;
    strata_channel_sender_t *out_ = nullptr;
    strata_channel_receiver_t *in_ = nullptr;
    strata_channel_view_t view_ = {};
    bool own_, held_ = false, ended_ = false;
};

/* The protocol. The manager's thread calls update, any thread the rest. */
class protocol : public MTCL::ConnType
{
  public:
    int init(std::string) override { return 0; }

    int listen(std::string address) override
    {
        strata_config_t config = threaded();
        strata_channel_link_t *link;
        int rc = strata_channel_listen(address.c_str(), &config, &link);
        if (rc != STRATA_OK)
            return static_cast<int>(failed(rc));
        std::lock_guard<std::mutex> guard(lock_);
        listening_.push_back(link);
        return 0;
    }

    /* Tries for `retry` times `timeout` milliseconds, for a second at least, without end below 0. */
    MTCL::Handle *connect(const std::string &address, int retry, unsigned timeout) override
    {
        strata_config_t config = threaded();
        strata_channel_link_t *link;
        int64_t limit = retry < 0 ? STRATA_CHANNEL_FOREVER : std::max<int64_t>(1000, int64_t{retry} * timeout);
        int rc = strata_channel_connect(address.c_str(), limit, &config, &link);
        if (rc != STRATA_OK) {
            (void)failed(rc);
            return nullptr;
        }
        return take(new connection(this, link, true), 0, false);
    }

    /* New connections, then those that were yielded and have something. The manager may call back, so without the lock.
     */
    void update() override
    {
        std::vector<connection *> ready;
        {
            std::lock_guard<std::mutex> guard(lock_);
            for (auto &one : connections_)
                if (one.second && one.first->peek()) {
                    one.second = false;
                    ready.push_back(one.first);
                }
        }
        for (connection *c : ready)
            addinQ(false, c);
        for (size_t i = 0, number; i < n_listening(); i++)
            while (connection *c = accept_one(i, number))
                (void)take(c, static_cast<int>(number), true);
    }

    void notify_yield(MTCL::Handle *h) override
    {
        std::lock_guard<std::mutex> guard(lock_);
        auto found = connections_.find(static_cast<connection *>(h));
        if (found != connections_.end())
            found->second = true;
    }

    void notify_close(MTCL::Handle *h, bool close_wr = true, bool close_rd = true) override
    {
        auto *c = static_cast<connection *>(h);
        {
            std::lock_guard<std::mutex> guard(lock_);
            auto found = connections_.find(c);
            if (found != connections_.end() && close_rd)
                connections_.erase(found);
        }
        if (close_wr && close_rd)
            c->finish();
    }

    void end(bool blockflag = false) override
    {
        std::vector<connection *> left;
        {
            std::lock_guard<std::mutex> guard(lock_);
            for (auto &one : connections_)
                left.push_back(one.first);
        }
        for (connection *c : left)
            setAsClosed(c, blockflag);
        for (strata_channel_link_t *link : listening_)
            (void)strata_channel_link_close(link);
        listening_.clear();
    }

  private:
    static strata_config_t threaded()
    {
        strata_config_t config = STRATA_CONFIG_INIT;
        config.thread_level = STRATA_THREAD_MULTIPLE;
        return config;
    }

    size_t n_listening()
    {
        std::lock_guard<std::mutex> guard(lock_);
        return listening_.size();
    }

    /* The next process at the i-th address, or NULL. */
    connection *accept_one(size_t i, size_t &number)
    {
        strata_channel_link_t *link;
        int n;
        {
            std::lock_guard<std::mutex> guard(lock_);
            link = listening_[i];
        }
        if (strata_channel_accept(link, 0, &n) != STRATA_OK)
            return nullptr;
        number = static_cast<size_t>(n);
        return new connection(this, link, false);
    }

    connection *take(connection *c, int number, bool accepted)
    {
        if (!c->open(number)) {
            delete c;
            errno = ECONNREFUSED;
            return nullptr;
        }
        {
            std::lock_guard<std::mutex> guard(lock_);
            connections_[c] = false;
        }
        if (accepted)
            addinQ(true, c);
        return c;
    }

    std::mutex lock_;
    std::map<connection *, bool> connections_; /* true: yielded, and nothing has come */
    std::vector<strata_channel_link_t *> listening_;
};

} // namespace strata_mtcl

#endif
