/* Requests: freed before they are complete, waited for in every way, persistent ones, many at a time, generalized ones.
 */
#include <mpi.h>
#include "support.h"

static MPI_Comm w = MPI_COMM_WORLD;

/* Freed while incomplete: the transfer happens all the same. */
static void freed(int n)
{
    char name[60];
    snprintf(name, sizeof name, "freed before completion, %d bytes", n);
    part(name);
    enum { COUNT = 20 };
    unsigned char *out = allocate((size_t)n), *in = allocate((size_t)n * COUNT);
    int to = (t.rank + 1) % t.size, from = (t.rank + t.size - 1) % t.size;
    MPI_Request r;
    fill(out, (size_t)n, 7);
    memset(in, 0, (size_t)n * COUNT);
    for (int i = 0; i < COUNT; i++) {
        MPI(MPI_Irecv(in + i * n, n, MPI_BYTE, from, i, w, &r));
        MPI(MPI_Request_free(&r));
        CHECK(r == MPI_REQUEST_NULL, "handle");
    }
    for (int i = 0; i < COUNT; i++) {
        if (i % 2)
            MPI(MPI_Issend(out, n, MPI_BYTE, to, i, w, &r));
        else
            MPI(MPI_Isend(out, n, MPI_BYTE, to, i, w, &r));
        MPI(MPI_Request_free(&r));
    }
    /* Behind them, in order, from the same sender: when it has come, so have matched the others; a reply says that the
     * next one too has seen its own. */
    for (int round = 0; round < 2; round++)
        MPI(MPI_Sendrecv(NULL, 0, MPI_INT, to, 99, NULL, 0, MPI_INT, from, 99, w, MPI_STATUS_IGNORE));
    for (int i = 0; i < COUNT; i++)
        for (int tries = 0; tries < 20000 && differs(in + i * n, (size_t)n, 7) >= 0; tries++) {
            int flag;
            MPI_Iprobe(MPI_ANY_SOURCE, 12345, w, &flag, MPI_STATUS_IGNORE);
            usleep(tries > 100 ? 500 : 0);
        }
    for (int i = 0; i < COUNT; i++)
        CHECK(differs(in + i * n, (size_t)n, 7) < 0, "message %d", i);
    MPI(MPI_Barrier(w));
    free(out);
    free(in);
}

static void any_and_some(int n)
{
    enum { COUNT = 64 };
    MPI_Request r[2 * COUNT];
    MPI_Status s[2 * COUNT];
    int indices[2 * COUNT], done, index, left, peer = t.rank ^ 1, flag;
    unsigned char *in = allocate((size_t)n * COUNT), *out = allocate((size_t)n);
    fill(out, (size_t)n, 1);
    for (int how = 0; how < 5; how++) {
        static const char *const names[] = {"waitany", "waitsome", "testany", "testsome", "testall"};
        char name[60];
        snprintf(name, sizeof name, "%s, %d bytes", names[how], n);
        part(name);
        if (peer >= t.size)
            continue;
        memset(in, 0, (size_t)n * COUNT);
        for (int i = 0; i < COUNT; i++) {
            MPI(MPI_Irecv(in + i * n, n, MPI_BYTE, peer, i, w, &r[i]));
            MPI(MPI_Isend(out, n, MPI_BYTE, peer, (i * 7) % COUNT, w, &r[COUNT + i]));
        }
        bool seen[2 * COUNT] = {0};
        for (left = 2 * COUNT; left > 0;) {
            done = 0;
            if (how == 0) {
                MPI(MPI_Waitany(2 * COUNT, r, &indices[0], s));
                done = 1;
            } else if (how == 1) {
                MPI(MPI_Waitsome(2 * COUNT, r, &done, indices, s));
                CHECK(done > 0, "waitsome: %d", done);
            } else if (how == 2) {
                MPI(MPI_Testany(2 * COUNT, r, &index, &flag, s));
                if (flag)
                    indices[done++] = index;
            } else if (how == 3) {
                MPI(MPI_Testsome(2 * COUNT, r, &done, indices, s));
            } else {
                MPI(MPI_Testall(2 * COUNT, r, &flag, s));
                for (int i = 0; i < 2 * COUNT && flag; i++)
                    indices[done++] = i;
            }
            for (int i = 0; i < done; i++) {
                int k = indices[i];
                if (!CHECK(k >= 0 && k < 2 * COUNT && !seen[k], "index %d", k))
                    continue;
                seen[k] = true;
                CHECK(r[k] == MPI_REQUEST_NULL, "request %d stays", k);
                if (k < COUNT)
                    STATUS(&s[how == 4 ? k : i], peer, k, n);
            }
            left -= done;
        }
        MPI(MPI_Waitany(2 * COUNT, r, &index, s));
        CHECK(index == MPI_UNDEFINED, "no request left: %d", index);
        MPI(MPI_Testsome(2 * COUNT, r, &done, indices, s));
        CHECK(done == MPI_UNDEFINED, "no request left: %d", done);
        for (int i = 0; i < COUNT; i++)
            CHECK(differs(in + i * n, (size_t)n, 1) < 0, "message %d", i);
    }
    free(in);
    free(out);
}

static void persistent(int n)
{
    char name[60];
    snprintf(name, sizeof name, "persistent ring, %d bytes", n);
    part(name);
    unsigned char *in = allocate((size_t)n), *out = allocate((size_t)n);
    int to = (t.rank + 1) % t.size, from = (t.rank + t.size - 1) % t.size, flag;
    MPI_Request r[2];
    MPI_Status s[2];
    MPI(MPI_Recv_init(in, n, MPI_BYTE, from, 5, w, &r[0]));
    MPI(MPI_Send_init(out, n, MPI_BYTE, to, 5, w, &r[1]));
    MPI(MPI_Test(&r[0], &flag, &s[0]));
    CHECK(flag, "an inactive request is complete");
    MPI(MPI_Wait(&r[1], &s[0]));
    STATUS(&s[0], MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
    for (int round = 0; round < 100; round++) {
        fill(out, (size_t)n, (unsigned)(round + t.rank));
        MPI(MPI_Startall(2, r));
        MPI(MPI_Waitall(2, r, s));
        STATUS(&s[0], from, 5, n);
        CHECK(differs(in, (size_t)n, (unsigned)(round + from)) < 0, "round %d", round);
    }
    MPI(MPI_Startall(2, r)); /* freed while active */
    MPI(MPI_Request_free(&r[1]));
    MPI(MPI_Wait(&r[0], s));
    MPI(MPI_Request_free(&r[0]));
    MPI(MPI_Barrier(w));
    free(in);
    free(out);
}

/* Very many requests at a time. */
static void many(int count)
{
    part("many at a time");
    MPI_Request *r = calloc(2 * (size_t)count, sizeof *r);
    int *in = calloc((size_t)count, sizeof *in), *out = calloc((size_t)count, sizeof *out);
    for (int i = 0; i < count; i++) {
        int to = (t.rank + 1 + i) % t.size, from = (t.rank + t.size - 1 - i % t.size) % t.size;
        from = ((t.rank - 1 - i) % t.size + t.size) % t.size;
        out[i] = i * 10 + t.rank;
        MPI(MPI_Irecv(&in[i], 1, MPI_INT, from, i % 1000, w, &r[i]));
        MPI(MPI_Isend(&out[i], 1, MPI_INT, to, i % 1000, w, &r[count + i]));
    }
    MPI(MPI_Waitall(2 * count, r, MPI_STATUSES_IGNORE));
    for (int i = 0; i < count; i++) {
        int from = ((t.rank - 1 - i) % t.size + t.size) % t.size;
        CHECK(in[i] == i * 10 + from, "message %d is %d", i, in[i]);
    }
    free(r);
    free(in);
    free(out);
}

static void get_status(void)
{
    part("request_get_status");
    int peer = t.rank ^ 1, x = -1, flag = 0;
    MPI_Request r;
    MPI_Status s;
    if (peer >= t.size)
        return;
    MPI(MPI_Irecv(&x, 1, MPI_INT, peer, 3, w, &r));
    MPI(MPI_Request_get_status(r, &flag, &s));
    CHECK(!flag, "not yet");
    MPI(MPI_Sendrecv(NULL, 0, MPI_INT, peer, 4, NULL, 0, MPI_INT, peer, 4, w, MPI_STATUS_IGNORE));
    MPI(MPI_Send(&t.rank, 1, MPI_INT, peer, 3, w));
    while (!flag)
        MPI(MPI_Request_get_status(r, &flag, &s));
    STATUS(&s, peer, 3, 4);
    MPI(MPI_Test(&r, &flag, &s));
    CHECK(flag && r == MPI_REQUEST_NULL && x == peer, "still there for the test");
}

int main(int argc, char **argv)
{
    static const int sizes[] = {1, 1000, 5000, 70000};
    begin(&argc, &argv, MPI_THREAD_SINGLE, 2);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        freed(sizes[i]);
        any_and_some(sizes[i]);
        persistent(sizes[i]);
    }
    many(20000);
    get_status();
    return finish("requests");
}
