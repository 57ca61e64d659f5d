/* A small stand-in for MTCL's protocol interface: what embed/mtcl/strata_mtcl.hpp is written to, under the same names,
 * and a manager that does what MTCL's does with a protocol: one thread calls update, connections are queued, yielded,
 * closed. */
#ifndef MTCL_STAND_IN_HPP
#define MTCL_STAND_IN_HPP

#include <atomic>
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

namespace MTCL
{

class request_internal
{
  public:
    virtual ~request_internal() = default;
    virtual int test(int &result) = 0;
    virtual ssize_t count() const { return -1; }
};
class Request
{
  public:
    void __setInternalR(request_internal *r) { r_.reset(r); }
    ssize_t count() const { return r_ ? r_->count() : -1; }

  private:
    std::unique_ptr<request_internal> r_;
};
class RequestPool
{
};

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
    void yield() { parent_->notify_yield(this); }
    void close(bool wr, bool rd)
    {
        if (wr && !closed_wr.exchange(true))
            (void)sendEOS();
        if (rd)
            closed_rd = true;
        parent_->notify_close(this, closed_wr, closed_rd);
    }
    std::atomic<bool> closed_rd{false}, closed_wr{false};

  protected:
    virtual ssize_t sendEOS() = 0;

  private:
    ConnType *parent_;
};

inline void ConnType::setAsClosed(Handle *h, bool wait)
{
    char drained[4096];
    h->close(true, false);
    while (wait && h->receive(drained, sizeof(drained)) > 0)
        ;
    h->close(false, true);
    delete h;
}

/* Of one protocol. */
class Manager
{
  public:
    template <class Protocol> static std::unique_ptr<Manager> start()
    {
        return std::unique_ptr<Manager>(new Manager(std::make_unique<Protocol>()));
    }
    ~Manager()
    {
        over_ = true;
        thread_.join();
        protocol_->end(true);
    }
    ConnType &protocol() { return *protocol_; }
    /* The next connection that is new or has something; whether it is new. */
    std::pair<Handle *, bool> next()
    {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return !ready_.empty(); });
        auto first = ready_.front();
        ready_.pop_front();
        return first;
    }

  private:
    explicit Manager(std::unique_ptr<ConnType> p) : protocol_(std::move(p))
    {
        protocol_->addinQ = [this](bool fresh, Handle *h) {
            std::lock_guard<std::mutex> guard(mutex_);
            ready_.emplace_back(h, fresh);
            changed_.notify_one();
        };
        thread_ = std::thread([this] {
            while (!over_) {
                protocol_->update();
                std::this_thread::sleep_for(std::chrono::microseconds(50));
            }
        });
    }
    std::unique_ptr<ConnType> protocol_;
    std::atomic<bool> over_{false};
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::pair<Handle *, bool>> ready_;
    std::thread thread_;
};

} // namespace MTCL

#endif
