/* A pipeline of flow graphs, one in each process: rank 0 makes vectors, each rank in the middle scales them by a
 * function_node of many threads, the last adds all up.
 *   strata-run -n 4 ./pipeline */
#include <cstdio>
#include <cstdlib>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <strata/channel_flow.hpp>

namespace flow = tbb::flow;
using block = std::vector<long>;

static const long n_blocks = 2000, length = 100;

static void produce(strata_t *s)
{
    flow::graph graph;
    long made = 0;
    flow::input_node<block> blocks(graph, [&](tbb::flow_control &control) {
        if (made == n_blocks) {
            control.stop();
            return block();
        }
        return block(static_cast<std::size_t>(length), made++);
    });
    strata_cxx::channel_sink<block> out(graph, s, 1, "blocks");
    flow::make_edge(blocks, out);
    blocks.activate();
    graph.wait_for_all();
    out.close();
}

static void scale(strata_t *s, int rank)
{
    flow::graph graph;
    strata_cxx::channel_source<block> in(graph, s, rank - 1, "blocks");
    /* Rejecting: it takes a block when it has a thread for it, else the block stays in the ring. */
    flow::function_node<block, block, flow::rejecting> twice(graph, 2, [](block b) {
        for (long &value : b)
            value *= 2;
        return b;
    });
    strata_cxx::channel_sink<block> out(graph, s, rank + 1, "blocks");
    flow::make_edge(in, twice);
    flow::make_edge(twice, out);
    in.activate();
    graph.wait_for_all();
    out.close();
}

static int consume(strata_t *s, int rank)
{
    flow::graph graph;
    long sum = 0, n = 0;
    strata_cxx::channel_source<block> in(graph, s, rank - 1, "blocks");
    flow::function_node<block> add(graph, flow::serial, [&](const block &b) {
        for (long value : b)
            sum += value;
        n++;
        return flow::continue_msg();
    });
    flow::make_edge(in, add);
    in.activate();
    graph.wait_for_all();
    bool ok = n == n_blocks && sum == ((n_blocks - 1) * n_blocks / 2 * length) << (rank - 1);
    std::printf("pipeline: %ld blocks, the sum is %ld: %s\n", n, sum, ok ? "ok" : "wrong");
    return ok ? 0 : 1;
}

int main()
{
    /* Threads for the sources and for the work also where the process is bound to one processor. */
    tbb::global_control threads(tbb::global_control::max_allowed_parallelism, 4);
    tbb::task_arena arena(4);
    strata_config_t config = {};
    strata_t *s;
    int status = 0;

    config.size = sizeof(config);
    config.thread_level = STRATA_THREAD_MULTIPLE;
    if (strata_init(&config, &s) != STRATA_OK)
        return 1;
    try {
        int rank = strata_rank(s), last = strata_size(s) - 1;
        if (last < 1)
            throw std::runtime_error("it takes 2 ranks or more");
        arena.execute([&] {
            if (rank == 0)
                produce(s);
            else if (rank < last)
                scale(s, rank);
            else
                status = consume(s, rank);
        });
    } catch (const std::exception &e) {
        std::fprintf(stderr, "pipeline: %s\n", e.what());
        return 1;
    }
    return strata_finalize(s) == STRATA_OK ? status : 1;
}
