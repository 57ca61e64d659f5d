/* The requests of MTCL's asynchronous calls, and errno for a status. */
#ifndef STRATA_MTCL_REQUESTS_HPP
#define STRATA_MTCL_REQUESTS_HPP

#include <cerrno>
#include <memory>
#include <strata/channel_link.h>
#include <vector>

namespace strata_mtcl
{

/* errno for a status. */
inline int error_of(int rc)
{
    switch (rc) {
    case STRATA_ERR_AGAIN:
    case STRATA_ERR_TIMEOUT:
        return EWOULDBLOCK;
    case STRATA_ERR_PEER:
    case STRATA_ERR_UNREACHABLE:
        return ECONNRESET;
    case STRATA_ERR_PROTOCOL:
        return EPROTO;
    case STRATA_ERR_NOMEM:
        return ENOMEM;
    case STRATA_ERR_STATE:
        return EBADF;
    default:
        return EINVAL;
    }
}
inline ssize_t failed(int rc)
{
    errno = error_of(rc);
    return -1;
}

/* A request that was complete when it was made: of a send. */
class sent_request : public MTCL::request_internal
{
  public:
    explicit sent_request(ssize_t n) : n_(n) {}
    int test(int &result) override
    {
        result = 1;
        return 0;
    }
    ssize_t count() const override { return n_; }

  private:
    ssize_t n_;
};

class connection;

/* A receive that was posted. A message longer than its buffer is lost: the request ends with EMSGSIZE, and count says
 * how long it was. */
class posted_receive : public MTCL::request_internal
{
  public:
    posted_receive(connection *c, void *buffer, size_t size) : c_(c), buffer_(buffer), size_(size) {}
    ~posted_receive() override;
    posted_receive(const posted_receive &) = delete;
    posted_receive &operator=(const posted_receive &) = delete;

    int test(int &result) override
    {
        advance(false);
        result = is_over();
        return status();
    }
    int wait() override
    {
        advance(true);
        return status();
    }
    int make_progress() override
    {
        advance(false);
        return 0;
    }
    ssize_t count() const override { return is_over() ? n_ : -1; }
    bool is_over() const { return !c_; }

  private:
    friend class connection;
    void advance(bool blocking);
    int status() const
    {
        if (is_over() && error_)
            errno = error_;
        return is_over() && error_ ? -1 : 0;
    }
    void end(ssize_t n, int error)
    {
        n_ = n;
        error_ = error;
        c_ = nullptr;
    }

    connection *c_; /* NULL: it is over */
    void *buffer_;
    size_t size_;
    ssize_t n_ = -1;
    int error_ = 0;
};

/* The receives of a pool of requests. */
class posted_receives : public MTCL::ConnRequestVector
{
  public:
    explicit posted_receives(size_t hint) { all_.reserve(hint); }
    void add(posted_receive *r) { all_.emplace_back(r); }
    bool testAll() override
    {
        int over = 1;
        for (auto &r : all_)
            if (over)
                (void)r->test(over);
        return over;
    }
    void waitAll() override
    {
        for (auto &r : all_)
            (void)r->wait();
    }
    void reset() override { all_.clear(); }

  private:
    std::vector<std::unique_ptr<posted_receive>> all_;
};

} // namespace strata_mtcl

#endif
