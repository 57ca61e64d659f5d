/* A farm: rank 0 hands out tasks on demand, the ranks behind it work, the last one collects the results from any.
 * Rank 1 is slow: a task takes it as long as the other workers need for ten, so it gets a tenth of theirs.
 *   strata-run -n 4 ./farm */
#include <cstdio>
#include <cstdlib>
#include <strata/channel_patterns.hpp>

struct result {
    long task, worker;
};

static const long n_tasks = 1000, times_slower = 10;
static const unsigned ahead = 2; /* tasks that a worker asks for in advance */

static void emit(strata_t *s, const std::vector<int> &workers)
{
    strata_cxx::channel_farm farm(s, workers, "tasks");
    for (long task = 0; task < n_tasks; task++)
        farm.send(task);
    farm.close();
}

static void work(strata_t *s, int collector)
{
    strata_cxx::channel_sender results(s, collector, "results"), ticks(s, 1, "ticks");
    strata_cxx::channel_worker worker(s, 0, "tasks", ahead);
    while (auto task = worker.take<long>()) {
        results.send(result{*task * *task, strata_rank(s)});
        ticks.send(1); /* one task is done */
        ticks.flush();
    }
    ticks.close();
    results.close();
}

/* `others`: workers. When they have ended it has nobody to be slower than. */
static void work_slowly(strata_t *s, int collector, const std::vector<int> &others)
{
    strata_cxx::channel_sender results(s, collector, "results");
    strata_cxx::channel_gather ticks(s, others, "ticks");
    strata_cxx::channel_worker worker(s, 0, "tasks", ahead);
    while (auto task = worker.take<long>()) {
        for (long i = 0; i < times_slower && ticks.next(); i++)
            ;
        results.send(result{*task * *task, strata_rank(s)});
    }
    while (ticks.next())
        ;
    results.close();
}

static int collect(strata_t *s, const std::vector<int> &workers)
{
    strata_cxx::channel_gather results(s, workers, "results");
    std::vector<long> by(static_cast<std::size_t>(strata_size(s)));
    long sum = 0, n = 0;
    while (auto got = results.next()) {
        auto r = got->second.as<result>();
        sum += r.task;
        by[static_cast<std::size_t>(r.worker)]++;
        n++;
    }
    for (int rank : workers)
        std::printf("rank %d: %ld tasks\n", rank, by[static_cast<std::size_t>(rank)]);
    bool ok = n == n_tasks && sum == (n_tasks - 1) * n_tasks * (2 * n_tasks - 1) / 6;
    /* At the end it may have one task at hand, and those that it has asked for. */
    bool fair = workers.size() == 1 || by[1] <= n_tasks / times_slower + 1 + ahead;
    std::printf("farm: %ld results: %s\n", n, !ok ? "wrong" : !fair ? "the slow worker has too many" : "ok");
    return ok && fair ? 0 : 1;
}

int main()
{
    strata_t *s;
    int status = 0;

    if (strata_init(nullptr, &s) != STRATA_OK)
        return 1;
    try {
        int rank = strata_rank(s), last = strata_size(s) - 1;
        std::vector<int> workers;
        for (int i = 1; i < last; i++)
            workers.push_back(i);
        if (workers.empty())
            throw std::runtime_error("it takes 3 ranks or more");
        if (rank == 0)
            emit(s, workers);
        else if (rank == last)
            status = collect(s, workers);
        else if (rank == 1)
            work_slowly(s, last, {workers.begin() + 1, workers.end()});
        else
            work(s, last);
    } catch (const std::exception &e) {
        std::fprintf(stderr, "farm: %s\n", e.what());
        return 1;
    }
    return strata_finalize(s) == STRATA_OK ? status : 1;
}
