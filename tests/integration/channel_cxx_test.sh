#!/bin/bash
# Channels in C++17 (strata/channel.hpp, channel_patterns.hpp): the examples of docs/examples/channels with several numbers of ranks,
# each of which checks its own result; and what has one owner, throws, and goes on beside a worker that is stuck.
. "$STRATA_SOURCE/tests/integration/lib.sh"
command -v g++ >/dev/null || { echo "SKIP: no g++"; exit 77; }

for example in farm gillespie pipeline ranks; do
    build_cxx "$STRATA_SOURCE/docs/examples/channels/$example.cc" "$example"
    for n in 3 6; do
        expect_status 0 strata-run -n "$n" "$work/$example"
        out_has ': ok$'
    done
    expect_status 1 strata-run -n 1 "$work/$example"
    err_has "it takes"
done

# The simulations and their result do not depend on who computes them.
sums=()
for n in 2 5; do
    expect_status 0 strata-run -n "$n" "$work/gillespie"
    sums+=("$(sed -n 's/^gillespie: .*\(sum [0-9]*\).*/\1/p' "$work/out")")
done
check "gillespie: ${sums[0]} and ${sums[1]}" test -n "${sums[0]}" -a "${sums[0]}" = "${sums[1]}"
expect_status 2 strata-run -n 2 "$work/gillespie" 100
err_has "usage:"

cat >"$work/owners.cc" <<'EOF'
#include <cstdio>
#include <cstdlib>
#include <strata/channel_patterns.hpp>
using namespace strata_cxx;

template <class T> constexpr bool one_owner = !std::is_copy_constructible<T>::value && !std::is_copy_assignable<T>::value &&
                                              std::is_nothrow_move_constructible<T>::value;
static_assert(one_owner<channel_sender> && one_owner<channel_receiver> && one_owner<channel_message>, "");

#define CHECK(good) ((good) ? (void)0 : (std::fprintf(stderr, "line %d: %s\n", __LINE__, #good), std::exit(1)))

template <class Call> static int thrown(Call &&call)
{
    try {
        call();
    } catch (const channel_error &e) {
        return e.status();
    }
    return STRATA_OK;
}
/* A message outlives the call that took it, moves, and releases itself: a ring of 256 bytes takes 100 of them. */
static void alone(strata_t *s)
{
    CHECK(thrown([&] { channel_sender(s, 99, "x"); }) == STRATA_ERR_RANK);
    CHECK(thrown([&] { channel_receiver(s, 0, ""); }) == STRATA_ERR_ARG);
    channel_receiver in(s, 0, "x", 256), moved;
    channel_sender out(s, 0, "x");
    for (int i = 0; i < 100; i++) {
        out.emplace(sizeof(i), [&](const strata_channel_view_t &v) { std::memcpy(v.first, &i, sizeof(i)); });
        auto message = in.next();
        CHECK(thrown([&] { (void)message->as<char>(); }) == STRATA_ERR_TRUNCATE);
        channel_message mine = std::move(*message);
        CHECK(mine.as<int>() == i);
        moved = std::move(in);
        in = std::move(moved);
    }
    std::vector<char> large(100000, 'x');
    out.send(large.data(), large.size());
    out.end();
    CHECK(!out.finish(0));
    CHECK(in.next()->size() == large.size());
    CHECK(!in.next());
    CHECK(out.finish(STRATA_CHANNEL_FOREVER));
    out.close();
    CHECK(thrown([&] { out.send(1); }) == STRATA_ERR_ARG); /* it is closed */
}
/* Worker 1 holds its first task until all others are done; so one that is slow holds nobody up. Worker 2 holds its first until
 * worker 1 has one, however late that starts. */
static void stuck(strata_t *s, int rank)
{
    const int n_tasks = 50;
    if (rank == 0) {
        int by[3] = {0, 0, 0};
        channel_farm farm(s, {1, 2}, "f");
        for (int i = 0; i < n_tasks; i++)
            by[farm.send(i)]++;
        channel_sender(s, 1, "go").send(1);
        farm.close();
        CHECK(by[1] == 1 && by[2] == n_tasks - 1);
        return;
    }
    channel_worker worker(s, 0, "f");
    std::optional<channel_receiver> wait(std::in_place, s, rank - 1, "go");
    while (worker.take<int>()) {
        if (!wait)
            continue;
        if (rank == 1)
            channel_sender(s, 2, "go").send(1);
        CHECK(wait->take<int>() == 1);
        wait.reset();
    }
}
/* A task of worker 1 lasts as long as ten of worker 2: until ten ticks have come, one for each task that worker 2 has done. Worker 2
 * begins its next ten when worker 1 has its next task. So on demand each eleventh task goes to worker 1; in turn each second would. */
static void share(strata_t *s, int rank)
{
    const int rounds = 20, times_slower = 10, n_tasks = rounds * (times_slower + 1);
    if (rank == 0) {
        int by[3] = {0, 0, 0};
        channel_farm farm(s, {1, 2}, "share");
        for (int i = 0; i < n_tasks; i++)
            by[farm.send(i)]++;
        farm.close();
        std::printf("tasks of the slow worker and of the other: %d, %d\n", by[1], by[2]);
        CHECK(by[1] == rounds && by[2] == rounds * times_slower);
        return;
    }
    channel_receiver from(s, 3 - rank, "tick");
    channel_sender to(s, 3 - rank, "tick");
    channel_worker worker(s, 0, "share");
    auto tick = [&] {
        to.send(1);
        to.flush();
    };
    bool more = true; /* of the other worker */
    for (int done = 0; worker.take<int>(); done++) {
        if (rank == 1)
            tick(); /* it has a task */
        if (rank == 2 && done % times_slower == 0)
            more = more && from.take<int>();
        for (int i = 0; rank == 1 && more && i < times_slower; i++)
            more = from.take<int>().has_value();
        if (rank == 2)
            tick(); /* it has done one */
    }
    to.end();
    while (more && from.take<int>())
        ;
    to.close();
}
int main()
{
    strata_t *s;
    CHECK(strata_init(nullptr, &s) == STRATA_OK);
    int rank = strata_rank(s);
    if (strata_size(s) == 1)
        alone(s);
    else {
        stuck(s, rank);
        share(s, rank);
    }
    if (rank == 0)
        std::puts("owners: ok");
    return strata_finalize(s) == STRATA_OK ? 0 : 1;
}
EOF
build_cxx "$work/owners.cc" owners
for n in 1 3; do
    expect_status 0 strata-run -n "$n" "$work/owners"
    out_has 'owners: ok$'
done
finish
