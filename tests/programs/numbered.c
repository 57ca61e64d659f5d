/* Short messages that say which they are: `numbered COUNT [FILE]`. Two ranks send each other numbered messages of all
 * lengths up to 4000 bytes, every byte of which is checked, COUNT of them, and as often again until FILE exists. What
 * came twice, not at all, in another order or with another byte is said, with the number, and the status is 1. The
 * ranks say "running" when the first ones have come. */
#include <stdint.h>
#include <unistd.h>
#include "support/suite.h"
#include "support/watchdog.h"

enum { AHEAD = 12, MOST = 4000, DATA = 2, MORE = 3 };

static strata_comm_t *world;
static int rank;
static char in[AHEAD][MOST], out[AHEAD][MOST];
static strata_request_t *request[AHEAD][2];

/* Most are of a few cache lines; 8 bytes are the number. */
static size_t length_of(uint64_t number)
{
    const size_t spread = number % 5 == 0 ? MOST - 8 : 500;

    return 8 + (size_t)(number * 2654435761u >> 7) % (spread + 1);
}

static char byte_of(uint64_t number, size_t at)
{
    return (char)((number * 31 + at * 7 + (number >> 8)) & 0xff);
}

static void begin(uint64_t number)
{
    const int peer = 1 - rank;
    char *b = out[number % AHEAD];
    const size_t length = length_of(number);

    memcpy(b, &number, sizeof number);
    for (size_t i = sizeof number; i < length; i++)
        b[i] = byte_of(number, i);
    memset(in[number % AHEAD], 0x5a, length);
    CHECK_OK(strata_irecv(world, in[number % AHEAD], MOST, peer, DATA, &request[number % AHEAD][0]));
    CHECK_OK(strata_isend(world, b, length, peer, DATA, &request[number % AHEAD][1]));
}

static void end(uint64_t number)
{
    const char *b = in[number % AHEAD];
    const size_t length = length_of(number);
    strata_status_t status[2];
    uint64_t came;

    CHECK_OK(strata_waitall(2, request[number % AHEAD], status));
    memcpy(&came, b, sizeof came);
    CHECK_MSG(came == number, "rank %d: message %llu where %llu was due", rank, (unsigned long long)came,
              (unsigned long long)number);
    CHECK_MSG(status[0].length == length, "rank %d: message %llu has %zu bytes, not %zu", rank,
              (unsigned long long)number, status[0].length, length);
    for (size_t i = sizeof came; i < length; i++)
        CHECK_MSG(b[i] == byte_of(number, i), "rank %d: byte %zu of %zu of message %llu is wrong", rank, i, length,
                  (unsigned long long)number);
}

/* Rank 0 sees the file and tells the other, so that both do the same. */
static int more_rounds(const char *until)
{
    int more = 0;

    if (!until)
        return 0;
    if (rank == 0) {
        more = access(until, F_OK) != 0;
        CHECK_OK(strata_send(world, &more, sizeof more, 1, MORE));
    } else {
        CHECK_OK(strata_recv(world, &more, sizeof more, 0, MORE, NULL));
    }
    return more;
}

int main(int argc, char **argv)
{
    const uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    struct watchdog *dog = watchdog_start(test_timeout(900), 1);
    strata_config_t config = STRATA_CONFIG_INIT;
    char why[256];
    strata_t *s;
    uint64_t first = 0;

    CHECK(count > 0);
    config.error_text = why;
    config.error_text_size = sizeof why;
    CHECK_MSG(strata_init(&config, &s) == STRATA_OK, "strata_init: %s", why);
    world = strata_world(s);
    rank = strata_rank(s);
    CHECK_EQ(strata_size(s), 2);
    do {
        for (uint64_t i = first; i < first + count + AHEAD; i++) {
            if (i >= first + AHEAD)
                end(i - AHEAD);
            if (i < first + count)
                begin(i);
        }
        if (first == 0)
            fprintf(stderr, "running\n");
        first += count;
    } while (more_rounds(argc > 2 ? argv[2] : NULL));
    printf("rank %d: %llu messages\n", rank, (unsigned long long)first);
    CHECK_OK(strata_finalize(s));
    watchdog_stop(dog);
    return 0;
}
