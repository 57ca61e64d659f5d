/* A small stand-in for MTCL: the interface that embed/mtcl is written to, under MTCL's names, and a manager that does
 * with a protocol what MTCL's does. One thread calls update; connections are queued, counted, yielded and closed as
 * there; a new connection is taken after its first message. Left out: labels, teams, proxies, several protocols. */
#ifndef MTCL_STAND_IN_HPP
#define MTCL_STAND_IN_HPP

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <sys/types.h>
#include <thread>
#include <utility>
#include <vector>

namespace MTCL
{

/* ---- requests ---- */

class request_internal
{
  public:
    virtual ~request_internal() = default;
    virtual int test(int &result) = 0;
    virtual int wait() { return 0; }
    virtual int make_progress() { return 0; }
    virtual ssize_t count() const { return -1; }
};
class Request
{
  public:
    void __setInternalR(request_internal *r) { r_.reset(r); }
    int wait() const { return r_ ? r_->wait() : 0; }
    ssize_t count() const { return r_ ? r_->count() : -1; }

  private:
    friend bool test(const Request &r);
    std::unique_ptr<request_internal> r_;
};
inline bool test(const Request &r)
{
    int over = 1;
    if (r.r_)
        (void)r.r_->test(over);
    return over;
}
class ConnRequestVector
{
  public:
    virtual ~ConnRequestVector() = default;
    virtual bool testAll() = 0;
    virtual void waitAll() = 0;
    virtual void reset() = 0;
};
class RequestPool
{
  public:
    explicit RequestPool(size_t hint = 1) : hint_(hint) {}
    void waitAll() { of_protocol_ ? of_protocol_->waitAll() : void(); }
    bool testAll() { return !of_protocol_ || of_protocol_->testAll(); }
    void reset() { of_protocol_ ? of_protocol_->reset() : void(); }
    template <class T> T *_getInternalVector()
    {
        if (!of_protocol_)
            of_protocol_.reset(new T(hint_));
        return static_cast<T *>(of_protocol_.get());
    }

  private:
    size_t hint_;
    std::unique_ptr<ConnRequestVector> of_protocol_;
};

/* ---- protocols and their handles ---- */

class Handle;
class ConnType
{
  public:
    virtual ~ConnType() = default;
    virtual int init(std::string) = 0;
    virtual int listen(std::string) = 0;
    virtual Handle *connect(const std::string &, int retry, unsigned timeout) = 0;
    virtual void update() = 0;
    virtual void notify_yield(Handle *) = 0;
    virtual void notify_close(Handle *, bool close_wr = true, bool close_rd = true) = 0;
    virtual void end(bool wait = false) = 0;

  protected:
    friend class Manager;
    static void setAsClosed(Handle *, bool wait);
    std::function<void(bool, Handle *)> addinQ;
};

class Handle
{
  public:
    explicit Handle(ConnType *parent) : parent_(parent) {}
    virtual ~Handle() = default;
    virtual ssize_t send(const void *, size_t) = 0;
    virtual ssize_t isend(const void *, size_t, Request &) = 0;
    virtual ssize_t isend(const void *, size_t, RequestPool &) = 0;
    virtual ssize_t probe(size_t &, const bool blocking = true) = 0;
    virtual ssize_t receive(void *, size_t) = 0;
    virtual ssize_t ireceive(void *, size_t, Request &) = 0;
    virtual ssize_t ireceive(void *, size_t, RequestPool &) = 0;
    virtual bool peek() = 0;
    void yield()
    {
        if (!closed_rd)
            parent_->notify_yield(this);
    }
    /* Deletes the handle when both sides are closed and no user has it. */
    void close(bool wr, bool rd)
    {
        if (wr && !closed_wr.exchange(true))
            (void)sendEOS();
        if (rd)
            closed_rd = true;
        parent_->notify_close(this, closed_wr, closed_rd);
        if (users == 0 && closed_rd && closed_wr)
            delete this;
    }
    std::atomic<bool> closed_rd{false}, closed_wr{false};
    std::atomic<int> users{0};

  protected:
    virtual ssize_t sendEOS() = 0;

  private:
    ConnType *parent_;
};

inline void ConnType::setAsClosed(Handle *h, bool wait)
{
    std::vector<char> drained;
    size_t n = 0;
    if (!h->closed_wr)
        h->close(true, false);
    while (wait && !h->closed_rd && h->probe(n) > 0) {
        drained.resize(n);
        (void)h->receive(drained.data(), n);
    }
    h->close(false, true);
}

/* What a user has of a connection. */
class HandleUser
{
  public:
    HandleUser() = default;
    HandleUser(Handle *h, bool readable, bool fresh) : h_(h), readable_(readable), fresh_(fresh)
    {
        if (h)
            h->users++;
    }
    HandleUser(HandleUser &&o) noexcept { *this = std::move(o); }
    HandleUser &operator=(HandleUser &&o) noexcept
    {
        std::swap(h_, o.h_);
        std::swap(readable_, o.readable_);
        std::swap(fresh_, o.fresh_);
        return *this;
    }
    ~HandleUser()
    {
        if (!h_)
            return;
        if (readable_)
            yield();
        if (--h_->users == 0 && h_->closed_rd && h_->closed_wr)
            delete h_;
    }
    bool isValid() const { return h_; }
    size_t getID() const { return reinterpret_cast<size_t>(h_); }
    bool isNewConnection() const { return fresh_; }
    bool isClosed() const { return h_->closed_rd && h_->closed_wr; }
    void yield()
    {
        readable_ = fresh_ = false;
        h_->yield();
    }
    ssize_t send(const void *data, size_t n)
    {
        errno = EBADF;
        return h_->closed_wr ? -1 : h_->send(data, n);
    }
    template <class R> ssize_t isend(const void *data, size_t n, R &r) { return h_->isend(data, n, r); }
    /* Closes both sides when the stream has ended. */
    ssize_t probe(size_t &n, bool blocking = true)
    {
        if (!readable_ || h_->closed_rd)
            return 0;
        ssize_t rc = h_->probe(n, blocking);
        if (rc == 0 || (rc < 0 && errno == ECONNRESET)) {
            readable_ = false;
            h_->close(true, true);
            return 0;
        }
        return rc;
    }
    ssize_t receive(void *buffer, size_t n) { return !readable_ || h_->closed_rd ? 0 : h_->receive(buffer, n); }
    template <class R> ssize_t ireceive(void *buffer, size_t n, R &r) { return h_->ireceive(buffer, n, r); }
    void close() { h_->close(true, false); }

  private:
    Handle *h_ = nullptr;
    bool readable_ = false, fresh_ = false;
};

/* ---- the manager, of one protocol ---- */

class Manager
{
  public:
    template <class Protocol> static void registerType(const std::string &name)
    {
        name_ = name + ":";
        protocol_ = std::make_unique<Protocol>();
        protocol_->addinQ = [](bool fresh, Handle *h) {
            int kind;
            if (fresh && h->receive(&kind, sizeof(kind)) <= 0) {
                h->close(true, true);
                return;
            }
            std::lock_guard<std::mutex> guard(mutex_);
            ready_.emplace_back(h, true, fresh);
            changed_.notify_one();
        };
    }
    static int init(const std::string &name)
    {
        over_ = false;
        thread_ = std::thread([] {
            for (; !over_; std::this_thread::sleep_for(std::chrono::microseconds(50)))
                protocol_->update();
        });
        return protocol_->init(name);
    }
    static int listen(const std::string &address) { return protocol_->listen(address.substr(name_.size())); }
    static HandleUser connect(const std::string &address, int retry = -1, unsigned timeout = 0)
    {
        int kind = 0;
        Handle *h = protocol_->connect(address.substr(name_.size()), retry, timeout);
        if (h)
            (void)h->send(&kind, sizeof(kind));
        return HandleUser(h, true, true);
    }
    /* The next connection that is new or has something. */
    static HandleUser getNext()
    {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [] { return !ready_.empty(); });
        HandleUser first = std::move(ready_.front());
        ready_.pop_front();
        return first;
    }
    static void finalize(bool wait = false)
    {
        over_ = true;
        thread_.join();
        protocol_->end(wait);
    }

  private:
    inline static std::string name_;
    inline static std::unique_ptr<ConnType> protocol_;
    inline static std::atomic<bool> over_{false};
    inline static std::mutex mutex_;
    inline static std::condition_variable changed_;
    inline static std::deque<HandleUser> ready_;
    inline static std::thread thread_;
};

} // namespace MTCL

#endif
