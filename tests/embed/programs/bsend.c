/* Buffered sends: they complete locally, overflow is an error, detach waits, space comes back; all forms of calls with
 * MPI_PROC_NULL. */
#include <mpi.h>
#include "support.h"

static MPI_Comm w = MPI_COMM_WORLD;

static void local_completion(int n)
{
    char name[60];
    snprintf(name, sizeof name, "buffered, %d bytes", n);
    part(name);
    enum { COUNT = 10 };
    int size = COUNT * (n + MPI_BSEND_OVERHEAD), got;
    char *memory = allocate((size_t)size), *b = allocate((size_t)n);
    void *back;
    MPI(MPI_Buffer_attach(memory, size));
    int to = (t.rank + 1) % t.size, from = (t.rank + t.size - 1) % t.size;
    for (int i = 0; i < COUNT; i++) { /* nobody receives yet: would not return if it were not buffered */
        MPI_Request r;
        fill(b, (size_t)n, (unsigned)i);
        if (i % 3 == 0) {
            MPI(MPI_Bsend(b, n, MPI_BYTE, to, i, w));
        } else if (i % 3 == 1) {
            MPI(MPI_Ibsend(b, n, MPI_BYTE, to, i, w, &r));
            MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
        } else {
            MPI(MPI_Bsend_init(b, n, MPI_BYTE, to, i, w, &r));
            MPI(MPI_Start(&r));
            MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
            MPI(MPI_Request_free(&r));
        }
        memset(b, 0xee, (size_t)n);
    }
    MPI(MPI_Barrier(w));
    for (int i = COUNT; i-- > 0;) {
        MPI_Status s;
        MPI(MPI_Recv(b, n, MPI_BYTE, from, i, w, &s));
        STATUS(&s, from, i, n);
        CHECK(differs(b, (size_t)n, (unsigned)i) < 0, "message %d", i);
    }
    MPI(MPI_Buffer_detach(&back, &got));
    CHECK(back == memory && got == size, "detached");
    free(memory);
    free(b);
}

static void overflow(void)
{
    part("overflow");
    enum { N = 100000 };
    char *memory = allocate(N + 2000), *b = allocate(2 * N);
    void *back;
    int got, class = 0, rc, peer = t.rank ^ 1;
    rc = MPI_Bsend(b, 10, MPI_BYTE, t.rank, 1, w);
    MPI_Error_class(rc, &class);
    CHECK(class == MPI_ERR_BUFFER || t.reference, "no buffer attached: class %d", class);
    MPI(MPI_Bsend(NULL, 0, MPI_BYTE, t.rank, 6, w)); /* needs no buffer */
    MPI(MPI_Recv(NULL, 0, MPI_BYTE, t.rank, 6, w, MPI_STATUS_IGNORE));
    MPI(MPI_Buffer_attach(memory, N + 2000));
    rc = MPI_Bsend(b, 2 * N, MPI_BYTE, t.rank, 1, w);
    MPI_Error_class(rc, &class);
    CHECK(class == MPI_ERR_BUFFER, "longer than the buffer: class %d", class);
    if (peer < t.size && !t.reference) { /* the reference's channel is dead after an overflow */
        /* Space comes back when the receiver has taken the message. */
        for (int i = 0; i < 20; i++) {
            MPI(MPI_Bsend(b, N, MPI_BYTE, peer, 2, w));
            MPI(MPI_Recv(b + N, N, MPI_BYTE, peer, 2, w, MPI_STATUS_IGNORE));
            MPI(MPI_Sendrecv(NULL, 0, MPI_INT, peer, 3, NULL, 0, MPI_INT, peer, 3, w, MPI_STATUS_IGNORE));
            for (int tries = 0; tries < 1000; tries++) { /* let it be noticed */
                int flag;
                MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, w, &flag, MPI_STATUS_IGNORE);
            }
        }
        /* Two do not fit while nobody receives. */
        MPI(MPI_Bsend(b, N, MPI_BYTE, peer, 2, w));
        MPI_Request r;
        rc = MPI_Ibsend(b, N, MPI_BYTE, peer, 4, w, &r);
        MPI_Error_class(rc, &class);
        /* It may have gone out whole already. */
        if (rc == MPI_SUCCESS)
            MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
        else
            CHECK(class == MPI_ERR_BUFFER, "full: class %d", class);
        int mine = rc == MPI_SUCCESS, other = 0;
        MPI(MPI_Sendrecv(&mine, 1, MPI_INT, peer, 5, &other, 1, MPI_INT, peer, 5, w, MPI_STATUS_IGNORE));
        MPI(MPI_Recv(b + N, N, MPI_BYTE, peer, 2, w, MPI_STATUS_IGNORE));
        if (other)
            MPI(MPI_Recv(b + N, N, MPI_BYTE, peer, 4, w, MPI_STATUS_IGNORE));
    }
    MPI(MPI_Buffer_detach(&back, &got));
    free(memory);
    free(b);
}

/* Detach returns when everything has gone: then the memory may go. */
static void detach_waits(void)
{
    part("detach");
    enum { N = 200000 };
    int peer = t.rank ^ 1, got;
    void *back;
    if (peer >= t.size)
        return;
    for (int round = 0; round < 5; round++) {
        char *memory = allocate(N + 2000), *b = allocate(N);
        MPI(MPI_Buffer_attach(memory, N + 2000));
        if (t.rank & 1) {
            fill(b, N, (unsigned)round);
            MPI(MPI_Bsend(b, N, MPI_BYTE, peer, 9, w));
        } else {
            usleep(2000);
            MPI(MPI_Recv(b, N, MPI_BYTE, peer, 9, w, MPI_STATUS_IGNORE));
            CHECK(differs(b, N, (unsigned)round) < 0, "content");
        }
        MPI(MPI_Buffer_detach(&back, &got));
        memset(memory, 0, N);
        free(memory);
        free(b);
    }
}

static void typed(void)
{
    part("buffered, noncontiguous");
    enum { N = 5000 };
    int *v = calloc(2 * N, sizeof *v), *u = calloc(N, sizeof *u), size, got, peer = t.rank ^ 1;
    void *back, *memory;
    MPI_Datatype every_other;
    MPI(MPI_Type_vector(N, 1, 2, MPI_INT, &every_other));
    MPI(MPI_Type_commit(&every_other));
    MPI(MPI_Pack_size(1, every_other, w, &size));
    memory = allocate((size_t)(size + MPI_BSEND_OVERHEAD));
    MPI(MPI_Buffer_attach(memory, size + MPI_BSEND_OVERHEAD));
    for (int i = 0; i < 2 * N; i++)
        v[i] = i + t.rank;
    if (peer < t.size) {
        MPI(MPI_Bsend(v, 1, every_other, peer, 1, w));
        memset(v, 0, 2 * N * sizeof *v);
        MPI(MPI_Recv(u, N, MPI_INT, peer, 1, w, MPI_STATUS_IGNORE));
        for (int i = 0; i < N; i++)
            CHECK(u[i] == 2 * i + peer, "element %d is %d", i, u[i]);
    }
    MPI(MPI_Buffer_detach(&back, &got));
    MPI(MPI_Type_free(&every_other));
    free(memory);
    free(v);
    free(u);
}

static void null_process(void)
{
    part("MPI_PROC_NULL");
    int x = 5, no = MPI_PROC_NULL, got;
    void *back, *memory = allocate(2000);
    MPI_Status s;
    MPI_Request r[12];
    MPI(MPI_Buffer_attach(memory, 2000));
    MPI(MPI_Send(&x, 1, MPI_INT, no, 1, w));
    MPI(MPI_Ssend(&x, 1, MPI_INT, no, 1, w));
    MPI(MPI_Bsend(&x, 1, MPI_INT, no, 1, w));
    MPI(MPI_Rsend(&x, 1, MPI_INT, no, 1, w));
    MPI(MPI_Recv(&x, 1, MPI_INT, no, 1, w, &s));
    STATUS(&s, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    MPI(MPI_Isend(&x, 1, MPI_INT, no, 1, w, &r[0]));
    MPI(MPI_Issend(&x, 1, MPI_INT, no, 1, w, &r[1]));
    MPI(MPI_Ibsend(&x, 1, MPI_INT, no, 1, w, &r[2]));
    MPI(MPI_Irsend(&x, 1, MPI_INT, no, 1, w, &r[3]));
    MPI(MPI_Irecv(&x, 1, MPI_INT, no, 1, w, &r[4]));
    MPI(MPI_Wait(&r[4], &s));
    STATUS(&s, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    MPI(MPI_Waitall(4, r, MPI_STATUSES_IGNORE));
    MPI(MPI_Send_init(&x, 1, MPI_INT, no, 1, w, &r[0]));
    MPI(MPI_Ssend_init(&x, 1, MPI_INT, no, 1, w, &r[1]));
    MPI(MPI_Bsend_init(&x, 1, MPI_INT, no, 1, w, &r[2]));
    MPI(MPI_Rsend_init(&x, 1, MPI_INT, no, 1, w, &r[3]));
    MPI(MPI_Recv_init(&x, 1, MPI_INT, no, 1, w, &r[4]));
    for (int round = 0; round < 3; round++) {
        MPI_Status all[5];
        MPI(MPI_Startall(5, r));
        MPI(MPI_Waitall(5, r, all));
        STATUS(&all[4], MPI_PROC_NULL, MPI_ANY_TAG, 0);
    }
    for (int i = 0; i < 5; i++)
        MPI(MPI_Request_free(&r[i]));
    MPI(MPI_Sendrecv(&x, 1, MPI_INT, no, 1, &x, 1, MPI_INT, no, 1, w, &s));
    STATUS(&s, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    MPI(MPI_Sendrecv_replace(&x, 1, MPI_INT, no, 1, no, 1, w, &s));
    STATUS(&s, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    /* A chain without ends. */
    int left = t.rank ? t.rank - 1 : no, right = t.rank + 1 < t.size ? t.rank + 1 : no, from_left = -1;
    MPI(MPI_Sendrecv(&t.rank, 1, MPI_INT, right, 2, &from_left, 1, MPI_INT, left, 2, w, &s));
    CHECK(from_left == t.rank - 1, "from the left: %d", from_left);
    CHECK(x == 5, "nothing was written");
    MPI(MPI_Buffer_detach(&back, &got));
    free(memory);
}

int main(int argc, char **argv)
{
    static const int sizes[] = {0, 1, 1000, 5000, 30000, 200000};
    begin(&argc, &argv, MPI_THREAD_SINGLE, 2);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        local_completion(sizes[i]);
    overflow();
    detach_waits();
    typed();
    null_process();
    return finish("bsend");
}
