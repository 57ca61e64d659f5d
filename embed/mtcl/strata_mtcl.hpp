/* Strata as a protocol of MTCL, the communication library of FastFlow: include it behind MTCL's own `mtcl.hpp`, then
 *   MTCL::Manager::registerType<strata_mtcl::protocol>("STRATA");   before MTCL::Manager::init
 * and use addresses "STRATA:HOST:PORT" or "STRATA:/path". Each connection is a link (strata/channel_link.h) with a
 * channel each way. A message of no bytes is the end of the stream to MTCL: send refuses it. README.md. */
#ifndef STRATA_MTCL_HPP
#define STRATA_MTCL_HPP

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "strata_mtcl_connection.hpp"
#include "strata_mtcl_mover.hpp"

namespace strata_mtcl
{

/* The protocol. The manager's thread calls update, any thread the rest. */
class protocol : public MTCL::ConnType
{
  public:
    int init(std::string) override { return 0; }

    int listen(std::string address) override
    {
        strata_channel_link_t *link;
        settings mine;
        int rc = strata_channel_listen(address.c_str(), &mine.config, &link);
        if (rc != STRATA_OK) {
            mine.complain();
            return static_cast<int>(failed(rc));
        }
        std::lock_guard<std::mutex> guard(lock_);
        listening_.push_back(mover_.watch(link));
        return 0;
    }

    /* Tries for `retry` times `timeout` milliseconds to find who listens, once for 0 or less. Who listens has 10 s to
     * accept: with a socket it would not have to. */
    MTCL::Handle *connect(const std::string &address, int retry, unsigned timeout) override
    {
        strata_channel_link_t *link;
        settings mine;
        int64_t limit = std::max<int64_t>(100, int64_t{std::max(retry, 0)} * timeout);
        int rc = strata_channel_connect(address.c_str(), limit, &mine.config, &link);
        if (rc == STRATA_ERR_TIMEOUT)
            rc = strata_channel_connect(address.c_str(), 10000, &mine.config, &link);
        if (rc != STRATA_OK) {
            if (rc != STRATA_ERR_UNREACHABLE)
                mine.complain();
            (void)failed(rc);
            if (rc == STRATA_ERR_UNREACHABLE)
                errno = ECONNREFUSED;
            return nullptr;
        }
        return take(new connection(this, mover_.watch(link), true, mover_), 0, false);
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

    /* With `blockflag` until the other processes have taken everything, else for a second: they get an error then. */
    void end(bool blockflag = false) override
    {
        std::vector<connection *> left;
        {
            std::lock_guard<std::mutex> guard(lock_);
            for (auto &one : connections_)
                left.push_back(one.first);
        }
        for (connection *c : left) {
            c->ends_within(blockflag ? STRATA_CHANNEL_FOREVER : 0);
            setAsClosed(c, blockflag);
        }
        mover_.finish(blockflag);
        std::vector<strata_channel_link_t *> links;
        for (const watched *w : listening_)
            links.push_back(w->link);
        mover_.stop();
        for (strata_channel_link_t *link : links)
            (void)strata_channel_link_close(link);
        listening_.clear();
    }

    /* What the thread behind the connections has done. */
    mover::counts mover_counts() { return mover_.done_so_far(); }

  private:
    struct settings {
        strata_config_t config = STRATA_CONFIG_INIT;
        char text[512] = "";
        settings()
        {
            config.thread_level = STRATA_THREAD_MULTIPLE;
            config.error_text = text;
            config.error_text_size = sizeof(text);
        }
        void complain() const { (void)std::fprintf(stderr, "[MTCL STRATA]: %s\n", text); }
    };

    size_t n_listening()
    {
        std::lock_guard<std::mutex> guard(lock_);
        return listening_.size();
    }

    /* The next process at the i-th address, or NULL. */
    connection *accept_one(size_t i, size_t &number)
    {
        watched *at;
        int n;
        {
            std::lock_guard<std::mutex> guard(lock_);
            at = listening_[i];
        }
        if (strata_channel_accept(at->link, 0, &n) != STRATA_OK)
            return nullptr;
        number = static_cast<size_t>(n);
        return new connection(this, at, false, mover_);
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
    mover mover_;
    std::map<connection *, bool> connections_; /* true: yielded, and nothing has come */
    std::vector<watched *> listening_;
};

} // namespace strata_mtcl

#endif
