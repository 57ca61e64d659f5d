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
/* What was sent before has arrived when this returns at both. */
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

static const struct {
    const char *name;
    void (*body)(strata_t *s, int rank);
} cases[] = {{"set_ends", set_ends}, {"set_dies", set_dies}, {"any_order", any_order}};

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
