/* A pipeline with feedback: rank 0 makes numbers, each rank behind it adds its own, and the last sends the sums back to
 * rank 0, which keeps at most 32 under way.
 *   strata-run -n 4 ./pipeline */
#include <cstdio>
#include <cstdlib>
#include <strata/channel.hpp>

static const long n_numbers = 10000, most = 32;

static int source(strata_t *s, int last)
{
    strata_cxx::channel_sender out(s, 1, "numbers");
    strata_cxx::channel_receiver back(s, last, "sums");
    long sum = 0, want = 0, sent = 0, got = 0;

    for (long ranks = 0, i = 1; i <= last; i++) {
        ranks += i;
        want = n_numbers * ranks;
    }
    want += (n_numbers - 1) * n_numbers / 2;
    while (got < n_numbers) {
        while (sent < n_numbers && sent - got < most)
            out.send(sent++);
        sum += back.take<long>().value();
        got++;
    }
    out.close();
    bool ended = !back.next();
    bool ok = ended && sum == want;
    std::printf("pipeline: the sum is %ld: %s\n", sum, ok ? "ok" : "wrong");
    return ok ? 0 : 1;
}

static void stage(strata_t *s, int rank, int last)
{
    strata_cxx::channel_sender out =
        rank < last ? strata_cxx::channel_sender(s, rank + 1, "numbers") : strata_cxx::channel_sender(s, 0, "sums");
    strata_cxx::channel_receiver in(s, rank - 1, "numbers");

    while (auto number = in.take<long>())
        out.send(*number + rank);
    out.close();
}

int main()
{
    strata_t *s;
    int status = 0;

    if (strata_init(nullptr, &s) != STRATA_OK)
        return 1;
    try {
        int rank = strata_rank(s), last = strata_size(s) - 1;
        if (last < 1)
            throw std::runtime_error("it takes 2 ranks or more");
        if (rank == 0)
            status = source(s, last);
        else
            stage(s, rank, last);
    } catch (const std::exception &e) {
        std::fprintf(stderr, "pipeline: %s\n", e.what());
        return 1;
    }
    return strata_finalize(s) == STRATA_OK ? status : 1;
}
