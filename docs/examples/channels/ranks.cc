/* All-gather, scatter and broadcast: each rank tells all others its number, round by round; rank 0 scatters words in
 * turn and by key, and tells everybody how many there were.
 *   strata-run -n 4 ./ranks */
#include <cstdio>
#include <cstdlib>
#include <strata/channel_patterns.hpp>

static const int rounds = 100, words = 1000;

struct word {
    int kind; /* 0: in turn, 1: by key, 2: the last */
    int value;
};

static void must(bool good, const char *what)
{
    if (!good)
        throw std::runtime_error(what);
}

static void gather_all(strata_t *s, const std::vector<int> &ranks)
{
    strata_cxx::channel_all_gather<long> all(s, ranks, "all");
    for (long round = 0; round < rounds; round++) {
        std::vector<long> got = all.exchange(round * 100 + strata_rank(s));
        for (std::size_t i = 0; i < ranks.size(); i++)
            must(got[i] == round * 100 + ranks[i], "a wrong value");
    }
    all.close();
}

static void scatter(strata_t *s, const std::vector<int> &ranks)
{
    strata_cxx::channel_scatter to(s, ranks, "words");
    for (int i = 0; i < words; i++) {
        word turn{0, i}, key{1, i};
        to.send(&turn, sizeof(turn));
        to.send_by_key(static_cast<std::uint64_t>(i), &key, sizeof(key));
    }
    word last{2, words};
    to.broadcast(&last, sizeof(last));
    to.close();
}

/* Word i comes to the i-th of n receivers, modulo n, by both ways. */
static void take(strata_t *s, int n)
{
    strata_cxx::channel_receiver from(s, 0, "words");
    int got[3] = {0, 0, 0};
    while (auto w = from.take<word>()) {
        must(w->kind == 2 || w->value % n == strata_rank(s) - 1, "a word for another rank");
        must(got[2] == 0, "a word behind the last");
        got[w->kind]++;
    }
    int want = words / n + (strata_rank(s) - 1 < words % n);
    must(got[0] == want && got[1] == want && got[2] == 1, "a word is missing");
}

int main()
{
    strata_t *s;

    if (strata_init(nullptr, &s) != STRATA_OK)
        return 1;
    try {
        std::vector<int> ranks;
        for (int i = 0; i < strata_size(s); i++)
            ranks.push_back(i);
        gather_all(s, ranks);
        ranks.erase(ranks.begin()); /* rank 0 scatters to the others */
        if (ranks.empty())
            throw std::runtime_error("it takes 2 ranks or more");
        if (strata_rank(s) == 0)
            scatter(s, ranks);
        else
            take(s, static_cast<int>(ranks.size()));
        if (strata_rank(s) == 0)
            std::printf("ranks: ok\n");
    } catch (const std::exception &e) {
        std::fprintf(stderr, "ranks: %s\n", e.what());
        return 1;
    }
    return strata_finalize(s) == STRATA_OK ? 0 : 1;
}
