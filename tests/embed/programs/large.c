/* One message beyond 2 GiB, contiguous and not; needs 6 GiB of memory for two ranks and says so when there is less. */
#include <mpi.h>
#include "support.h"

static long long available(void)
{
    char line[200];
    long long kb = 0;
    FILE *f = fopen("/proc/meminfo", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %lld kB", &kb) == 1)
            break;
    if (f)
        fclose(f);
    return kb * 1024;
}

int main(int argc, char **argv)
{
    begin(&argc, &argv, MPI_THREAD_SINGLE, 2);
    const size_t count = ((size_t)2 << 30) / 8 + 12345, bytes = count * 8; /* of doubles: 2 GiB and a little */
    long long have = available(), least;
    MPI_Allreduce(&have, &least, 1, MPI_LONG_LONG, MPI_MIN, MPI_COMM_WORLD);
    if (least < (long long)bytes * 5 / 2 + (1 << 30)) {
        if (t.rank == 0)
            printf("skipped: %lld MiB of memory are available, this needs %zu\n", least >> 20,
                   (bytes * 5 / 2 >> 20) + 1024);
        MPI_Finalize();
        return 77;
    }
    part("2 GiB and a little");
    unsigned long *b = NULL;
    MPI_Status s;
    MPI_Count n;
    if (t.rank < 2) {
        b = allocate(bytes);
        for (size_t i = 0; i < count; i++)
            b[i] = t.rank == 0 ? i * 2654435761u : 0;
    }
    if (t.rank == 0) {
        MPI(MPI_Send(b, (int)count, MPI_UNSIGNED_LONG, 1, 1, MPI_COMM_WORLD));
    } else if (t.rank == 1) {
        MPI(MPI_Probe(0, 1, MPI_COMM_WORLD, &s));
        MPI(MPI_Get_elements_x(&s, MPI_UNSIGNED_LONG, &n));
        CHECK((size_t)n == count, "probed %lld", (long long)n);
        MPI(MPI_Recv(b, (int)count, MPI_UNSIGNED_LONG, 0, 1, MPI_COMM_WORLD, &s));
        MPI(MPI_Get_elements_x(&s, MPI_UNSIGNED_LONG, &n));
        CHECK((size_t)n == count, "received %lld", (long long)n);
        for (size_t i = 0; i < count; i++)
            if (b[i] != i * 2654435761u && !CHECK(false, "element %zu", i))
                break;
        CHECK(true, "content");
    }
    free(b);
    return finish("large");
}
