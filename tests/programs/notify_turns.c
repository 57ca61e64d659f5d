/* Puts with notice from all ranks to rank 0, for tests/openib: `notify_turns TURNS` under a launcher. In each turn each
 * rank fills all slots of its area, whose bytes are checked, and sends a message to another rank, so that connections
 * go where few are kept. */
#include <stdlib.h>
#include "support/notify_ends.h"
#include "support/suite.h"
#include "support/watchdog.h"

int main(int argc, char **argv)
{
    struct watchdog *dog = watchdog_start(test_timeout(1000), 1);
    struct notify_receiver in = {.look = notify_look};
    struct tw_rank r = {0};

    CHECK_MSG(argc == 2, "usage: notify_turns TURNS");
    CHECK_OK(strata_init(NULL, &r.s));
    r.comm = strata_world(r.s);
    r.rank = strata_rank(r.s);
    r.n = strata_size(r.s);
    CHECK(r.n > 1 && r.n <= NOTIFY_MOST_RANKS);
    watchdog_name_thread(r.rank);
    uint32_t turns = (uint32_t)strtoul(argv[1], NULL, 10);
    notify_turns(&r, &in, turns, NULL);
    CHECK_OK(strata_finalize(r.s));
    watchdog_stop(dog);
    if (r.rank == 0)
        printf("%u turns of %d ranks\n", turns, r.n - 1);
    return 0;
}
