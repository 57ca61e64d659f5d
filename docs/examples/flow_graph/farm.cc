/* A farm of flow graphs: rank 0 deals numbers out to the ranks behind it in turn, takes what they make of them from any,
 * and checks it; each worker is a graph of its own.
 *   strata-run -n 4 ./farm */
#include <cstdio>
#include <cstdlib>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <strata/channel_flow.hpp>

namespace flow = tbb::flow;

struct item {
    long number, square;
};

static const long n_items = 5000;

static int master(strata_t *s, const std::vector<int> &workers)
{
    flow::graph to_workers, from_workers;
    long made = 0, n = 0, wrong = 0;
    std::vector<bool> seen(static_cast<std::size_t>(n_items));

    strata_cxx::channel_source<item> in(from_workers, s, workers, "results");
    flow::function_node<item> look(from_workers, flow::serial, [&](const item &i) {
        auto at = static_cast<std::size_t>(i.number);
        wrong += at >= seen.size() || seen[at] || i.square != i.number * i.number;
        seen.at(at) = true;
        n++;
        return flow::continue_msg();
    });
    flow::make_edge(in, look);
    in.activate();

    flow::input_node<item> numbers(to_workers, [&](tbb::flow_control &control) {
        if (made == n_items)
            control.stop();
        return item{made++, 0};
    });
    strata_cxx::channel_sink<item> out(to_workers, s, workers, "numbers");
    flow::make_edge(numbers, out);
    numbers.activate();
    to_workers.wait_for_all();
    out.end();
    from_workers.wait_for_all();
    out.close();
    bool ok = n == n_items && wrong == 0;
    std::printf("farm: %ld results, %ld of them wrong: %s\n", n, wrong, ok ? "ok" : "wrong");
    return ok ? 0 : 1;
}

static void work(strata_t *s)
{
    flow::graph graph;
    strata_cxx::channel_source<item> in(graph, s, 0, "numbers");
    flow::function_node<item, item, flow::rejecting> square(
        graph, 2, [](const item &i) { return item{i.number, i.number * i.number}; });
    strata_cxx::channel_sink<item> out(graph, s, 0, "results");
    flow::make_edge(in, square);
    flow::make_edge(square, out);
    in.activate();
    graph.wait_for_all();
    out.close();
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
        std::vector<int> workers;
        for (int i = 1; i < strata_size(s); i++)
            workers.push_back(i);
        if (workers.empty())
            throw std::runtime_error("it takes 2 ranks or more");
        arena.execute([&] {
            if (strata_rank(s) == 0)
                status = master(s, workers);
            else
                work(s);
        });
    } catch (const std::exception &e) {
        std::fprintf(stderr, "farm: %s\n", e.what());
        return 1;
    }
    return strata_finalize(s) == STRATA_OK ? status : 1;
}
