#!/bin/bash
# Nodes of oneTBB's flow graph that cross processes (strata/channel_flow.hpp): the examples of docs/examples/flow_graph; an arena of
# one thread; a message of another type; a sender that dies.
. "$STRATA_SOURCE/tests/integration/lib.sh"
command -v g++ >/dev/null || { echo "SKIP: no g++"; exit 77; }
pkg-config --exists tbb 2>/dev/null || { echo "SKIP: no oneTBB (Debian: libtbb-dev)"; exit 77; }

read -ra tbb <<<"$(pkg-config --cflags --libs tbb | tr '\n' ' ')"
for example in farm pipeline; do
    build_cxx "$STRATA_SOURCE/docs/examples/flow_graph/$example.cc" "$example" "${tbb[@]}"
    for n in 2 5; do
        expect_status 0 strata-run -n "$n" "$work/$example"
        out_has ': ok$'
    done
    expect_status 1 strata-run -n 1 "$work/$example"
    err_has "it takes"
done

cat >"$work/wrong.cc" <<'END'
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <oneapi/tbb/global_control.h>
#include <strata/channel_flow.hpp>
using namespace strata_cxx;

/* A graph of one source and a node that counts; what it throws, and how many came before. */
template <class T> static int drain(strata_t *s, int rank, const char *name, int threads, int &n)
{
    tbb::task_arena arena(threads);
    int status = STRATA_OK;
    n = 0;
    arena.execute([&] {
        tbb::flow::graph graph;
        channel_source<T> in(graph, s, rank, name);
        tbb::flow::function_node<T> count(graph, tbb::flow::serial, [&](const T &) {
            n++;
            return tbb::flow::continue_msg();
        });
        tbb::flow::make_edge(in, count);
        in.activate();
        try {
            graph.wait_for_all();
        } catch (const channel_error &e) {
            status = e.status();
        }
    });
    return status;
}
#define CHECK(good) ((good) ? (void)0 : (std::fprintf(stderr, "line %d: %s\n", __LINE__, #good), std::exit(1)))
int main(int argc, char **argv)
{
    tbb::global_control most(tbb::global_control::max_allowed_parallelism, 4);
    strata_config_t config = {};
    strata_t *s;
    int n;
    config.size = sizeof(config);
    config.thread_level = STRATA_THREAD_MULTIPLE;
    CHECK(strata_init(&config, &s) == STRATA_OK);
    if (argc > 1 && argv[1][0] == 's') { /* rank 1 dies; the sink's other receiver gets the end of its stream */
        char byte;
        if (strata_rank(s) == 1) {
            (void)strata_recv(strata_world(s), &byte, 1, 0, 1, nullptr);
            std::raise(SIGKILL);
        }
        if (strata_rank(s) == 2) {
            CHECK(!channel_receiver(s, 0, "y").next());
            CHECK(strata_send(strata_world(s), &byte, 0, 0, 1) == STRATA_OK);
        } else {
            tbb::flow::graph graph;
            channel_sink<int> out(graph, s, {1, 2}, "y");
            CHECK(strata_send(strata_world(s), &byte, 0, 1, 1) == STRATA_OK);
            CHECK(strata_recv(strata_world(s), &byte, 1, 1, 1, nullptr) == STRATA_ERR_PEER);
            try {
                out.end();
                CHECK(false);
            } catch (const channel_error &e) {
                CHECK(e.status() == STRATA_ERR_PEER && e.id() == 1);
            }
            CHECK(strata_recv(strata_world(s), &byte, 1, 2, 1, nullptr) == STRATA_OK);
        }
        std::puts("wrong: ok");
        std::fflush(stdout);
        std::_Exit(0);
    }
    if (argc > 1) { /* rank 1 dies after three messages have arrived, which a fourth says */
        if (strata_rank(s) == 1) {
            channel_receiver seen(s, 0, "seen");
            channel_sender out(s, 0, "x");
            for (int i = 0; i < 3; i++)
                out.send(i);
            out.flush();
            (void)seen.next();
            std::raise(SIGKILL);
        }
        channel_sender seen(s, 1, "seen");
        seen.send(1);
        seen.flush();
        CHECK(drain<int>(s, 1, "x", 3, n) == STRATA_ERR_PEER);
        std::puts("wrong: ok");
        std::fflush(stdout);
        std::_Exit(0);
    }
    {
        channel_sender out(s, 0, "one");
        CHECK(drain<int>(s, 0, "one", 1, n) == STRATA_ERR_STATE && n == 0);
        channel_sender kinds(s, 0, "kinds");
        std::thread other([&] {
            kinds.send(1);
            kinds.send('c');
            kinds.end();
        });
        CHECK(drain<int>(s, 0, "kinds", 3, n) == STRATA_ERR_TRUNCATE && n == 1);
        other.join();
        channel_sender parts(s, 0, "parts");
        std::thread third([&] {
            channel_codec<std::vector<int>>::send(parts, {});
            channel_codec<std::vector<int>>::send(parts, {1, 2});
            parts.send("xyz", 3);
            parts.end();
        });
        CHECK(drain<std::vector<int>>(s, 0, "parts", 3, n) == STRATA_ERR_TRUNCATE && n == 2);
        third.join();
    }
    std::puts("wrong: ok");
    return strata_finalize(s) == STRATA_OK ? 0 : 1;
}
END
build_cxx "$work/wrong.cc" wrong "${tbb[@]}"
expect_status 0 strata-run -n 1 "$work/wrong"
out_has '^wrong: ok$'
run strata-run --keep-going -n 2 "$work/wrong" dies
out_has '^wrong: ok$'
run strata-run --keep-going -n 3 "$work/wrong" sink
check "both others go on" test "$(grep -c '^wrong: ok$' "$work/out")" = 2
finish
