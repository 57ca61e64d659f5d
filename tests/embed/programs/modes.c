/* Every send mode in every form, to every form of receive, at sizes around each threshold of any protocol: what
 * arrives, from whom, how much, and that nothing is written behind it. Ranks work in pairs, even to odd and back. */
#include <mpi.h>
#include "support.h"

enum { SENDS = 12, RECVS = 6, GUARD = 64, BIGGEST = 4 << 20 };
static const char *const send_names[SENDS] = {"send",      "ssend",      "bsend",      "rsend",
                                              "isend",     "issend",     "ibsend",     "irsend",
                                              "send_init", "ssend_init", "bsend_init", "rsend_init"};
static const char *const recv_names[RECVS] = {"recv", "irecv", "recv_init", "probe", "mprobe", "iprobe"};

static bool is_ready(int how)
{
    return how % 4 == 3;
}

static void do_send(int how, const void *b, int n, int to, int tag)
{
    MPI_Request r = MPI_REQUEST_NULL;
    MPI_Comm w = MPI_COMM_WORLD;
    int (*const blocking[])(const void *, int, MPI_Datatype, int, int, MPI_Comm) = {MPI_Send, MPI_Ssend, MPI_Bsend,
                                                                                    MPI_Rsend};
    int (*const start[])(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *) = {
        MPI_Isend, MPI_Issend, MPI_Ibsend, MPI_Irsend, MPI_Send_init, MPI_Ssend_init, MPI_Bsend_init, MPI_Rsend_init};
    if (how < 4) {
        MPI(blocking[how](b, n, MPI_BYTE, to, tag, w));
        return;
    }
    MPI(start[how - 4](b, n, MPI_BYTE, to, tag, w, &r));
    if (how >= 8) {
        MPI(MPI_Start(&r));
        MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
        CHECK(r != MPI_REQUEST_NULL, "a persistent request stays");
        MPI(MPI_Request_free(&r));
        return;
    }
    MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
    CHECK(r == MPI_REQUEST_NULL, "a request that was waited for is gone");
}

/* Receives; `posted` is called when the receive is in place, or at once for forms that look first. */
static void do_recv(int how, void *b, int room, int from, int tag, MPI_Status *s, bool ready)
{
    MPI_Comm w = MPI_COMM_WORLD;
    MPI_Request r = MPI_REQUEST_NULL;
    MPI_Message m;
    int flag = 0, n;
    if (ready || how == 1 || how == 2) {
        if (how == 2) {
            MPI(MPI_Recv_init(b, room, MPI_BYTE, from, tag, w, &r));
            MPI(MPI_Start(&r));
        } else {
            MPI(MPI_Irecv(b, room, MPI_BYTE, from, tag, w, &r));
        }
        if (ready)
            MPI(MPI_Send(NULL, 0, MPI_BYTE, from, 99, w)); /* now it may be sent */
        MPI(MPI_Wait(&r, s));
        if (how == 2)
            MPI(MPI_Request_free(&r));
        return;
    }
    switch (how) {
    case 0:
        MPI(MPI_Recv(b, room, MPI_BYTE, from, tag, w, s));
        break;
    case 3:
        MPI(MPI_Probe(from, tag, w, s));
        MPI(MPI_Get_count(s, MPI_BYTE, &n));
        CHECK(n <= room, "%d bytes probed, room for %d", n, room);
        MPI(MPI_Recv(b, n, MPI_BYTE, s->MPI_SOURCE, s->MPI_TAG, w, s));
        break;
    case 4:
        MPI(MPI_Mprobe(from, tag, w, &m, s));
        MPI(MPI_Mrecv(b, room, MPI_BYTE, &m, s));
        CHECK(m == MPI_MESSAGE_NULL, "a message that was received is gone");
        break;
    default:
        while (!flag)
            MPI(MPI_Iprobe(from, tag, w, &flag, s));
        MPI(MPI_Irecv(b, room, MPI_BYTE, from, tag, w, &r));
        MPI(MPI_Wait(&r, s));
    }
}

static int one_way(bool sender, int peer, int how, int receive, int n, unsigned char *b, int tag)
{
    unsigned seed = (unsigned)(n + how * 13 + receive);
    char name[64];
    const char *before = t.part;
    snprintf(name, sizeof name, "%s to %s, %d bytes", send_names[how], recv_names[receive], n);
    t.part = name;
    if (sender) {
        fill(b, (size_t)n, seed);
        if (is_ready(how))
            MPI(MPI_Recv(NULL, 0, MPI_BYTE, peer, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        do_send(how, b, n, peer, tag);
    } else {
        MPI_Status s;
        memset(b, 0xa5, (size_t)n + GUARD);
        do_recv(receive, b, n, peer, tag, &s, is_ready(how));
        STATUS(&s, peer, tag, n);
        CHECK(differs(b, (size_t)n, seed) < 0, "wrong byte at %ld", differs(b, (size_t)n, seed));
        CHECK(touched(b + n, GUARD, 0xa5) < 0, "written behind the end");
    }
    t.part = before;
    return tag % 1000 + 1;
}

static int sizes_around(int *sizes)
{
    static const int deltas[] = {-64, -48, -32, -16, -8, -1, 0, 1, 8, 16, 32};
    int n = 0;
    for (int s = 0; s <= 32; s = s < 10 ? s + 1 : s + 5)
        sizes[n++] = s;
    for (int p = 64; p <= 32768; p *= 2)
        for (size_t d = 0; d < sizeof deltas / sizeof *deltas; d++)
            if (p + deltas[d] > 32)
                sizes[n++] = p + deltas[d];
    return n;
}

int main(int argc, char **argv)
{
    static const int large[] = {49152,  65535,  65536,  65537,   98304,   131071,  131072,  262143,
                                262144, 262145, 524288, 1000000, 1048575, 1048577, 2097152, 4194304};
    int sizes[200], n_sizes = sizes_around(sizes), tag = 1, attached;
    begin(&argc, &argv, MPI_THREAD_SINGLE, 2);
    unsigned char *b = allocate(BIGGEST + GUARD);
    size_t room = 2 * (BIGGEST + MPI_BSEND_OVERHEAD);
    void *bsend_memory = allocate(room), *detached;
    MPI(MPI_Buffer_attach(bsend_memory, (int)room));
    int peer = t.rank ^ 1;
    if (peer < t.size) {
        for (int how = 0; how < SENDS; how++)
            for (int receive = 0; receive < RECVS; receive++)
                for (int way = 0; way < 2; way++) {
                    bool sender = (t.rank & 1) == way;
                    for (int i = 0; i < n_sizes; i++)
                        tag = one_way(sender, peer, how, receive, sizes[i], b, tag);
                }
        for (int how = 0; how < SENDS; how++)
            for (size_t i = 0; i < sizeof large / sizeof *large; i++)
                for (int way = 0; way < 2; way++)
                    tag = one_way((t.rank & 1) == way, peer, how, (how + (int)i) % RECVS, large[i], b, tag);
    }
    MPI(MPI_Buffer_detach(&detached, &attached));
    CHECK(detached == bsend_memory && attached == (int)room, "detach gives back what was attached");
    free(bsend_memory);
    free(b);
    return finish("modes");
}
