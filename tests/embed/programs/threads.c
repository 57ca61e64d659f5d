/* MPI_THREAD_MULTIPLE: several threads of each rank send, receive, probe and wait at the same time, on communicators of
 * their own and on one that they share. */
#include <mpi.h>
#include <pthread.h>
#include "support.h"

enum { THREADS = 4 };
static MPI_Comm w = MPI_COMM_WORLD, own[THREADS];
static int rounds = 300;

static int length(int i)
{
    return i % 50 == 7 ? 100000 : i % 10 == 3 ? 6000 : i % 300;
}

/* Ping-pong with the thread of the same number at the other rank; forms change with the round. */
static void pingpong(int id, MPI_Comm c, int tag)
{
    int peer = t.rank ^ 1;
    unsigned char *a = allocate(100000), *b = allocate(100000);
    for (int i = 0; i < rounds; i++) {
        int n = length(i), flag = 0;
        unsigned seed = (unsigned)(i + id + tag);
        MPI_Status s;
        MPI_Request r[2];
        fill(a, (size_t)n, seed);
        switch (i % 4) {
        case 0:
            MPI(MPI_Sendrecv(a, n, MPI_BYTE, peer, tag, b, n, MPI_BYTE, peer, tag, c, &s));
            break;
        case 1:
            MPI(MPI_Irecv(b, n, MPI_BYTE, peer, tag, c, &r[0]));
            MPI(MPI_Isend(a, n, MPI_BYTE, peer, tag, c, &r[1]));
            MPI(MPI_Wait(&r[0], &s));
            while (!flag)
                MPI(MPI_Test(&r[1], &flag, MPI_STATUS_IGNORE));
            break;
        case 2: {
            MPI_Message m;
            MPI(MPI_Isend(a, n, MPI_BYTE, peer, tag, c, &r[1]));
            MPI(MPI_Mprobe(peer, tag, c, &m, &s));
            MPI(MPI_Mrecv(b, n, MPI_BYTE, &m, &s));
            MPI(MPI_Wait(&r[1], MPI_STATUS_IGNORE));
            break;
        }
        default: {
            int done = 0, which;
            MPI_Status one;
            MPI(MPI_Irecv(b, n, MPI_BYTE, peer, tag, c, &r[0]));
            MPI(MPI_Issend(a, n, MPI_BYTE, peer, tag, c, &r[1]));
            while (done < 2) {
                MPI(MPI_Waitany(2, r, &which, &one));
                if (which == 0)
                    s = one;
                done++;
            }
        }
        }
        STATUS(&s, peer, tag, n);
        CHECK(differs(b, (size_t)n, seed) < 0, "thread %d, round %d, %d bytes", id, i, n);
    }
    free(a);
    free(b);
}

static void *on_own(void *arg)
{
    int id = (int)(intptr_t)arg;
    pingpong(id, own[id], 3);
    return NULL;
}

static void *on_shared(void *arg)
{
    int id = (int)(intptr_t)arg;
    pingpong(id, w, 100 + id);
    return NULL;
}

/* Half of the threads send, half receive with wildcards: every message arrives once. */
static atomic_long sent, received;
static void *crowd(void *arg)
{
    int id = (int)(intptr_t)arg, each = rounds * 4, peer = t.rank ^ 1;
    for (int i = 0; i < each; i++) {
        long x = (long)id * 1000000 + i, n = 0;
        MPI_Status s;
        if (id % 2) {
            MPI(MPI_Send(&x, 1, MPI_LONG, peer, 50, w));
            sent += x;
        } else {
            MPI(MPI_Recv(&n, 1, MPI_LONG, MPI_ANY_SOURCE, 50, w, &s));
            received += n;
        }
    }
    return NULL;
}

/* One thread waits for a message that only comes when another thread of this rank has sent one. */
static void *waiter(void *arg)
{
    int id = (int)(intptr_t)arg, peer = t.rank ^ 1, x = 0;
    for (int i = 0; i < rounds; i++) {
        if (id == 0) {
            MPI(MPI_Recv(&x, 1, MPI_INT, peer, 60, w, MPI_STATUS_IGNORE));
            CHECK(x == i, "%d in round %d", x, i);
            MPI(MPI_Send(&i, 1, MPI_INT, t.rank, 61, w)); /* lets the other go on */
        } else if (id == 1) {
            MPI(MPI_Send(&i, 1, MPI_INT, peer, 60, w));
            MPI(MPI_Recv(&x, 1, MPI_INT, t.rank, 61, w, MPI_STATUS_IGNORE));
            CHECK(x == i, "%d in round %d", x, i);
        }
    }
    return NULL;
}

/* Collectives, communicators and probes in threads, each on its own communicator. */
static void *collectives(void *arg)
{
    int id = (int)(intptr_t)arg;
    for (int i = 0; i < rounds; i++) {
        int x = i + id, sum = 0;
        MPI(MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, own[id]));
        CHECK(sum == x * t.size, "sum %d", sum);
        if (i % 50 == 0) {
            MPI_Comm dup;
            MPI(MPI_Comm_dup(own[id], &dup));
            MPI(MPI_Barrier(dup));
            MPI(MPI_Comm_free(&dup));
        }
        int flag;
        MPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, own[id], &flag, MPI_STATUS_IGNORE));
        CHECK(!flag, "nothing was sent");
    }
    return NULL;
}

static void together(const char *name, void *(*fn)(void *))
{
    pthread_t thread[THREADS];
    part(name);
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, fn, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv, MPI_THREAD_MULTIPLE, 2);
    if (t.size % 2)
        MPI_Abort(w, 2);
    if (argc > 1)
        rounds = atoi(argv[1]);
    for (int i = 0; i < THREADS; i++)
        MPI(MPI_Comm_dup(w, &own[i]));
    together("own communicators", on_own);
    together("a shared communicator", on_shared);
    together("a crowd", crowd);
    long mine[2] = {sent, received}, all[2];
    MPI(MPI_Allreduce(mine, all, 2, MPI_LONG, MPI_SUM, w));
    CHECK(all[0] == all[1], "sent %ld, received %ld", all[0], all[1]);
    together("waiting for one another", waiter);
    together("collectives", collectives);
    for (int i = 0; i < THREADS; i++)
        MPI(MPI_Comm_free(&own[i]));
    return finish("threads");
}
