/* A connection of MTCL as two channels, one each way. */
#ifndef STRATA_MTCL_CONNECTION_HPP
#define STRATA_MTCL_CONNECTION_HPP

#include <algorithm>
#include <cstring>
#include <deque>
#include <strata/channel_link.h>

#include "strata_mtcl_mover.hpp"
#include "strata_mtcl_requests.hpp"

namespace strata_mtcl
{

/* The thread that has it sends and receives; the manager's thread looks for messages after a yield. */
class connection : public MTCL::Handle
{
  public:
    /* `own`: the link is of this connection alone. */
    connection(MTCL::ConnType *parent, watched *at, bool own, mover &m)
        : MTCL::Handle(parent), mover_(m), at_(at), own_(own)
    {
    }
    ~connection() override { finish(); }
    connection(const connection &) = delete;
    connection &operator=(const connection &) = delete;

    bool open(int number)
    {
        strata_t *s = strata_channel_link_context(at_->link);
        if (strata_channel_open_recv(s, number, "mtcl", 0, &in_) != STRATA_OK ||
            strata_channel_open_send(s, number, "mtcl", &end_.out) != STRATA_OK)
            return false;
        mover_.open(*at_, end_);
        return true;
    }

    ssize_t sendEOS() override
    {
        if (!end_.out)
            return failed(STRATA_ERR_STATE);
        visit here(*at_);
        int rc = strata_channel_end(end_.out, end_limit_);
        return rc == STRATA_OK ? 0 : failed(rc);
    }
    /* How long the end of the stream may wait for room, in milliseconds; the mover tries again. */
    void ends_within(int64_t limit_ms) { end_limit_ = limit_ms; }

    ssize_t send(const void *data, size_t size) override
    {
        if (size == 0 || !end_.out)
            return failed(size == 0 ? STRATA_ERR_ARG : STRATA_ERR_STATE);
        int rc;
        {
            visit here(*at_);
            rc = strata_channel_send(end_.out, data, size, STRATA_CHANNEL_FOREVER);
            if (rc == STRATA_OK)
                rc = strata_channel_flush(end_.out); /* nobody may call into the context for long */
        }
        if (size > STRATA_CHANNEL_SIZE - STRATA_CHANNEL_HEAD && strata_channel_taken(end_.out) == STRATA_ERR_AGAIN)
            mover_.sends_long(end_);
        return rc == STRATA_OK ? static_cast<ssize_t>(size) : failed(rc);
    }
    ssize_t isend(const void *data, size_t size, MTCL::Request &r) override
    {
        ssize_t n = send(data, size);
        if (n >= 0)
            r.__setInternalR(new sent_request(n));
        return n < 0 ? -1 : 0;
    }
    ssize_t isend(const void *data, size_t size, MTCL::RequestPool &) override { return send(data, size) < 0 ? -1 : 0; }

    /* 0: the stream has ended, once and for all. */
    ssize_t probe(size_t &size, const bool blocking = true) override
    {
        if (!advance(blocking)) {
            errno = EWOULDBLOCK;
            return -1;
        }
        int rc = look(blocking ? STRATA_CHANNEL_FOREVER : 0);
        if (rc == STRATA_CHANNEL_ENDED) {
            size = 0;
            return 0;
        }
        if (rc != STRATA_OK)
            return failed(rc);
        size = length();
        return static_cast<ssize_t>(sizeof(size_t));
    }

    ssize_t receive(void *buffer, size_t size) override
    {
        size_t n = 0;
        ssize_t rc = probe(n, true);
        if (rc <= 0)
            return rc;
        if (n > size) {
            errno = EMSGSIZE; /* the message stays */
            return -1;
        }
        int taken = take(buffer, n);
        return taken == STRATA_OK ? static_cast<ssize_t>(n) : failed(taken);
    }
    ssize_t ireceive(void *buffer, size_t size, MTCL::Request &r) override
    {
        r.__setInternalR(post(buffer, size));
        return 0;
    }
    ssize_t ireceive(void *buffer, size_t size, MTCL::RequestPool &pool) override
    {
        pool._getInternalVector<posted_receives>()->add(post(buffer, size));
        return 0;
    }

    /* Also true at the end of the stream and for an error: the next probe says so. */
    bool peek() override { return advance(false) && look(0) != STRATA_ERR_AGAIN; }

    /* Frees the receiving end; the sending end goes when the other process has taken all. Once. */
    void finish()
    {
        for (posted_receive *r : posted_)
            r->end(-1, ECONNRESET);
        posted_.clear();
        if (in_) {
            if (held_)
                (void)strata_channel_release(in_, &view_);
            (void)strata_channel_close_recv(in_);
        }
        if (end_.out || (own_ && at_))
            mover_.close(end_, {end_.out, at_, own_});
        in_ = nullptr;
        end_.out = nullptr;
        at_ = nullptr;
    }

  private:
    friend class posted_receive;

    /* The next message, which stays where it landed until it is received. */
    int look(int64_t limit_ms)
    {
        if (held_)
            return STRATA_OK;
        if (ended_)
            return STRATA_CHANNEL_ENDED;
        if (!in_)
            return STRATA_ERR_STATE;
        visit here(*at_);
        int rc = strata_channel_peek(in_, limit_ms, &view_);
        held_ = rc == STRATA_OK;
        ended_ = rc == STRATA_CHANNEL_ENDED;
        return rc;
    }
    size_t length() const { return view_.first_len + view_.second_len; }

    /* Copies up to n bytes of the message that is there, and gives it back. */
    int take(void *buffer, size_t n)
    {
        size_t first = std::min(n, view_.first_len);
        std::memcpy(buffer, view_.first, first);
        if (n > first)
            std::memcpy(static_cast<char *>(buffer) + first, view_.second, n - first);
        held_ = false;
        return strata_channel_release(in_, &view_);
    }

    posted_receive *post(void *buffer, size_t size)
    {
        auto *r = new posted_receive(this, buffer, size);
        posted_.push_back(r);
        (void)advance(false);
        return r;
    }
    /* Posted receives take messages in their order. Whether none is left. */
    bool advance(bool blocking)
    {
        while (!posted_.empty() && advance_first(blocking))
            posted_.pop_front();
        return posted_.empty();
    }
    bool advance_first(bool blocking)
    {
        posted_receive *r = posted_.front();
        int rc = look(blocking ? STRATA_CHANNEL_FOREVER : 0);
        if (rc == STRATA_ERR_AGAIN)
            return false;
        if (rc == STRATA_OK) {
            size_t n = length();
            rc = take(r->buffer_, std::min(n, r->size_));
            r->end(static_cast<ssize_t>(n), rc != STRATA_OK ? error_of(rc) : n > r->size_ ? EMSGSIZE : 0);
        } else {
            r->end(rc == STRATA_CHANNEL_ENDED ? 0 : -1, rc == STRATA_CHANNEL_ENDED ? 0 : error_of(rc));
        }
        return true;
    }
    /* Up to and with `r`. */
    void advance_to(const posted_receive *r, bool blocking)
    {
        while (!r->is_over() && advance_first(blocking))
            posted_.pop_front();
    }
    void forget(const posted_receive *r) { posted_.erase(std::find(posted_.begin(), posted_.end(), r)); }

    mover &mover_;
    watched *at_;
    sending end_;
    strata_channel_receiver_t *in_ = nullptr;
    strata_channel_view_t view_ = {};
    std::deque<posted_receive *> posted_;
    int64_t end_limit_ = STRATA_CHANNEL_FOREVER;
    bool own_, held_ = false, ended_ = false;
};

inline posted_receive::~posted_receive()
{
    if (c_)
        c_->forget(this);
}
inline void posted_receive::advance(bool blocking)
{
    if (c_)
        c_->advance_to(this, blocking);
}

} // namespace strata_mtcl

#endif
