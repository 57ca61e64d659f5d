// Embedding Strata in C++17: the program of threads.c. The table is a class; an operation is an object whose storage
// for Strata's request is a vector in it; no exception leaves a callback.
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <unistd.h>
#include <strata/host.h>

namespace
{

constexpr int n_ranks = 4, rounds = 1000;

// What ranks publish, and where they meet.
class Table
{
  public:
    const std::string job_id = "threads-" + std::to_string(getpid());

    int put(int rank, const char *key, const void *blob, size_t length)
    try {
        auto bytes = static_cast<const char *>(blob);
        std::lock_guard lock(mutex);
        entries[{rank, key}].assign(bytes, bytes + length);
        changed.notify_all();
        return STRATA_OK;
    } catch (const std::bad_alloc &) {
        return STRATA_ERR_NOMEM;
    }

    // Waits for the peer: "not found" would mean that it never publishes this.
    int get(int rank, const char *key, void **blob, size_t *length)
    try {
        std::unique_lock lock(mutex);
        const std::pair name(rank, std::string(key));
        changed.wait(lock, [&] { return entries.count(name) || up[rank]; });
        auto found = entries.find(name);
        if (found == entries.end())
            return STRATA_ERR_NOT_FOUND;
        const std::vector<char> &bytes = found->second;
        void *copy = std::malloc(bytes.empty() ? 1 : bytes.size()); // Strata frees it
        if (!copy)
            return STRATA_ERR_NOMEM;
        std::memcpy(copy, bytes.data(), bytes.size());
        *blob = copy;
        *length = bytes.size();
        return STRATA_OK;
    } catch (const std::bad_alloc &) {
        return STRATA_ERR_NOMEM;
    }

    int fence()
    {
        std::unique_lock lock(mutex);
        const unsigned mine = generation;
        if (++arrived == n_ranks) {
            arrived = 0;
            generation++;
            changed.notify_all();
        }
        changed.wait(lock, [&] { return generation != mine; });
        return STRATA_OK;
    }

    // strata_init of the rank has returned: it publishes nothing more.
    void is_up(int rank)
    {
        std::lock_guard lock(mutex);
        up[rank] = true;
        changed.notify_all();
    }

  private:
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::pair<int, std::string>, std::vector<char>> entries;
    bool up[n_ranks] = {};
    int arrived = 0;
    unsigned generation = 0;
};

class Ring;

// An operation of ours, with Strata's request inside.
class Op
{
  public:
    Op(Ring &of, const strata_t *s) : ring(of), room(strata_request_size(s) + strata_request_align(s))
    {
        void *at = room.data();
        size_t space = room.size();
        storage = std::align(strata_request_align(s), strata_request_size(s), at, space);
    }
    Op(const Op &) = delete; // the storage stays where it is
    Op &operator=(const Op &) = delete;

    strata_data_t data()
    {
        strata_data_t d = {};
        d.kind = STRATA_CONTIGUOUS;
        d.length = sizeof(value);
        d.u.buffer = &value;
        return d;
    }

    Ring &ring;
    long value = 0;
    bool busy = false;
    void *storage;

  private:
    std::vector<unsigned char> room;
};

// What a rank does: receives numbers from its left neighbour in callbacks, and sends its own to the right.
class Ring
{
  public:
    Ring(strata_t *of) : s(of), in(*this, of), out(*this, of), rank(strata_rank(of)) {}

    bool run()
    {
        int next = 0;
        unsigned empty = 0;
        receive();
        while (failed == STRATA_OK && (received < rounds || next < rounds || out.busy)) {
            if (next < rounds && !out.busy)
                send(rank * rounds + next++);
            // The embedder's own loop: it would look at its other work here.
            empty = strata_progress(s) ? 0 : empty + 1;
            if (empty)
                strata_host_pause(s, empty);
        }
        if (failed != STRATA_OK)
            std::fprintf(stderr, "rank %d: %s\n", rank, strata_strerror(failed));
        const long left = (rank + n_ranks - 1) % n_ranks;
        return failed == STRATA_OK && sum == left * rounds * rounds + rounds * (rounds - 1) / 2;
    }

  private:
    void note(int rc)
    {
        if (rc < 0 && failed == STRATA_OK)
            failed = rc;
    }

    void send(long value)
    {
        out.value = value;
        out.busy = true;
        strata_data_t data = out.data();
        auto done = [](void *arg, strata_request_t *, const strata_status_t *status) {
            auto *op = static_cast<Op *>(arg);
            op->busy = false; // the storage is ours again
            op->ring.note(status->error);
        };
        int rc = strata_host_isend(strata_world(s), &data, (rank + 1) % n_ranks, 1, STRATA_STANDARD, out.storage, done,
                                   &out);
        if (rc != STRATA_OK) // 1: complete already, `done` is not called
            out.busy = false;
        note(rc);
    }

    void receive()
    {
        strata_data_t data = in.data();
        auto done = [](void *arg, strata_request_t *, const strata_status_t *status) {
            auto *op = static_cast<Op *>(arg);
            Ring &ring = op->ring;
            ring.note(status->error);
            ring.sum += op->value;
            if (++ring.received < rounds && ring.failed == STRATA_OK)
                ring.receive(); // from inside the callback, in the same storage
        };
        note(strata_host_irecv(strata_world(s), &data, (rank + n_ranks - 1) % n_ranks, 1, in.storage, done, &in));
    }

    strata_t *s;
    Op in, out;
    int rank, received = 0, failed = STRATA_OK;
    long sum = 0;
};

// A rank, which is the callbacks' `user`.
struct Rank {
    Table &table;
    int rank;
    bool good = false;

    void run()
    {
        strata_host_t host = {};
        host.size = sizeof(host);
        host.user = this;
        host.rank = rank;
        host.n_ranks = n_ranks;
        host.job_id = table.job_id.c_str();
        host.put = [](void *user, const char *key, const void *blob, size_t length) {
            auto *r = static_cast<Rank *>(user);
            return r->table.put(r->rank, key, blob, length);
        };
        host.get = [](void *user, int of, const char *key, void **blob, size_t *length) {
            return static_cast<Rank *>(user)->table.get(of, key, blob, length);
        };
        host.fence = [](void *user) { return static_cast<Rank *>(user)->table.fence(); };

        strata_config_t config = STRATA_CONFIG_INIT;
        config.host = &host;
        strata_t *s = nullptr;
        int rc = strata_init(&config, &s);
        table.is_up(rank);
        if (rc != STRATA_OK) {
            std::fprintf(stderr, "rank %d: %s\n", rank, strata_strerror(rc));
            std::exit(1); // the others would wait for it
        }
        good = Ring(s).run();
        good = strata_finalize(s) == STRATA_OK && good;
    }
};

} // namespace

int main()
{
    Table table;
    std::vector<Rank> ranks;
    std::vector<std::thread> threads;
    bool good = true;

    for (int i = 0; i < n_ranks; i++)
        ranks.push_back(Rank{table, i});
    for (Rank &r : ranks)
        threads.emplace_back(&Rank::run, &r);
    for (std::thread &t : threads)
        t.join();
    for (const Rank &r : ranks)
        good = good && r.good;
    std::printf("%d ranks, %d numbers around the ring: %s\n", n_ranks, rounds, good ? "ok" : "wrong");
    return good ? 0 : 1;
}
