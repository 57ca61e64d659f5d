/* Channels in C++17 whose ends go in many ways: channel_ends CASE, for tests/integration/channel_ends_test.sh. In a
 * case of `dies` rank 1 kills itself. Each other rank prints "rank R: ok". */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <strata/channel_patterns.hpp>
using namespace strata_cxx;

#define CHECK(good) ((good) ? (void)0 : (std::fprintf(stderr, "line %d: %s\n", __LINE__, #good), std::_Exit(1)))

template <class Call> static int thrown(Call &&call)
{
    try {
        call();
    } catch (const channel_error &e) {
        return e.status();
    }
    return STRATA_OK;
}
/* Whose loss a call throws; -1: nobody's. */
template <class Call> static int lost(Call &&call)
{
    try {
        call();
    } catch (const channel_error &e) {
        CHECK(e.status() == STRATA_ERR_PEER);
        return e.id();
    }
    return -1;
}
/* Messages sent before have arrived when this returns at both. */
static void meet(strata_t *s, int other)
{
    char byte = 0;
    for (int i = 0; i < 10; i++)
        CHECK(strata_sendrecv(strata_world(s), &byte, 1, other, 1, &byte, 1, other, 1, nullptr) == STRATA_OK);
}
[[noreturn]] static void die()
{
    (void)std::raise(SIGKILL);
    std::abort();
}

/* The last message of a set is held while its stream ends: the end stays, and its sender is told that all was taken. */
static void set_ends(strata_t *s, int rank)
{
    if (rank == 1) {
        channel_sender out(s, 0, "x");
        for (int i = 0; i < 3; i++)
            out.send(i);
        out.close();
    } else {
        channel_gather in(s, {1}, "x");
        std::optional<std::pair<int, channel_message>> got;
        int n = 0;
        while ((got = in.next()))
            CHECK(got->second.as<int>() == n++);
        CHECK(n == 3 && in.size() == 0);
    }
}
/* The same with a sender that dies. */
static void set_dies(strata_t *s, int rank)
{
    if (rank == 1) {
        channel_sender out(s, 0, "x");
        for (int i = 0; i < 3; i++)
            out.send(i);
        out.flush();
        meet(s, 0);
        die();
    }
    channel_gather in(s, {1}, "x");
    std::optional<std::pair<int, channel_message>> got;
    int n = 0;
    meet(s, 1);
    CHECK(thrown([&] {
              while ((got = in.next()))
                  CHECK(got->second.as<int>() == n++);
          }) == STRATA_ERR_PEER);
    CHECK(n == 3 && got->second.as<int>() == 2);
    CHECK(!in.next() && in.size() == 0);
}

/* Two locals are destroyed in the reverse order of their messages: the older one stays whole, its room is not used, and
 * the channel goes on to its end. */
static void any_order(strata_t *s, int rank)
{
    const int rounds = 100;
    if (rank == 0) {
        channel_sender out(s, 1, "x");
        for (int i = 0; i < 4 * rounds; i++)
            out.send(i);
        out.close();
        return;
    }
    channel_receiver in(s, 0, "x", 1024);
    for (int i = 0; i < 4 * rounds; i += 4) {
        auto a = in.next();
        {
            auto b = in.next(), c = in.next();
            CHECK(b->as<int>() == i + 1 && c->as<int>() == i + 2);
        }
        auto d = in.next();
        CHECK(d->as<int>() == i + 3 && a->as<int>() == i);
    }
    CHECK(!in.next());
}

/* ---- patterns of which rank 1 dies ---- */

static void await_death(strata_t *s)
{
    char byte;
    CHECK(strata_recv(strata_world(s), &byte, 1, 1, 2, nullptr) == STRATA_ERR_PEER);
}
/* The other receiver gets the message, and the end of its stream before the scatter is destroyed. */
static void scatter_dies(strata_t *s, int rank)
{
    if (rank == 0) {
        channel_scatter to(s, {1, 2}, "x");
        int seven = 7;
        meet(s, 1);
        await_death(s);
        CHECK(lost([&] { to.broadcast(&seven, sizeof(seven)); }) == 1);
        CHECK(lost([&] { to.close(); }) == 1);
        meet(s, 2);
        return;
    }
    channel_receiver in(s, 0, "x");
    if (rank == 1) {
        meet(s, 0);
        die();
    }
    CHECK(in.take<int>() == 7 && !in.next());
    meet(s, 0);
}
/* All other workers get the end of their streams, though none waits behind the one that is dead. */
static void farm_close_dies(strata_t *s, int rank)
{
    if (rank == 0) {
        channel_farm farm(s, {2, 1, 3}, "f");
        meet(s, 1);
        await_death(s);
        CHECK(lost([&] { farm.close(); }) == 1);
        meet(s, 2);
        meet(s, 3);
        return;
    }
    channel_worker worker(s, 0, "f");
    if (rank == 1) {
        meet(s, 0);
        die();
    }
    CHECK(!worker.next());
    meet(s, 0);
}
/* Worker 1 dies with tasks at hand. The error says so, once from the farm; its tasks are given again, and all are done.
 */
static void farm_dies(strata_t *s, int rank)
{
    const int n_tasks = 200;
    if (rank > 0) {
        channel_sender results(s, 0, "results");
        channel_worker worker(s, 0, "f", 3);
        if (rank == 1)
            meet(s, 0); /* it has asked */
        for (int n = 0; auto task = worker.take<int>(); n++) {
            if (rank == 1 && n == 1)
                die();
            results.send(*task);
            results.flush();
        }
        results.close();
        return;
    }
    channel_farm farm(s, {1, 2, 3}, "f");
    channel_gather results(s, {1, 2, 3}, "results");
    std::vector<int> by(n_tasks);
    std::vector<bool> done(n_tasks);
    int n_lost = 0, n_done = 0;
    auto give = [&](int task) {
        while (lost([&] { by.at(task) = farm.send(task); }) == 1)
            n_lost++;
    };
    auto look = [&] { /* whether nobody was lost */
                      int who = lost([&] {
                          int task = results.next()->second.as<int>();
                          n_done += !done.at(task);
                          done.at(task) = true;
                      });
                      CHECK(who == -1 || who == 1);
                      return who == -1;
    };
    meet(s, 1);
    for (int task = 0; task < n_tasks; task++)
        give(task);
    while (look())
        ;
    for (int task = 0; task < n_tasks; task++)
        if (by.at(task) == 1 && !done.at(task))
            give(task);
    while (n_done < n_tasks)
        CHECK(look());
    n_lost += lost([&] { farm.close(); }) == 1;
    CHECK(n_lost == 1 && !results.next());
}
/* The emitter dies: its worker gets all tasks that have come. */
static void emitter_dies(strata_t *s, int rank)
{
    const int ahead = 3;
    if (rank == 1) {
        channel_farm farm(s, {0}, "f");
        for (int i = 0; i < ahead; i++)
            farm.send(i);
        meet(s, 0);
        die();
    }
    channel_worker worker(s, 1, "f", ahead);
    meet(s, 1);
    await_death(s);
    for (int i = 0; i < ahead; i++)
        CHECK(worker.take<int>() == i);
    CHECK(lost([&] { (void)worker.next(); }) == 1);
}

/* ---- exceptions ---- */

/* A sender that an exception destroys does not wait for its receiver, which holds a message, and nor does one that is
 * aborted. */
static void sender_unwinds(strata_t *s, int rank)
{
    for (bool aborts : {false, true}) {
        if (rank == 0) {
            try {
                channel_sender out(s, 1, "x");
                out.send(1);
                out.flush();
                meet(s, 1);
                if (aborts)
                    out.abort();
                else
                    throw std::runtime_error("on purpose");
            } catch (const std::runtime_error &) {
            }
            meet(s, 1);
        } else {
            channel_receiver in(s, 0, "x");
            meet(s, 0);
            auto got = in.next();
            meet(s, 0);
            CHECK(lost([&] { (void)in.next(); }) == 0);
            CHECK(got->as<int>() == 1);
        }
    }
}
/* A master whose one worker has died leaves while the other is in a send to it, and waits for its next task. */
static void master_unwinds_dies(strata_t *s, int rank)
{
    if (rank == 0) {
        CHECK(lost([&] {
                  channel_scatter tasks(s, {1, 2}, "tasks");
                  channel_gather results(s, {1, 2}, "results");
                  while (results.next())
                      ;
              }) == 1);
        return;
    }
    channel_sender results(s, 0, "results");
    channel_receiver tasks(s, 0, "tasks");
    results.send(rank);
    results.flush();
    if (rank == 1)
        die();
    CHECK(lost([&] {
              for (;;)
                  results.send(rank);
          }) == 0);
    CHECK(lost([&] { (void)tasks.next(); }) == 0);
}

static const struct {
    const char *name;
    void (*body)(strata_t *s, int rank);
} cases[] = {{"set_ends", set_ends},
             {"set_dies", set_dies},
             {"any_order", any_order},
             {"scatter_dies", scatter_dies},
             {"farm_close_dies", farm_close_dies},
             {"farm_dies", farm_dies},
             {"emitter_dies", emitter_dies},
             {"sender_unwinds", sender_unwinds},
             {"master_unwinds_dies", master_unwinds_dies}};

int main(int argc, char **argv)
{
    strata_t *s;
    CHECK(argc == 2 && strata_init(nullptr, &s) == STRATA_OK);
    int rank = strata_rank(s);
    for (auto &one : cases)
        if (std::strcmp(one.name, argv[1]) == 0)
            one.body(s, rank);
    (void)strata_finalize(s); /* may say that not everybody took part */
    std::printf("rank %d: ok\n", rank);
    return 0;
}
