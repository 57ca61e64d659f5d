/* Started by hostile_long_test.sh: programs that die, and one that only talks.
 *
 *   hostile talk              every rank to every other, small and large
 *   hostile kill VICTIM MODE  64 MiB from rank 0 to 1 and back, over and over; VICTIM dies by SIGKILL in the middle
 *   hostile abort             rank 1 calls MPI_Abort while the others wait
 *   hostile exit              rank 1 leaves without MPI_Finalize
 *   hostile revoke            rank 1 revokes a communicator, where Open MPI has that (5.0)
 * MODE: blocking, nonblocking, or typed (a noncontiguous datatype). */
#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#include <signal.h>
#include <sys/time.h>
#include "support.h"

enum { SIZE = 64 << 20 };

static void die(int signal_number)
{
    (void)signal_number;
    kill(getpid(), SIGKILL);
}

static int talk(void)
{
    enum { N = 300000 };
    char *b = allocate(2 * N);
    for (int i = 1; i < t.size; i++) {
        int to = (t.rank + i) % t.size, from = (t.rank + t.size - i) % t.size;
        for (int n = 1; n <= N; n = n * 7 + 3) {
            fill(b, (size_t)n, (unsigned)t.rank);
            MPI(MPI_Sendrecv(b, n, MPI_BYTE, to, 1, b + N, n, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(differs(b + N, (size_t)n, (unsigned)from) < 0, "%d bytes from %d", n, from);
        }
    }
    free(b);
    return finish("hostile");
}

static void transfer(const char *mode)
{
    char *out = calloc(SIZE, 1), *in = calloc(SIZE, 1);
    MPI_Datatype half;
    MPI_Request r[2];
    int peer = t.rank ^ 1;
    MPI_Type_vector(SIZE / 4096, 2048, 4096, MPI_BYTE, &half);
    MPI_Type_commit(&half);
    for (;;) {
        if (strcmp(mode, "blocking") == 0) {
            if (t.rank == 0) {
                MPI_Send(out, SIZE, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
                MPI_Recv(in, SIZE, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else {
                MPI_Recv(in, SIZE, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Send(out, SIZE, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
            }
        } else if (strcmp(mode, "nonblocking") == 0) {
            MPI_Irecv(in, SIZE, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &r[0]);
            MPI_Isend(out, SIZE, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &r[1]);
            MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        } else {
            MPI_Sendrecv(out, 1, half, peer, 1, in, 1, half, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "talk";
    begin(&argc, &argv, MPI_THREAD_SINGLE, 2);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (strcmp(what, "talk") == 0)
        return talk();
    if (strcmp(what, "kill") == 0 && argc > 3) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (t.rank == atoi(argv[2])) { /* some way into the transfers */
            struct itimerval when = {.it_value = {.tv_usec = 100000 + (int)(getpid() % 50) * 1000}};
            signal(SIGALRM, die);
            setitimer(ITIMER_REAL, &when, NULL);
        }
        if (t.rank < 2)
            transfer(argv[3]);
    } else if (strcmp(what, "abort") == 0 && t.rank == 1) {
        usleep(200000);
        MPI_Abort(MPI_COMM_WORLD, 7);
    } else if (strcmp(what, "exit") == 0 && t.rank == 1) {
        usleep(200000);
        _exit(3);
#ifdef OMPI_HAVE_MPI_EXT_FTMPI
    } else if (strcmp(what, "revoke") == 0 && t.rank == 1) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPIX_Comm_revoke(MPI_COMM_WORLD);
#endif
    }
    /* The others wait for what does not come. */
    int x;
    MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}
