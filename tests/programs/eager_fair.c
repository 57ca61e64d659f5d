/* A flood by one ring of eager RDMA while another has one message: `eager_fair TRIALS MOST`. Rank 1 sends to rank 0
 * without end. In each trial rank 0 asks rank 2 for a message; rank 2 sends it, and then tells rank 1 so, which says
 * the trial's number in what it sends from then on. So the message of rank 2 lies in its ring before any of these is
 * sent: at most MOST of them come before it. Rank 0 prints the most that have. */
#include "support/random.h"
#include "support/suite.h"
#include "support/watchdog.h"

enum { FLOOD, FLOODING, ALONE, WARM_UP = 100, BETWEEN = 2000, AT_A_TIME = 4, SLOW = 2000, END = -1 };

static strata_comm_t *world;

/* ---- rank 1 ---- */

/* The number that is to be said, if there is a new one. */
static int told(int number)
{
    int found = 0;

    CHECK_OK(strata_iprobe(world, STRATA_ANY_SOURCE, FLOODING, &found, NULL));
    if (found)
        CHECK_OK(strata_recv(world, &number, sizeof number, STRATA_ANY_SOURCE, FLOODING, NULL));
    return number;
}

static void flood(void)
{
    for (int number = 0; number != END; number = told(number))
        for (int i = 0; i < AT_A_TIME; i++)
            CHECK_OK(strata_send(world, &number, sizeof number, 0, FLOOD));
    CHECK_OK(strata_send(world, &(int){END}, sizeof(int), 0, FLOOD));
}

/* ---- rank 2 ---- */

static void send_alone(void)
{
    int number;

    for (int i = 0; i < WARM_UP; i++) /* so that it has a ring */
        CHECK_OK(strata_send(world, &(int){0}, sizeof(int), 0, ALONE));
    for (;;) {
        CHECK_OK(strata_recv(world, &number, sizeof number, 0, ALONE, NULL));
        if (number == END)
            return;
        CHECK_OK(strata_send(world, &number, sizeof number, 0, ALONE));
        CHECK_OK(strata_send(world, &number, sizeof number, 1, FLOODING));
    }
}

/* ---- rank 0 ---- */

/* Slower than rank 1 sends, so that its ring is never empty. */
static int receive(int *source)
{
    strata_status_t status;
    int number;

    for (volatile int i = 0; i < SLOW; i++)
        continue;
    CHECK_OK(strata_recv(world, &number, sizeof number, STRATA_ANY_SOURCE, STRATA_ANY_TAG, &status));
    *source = status.source;
    return number;
}

/* How many messages of the flood have come before the one of rank 2 that were sent after it. */
static int trial(int number, struct rnd *dice)
{
    int source, later = 0;

    for (uint32_t i = rnd_below(dice, BETWEEN); i > 0; i--) {
        (void)receive(&source);
        CHECK_EQ(source, 1);
    }
    CHECK_OK(strata_send(world, &number, sizeof number, 2, ALONE));
    for (;;) {
        int got = receive(&source);
        if (source == 2) {
            CHECK_EQ(got, number);
            return later;
        }
        later += got == number;
    }
}

static void receive_all(int trials, int most_allowed)
{
    struct rnd dice = {.state = (uint64_t)trials};
    int source, most = 0, number = 0;

    for (int i = 0; i < WARM_UP; i++)
        CHECK_OK(strata_recv(world, &number, sizeof number, 2, ALONE, NULL));
    for (int i = 1; i <= trials; i++) {
        int later = trial(i, &dice);
        most = later > most ? later : most;
        CHECK_MSG(later <= most_allowed, "%d later messages of the flood came before message %d of rank 2", later, i);
    }
    CHECK_OK(strata_send(world, &(int){END}, sizeof(int), 2, ALONE));
    CHECK_OK(strata_send(world, &(int){END}, sizeof(int), 1, FLOODING));
    while (number != END)
        number = receive(&source);
    printf("most %d\n", most);
}

int main(int argc, char **argv)
{
    const int trials = argc > 2 ? atoi(argv[1]) : 0, most = argc > 2 ? atoi(argv[2]) : 0;
    struct watchdog *dog = watchdog_start(test_timeout(300), 1);
    strata_config_t config = STRATA_CONFIG_INIT;
    char why[256];
    strata_t *s;

    CHECK(trials > 0 && most > 0);
    config.error_text = why;
    config.error_text_size = sizeof why;
    CHECK_MSG(strata_init(&config, &s) == STRATA_OK, "strata_init: %s", why);
    CHECK_EQ(strata_size(s), 3);
    world = strata_world(s);
    if (strata_rank(s) == 0)
        receive_all(trials, most);
    else if (strata_rank(s) == 1)
        flood();
    else
        send_alone();
    CHECK_OK(strata_finalize(s));
    watchdog_stop(dog);
    return 0;
}
