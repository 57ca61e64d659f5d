/* Alltoallv and allgatherv, blocking or not: ranks without data, displacements that are negative or in another order,
 * datatypes with gaps at some ranks only, with a negative lower bound too, in place, communicators that come and go. A
 * performance variable says whether Strata did them without messages of the pml; with the argument "off" it must not
 * have. */
#include "sent_messages.h"

#include <time.h>

enum { MOST = 8 };

/* ints that rank `from` has for `to` in a round; the first rank has none in every other one. */
static int length(int from, int to, int round, int longest)
{
    if (longest == 0 || (round % 2 && (from == 0 || to == 0)))
        return 0;
    return (from * 7 + to * 3 + round + 1) * 613 % longest;
}

static int value(int from, int to, int i)
{
    return from * 100000 + to * 1000 + i % 997;
}

struct blocks {
    int counts[MOST], displs[MOST], all;
};

/* One behind the other in the reverse order of ranks; `shift` to be subtracted from all displacements. */
static struct blocks lay_out(int n, const int *lengths, int shift)
{
    struct blocks b = {.all = 0};
    for (int r = n - 1; r >= 0; r--) {
        b.counts[r] = lengths[r];
        b.displs[r] = b.all - shift;
        b.all += lengths[r] + 1;
    }
    return b;
}

/* Every second int: the one behind that of the displacement, or the one before it, a negative lower bound. */
static MPI_Datatype make_holes(int where)
{
    MPI_Datatype moved, holes;
    int one = 1;
    MPI_Aint at = where * (MPI_Aint)sizeof(int);
    MPI(MPI_Type_create_hindexed(1, &one, &at, MPI_INT, &moved));
    MPI(MPI_Type_create_resized(moved, at < 0 ? at : 0, 2 * sizeof(int), &holes));
    MPI(MPI_Type_commit(&holes));
    MPI(MPI_Type_free(&moved));
    return holes;
}

/* What comes: ints without gaps, or with some of them, in memory with room before and behind. */
struct arrivals {
    MPI_Datatype type;
    int step, where; /* ints of an element, and where in it the one that counts is */
    int *memory, *base;
};

static struct arrivals make_arrivals(bool holes, int round, int elements, int shift)
{
    struct arrivals a = {.type = MPI_INT, .step = holes ? 2 : 1, .where = holes ? (round % 4 < 2 ? 1 : -1) : 0};
    int n = (elements + 2) * a.step;
    if (holes)
        a.type = make_holes(a.where);
    a.memory = malloc(sizeof(int) * (size_t)n);
    for (int i = 0; i < n; i++)
        a.memory[i] = -7;
    a.base = a.memory + (1 + shift) * a.step;
    return a;
}

static int *arrived(const struct arrivals *a, int element)
{
    return a->base + element * a->step + a->where;
}

static void check_gap(const struct arrivals *a, int element, int round)
{
    CHECK(a->step == 1 || a->base[element * a->step] == -7, "round %d: a gap was written", round);
}

static void free_arrivals(struct arrivals *a)
{
    if (a->step > 1 && a->type != MPI_DATATYPE_NULL)
        MPI(MPI_Type_free(&a->type));
    free(a->memory);
}

static void wait_a_moment(int me, int round)
{
    if ((me + round) % 3 == 0)
        nanosleep(&(struct timespec){0, 300000}, NULL);
}

/* The receiver's ints have gaps where `holes`, the sender's never. */
static void alltoallv(MPI_Comm c, int round, int longest, bool blocking)
{
    int me, n, going[MOST] = {0}, coming[MOST] = {0};
    MPI_Comm_rank(c, &me);
    MPI_Comm_size(c, &n);
    for (int r = 0; r < n; r++) {
        going[r] = length(me, r, round, longest);
        coming[r] = length(r, me, round, longest);
    }
    int shift = round % 3 == 0 ? 5 : 0;
    struct blocks out = lay_out(n, going, 0), in = lay_out(n, coming, shift);
    struct arrivals got = make_arrivals((me + round) % 2, round, in.all, shift);
    int *sent = malloc(sizeof(int) * (size_t)out.all);
    for (int r = 0; r < n; r++)
        for (int i = 0; i < going[r]; i++)
            sent[out.displs[r] + i] = value(me, r, i);
    wait_a_moment(me, round);
    if (blocking) {
        MPI(MPI_Alltoallv(sent, out.counts, out.displs, MPI_INT, got.base, in.counts, in.displs, got.type, c));
    } else {
        MPI_Request request;
        MPI(MPI_Ialltoallv(sent, out.counts, out.displs, MPI_INT, got.base, in.counts, in.displs, got.type, c,
                           &request));
        if (got.step > 1) /* before the end */
            MPI(MPI_Type_free(&got.type));
        MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    for (int r = 0; r < n; r++)
        for (int i = 0; i < coming[r]; i++) {
            int is = *arrived(&got, in.displs[r] + i);
            CHECK(is == value(r, me, i), "alltoallv, round %d: int %d of rank %d is %d", round, i, r, is);
            check_gap(&got, in.displs[r] + i, round);
        }
    free_arrivals(&got);
    free(sent);
}

/* As much comes as goes. */
static void alltoallv_in_place(MPI_Comm c, int round, int longest)
{
    int me, n, counts[MOST] = {0};
    MPI_Comm_rank(c, &me);
    MPI_Comm_size(c, &n);
    for (int r = 0; r < n; r++)
        counts[r] = length(r < me ? r : me, r < me ? me : r, round, longest);
    struct blocks b = lay_out(n, counts, 0);
    int *v = malloc(sizeof(int) * (size_t)b.all);
    for (int r = 0; r < n; r++)
        for (int i = 0; i < counts[r]; i++)
            v[b.displs[r] + i] = value(me, r, i);
    MPI(MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, v, b.counts, b.displs, MPI_INT, c));
    for (int r = 0; r < n; r++)
        for (int i = 0; i < counts[r]; i++)
            CHECK(v[b.displs[r] + i] == value(r, me, i), "alltoallv in place, round %d: int %d of rank %d", round, i,
                  r);
    free(v);
}

static void allgatherv(MPI_Comm c, int round, int longest, bool blocking, bool in_place)
{
    int me, n, lengths[MOST] = {0};
    MPI_Comm_rank(c, &me);
    MPI_Comm_size(c, &n);
    for (int r = 0; r < n; r++)
        lengths[r] = length(r, r, round, longest);
    struct blocks in = lay_out(n, lengths, 0);
    struct arrivals got = make_arrivals((me + round) % 2, round, in.all, 0);
    int *sent = malloc(sizeof(int) * (size_t)(lengths[me] + 1));
    for (int i = 0; i < lengths[me]; i++) {
        sent[i] = value(me, 0, i);
        *arrived(&got, in.displs[me] + i) = in_place ? sent[i] : -7;
    }
    const void *from = in_place ? MPI_IN_PLACE : sent;
    MPI_Request request;
    if (blocking) {
        MPI(MPI_Allgatherv(from, lengths[me], MPI_INT, got.base, in.counts, in.displs, got.type, c));
    } else {
        MPI(MPI_Iallgatherv(from, lengths[me], MPI_INT, got.base, in.counts, in.displs, got.type, c, &request));
        MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    for (int r = 0; r < n; r++)
        for (int i = 0; i < lengths[r]; i++) {
            int is = *arrived(&got, in.displs[r] + i);
            CHECK(is == value(r, 0, i), "allgatherv, round %d, in place %d: int %d of rank %d is %d", round, in_place,
                  i, r, is);
            check_gap(&got, in.displs[r] + i, round);
        }
    free_arrivals(&got);
    free(sent);
}

/* Nonblocking, then blocking. `off`: not nonblocking where rank 0 has no data, since libnbc of Open MPI 4.1.4 sometimes
 * does not count such a call there, and so gives its next one another tag than the other ranks do. */
static void all(MPI_Comm c, int round, int longest, bool off)
{
    for (int k = off && round % 2; k < 2; k++) {
        alltoallv(c, round, longest, k);
        allgatherv(c, round, longest, k, false);
        allgatherv(c, round, longest, k, true);
    }
    alltoallv_in_place(c, round, longest);
}

static void one_call(void)
{
    alltoallv(MPI_COMM_WORLD, 0, 20, true);
    allgatherv(MPI_COMM_WORLD, 0, 20, false, false);
}

int main(int argc, char **argv)
{
    static const int longest[] = {0, 5, 400, 20000};
    bool off = argc > 1 && strcmp(argv[1], "off") == 0;
    begin(&argc, &argv, MPI_THREAD_SINGLE, 2);
    for (size_t i = 0; i < sizeof longest / sizeof longest[0]; i++)
        for (int round = 0; round < 6; round++)
            all(MPI_COMM_WORLD, round, longest[i], off);
    for (int round = 0; round < 10; round++) {
        MPI_Comm c;
        MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, -round, &c));
        all(c, round, 50, off);
        MPI(MPI_Comm_free(&c));
    }
    check_messages(off, one_call);
    return finish("coll_vectors");
}
