/* Two threads of rank 0 at MPI_THREAD_MULTIPLE, each of which sends to a rank of its own: messages a second of both
 * together. A plain MPI program of three ranks, run by bench/threads.sh. Each batch is WINDOWS windows of 64 messages;
 * a window ends with an answer. One line a batch: millions of messages a second. usage: threads [BATCHES [BYTES]] */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { WINDOW = 64, WINDOWS = 200, MAX_BYTES = 65536 };

struct side {
    int peer, batches, bytes;
    pthread_barrier_t *together;
    double *seconds; /* of each batch; of the first thread only */
};

static void *send_windows(void *arg)
{
    const struct side *s = arg;
    MPI_Request q[WINDOW];
    char *out = calloc(1, MAX_BYTES), answer;
    for (int b = 0; b < s->batches; b++) {
        pthread_barrier_wait(s->together);
        double begin = MPI_Wtime();
        for (int w = 0; w < WINDOWS; w++) {
            for (int i = 0; i < WINDOW; i++)
                MPI_Isend(out, s->bytes, MPI_BYTE, s->peer, s->peer, MPI_COMM_WORLD, &q[i]);
            MPI_Waitall(WINDOW, q, MPI_STATUSES_IGNORE);
            MPI_Recv(&answer, 1, MPI_BYTE, s->peer, s->peer, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        pthread_barrier_wait(s->together);
        if (s->seconds)
            s->seconds[b] = MPI_Wtime() - begin;
    }
    free(out);
    return NULL;
}

static void take_windows(int me, int batches, int bytes)
{
    MPI_Request q[WINDOW];
    char *in = calloc(WINDOW, MAX_BYTES), answer = 0;
    for (int w = 0; w < batches * WINDOWS; w++) {
        for (int i = 0; i < WINDOW; i++)
            MPI_Irecv(in + (size_t)i * MAX_BYTES, bytes, MPI_BYTE, 0, me, MPI_COMM_WORLD, &q[i]);
        MPI_Waitall(WINDOW, q, MPI_STATUSES_IGNORE);
        MPI_Send(&answer, 1, MPI_BYTE, 0, me, MPI_COMM_WORLD);
    }
    free(in);
}

int main(int argc, char **argv)
{
    int level, me, n, batches = argc > 1 ? atoi(argv[1]) : 11, bytes = argc > 2 ? atoi(argv[2]) : 8;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    if (level < MPI_THREAD_MULTIPLE || n != 3 || batches < 1 || bytes < 0 || bytes > MAX_BYTES) {
        fprintf(stderr, "threads: needs MPI_THREAD_MULTIPLE, three ranks, a batch and at most %d bytes\n", MAX_BYTES);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (me > 0) {
        take_windows(me, batches, bytes);
    } else {
        pthread_barrier_t together;
        pthread_t t[2];
        double *seconds = calloc((size_t)batches, sizeof *seconds);
        struct side side[2] = {{1, batches, bytes, &together, seconds}, {2, batches, bytes, &together, NULL}};
        pthread_barrier_init(&together, NULL, 2);
        for (int i = 0; i < 2; i++)
            pthread_create(&t[i], NULL, send_windows, &side[i]);
        for (int i = 0; i < 2; i++)
            pthread_join(t[i], NULL);
        for (int b = 1; b < batches; b++) /* the first connects */
            printf("%.4f\n", 2.0 * WINDOW * WINDOWS / seconds[b] / 1e6);
        pthread_barrier_destroy(&together);
        free(seconds);
    }
    MPI_Finalize();
    return 0;
}
