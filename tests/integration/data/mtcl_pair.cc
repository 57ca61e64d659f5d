/* strata_mtcl over the stand-in of MTCL: mtcl_pair serve ADDRESS CLIENTS, mtcl_pair call ADDRESS. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include "mtcl_stand_in.hpp"
#include "strata_mtcl.hpp"

#define CHECK(good) ((good) ? (void)0 : (std::fprintf(stderr, "line %d: %s\n", __LINE__, #good), std::exit(1)))

/* Echoes what comes, from whichever connection it comes, until all have ended. */
static void serve(const char *address, int clients)
{
    auto manager = MTCL::Manager::start<strata_mtcl::protocol>();
    CHECK(manager->protocol().listen("nowhere") == -1 && errno == EINVAL);
    CHECK(manager->protocol().listen(address) == 0);
    std::puts("listens");
    std::fflush(stdout);
    std::vector<char> buffer;
    for (int fresh = 0, ended = 0; ended < clients;) {
        auto [handle, is_new] = manager->next();
        size_t size = 0;
        fresh += is_new;
        while (handle->probe(size, is_new) > 0) {
            buffer.resize(size);
            CHECK(handle->receive(buffer.data(), size) == static_cast<ssize_t>(size));
            CHECK(handle->send(buffer.data(), size) == static_cast<ssize_t>(size));
            if (is_new)
                break;
        }
        if (!is_new && size == 0 && handle->probe(size, false) == 0) {
            handle->close(true, true); /* as MTCL does when a probe finds the end */
            delete handle;
            ended++;
            continue;
        }
        CHECK(fresh <= clients);
        handle->yield();
    }
    std::puts("served");
}

static void call(const char *address)
{
    auto manager = MTCL::Manager::start<strata_mtcl::protocol>();
    MTCL::Handle *h = manager->protocol().connect(address, 60, 1000);
    CHECK(h);
    size_t size;
    std::vector<char> data(300000), back(300000);
    CHECK(h->probe(size, false) == -1 && errno == EWOULDBLOCK);
    CHECK(!h->peek());
    CHECK(h->send(data.data(), 0) == -1 && errno == EINVAL);
    for (size_t n : {1, 10, 1000, 70000, 300000}) {
        MTCL::Request sent, came;
        std::memset(data.data(), static_cast<int>(n), n);
        CHECK(h->isend(data.data(), n, sent) == 0 && sent.count() == static_cast<ssize_t>(n));
        CHECK(h->probe(size) > 0 && size == n);
        CHECK(h->peek());
        CHECK(h->receive(back.data(), n - 1) == -1 && errno == EMSGSIZE);
        CHECK(h->ireceive(back.data(), back.size(), came) == 0 && came.count() == static_cast<ssize_t>(n));
        CHECK(std::memcmp(data.data(), back.data(), n) == 0);
    }
    h->close(true, false);
    CHECK(h->probe(size) == 0 && h->receive(back.data(), back.size()) == 0);
    std::puts("all came back");
}

int main(int argc, char **argv)
{
    if (argc == 4)
        serve(argv[2], std::atoi(argv[3]));
    else if (argc == 3)
        call(argv[2]);
    return 0;
}
