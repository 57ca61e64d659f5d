/* Probes, blocking or not, matched or not: what they say, what they hold, who gets the message. */
#include <malloc.h>
#include <mpi.h>
#include "support.h"

enum { BIG = 300000 };
static MPI_Comm w = MPI_COMM_WORLD;
static unsigned char *b;

/* Three messages held at once and received in another order, later ones overtaking. */
static void several_held(int size)
{
    char name[60];
    snprintf(name, sizeof name, "matched messages held, %d bytes", size);
    part(name);
    if (t.rank == 1) {
        MPI_Request r[5];
        for (int i = 0; i < 5; i++) {
            fill(b + i * BIG, (size_t)(size + i), (unsigned)i);
            MPI(MPI_Isend(b + i * BIG, size + i, MPI_BYTE, 0, 10, w, &r[i]));
        }
        MPI(MPI_Waitall(5, r, MPI_STATUSES_IGNORE));
    } else if (t.rank == 0) {
        static const int order[] = {2, 0, 3, 1};
        MPI_Message m[4];
        MPI_Status s;
        for (int i = 0; i < 4; i++) {
            MPI(MPI_Mprobe(i % 2 ? MPI_ANY_SOURCE : 1, i / 2 ? MPI_ANY_TAG : 10, w, &m[i], &s));
            STATUS(&s, 1, 10, size + i);
        }
        MPI(MPI_Recv(b, BIG, MPI_BYTE, 1, 10, w, &s)); /* the fifth */
        STATUS(&s, 1, 10, size + 4);
        CHECK(differs(b, (size_t)size + 4, 4) < 0, "message 4");
        for (int i = 0; i < 4; i++) {
            int k = order[i];
            if (i % 2) {
                MPI(MPI_Mrecv(b, BIG, MPI_BYTE, &m[k], &s));
            } else {
                MPI_Request r;
                MPI(MPI_Imrecv(b, BIG, MPI_BYTE, &m[k], &r));
                CHECK(m[k] == MPI_MESSAGE_NULL, "the handle is gone");
                MPI(MPI_Wait(&r, &s));
            }
            STATUS(&s, 1, 10, size + k);
            CHECK(differs(b, (size_t)(size + k), (unsigned)k) < 0, "message %d", k);
        }
    }
}

static void nonblocking(int size)
{
    char name[60];
    snprintf(name, sizeof name, "iprobe and improbe, %d bytes", size);
    part(name);
    if (t.rank == 0) {
        int flag = 1, tries = 0;
        MPI_Message m = MPI_MESSAGE_NULL;
        MPI_Status s;
        MPI(MPI_Iprobe(1, 20, w, &flag, &s));
        CHECK(!flag, "nothing there yet");
        MPI(MPI_Improbe(MPI_ANY_SOURCE, 20, w, &flag, &m, &s));
        CHECK(!flag, "nothing there yet");
        MPI(MPI_Send(NULL, 0, MPI_BYTE, 1, 21, w));
        while (!flag && tries++ < 100000000)
            MPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, w, &flag, &s));
        STATUS(&s, 1, 20, size);
        MPI(MPI_Iprobe(1, 22, w, &flag, &s));
        CHECK(!flag, "another tag");
        MPI(MPI_Iprobe(1, 20, w, &flag, &s)); /* still there, does not go away */
        CHECK(flag, "a probe takes nothing");
        MPI(MPI_Improbe(1, 20, w, &flag, &m, &s));
        CHECK(flag, "improbe finds it");
        STATUS(&s, 1, 20, size);
        MPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, w, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag, "held by the message handle");
        MPI(MPI_Mrecv(b, size, MPI_BYTE, &m, &s));
        STATUS(&s, 1, 20, size);
        CHECK(differs(b, (size_t)size, 77) < 0, "content");
    } else if (t.rank == 1) {
        MPI(MPI_Recv(NULL, 0, MPI_BYTE, 0, 21, w, MPI_STATUS_IGNORE));
        fill(b, (size_t)size, 77);
        MPI(MPI_Ssend(b, size, MPI_BYTE, 0, 20, w));
    }
}

/* Everyone to everyone, taken by improbe of anything, in any order. */
static void storm(void)
{
    enum { EACH = 60 };
    part("everyone to everyone, improbe");
    MPI_Request *r = calloc((size_t)(EACH * t.size), sizeof *r);
    unsigned char *out = allocate(70000);
    int n = 0, got = 0, to_get = EACH * (t.size - 1);
    fill(out, 70000, 5);
    for (int i = 0; i < EACH; i++)
        for (int to = 0; to < t.size; to++)
            if (to != t.rank)
                MPI(MPI_Isend(out, i * 1000 + to, MPI_BYTE, to, i, w, &r[n++]));
    while (got < to_get) {
        MPI_Message m;
        MPI_Status s;
        int flag = 0;
        MPI(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, w, &flag, &m, &s));
        if (!flag)
            continue;
        int count;
        MPI_Get_count(&s, MPI_BYTE, &count);
        CHECK(count == s.MPI_TAG * 1000 + t.rank, "%d bytes with tag %d", count, s.MPI_TAG);
        memset(b, 0, (size_t)count);
        MPI(MPI_Mrecv(b, count, MPI_BYTE, &m, &s));
        CHECK(differs(b, (size_t)count, 5) < 0, "content");
        got++;
    }
    MPI(MPI_Waitall(n, r, MPI_STATUSES_IGNORE));
    free(r);
    free(out);
}

/* The message is received after its communicator has been freed, when other memory may lie where that was. */
static void freed(int size)
{
    char name[60];
    snprintf(name, sizeof name, "communicator freed before the message is received, %d bytes", size);
    part(name);
    MPI_Comm c, other;
    MPI_Message m;
    MPI_Status s;
    MPI_Request r = MPI_REQUEST_NULL;
    MPI(MPI_Comm_dup(w, &c));
    if (t.rank == 1) {
        fill(b, (size_t)size, 9);
        MPI(MPI_Isend(b, size, MPI_BYTE, 0, 30, c, &r));
    } else if (t.rank == 0) {
        MPI(MPI_Mprobe(1, 30, c, &m, &s));
    }
    MPI(MPI_Comm_free(&c));
    MPI(MPI_Comm_dup(w, &other));
    if (t.rank == 0) {
        MPI(MPI_Mrecv(b, BIG, MPI_BYTE, &m, &s));
        STATUS(&s, 1, 30, size);
        CHECK(differs(b, (size_t)size, 9) < 0, "content");
    }
    MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
    MPI(MPI_Comm_free(&other));
}

static void null_process(void)
{
    part("probes of MPI_PROC_NULL");
    MPI_Status s;
    MPI_Message m = MPI_MESSAGE_NULL;
    MPI_Request r;
    int flag = 0;
    MPI(MPI_Probe(MPI_PROC_NULL, 1, w, &s));
    STATUS(&s, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    MPI(MPI_Iprobe(MPI_PROC_NULL, 1, w, &flag, &s));
    CHECK(flag, "iprobe");
    STATUS(&s, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    MPI(MPI_Mprobe(MPI_PROC_NULL, 1, w, &m, &s));
    CHECK(m == MPI_MESSAGE_NO_PROC, "mprobe");
    MPI(MPI_Mrecv(b, 10, MPI_BYTE, &m, &s));
    STATUS(&s, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    CHECK(m == MPI_MESSAGE_NULL, "mrecv");
    MPI(MPI_Improbe(MPI_PROC_NULL, 1, w, &flag, &m, &s));
    CHECK(flag && m == MPI_MESSAGE_NO_PROC, "improbe");
    MPI(MPI_Imrecv(b, 10, MPI_BYTE, &m, &r));
    MPI(MPI_Wait(&r, &s));
    STATUS(&s, MPI_PROC_NULL, MPI_ANY_TAG, 0);
}

int main(int argc, char **argv)
{
    static const int sizes[] = {0, 8, 1000, 5000, 20000, 100000, 290000};
    mallopt(M_PERTURB, 0x5a); /* what is read after it was freed is not what it was */
    begin(&argc, &argv, MPI_THREAD_SINGLE, 2);
    b = allocate(5 * BIG);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        several_held(sizes[i]);
        nonblocking(sizes[i]);
        freed(sizes[i]);
    }
    storm();
    null_process();
    free(b);
    return finish("probe");
}
