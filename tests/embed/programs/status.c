/* Calls that return one status leave its MPI_ERROR as it is (MPI-3.1, 3.2.5), whether the message is short or long,
 * expected or not, truncated or from MPI_PROC_NULL; MPI_Waitall and its kin set it when they return MPI_ERR_IN_STATUS.
 */
#include <mpi.h>
#include "support.h"

enum { LONG = 200000, MARK = MPI_ERR_DIMS };
static MPI_Comm w = MPI_COMM_WORLD;
static char *b, *c;

static MPI_Status marked(void)
{
    MPI_Status s;
    memset(&s, 0, sizeof s);
    s.MPI_ERROR = MARK;
    return s;
}
#define UNCHANGED(s, call) CHECK((s).MPI_ERROR == MARK, "%s, %d bytes: MPI_ERROR is %d", call, size, (s).MPI_ERROR)

/* Each receiving call once; rank 1 sends a message for each. */
static void receiving(int size)
{
    enum { MESSAGES = 9 };
    part("receives and probes");
    if (t.rank == 1) {
        for (int i = 0; i < MESSAGES; i++)
            MPI(MPI_Send(b, size, MPI_BYTE, 0, i, w));
    } else if (t.rank == 0) {
        MPI_Status s = marked();
        MPI_Request r;
        MPI_Message m;
        int flag = 0, index;

        MPI(MPI_Recv(b, size, MPI_BYTE, 1, 0, w, &s));
        UNCHANGED(s, "MPI_Recv");
        s = marked();
        MPI(MPI_Probe(1, 1, w, &s));
        UNCHANGED(s, "MPI_Probe");
        while (!flag) {
            s = marked();
            MPI(MPI_Iprobe(1, 1, w, &flag, &s));
            UNCHANGED(s, "MPI_Iprobe");
        }
        s = marked();
        MPI(MPI_Mprobe(1, 1, w, &m, &s));
        UNCHANGED(s, "MPI_Mprobe");
        s = marked();
        MPI(MPI_Mrecv(b, size, MPI_BYTE, &m, &s));
        UNCHANGED(s, "MPI_Mrecv");
        for (flag = 0; !flag;) {
            s = marked();
            MPI(MPI_Improbe(1, 2, w, &flag, &m, &s));
            UNCHANGED(s, "MPI_Improbe");
        }
        MPI(MPI_Imrecv(b, size, MPI_BYTE, &m, &r));
        s = marked();
        MPI(MPI_Wait(&r, &s));
        UNCHANGED(s, "MPI_Imrecv, MPI_Wait");
        MPI(MPI_Irecv(b, size, MPI_BYTE, 1, 3, w, &r));
        s = marked();
        MPI(MPI_Wait(&r, &s));
        UNCHANGED(s, "MPI_Wait");
        MPI(MPI_Irecv(b, size, MPI_BYTE, 1, 4, w, &r));
        for (flag = 0; !flag;) {
            s = marked();
            MPI(MPI_Test(&r, &flag, &s));
            UNCHANGED(s, "MPI_Test");
        }
        MPI(MPI_Irecv(b, size, MPI_BYTE, 1, 5, w, &r));
        s = marked();
        MPI(MPI_Waitany(1, &r, &index, &s));
        UNCHANGED(s, "MPI_Waitany");
        MPI(MPI_Irecv(b, size, MPI_BYTE, 1, 6, w, &r));
        for (flag = 0; !flag;) {
            s = marked();
            MPI(MPI_Request_get_status(r, &flag, &s));
            UNCHANGED(s, "MPI_Request_get_status");
        }
        for (flag = 0; !flag;) {
            s = marked();
            MPI(MPI_Testany(1, &r, &index, &flag, &s));
            UNCHANGED(s, "MPI_Testany");
        }
        MPI(MPI_Recv_init(b, size, MPI_BYTE, 1, 7, w, &r));
        MPI(MPI_Start(&r));
        s = marked();
        MPI(MPI_Wait(&r, &s));
        UNCHANGED(s, "MPI_Start, MPI_Wait");
        MPI(MPI_Request_free(&r));
        s = marked();
        CHECK(MPI_Recv(b, size / 2, MPI_BYTE, 1, 8, w, &s) != MPI_SUCCESS || size < 2, "it is truncated");
        UNCHANGED(s, "MPI_Recv, truncated");
        s = marked();
        MPI(MPI_Recv(b, size, MPI_BYTE, MPI_PROC_NULL, 0, w, &s));
        UNCHANGED(s, "MPI_Recv from MPI_PROC_NULL");
        s = marked();
        MPI(MPI_Probe(MPI_PROC_NULL, 0, w, &s));
        UNCHANGED(s, "MPI_Probe of MPI_PROC_NULL");
    }
}

static void exchanging(int size)
{
    part("send and receive in one");
    if (t.rank > 1)
        return;
    MPI_Status s = marked();
    MPI(MPI_Sendrecv(b, size, MPI_BYTE, 1 - t.rank, 1, c, size, MPI_BYTE, 1 - t.rank, 1, w, &s));
    UNCHANGED(s, "MPI_Sendrecv");
    s = marked();
    MPI(MPI_Sendrecv_replace(b, size, MPI_BYTE, 1 - t.rank, 2, 1 - t.rank, 2, w, &s));
    UNCHANGED(s, "MPI_Sendrecv_replace");
}

/* Several statuses: each says what became of its request when the call returns MPI_ERR_IN_STATUS. */
static void several(int size)
{
    part("several statuses");
    if (t.rank == 1) {
        MPI(MPI_Send(b, size, MPI_BYTE, 0, 1, w));
        MPI(MPI_Send(b, size, MPI_BYTE, 0, 2, w));
    } else if (t.rank == 0) {
        MPI_Request r[2];
        MPI_Status s[2] = {marked(), marked()};
        MPI(MPI_Irecv(b, size, MPI_BYTE, 1, 1, w, &r[0]));
        MPI(MPI_Irecv(c, size / 2, MPI_BYTE, 1, 2, w, &r[1]));
        CHECK(MPI_Waitall(2, r, s) == MPI_ERR_IN_STATUS, "the second is truncated");
        CHECK(s[0].MPI_ERROR == MPI_SUCCESS, "the first is %d", s[0].MPI_ERROR);
        CHECK(s[1].MPI_ERROR == MPI_ERR_TRUNCATE, "the second is %d", s[1].MPI_ERROR);
    }
}

int main(int argc, char **argv)
{
    static const int sizes[] = {8, 5000, LONG};
    begin(&argc, &argv, MPI_THREAD_SINGLE, 2);
    b = allocate(LONG);
    c = allocate(LONG);
    memset(b, 0, LONG);
    for (int i = 0; i < 3; i++) {
        receiving(sizes[i]);
        exchanging(sizes[i]);
        several(sizes[i]);
    }
    free(b);
    free(c);
    return finish("status");
}
