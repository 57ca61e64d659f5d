/* embed/mtcl over the stand-in of MTCL. mtcl_pair serve ADDRESS CLIENTS, mtcl_pair call ADDRESS LETTER: echoes.
 * mtcl_pair survive ADDRESS, mtcl_pair die ADDRESS: a process kills itself. mtcl_pair busy ADDRESS, mtcl_pair leave
 * ADDRESS: one ends without waiting for the other, which takes nothing. */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>
#include "mtcl_stand_in.hpp"
#include "strata_mtcl_registered.hpp"

using MTCL::HandleUser;
using MTCL::Manager;
using strata_mtcl::pace;

#define CHECK(good) ((good) ? (void)0 : (std::fprintf(stderr, "line %d: %s\n", __LINE__, #good), std::exit(1)))

enum { LONG = 300000, FULL = STRATA_CHANNEL_SIZE - 32 /* one that fills a ring over tcp */ };

/* The protocol, with what its mover has done. */
class observed : public strata_mtcl::protocol
{
  public:
    observed() { the = this; }
    inline static observed *the = nullptr;
};

/* Echoes what comes, from whichever connection it comes, until four of each client have ended. A connection that sends
 * 'b' and a letter is the bell of that letter, and is told so: it is rung when a long message of zeros with that letter
 * has come, and when a connection has ended whose last message had it. */
static void serve(const std::string &address, int clients)
{
    CHECK(Manager::listen("STRATA:nowhere") == -1 && errno == EINVAL);
    CHECK(Manager::listen(address) == 0);
    std::puts("listens");
    std::fflush(stdout);
    std::vector<char> buffer;
    std::map<char, HandleUser> bells;
    std::map<size_t, char> letters; /* of connections */
    for (int ended = 0; ended < 4 * clients;) {
        HandleUser handle = Manager::getNext();
        size_t size = 0, id = handle.getID();
        while (handle.isValid() && handle.probe(size, false) > 0) {
            buffer.resize(size);
            CHECK(handle.receive(buffer.data(), size) == static_cast<ssize_t>(size));
            letters[id] = buffer.back();
            if (size == 2 && buffer[0] == 'b') {
                CHECK(handle.send("b", 1) == 1);
                bells[buffer[1]] = std::move(handle);
            } else if (size == LONG && buffer[0] == 0)
                CHECK(bells.at(buffer.back()).send("l", 1) == 1);
            else
                CHECK(handle.send(buffer.data(), size) == static_cast<ssize_t>(size));
        }
        if (!handle.isValid() || !handle.isClosed())
            continue;
        if (bells.count(letters[id]))
            CHECK(bells.at(letters[id]).send("e", 1) == 1); /* nobody has taken its answer yet */
        letters.erase(id);
        ended++;
    }
    Manager::finalize(true);
    std::puts("served");
}

static HandleUser connected(const std::string &address)
{
    HandleUser h = Manager::connect(address, 60, 1000);
    CHECK(h.isValid());
    return h;
}

static void blocking_calls(const std::string &address)
{
    HandleUser h = connected(address);
    size_t size;
    std::vector<char> data(LONG), back(LONG);
    CHECK(h.probe(size, false) == -1 && errno == EWOULDBLOCK);
    CHECK(h.send(data.data(), 0) == -1 && errno == EINVAL);
    for (size_t n : {2, 10, 1000, 70000, 299999}) {
        std::memset(data.data(), static_cast<int>(n | 1), n);
        CHECK(h.send(data.data(), n) == static_cast<ssize_t>(n));
        CHECK(h.probe(size) > 0 && size == n);
        CHECK(h.receive(back.data(), n - 1) == -1 && errno == EMSGSIZE);
        CHECK(h.receive(back.data(), back.size()) == static_cast<ssize_t>(n));
        CHECK(std::memcmp(data.data(), back.data(), n) == 0);
    }
    h.close();
    CHECK(h.send(data.data(), 1) == -1 && errno == EBADF);
    CHECK(h.probe(size) == 0 && h.receive(back.data(), back.size()) == 0);
}

/* Receives are posted before their messages come, end in order, and lose a message that is too long. */
static void requests(const std::string &address)
{
    HandleUser h = connected(address);
    char first[8], second[8], data[100];
    std::memset(data, 'x', sizeof(data));
    {
        MTCL::Request a, b, sent;
        size_t size;
        CHECK(h.ireceive(first, sizeof(first), a) == 0 && h.ireceive(second, sizeof(second), b) == 0);
        CHECK(!MTCL::test(b) && !MTCL::test(a) && b.count() == -1);
        CHECK(h.probe(size, false) == -1 && errno == EWOULDBLOCK);
        CHECK(h.isend(data, sizeof(data), sent) == 0 && MTCL::test(sent) && sent.count() == sizeof(data));
        CHECK(h.isend("abc", 4, sent) == 0);
        CHECK(b.wait() == 0 && b.count() == 4 && std::strcmp(second, "abc") == 0);
        CHECK(a.wait() == -1 && errno == EMSGSIZE && a.count() == sizeof(data) && MTCL::test(a));
        MTCL::Request forgotten;
        CHECK(h.ireceive(first, sizeof(first), forgotten) == 0);
    }
    MTCL::RequestPool pool(2);
    for (int round = 0; round < 3; round++) {
        CHECK(h.isend("one", 4, pool) == 0 && h.isend("two", 4, pool) == 0);
        CHECK(h.ireceive(first, sizeof(first), pool) == 0 && h.ireceive(second, sizeof(second), pool) == 0);
        pool.waitAll();
        CHECK(pool.testAll() && std::strcmp(first, "one") == 0 && std::strcmp(second, "two") == 0);
        pool.reset();
    }
    MTCL::Request last, unused;
    CHECK(h.ireceive(first, sizeof(first), last) == 0);
    h.close();
    CHECK(last.wait() == 0 && last.count() == 0);
    CHECK(h.ireceive(first, sizeof(first), unused) == 0 && MTCL::test(unused) && unused.count() == 0);
}

/* Long messages to and fro wake no thread each: while a user's thread waits it makes the progress. Each time that the
 * mover is awakened from a rest, it goes round for a while before it rests again, however long a round takes. */
static void ping_pong(const std::string &address)
{
    constexpr int messages = 300;
    HandleUser h = connected(address);
    std::vector<char> data(70000, 'p'), back(data.size());
    auto before = observed::the->mover_counts();
    for (int i = 0; i < messages; i++) {
        data[0] = static_cast<char>(i | 1);
        CHECK(h.send(data.data(), data.size()) == static_cast<ssize_t>(data.size()));
        CHECK(h.receive(back.data(), back.size()) == static_cast<ssize_t>(back.size()));
        CHECK(data == back);
    }
    auto after = observed::the->mover_counts();
    uint64_t awakened = after.awakened - before.awakened, rounds = after.rounds - before.rounds;
    CHECK(awakened <= 1 + rounds / pace::watchful);
    h.close();
    size_t size;
    CHECK(h.probe(size) == 0);
}

/* The mover's pauses: it goes round slowly while long messages are sent, quickly while something moves, and rests some
 * rounds after the last one. */
static void pauses()
{
    pace p;
    CHECK(p.round(false, false) == pace::resting);
    for (p.at_once(); p.round(false, true) < pace::alert;)
        ;
    for (unsigned i = 0; i < 1000; i++)
        CHECK(p.round(false, true) == pace::alert);
    CHECK(p.round(true, false) == pace::soonest && p.round(false, true) == 2 * pace::soonest);
    unsigned rounds = 1;
    while (p.round(false, false) <= pace::alert)
        rounds++;
    CHECK(rounds == pace::watchful);
    while (p.round(false, false) < pace::resting)
        ;
    p.at_once();
    CHECK(p.round(false, false) == 2 * pace::soonest);
}

/* Neither a long message nor a close needs another call on the connection, at either end. */
static void left_alone(const std::string &address, char letter)
{
    HandleUser bell = connected(address), h = connected(address);
    char c, made[2] = {'b', letter}, answer[2];
    size_t size;
    CHECK(bell.send(made, 2) == 2);
    CHECK(bell.receive(&c, 1) == 1 && c == 'b'); /* connections are served in any order */
    {
        std::vector<char> zeros(LONG);
        zeros.back() = letter;
        CHECK(h.send(zeros.data(), LONG) == LONG);
        CHECK(bell.receive(&c, 1) == 1 && c == 'l');
    }
    made[0] = 'a';
    CHECK(h.send(made, 2) == 2);
    h.close();
    CHECK(bell.receive(&c, 1) == 1 && c == 'e');
    CHECK(h.receive(answer, 2) == 2 && std::memcmp(answer, made, 2) == 0);
    CHECK(h.probe(size) == 0);
}

static void call(const std::string &address, char letter)
{
    CHECK(!Manager::connect(address + "-nobody").isValid() && errno == ECONNREFUSED);
    blocking_calls(address);
    requests(address);
    ping_pong(address);
    left_alone(address, letter);
    Manager::finalize(true);
    std::puts("all came back");
}

static void listen_at(const std::string &address)
{
    CHECK(Manager::listen(address) == 0);
    std::puts("listens");
    std::fflush(stdout);
}

/* The other process goes away after a message: what has come is there, then each call says so. */
static void survive(const std::string &address)
{
    char c;
    listen_at(address);
    HandleUser h = Manager::getNext();
    CHECK(h.receive(&c, 1) == 1 && c == 'x');
    CHECK(h.send("y", 1) == 1);
    CHECK(h.receive(&c, 1) == -1 && errno == ECONNRESET);
    MTCL::Request r;
    CHECK(h.ireceive(&c, 1, r) == 0 && r.wait() == -1 && errno == ECONNRESET);
    while (h.send("y", 1) == 1)
        ;
    CHECK(errno == ECONNRESET);
    size_t size;
    CHECK(h.probe(size) == 0 && h.isClosed());
    Manager::finalize(true);
    std::puts("survived");
}
static void die(const std::string &address)
{
    HandleUser h = connected(address);
    char c;
    CHECK(h.send("x", 1) == 1 && h.receive(&c, 1) == 1);
    (void)std::raise(SIGKILL);
}

/* Takes nothing of two connections until the third says so: then what has come, and the error. */
static void busy(const std::string &address)
{
    char c;
    std::vector<char> data(LONG);
    listen_at(address);
    HandleUser two[2];
    for (HandleUser &one : two) {
        one = Manager::getNext();
        CHECK(one.send("k", 1) == 1);
    }
    HandleUser third = Manager::getNext();
    CHECK(third.receive(&c, 1) == 1 && c == 'g');
    for (HandleUser &one : two) {
        ssize_t n = one.receive(data.data(), LONG);
        CHECK(n == 1 || n == FULL);
        ssize_t next = one.receive(data.data(), LONG);
        CHECK((next == -1 && errno == ECONNRESET) || (next == 0 && n == FULL)); /* sm has room for an end */
    }
    CHECK(third.send("d", 1) == 1);
    size_t size;
    CHECK(third.probe(size) == 0);
    third.close();
    Manager::finalize(true);
    std::puts("was busy");
}
/* Ends with a long message that nobody takes, and a ring without room for the stream's end; then begins again. */
static void leave(const std::string &address)
{
    char c;
    {
        HandleUser h = connected(address), full = connected(address);
        std::vector<char> zeros(LONG);
        CHECK(h.send("x", 1) == 1 && h.send(zeros.data(), LONG) == LONG);
        CHECK(full.send(zeros.data(), FULL) == FULL);
        CHECK(h.receive(&c, 1) == 1 && full.receive(&c, 1) == 1);
        Manager::finalize(false);
    }
    CHECK(Manager::init("again") == 0);
    HandleUser h = connected(address);
    CHECK(h.send("g", 1) == 1 && h.receive(&c, 1) == 1 && c == 'd');
    h.close();
    Manager::finalize(true);
    std::puts("left");
}

int main(int argc, char **argv)
{
    static const std::map<std::string, void (*)(const std::string &)> cases = {
        {"survive", survive}, {"die", die}, {"busy", busy}, {"leave", leave}};
    pauses();
    Manager::registerType<observed>("STRATA");
    CHECK(argc >= 3 && Manager::init(argv[1]) == 0);
    if (argc == 3)
        cases.at(argv[1])(argv[2]);
    else if (std::strcmp(argv[1], "serve") == 0)
        serve(argv[2], std::atoi(argv[3]));
    else
        call(argv[2], argv[3][0]);
    return 0;
}
