/* One-sided communication over point-to-point (run with --mca osc pt2pt): put, get, accumulate in all three kinds of
 * synchronization. */
#include <mpi.h>
#include "support.h"

enum { N = 5000 };
static MPI_Comm w = MPI_COMM_WORLD;
static MPI_Win win;
static int *memory, right, left;

static void fence(void)
{
    part("fence");
    int *a = allocate(N * sizeof *a), *b = allocate(N * sizeof *b);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < N; i++)
            a[i] = t.rank * 100000 + i + round, b[i] = -1;
        MPI(MPI_Win_fence(0, win));
        MPI(MPI_Put(a, N, MPI_INT, right, 0, N, MPI_INT, win));
        MPI(MPI_Win_fence(0, win));
        for (int i = 0; i < N; i++)
            if (memory[i] != left * 100000 + i + round)
                CHECK(false, "put: element %d is %d", i, memory[i]);
        MPI(MPI_Win_fence(0, win));
        MPI(MPI_Get(b, N, MPI_INT, right, 0, N, MPI_INT, win));
        MPI(MPI_Win_fence(0, win));
        for (int i = 0; i < N; i++)
            if (b[i] != t.rank * 100000 + i + round)
                CHECK(false, "get: element %d is %d", i, b[i]);
        for (int i = 0; i < N; i++)
            memory[i] = 1, a[i] = t.rank + i;
        MPI(MPI_Win_fence(0, win));
        for (int to = 0; to < t.size; to++)
            MPI(MPI_Accumulate(a, N, MPI_INT, to, 0, N, MPI_INT, MPI_SUM, win));
        MPI(MPI_Win_fence(0, win));
        for (int i = 0; i < N; i++)
            if (memory[i] != 1 + t.size * i + t.size * (t.size - 1) / 2)
                CHECK(false, "accumulate: element %d is %d", i, memory[i]);
        CHECK(true, "round");
    }
    free(a);
    free(b);
}

static void post_start(void)
{
    part("post, start, complete, wait");
    MPI_Group all, to, from;
    MPI(MPI_Comm_group(w, &all));
    MPI(MPI_Group_incl(all, 1, &right, &to));
    MPI(MPI_Group_incl(all, 1, &left, &from));
    for (int round = 0; round < 50; round++) {
        int x[3] = {t.rank, round, 7};
        MPI(MPI_Win_post(from, 0, win));
        MPI(MPI_Win_start(to, 0, win));
        MPI(MPI_Put(x, 3, MPI_INT, right, 10, 3, MPI_INT, win));
        MPI(MPI_Win_complete(win));
        MPI(MPI_Win_wait(win));
        CHECK(memory[10] == left && memory[11] == round && memory[12] == 7, "%d %d", memory[10], memory[11]);
    }
    MPI(MPI_Group_free(&all));
    MPI(MPI_Group_free(&to));
    MPI(MPI_Group_free(&from));
}

static void locks(void)
{
    part("lock");
    enum { TIMES = 100 };
    memory[0] = 0;
    MPI(MPI_Barrier(w));
    for (int i = 0; i < TIMES; i++) { /* everyone counts at rank 0, under an exclusive lock */
        int one = 1, old = -1;
        MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        if (i % 3 == 0) {
            MPI(MPI_Fetch_and_op(&one, &old, MPI_INT, 0, 0, MPI_SUM, win));
        } else if (i % 3 == 1) {
            MPI(MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win));
        } else {
            MPI(MPI_Get(&old, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
            MPI(MPI_Win_flush(0, win));
            old++;
            MPI(MPI_Put(&old, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
        }
        MPI(MPI_Win_unlock(0, win));
    }
    MPI(MPI_Barrier(w));
    int total = -1;
    MPI(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    MPI(MPI_Get(&total, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
    MPI(MPI_Win_unlock(0, win));
    CHECK(total == TIMES * t.size, "counted %d", total);
    MPI(MPI_Barrier(w));
    /* lock_all: everyone writes its place at everyone. */
    MPI(MPI_Win_lock_all(0, win));
    for (int to = 0; to < t.size; to++)
        MPI(MPI_Put(&t.rank, 1, MPI_INT, to, 100 + t.rank, 1, MPI_INT, win));
    MPI(MPI_Win_flush_all(win));
    MPI(MPI_Win_unlock_all(win));
    MPI(MPI_Barrier(w));
    MPI(MPI_Win_lock(MPI_LOCK_SHARED, t.rank, 0, win));
    for (int i = 0; i < t.size; i++)
        CHECK(memory[100 + i] == i, "place %d has %d", i, memory[100 + i]);
    MPI(MPI_Win_unlock(t.rank, win));
}

static void typed(void)
{
    part("noncontiguous");
    MPI_Datatype column;
    int v[100];
    MPI(MPI_Type_vector(100, 1, 30, MPI_INT, &column));
    MPI(MPI_Type_commit(&column));
    for (int i = 0; i < 100; i++)
        v[i] = t.rank * 1000 + i;
    memset(memory, 0xff, N * sizeof *memory);
    MPI(MPI_Win_fence(0, win));
    MPI(MPI_Put(v, 100, MPI_INT, right, 5, 1, column, win));
    MPI(MPI_Win_fence(0, win));
    for (int i = 0; i < N; i++) {
        bool hit = i >= 5 && (i - 5) % 30 == 0 && (i - 5) / 30 < 100;
        CHECK(memory[i] == (hit ? left * 1000 + (i - 5) / 30 : -1), "element %d is %d", i, memory[i]);
    }
    MPI(MPI_Type_free(&column));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv, MPI_THREAD_SINGLE, 2);
    right = (t.rank + 1) % t.size;
    left = (t.rank + t.size - 1) % t.size;
    memory = calloc(N, sizeof *memory);
    MPI(MPI_Win_create(memory, N * sizeof *memory, sizeof *memory, MPI_INFO_NULL, w, &win));
    fence();
    post_start();
    locks();
    typed();
    MPI(MPI_Win_free(&win));
    free(memory);
    return finish("onesided");
}
