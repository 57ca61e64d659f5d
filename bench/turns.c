/* Two processes that take turns: one sends while the other sleeps in a read of a FIFO, not in the library under test.
 * So an instruction counter sees messages and next to no waiting, of which there is as much as the other is slow. Over
 * Strata, or over MPI where MPI_TWIN is defined. Each way one message at a time is on its way, an eager one, as it must
 * not wait for its receiver. Arguments:
 * - a folder, with two FIFOs: to0, to1
 * - bytes of a message
 * - messages each way
 * - "breakpoints": rank 0 stops before and after them, for steps.c */
#define _GNU_SOURCE 1
#ifdef MPI_TWIN
#include "port_mpi.h"
#else
#include "port_strata.h"
#endif
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { WARM_UP = 2000, TAG = 7 };

struct side {
    struct port *p;
    int mine, theirs; /* FIFOs */
    char *out, *in;
    size_t bytes;
    bool stops;
};

static void breakpoint(const struct side *s)
{
    if (s->stops && s->p->rank == 0)
        __asm__ volatile("int3" ::: "memory");
}

static void open_sides(struct side *s, const char *folder)
{
    char name[4096];
    int *fd[2] = {&s->mine, &s->theirs};

    for (int i = 0; i < 2; i++) {
        (void)snprintf(name, sizeof name, "%s/to%d", folder, i == 0 ? s->p->rank : 1 - s->p->rank);
        *fd[i] = open(name, O_RDWR);
        if (*fd[i] < 0)
            port_fail(s->p, name, 0);
    }
}

static void await_turn(struct side *s)
{
    char word;

    if (read(s->mine, &word, 1) != 1)
        port_fail(s->p, "the FIFO cannot be read", 0);
}

static void give_turn(struct side *s)
{
    if (write(s->theirs, "", 1) != 1)
        port_fail(s->p, "the FIFO cannot be written", 0);
}

static void send_one(struct side *s)
{
    port_send(s->p, s->out, s->bytes, 1 - s->p->rank, TAG);
    give_turn(s);
}

static void receive_one(struct side *s)
{
    await_turn(s);
    port_recv(s->p, s->in, s->bytes, 1 - s->p->rank, TAG);
}

static void exchange(struct side *s, long messages)
{
    for (long i = 0; i < messages; i++) {
        if (s->p->rank == 0)
            send_one(s);
        receive_one(s);
        if (s->p->rank != 0)
            send_one(s);
    }
}

static void measure(struct port *p, char **argv)
{
    struct side s = {.p = p, .bytes = strtoul(argv[2], NULL, 10), .stops = argv[4] != NULL};
    char word = 0, other;

    s.out = calloc(1, s.bytes + 1);
    s.in = calloc(1, s.bytes + 1);
    if (!s.out || !s.in)
        port_fail(p, "out of memory", 0);
    open_sides(&s, argv[1]);
    memset(s.out, 'a' + p->rank, s.bytes);
    port_sendrecv(p, &word, &other, 1, 1 - p->rank, 1 - p->rank, TAG); /* connected */
    exchange(&s, WARM_UP);
    breakpoint(&s);
    exchange(&s, strtol(argv[3], NULL, 10));
    breakpoint(&s);
    if (s.bytes && s.in[s.bytes - 1] != 'a' + (1 - p->rank))
        port_fail(p, "the messages came out wrong", 0);
    port_sendrecv(p, &word, &other, 1, 1 - p->rank, 1 - p->rank, TAG);
    free(s.out);
    free(s.in);
}

int main(int argc, char **argv)
{
    struct port p = {.rank = 0};

    if (argc != 4 && argc != 5) {
        fprintf(stderr, "usage: %s FOLDER BYTES MESSAGES [breakpoints]\n", argv[0]);
        return 2;
    }
#ifdef MPI_TWIN
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &p.n);
#else
    port_ok(&p, "strata_init", strata_init(NULL, &p.s));
    p.world = strata_world(p.s);
    p.rank = strata_rank(p.s);
    p.n = strata_size(p.s);
#endif
    if (p.n != 2)
        port_fail(&p, "two ranks are needed", 0);
    measure(&p, argv);
#ifdef MPI_TWIN
    MPI_Finalize();
#else
    port_ok(&p, "strata_finalize", strata_finalize(p.s));
#endif
    return 0;
}
