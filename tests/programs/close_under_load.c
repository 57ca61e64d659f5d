/* Three contexts of one process, below the PML: rank 1 sends to rank 0 without a pause, who takes its time over each
 * message, so that its queue of completions is hardly ever seen empty. Rank 0 gives up its connection with rank 2,
 * which closes and is made again all the same, after so many messages at most. For tests/openib. */
#include <stdatomic.h>
#include <time.h>
#include "support/btl_suite.h"
#include "support/watchdog.h"

enum { ROUNDS = 2, AT_FIRST = 1000, BOUND = 12000 /* messages: time is the machine's */, MESSAGE_US = 50 };

static atomic_bool enough;
static int heard[3][3]; /* by receiver and sender; messages come until the contexts close */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void take_long(void *arg, const struct st_frag *f)
{
    int *got = arg;

    got[f->rank]++;
    if (f->rank != 1)
        return;
    for (double end = now() + 1e-6 * MESSAGE_US; now() < end;)
        ;
}

static bool idle(struct btl_under_test *u, int rank)
{
    char *text = u->t->ops->describe(u->t, u->ep[rank]);
    bool is = strstr(text, "\"idle\"") != NULL;

    free(text);
    return is;
}

static void close_and_connect(struct btl_under_test *u, const int *got)
{
    uint32_t hdr = 1;

    while (got[1] < AT_FIRST)
        btl_poll(u);
    for (int i = 0; i < ROUNDS; i++) {
        int begin;
        btl_send_all(u, 2, &hdr, sizeof hdr, NULL, 0);
        while (got[2] <= i) /* its answer */
            btl_poll(u);
        u->t->ops->disconnect(u->ep[2]);
        for (begin = got[1]; !idle(u, 2); btl_poll(u))
            CHECK_MSG(got[1] - begin < BOUND, "a connection does not close while %d messages come", BOUND);
        printf("closed while %d messages came\n", got[1] - begin);
        CHECK_OK(u->t->ops->connect(u->t, 2, &u->ep[2]));
    }
    atomic_store(&enough, true);
}

static void body(struct tw_rank *r)
{
    struct btl_under_test u = {.r = r};
    int *got = heard[r->rank], answered = 0;
    uint32_t hdr = 1;

    for (size_t i = 0; i < r->s->n_btls && !u.t; i++)
        if (!strcmp(r->s->btls[i]->component->name, "openib"))
            u.t = r->s->btls[i];
    CHECK(u.t);
    for (int to = 0; to < 3; to++)
        if (to != r->rank)
            CHECK_OK(u.t->ops->connect(u.t, to, &u.ep[to]));
    btl_handler(&u, take_long, got);
    if (r->rank == 0)
        close_and_connect(&u, got);
    while (!atomic_load(&enough)) {
        if (r->rank == 1)
            while (u.t->ops->send(u.ep[0], ST_AM_TEST, &hdr, sizeof hdr, NULL, 0) == STRATA_OK)
                ;
        else if (got[0] > answered && u.t->ops->send(u.ep[0], ST_AM_TEST, &hdr, sizeof hdr, NULL, 0) == STRATA_OK)
            answered++;
        btl_poll(&u);
    }
    btl_meet(&u);
}

int main(void)
{
    struct watchdog *dog = watchdog_start(test_timeout(1000), 1);

    /* So many credits that what waits for rank 0 takes it longer than rank 1 may have to wait for a processor. */
    tw_run(&(struct tw_options){.n = 3,
                                .settings = "btl=openib,self btl_openib_srq_b=512 "
                                            "btl_openib_receive_queues=S,8448,4096,512,512:S,33024,1024,1,6"},
           body, NULL);
    watchdog_stop(dog);
    puts("all have closed");
    return 0;
}
