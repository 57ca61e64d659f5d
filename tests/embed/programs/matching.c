/* Wildcards, order, messages to oneself, many unexpected messages, cancel of receives. */
#include <mpi.h>
#include "support.h"

static MPI_Comm w = MPI_COMM_WORLD;

/* Everyone sends numbered messages of mixed size to rank 0, which takes them with both wildcards: each sender's arrive
 * in order. */
static void any_any(void)
{
    enum { EACH = 500, BIG = 40000 };
    part("any source, any tag");
    unsigned char *b = allocate(BIG);
    if (t.rank == 0) {
        int *next = calloc((size_t)t.size, sizeof *next);
        for (int i = 0; i < EACH * (t.size - 1); i++) {
            MPI_Status s;
            int n;
            MPI(MPI_Recv(b, BIG, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, w, &s));
            MPI_Get_count(&s, MPI_BYTE, &n);
            CHECK(s.MPI_TAG == next[s.MPI_SOURCE], "tag %d of %d, not %d", s.MPI_TAG, s.MPI_SOURCE, next[s.MPI_SOURCE]);
            CHECK(differs(b, (size_t)n, (unsigned)(s.MPI_TAG + s.MPI_SOURCE)) < 0, "content of message %d", s.MPI_TAG);
            next[s.MPI_SOURCE]++;
        }
        free(next);
    } else {
        for (int i = 0; i < EACH; i++) {
            int n = i % 7 == 0 ? BIG - i : i;
            fill(b, (size_t)n, (unsigned)(i + t.rank));
            MPI(MPI_Send(b, n, MPI_BYTE, 0, i, w));
        }
    }
    free(b);
}

/* Receives posted before messages come; the wildcard posted first takes the first message that matches. */
static void posted_order(void)
{
    part("posted order");
    int v[6] = {0};
    if (t.rank == 0) {
        MPI_Request r[6];
        MPI_Status s[6];
        MPI(MPI_Irecv(&v[0], 1, MPI_INT, 1, 7, w, &r[0]));
        MPI(MPI_Irecv(&v[1], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, w, &r[1]));
        MPI(MPI_Irecv(&v[2], 1, MPI_INT, 1, MPI_ANY_TAG, w, &r[2]));
        MPI(MPI_Irecv(&v[3], 1, MPI_INT, MPI_ANY_SOURCE, 7, w, &r[3]));
        MPI(MPI_Irecv(&v[4], 1, MPI_INT, 1, 7, w, &r[4]));
        MPI(MPI_Irecv(&v[5], 1, MPI_INT, 1, MPI_ANY_TAG, w, &r[5]));
        MPI(MPI_Send(NULL, 0, MPI_INT, 1, 0, w));
        MPI(MPI_Waitall(6, r, s));
        /* Sent: 10 tag 7, 11 tag 7, 12 tag 8, 13 tag 7, 14 tag 7, 15 tag 9. */
        for (int i = 0; i < 6; i++)
            CHECK(v[i] == 10 + i, "receive %d got %d", i, v[i]);
    } else if (t.rank == 1) {
        static const int tags[6] = {7, 7, 8, 7, 7, 9};
        MPI(MPI_Recv(NULL, 0, MPI_INT, 0, 0, w, MPI_STATUS_IGNORE));
        for (int i = 0; i < 6; i++) {
            int x = 10 + i;
            MPI(MPI_Send(&x, 1, MPI_INT, 0, tags[i], w));
        }
    }
}

/* A receive for any tag must not take what collectives send inside. */
static void beside_collectives(void)
{
    part("any tag beside collectives");
    int got = -1, sum, one = 1, from = (t.rank + t.size - 1) % t.size, to = (t.rank + 1) % t.size;
    for (int round = 0; round < 50; round++) {
        MPI_Request r;
        MPI_Status s;
        int x = 1000 * t.rank + round;
        MPI(MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, w, &r));
        MPI(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, w));
        MPI(MPI_Barrier(w));
        int flag;
        MPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, w, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag, "nothing was sent yet");
        MPI(MPI_Barrier(w));
        MPI(MPI_Send(&x, 1, MPI_INT, to, round, w));
        MPI(MPI_Wait(&r, &s));
        CHECK(got == 1000 * from + round && s.MPI_TAG == round && s.MPI_SOURCE == from, "got %d tag %d", got,
              s.MPI_TAG);
        CHECK(sum == t.size, "sum %d", sum);
        MPI(MPI_Barrier(w));
    }
}

/* Highest tag that the library admits, and one more. */
static void tags(void)
{
    part("tags");
    int *ub = NULL, flag = 0, x = t.rank, y = -1;
    MPI(MPI_Comm_get_attr(w, MPI_TAG_UB, &ub, &flag));
    CHECK(flag && *ub >= 32767, "MPI_TAG_UB");
    MPI(MPI_Sendrecv(&x, 1, MPI_INT, (t.rank + 1) % t.size, *ub, &y, 1, MPI_INT, (t.rank + t.size - 1) % t.size, *ub, w,
                     MPI_STATUS_IGNORE));
    CHECK(y == (t.rank + t.size - 1) % t.size, "highest tag");
    CHECK(MPI_Send(&x, 1, MPI_INT, 0, -5, w) != MPI_SUCCESS, "a negative tag is an error");
}

static void oneself(void)
{
    static const int sizes[] = {0, 1, 100, 4096, 4097, 32768, 65536, 1 << 20};
    part("oneself");
    unsigned char *a = allocate(1 << 20), *b = allocate(1 << 20);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int n = sizes[i];
        MPI_Request r[2];
        MPI_Status s[2];
        for (int first = 0; first < 4; first++) { /* receive or send first; standard or synchronous */
            fill(a, (size_t)n, (unsigned)(n + first));
            memset(b, 0, (size_t)n);
            if (first & 1)
                MPI(MPI_Irecv(b, n, MPI_BYTE, t.rank, 3, w, &r[1]));
            MPI((first & 2 ? MPI_Issend : MPI_Isend)(a, n, MPI_BYTE, t.rank, 3, w, &r[0]));
            if (!(first & 1))
                MPI(MPI_Irecv(b, n, MPI_BYTE, MPI_ANY_SOURCE, 3, w, &r[1]));
            MPI(MPI_Waitall(2, r, s));
            STATUS(&s[1], t.rank, 3, n);
            CHECK(differs(b, (size_t)n, (unsigned)(n + first)) < 0, "%d bytes to oneself", n);
        }
        MPI(MPI_Sendrecv(a, n, MPI_BYTE, 0, 4, b, n, MPI_BYTE, 0, 4, MPI_COMM_SELF, &s[0]));
        MPI(MPI_Sendrecv_replace(b, n, MPI_BYTE, t.rank, 4, t.rank, 4, w, &s[0]));
        STATUS(&s[0], t.rank, 4, n);
    }
    free(a);
    free(b);
}

/* 10,000 messages that nobody waits for, taken in reverse order of tags. */
static void unexpected(int n)
{
    part("unexpected");
    int *v = calloc((size_t)n, sizeof *v);
    MPI_Request *r = calloc((size_t)n, sizeof *r);
    int to = (t.rank + 1) % t.size, from = (t.rank + t.size - 1) % t.size;
    for (int i = 0; i < n; i++) {
        v[i] = i ^ t.rank;
        MPI(MPI_Isend(&v[i], 1, MPI_INT, to, i, w, &r[i]));
    }
    for (int i = n; i-- > 0;) {
        int x = -1;
        MPI_Status s;
        MPI(MPI_Recv(&x, 1, MPI_INT, from, i, w, &s));
        CHECK(x == (i ^ from), "message %d is %d", i, x);
    }
    MPI(MPI_Waitall(n, r, MPI_STATUSES_IGNORE));
    free(v);
    free(r);
}

static void cancel(void)
{
    part("cancel of receives");
    int x = -1, y = -1, flag, peer = t.rank ^ 1;
    MPI_Request r, p;
    MPI_Status s;
    MPI(MPI_Irecv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 500, w, &r));
    MPI(MPI_Cancel(&r));
    MPI(MPI_Wait(&r, &s));
    MPI(MPI_Test_cancelled(&s, &flag));
    CHECK(flag, "a receive that nobody matches is cancelled");
    CHECK(r == MPI_REQUEST_NULL && x == -1, "gone, and nothing written");
    MPI(MPI_Barrier(w));
    if (peer <
        t.size) { /* a message that came before the cancel wins; one that comes after it goes to the next receive */
        MPI(MPI_Irecv(&x, 1, MPI_INT, peer, 501, w, &r));
        MPI(MPI_Send(&t.rank, 1, MPI_INT, peer, 501, w));
        MPI(MPI_Send(&t.rank, 1, MPI_INT, peer, 502, w));
        MPI(MPI_Recv(&y, 1, MPI_INT, peer, 502, w, &s));
        MPI(MPI_Cancel(&r));
        MPI(MPI_Wait(&r, &s));
        MPI(MPI_Test_cancelled(&s, &flag));
        CHECK(!flag && x == peer, "matched already: not cancelled, flag %d, value %d", flag, x);
        MPI(MPI_Irecv(&x, 1, MPI_INT, peer, 503, w, &r));
        MPI(MPI_Cancel(&r));
        MPI(MPI_Wait(&r, &s));
        MPI(MPI_Sendrecv(NULL, 0, MPI_INT, peer, 506, NULL, 0, MPI_INT, peer, 506, w, MPI_STATUS_IGNORE));
        MPI(MPI_Send(&t.rank, 1, MPI_INT, peer, 503, w));
        y = -1;
        MPI(MPI_Recv(&y, 1, MPI_INT, peer, 503, w, &s));
        CHECK(y == peer, "the message goes to the next receive");
        /* A persistent one can start again. */
        MPI(MPI_Recv_init(&x, 1, MPI_INT, peer, 504, w, &p));
        for (int round = 0; round < 3; round++) {
            MPI(MPI_Start(&p));
            MPI(MPI_Cancel(&p));
            MPI(MPI_Wait(&p, &s));
            MPI(MPI_Test_cancelled(&s, &flag));
            CHECK(flag, "persistent, cancelled in round %d", round);
        }
        x = -1;
        MPI(MPI_Sendrecv(NULL, 0, MPI_INT, peer, 506, NULL, 0, MPI_INT, peer, 506, w, MPI_STATUS_IGNORE));
        MPI(MPI_Start(&p));
        MPI(MPI_Send(&t.rank, 1, MPI_INT, peer, 504, w));
        MPI(MPI_Wait(&p, &s));
        MPI(MPI_Test_cancelled(&s, &flag));
        CHECK(!flag && x == peer, "started again");
        MPI(MPI_Request_free(&p));
    }
    /* A send in the storage of a receive that was cancelled: it was not. */
    for (int i = 0; i < 3 && peer < t.size; i++) {
        MPI_Request receives[20];
        for (int k = 0; k < 20; k++) {
            MPI(MPI_Irecv(&x, 1, MPI_INT, peer, 507, w, &receives[k]));
            MPI(MPI_Cancel(&receives[k]));
        }
        MPI(MPI_Waitall(20, receives, MPI_STATUSES_IGNORE));
        MPI(MPI_Issend(&t.rank, 1, MPI_INT, peer, 508, w, &r));
        MPI(MPI_Recv(&y, 1, MPI_INT, peer, 508, w, MPI_STATUS_IGNORE));
        MPI(MPI_Wait(&r, &s));
        MPI(MPI_Test_cancelled(&s, &flag));
        CHECK(!flag, "a send that nobody cancelled is not cancelled");
    }
    /* Cancelled and freed at once. */
    for (int i = 0; i < 1000; i++) {
        MPI(MPI_Irecv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 505, w, &r));
        MPI(MPI_Cancel(&r));
        MPI(MPI_Request_free(&r));
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv, MPI_THREAD_SINGLE, 2);
    any_any();
    posted_order();
    beside_collectives();
    tags();
    oneself();
    unexpected(argc > 1 ? atoi(argv[1]) : 10000);
    cancel();
    return finish("matching");
}
