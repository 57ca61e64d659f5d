/* What the MPI programs of this folder share: counting checks, patterns with which buffers are filled and compared.
 * Plain MPI and C; nothing here knows Strata. Static functions, so that each program is one translation unit. */
#ifndef EMBED_SUPPORT_H
#define EMBED_SUPPORT_H
#include <mpi.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUPPORT __attribute__((unused)) static

/* Of this process. Threads may check at the same time. */
static struct {
    int rank, size;
    atomic_long checks, failed;
    const char *part; /* what is being tested, for messages */
    bool reference;   /* a run under Open MPI's own pml, to validate the program: what is known to be wrong there is
                         skipped */
} t;

#define CHECK(condition, ...) check(condition, __FILE__, __LINE__, #condition, __VA_ARGS__)
#define MPI(call)             check_mpi((call), __FILE__, __LINE__, #call)

/* Prints the first 20 failures of a rank. The format says what was being done. */
__attribute__((format(printf, 5, 6))) SUPPORT bool check(bool ok, const char *file, int line, const char *what,
                                                         const char *format, ...)
{
    t.checks++;
    if (ok)
        return true;
    if (t.failed++ < 20) {
        char text[400];
        va_list args;
        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
        printf("%s:%d: rank %d, %s: failed: %s (%s)\n", file, line, t.rank, t.part ? t.part : "start", what, text);
        fflush(stdout);
    }
    return false;
}

SUPPORT bool check_mpi(int rc, const char *file, int line, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (rc != MPI_SUCCESS)
        MPI_Error_string(rc, text, &length);
    return check(rc == MPI_SUCCESS, file, line, what, "%s", text);
}

/* Starts MPI at a thread level; ends with exit status 77 when it is not to be had or there are too few ranks. Errors
 * come back as return codes. */
SUPPORT void begin(int *argc, char ***argv, int level, int min_ranks)
{
    int got;
    MPI_Init_thread(argc, argv, level, &got);
    MPI_Comm_rank(MPI_COMM_WORLD, &t.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &t.size);
    if (got < level || t.size < min_ranks) {
        if (t.rank == 0)
            printf("skipped: thread level %d of %d, %d ranks of %d\n", got, level, t.size, min_ranks);
        MPI_Finalize();
        exit(77);
    }
    t.reference = getenv("EMBED_REFERENCE") != NULL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
}

/* Adds up the checks of all ranks, prints one line; the exit status. */
SUPPORT int finish(const char *program)
{
    long mine[2] = {atomic_load(&t.checks), atomic_load(&t.failed)}, all[2] = {0, 1};
    t.part = "end";
    MPI_Allreduce(mine, all, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    if (t.rank == 0)
        printf("%s: %d ranks, %ld checks, %ld failed\n", program, t.size, all[0], all[1]);
    return all[1] ? 1 : 0;
}

/* Announces a part of the test: a barrier keeps the messages of parts from mixing. */
SUPPORT void part(const char *name)
{
    MPI_Barrier(MPI_COMM_WORLD);
    t.part = name;
    if (t.rank == 0 && getenv("EMBED_VERBOSE")) {
        printf("-- %s\n", name);
        fflush(stdout);
    }
}

/* Byte i of the pattern of `seed`. */
SUPPORT unsigned char pattern(size_t i, unsigned seed)
{
    return (unsigned char)((i * 131u) ^ (i >> 8) * 7u ^ seed * 29u ^ (i >> 16));
}

SUPPORT void fill(void *buffer, size_t n, unsigned seed)
{
    unsigned char *b = buffer;
    for (size_t i = 0; i < n; i++)
        b[i] = pattern(i, seed);
}

/* Index of the first byte that is not the pattern's, or -1. */
SUPPORT long differs(const void *buffer, size_t n, unsigned seed)
{
    const unsigned char *b = buffer;
    for (size_t i = 0; i < n; i++)
        if (b[i] != pattern(i, seed))
            return (long)i;
    return -1;
}

/* Index of the first byte that is not `byte`, or -1: memory that a receive must not have touched. */
SUPPORT long touched(const void *buffer, size_t n, int byte)
{
    const unsigned char *b = buffer;
    for (size_t i = 0; i < n; i++)
        if (b[i] != (unsigned char)byte)
            return (long)i;
    return -1;
}

SUPPORT void *allocate(size_t n)
{
    void *p = malloc(n ? n : 1);
    if (!p) {
        fprintf(stderr, "out of memory: %zu bytes\n", n);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    return p;
}

SUPPORT void check_status(const MPI_Status *s, int source, int tag, int bytes, int line)
{
    int count = -1;
    MPI_Get_count(s, MPI_BYTE, &count);
    check(s->MPI_SOURCE == source && s->MPI_TAG == tag && count == bytes, __FILE__, line, "status",
          "source %d tag %d count %d instead of %d, %d, %d", s->MPI_SOURCE, s->MPI_TAG, count, source, tag, bytes);
}
#define STATUS(s, source, tag, bytes) check_status(s, source, tag, bytes, __LINE__)

#endif
