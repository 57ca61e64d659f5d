/* Stochastic simulations in a farm, after Table III of Secco et al. (PDP 2014): rank 0 scatters 192 simulations to the
 * ranks behind it and takes their samples from any. Each simulates births and deaths by Gillespie's direct method and
 * sends the population at equal steps of time. The mean and the variance are checked against the exact ones.
 *   strata-run -n 4 ./gillespie [SAMPLES OF A SIMULATION]
 * Prints the time that it took, and the processor time of rank 0, which computes nothing itself. */
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <strata/channel_patterns.hpp>

/* Births at a constant rate, deaths in proportion to the population, from 0: it tends to Poisson's distribution. */
static const double births = 100.0, deaths = 1.0, step = 0.1;
static const long n_simulations = 192;

struct task {
    long simulation, samples;
};
struct sample {
    long simulation, index, population;
};

/* Uniform in (0, 1): xorshift64*, Vigna 2016, "An experimental exploration of Marsaglia's xorshift generators". */
class generator
{
  public:
    explicit generator(long seed) : x_(0x9e3779b97f4a7c15u * (static_cast<std::uint64_t>(seed) + 1)) {}
    double next()
    {
        x_ ^= x_ >> 12;
        x_ ^= x_ << 25;
        x_ ^= x_ >> 27;
        return (static_cast<double>((x_ * 0x2545f4914f6cdd1du) >> 12) + 0.5) / 4503599627370496.0;
    }

  private:
    std::uint64_t x_;
};

static void simulate(const task &t, strata_cxx::channel_sender &out)
{
    generator random(t.simulation);
    double now = 0;
    long population = 0;

    for (long i = 0; i < t.samples;) {
        double rate = births + deaths * static_cast<double>(population);
        now += -std::log(random.next()) / rate;
        for (; i < t.samples && now > static_cast<double>(i + 1) * step; i++)
            out.send(sample{t.simulation, i, population});
        population += random.next() * rate < births ? 1 : -1;
    }
}

static double seconds(clockid_t clock)
{
    timespec t;

    clock_gettime(clock, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

static int master(strata_t *s, const std::vector<int> &workers, long samples)
{
    double begin = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    strata_cxx::channel_scatter to(s, workers, "simulations");
    strata_cxx::channel_gather from(s, workers, "samples"); /* behind the senders, so that it closes first */
    std::vector<long> next(static_cast<std::size_t>(n_simulations));
    long n = 0, sum = 0, squares = 0, n_late = 0;
    bool ordered = true;

    for (long i = 0; i < n_simulations; i++) {
        task t{i, samples};
        to.send(&t, sizeof(t));
    }
    to.end(); /* and close when their answers are taken, which they wait for */
    while (auto got = from.next()) {
        auto one = got->second.as<sample>();
        ordered = ordered && one.index == next.at(static_cast<std::size_t>(one.simulation))++;
        n++;
        if (one.index < samples / 2) /* it has not settled yet */
            continue;
        n_late++;
        sum += one.population;
        squares += one.population * one.population;
    }
    to.close();
    double mean = static_cast<double>(sum) / static_cast<double>(n_late);
    double variance = static_cast<double>(squares) / static_cast<double>(n_late) - mean * mean;
    double wanted = births / deaths;
    bool ok = ordered && n == n_simulations * samples && std::fabs(mean / wanted - 1) < 0.03 &&
              std::fabs(variance / wanted - 1) < 0.15;
    std::printf("gillespie: %ld samples, mean %.4f, variance %.4f, sum %ld: %s\n", n, mean, variance, sum,
                ok ? "ok" : "wrong");
    std::printf("elapsed %.6f s, processor time of rank 0 %.6f s\n", seconds(CLOCK_MONOTONIC) - begin,
                seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    return ok ? 0 : 1;
}

static void work(strata_t *s)
{
    strata_cxx::channel_sender out(s, 0, "samples");
    strata_cxx::channel_receiver in(s, 0, "simulations");

    while (auto t = in.take<task>())
        simulate(*t, out);
    out.close();
}

int main(int argc, char **argv)
{
    long samples = argc > 1 ? std::atol(argv[1]) : 200;
    strata_t *s;
    int status = 0;

    if (samples < 200) { /* the first half, which is not looked at, is ten times the mean time of life */
        std::fprintf(stderr, "usage: gillespie [SAMPLES OF A SIMULATION, 200 or more]\n");
        return 2;
    }
    if (strata_init(nullptr, &s) != STRATA_OK)
        return 1;
    try {
        std::vector<int> workers;
        for (int i = 1; i < strata_size(s); i++)
            workers.push_back(i);
        if (workers.empty())
            throw std::runtime_error("it takes 2 ranks or more");
        if (strata_rank(s) == 0)
            status = master(s, workers, samples);
        else
            work(s);
    } catch (const std::exception &e) {
        std::fprintf(stderr, "gillespie: %s\n", e.what());
        return 1;
    }
    return strata_finalize(s) == STRATA_OK ? status : 1;
}
