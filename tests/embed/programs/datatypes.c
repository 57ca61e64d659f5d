/* Derived datatypes: the receiver's memory must be what MPI_Pack and MPI_Unpack give (serially, without any message),
 * holes untouched. Every type goes to every type of the same signature, short and long, blocking and not, partly
 * filled. */
#include <mpi.h>
#include "support.h"

enum { N_TYPES = 9, N_COUNTS = 5 };
static MPI_Comm w = MPI_COMM_WORLD;
static const char *const names[N_TYPES] = {"plain",    "vector",   "indexed",           "struct with holes", "resized",
                                           "subarray", "negative", "vector of vectors", "reversed"};

/* Types of 24 ints each, so that any can be received as any other. */
static MPI_Datatype make(int which)
{
    MPI_Datatype a, b = MPI_DATATYPE_NULL;
    int lengths[3] = {4, 12, 8}, at[3] = {30, 2, 18}, sizes[2] = {9, 8}, sub[2] = {6, 4}, start[2] = {2, 3};
    MPI_Aint bytes[3] = {0, 24, 100};
    MPI_Datatype three[3] = {MPI_INT, MPI_INT, MPI_INT};
    int backwards[24];
    switch (which) {
    case 0:
        MPI(MPI_Type_contiguous(24, MPI_INT, &b));
        break;
    case 1:
        MPI(MPI_Type_vector(8, 3, 5, MPI_INT, &b));
        break;
    case 2: /* out of order */
        MPI(MPI_Type_indexed(3, lengths, at, MPI_INT, &b));
        break;
    case 3:
        MPI(MPI_Type_create_struct(3, lengths, bytes, three, &b));
        break;
    case 4:
        MPI(MPI_Type_vector(6, 4, 6, MPI_INT, &a));
        MPI(MPI_Type_create_resized(a, -16, 200, &b)); /* lower bound and extent of its own */
        MPI(MPI_Type_free(&a));
        break;
    case 5:
        MPI(MPI_Type_create_subarray(2, sizes, sub, start, MPI_ORDER_C, MPI_INT, &b));
        break;
    case 6: /* data in front of the address that is given */
        bytes[0] = -40, bytes[1] = -200, bytes[2] = 8;
        MPI(MPI_Type_create_hindexed(3, lengths, bytes, MPI_INT, &b));
        break;
    case 7:
        MPI(MPI_Type_vector(3, 2, 3, MPI_INT, &a));
        MPI(MPI_Type_create_hvector(4, 1, 44, a, &b));
        MPI(MPI_Type_free(&a));
        break;
    default:
        for (int i = 0; i < 24; i++)
            backwards[i] = 40 - i;
        MPI(MPI_Type_create_indexed_block(24, 1, backwards, MPI_INT, &b));
    }
    MPI(MPI_Type_commit(&b));
    return b;
}

/* Memory for `count` elements: *base is freed, the return value is the address to give to MPI. */
static char *room(MPI_Datatype type, int count, char **base, size_t *size)
{
    MPI_Aint lb, extent, true_lb, true_extent;
    MPI(MPI_Type_get_extent(type, &lb, &extent));
    MPI(MPI_Type_get_true_extent(type, &true_lb, &true_extent));
    size_t front = 512;
    *size = front + (size_t)extent * (size_t)count + (size_t)true_extent + 1024;
    *base = allocate(*size);
    return *base + front;
}

/* `basics`: basic elements of an element of either type. */
static void transfer(MPI_Datatype from, MPI_Datatype to, int count, int sent, int basics, int how)
{
    char *base[3], *at[3];
    size_t size[3];
    int n, position = 0, got, elements;
    MPI_Status s;
    MPI(MPI_Type_size(from, &n));
    n *= count;
    at[0] = room(from, count, &base[0], &size[0]);
    at[1] = room(to, count, &base[1], &size[1]);
    at[2] = room(to, count, &base[2], &size[2]);
    char *packed = allocate((size_t)n);
    fill(base[0], size[0], 3);
    memset(base[1], 0x77, size[1]);
    memset(base[2], 0x77, size[2]);
    MPI(MPI_Pack(at[0], sent, from, packed, n, &position, w));
    int bytes = position;
    position = 0; /* what must be there */
    if (sent)
        MPI(MPI_Unpack(packed, bytes, &position, at[2], sent, to, w));
    MPI_Request r = MPI_REQUEST_NULL;
    if (t.rank == 0) {
        switch (how) {
        case 0:
            MPI(MPI_Send(at[0], sent, from, 1, 5, w));
            break;
        case 1:
            MPI(MPI_Isend(at[0], sent, from, 1, 5, w, &r));
            break;
        case 2:
            MPI(MPI_Send_init(at[0], sent, from, 1, 5, w, &r));
            MPI(MPI_Start(&r));
            break;
        default:
            MPI(MPI_Ssend(at[0], sent, from, 1, 5, w));
        }
        MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
        if (how == 2)
            MPI(MPI_Request_free(&r));
    } else if (t.rank == 1) {
        if (how == 1) {
            MPI_Message m;
            MPI(MPI_Mprobe(0, 5, w, &m, &s));
            MPI(MPI_Mrecv(at[1], count, to, &m, &s));
        } else {
            MPI(MPI_Recv(at[1], count, to, 0, 5, w, &s));
        }
        MPI(MPI_Get_count(&s, to, &got));
        MPI(MPI_Get_elements(&s, to, &elements));
        CHECK(got == sent && elements == basics * sent, "count %d, elements %d of %d", got, elements, sent);
        CHECK(memcmp(base[1], base[2], size[1]) == 0, "memory differs");
    }
    for (int i = 0; i < 3; i++)
        free(base[i]);
    free(packed);
}

static void all_pairs(const MPI_Datatype *types)
{
    static const int counts[N_COUNTS] = {1, 3, 40, 700, 12000};
    for (int from = 0; from < N_TYPES; from++)
        for (int to = 0; to < N_TYPES; to++) {
            char name[80];
            snprintf(name, sizeof name, "%s to %s", names[from], names[to]);
            part(name);
            for (int c = 0; c < N_COUNTS; c++) {
                transfer(types[from], types[to], counts[c], counts[c], 24, (from + to + c) % 4);
                if (c < 4)
                    transfer(types[from], types[to], counts[c], counts[c] / 2, 24, (from + to + c + 1) % 4);
            }
        }
}

/* Basic elements of different lengths, with which no part of a message ends at the boundary of one. */
static void uneven(void)
{
    static const int counts[] = {1, 500, 3001, 12001, 150001};
    MPI_Datatype basic[3][2] = {{MPI_CHAR, MPI_DOUBLE}, {MPI_CHAR, MPI_LONG_DOUBLE}, {MPI_SHORT, MPI_DOUBLE}};
    int lengths[3][2] = {{1, 1}, {1, 1}, {1, 3}};
    MPI_Aint at[2][2] = {{0, 16}, {36, 8}};
    for (int which = 0; which < 3; which++) {
        MPI_Datatype types[2];
        if (which == 1 && OMPI_MAJOR_VERSION == 5 && OMPI_MINOR_VERSION == 0 && OMPI_RELEASE_VERSION <= 9) {
            /* 5.0.9 unpacks a message of this type wrongly, over its own ob1 as well. */
            if (t.rank == 0)
                printf("left out: char and long double under Open MPI 5.0.%d\n", OMPI_RELEASE_VERSION);
            continue;
        }
        part(which == 0 ? "char and double" : which == 1 ? "char and long double" : "short and three doubles");
        for (int i = 0; i < 2; i++) {
            MPI(MPI_Type_create_struct(2, lengths[which], at[i], basic[which], &types[i]));
            MPI(MPI_Type_commit(&types[i]));
        }
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (int how = 0; how < 4; how++)
                transfer(types[how & 1], types[how >> 1], counts[c], counts[c], 1 + lengths[which][1],
                         (how + (int)c) % 4);
        MPI(MPI_Type_free(&types[0]));
        MPI(MPI_Type_free(&types[1]));
    }
}

/* A message that ends in the middle of an element of the receiver's type. */
static void partial(const MPI_Datatype *types)
{
    for (int which = 0; which < N_TYPES; which++)
        for (int ints = 1; ints < 200000; ints = ints * 3 + 1) {
            char name[80], *base, *at;
            size_t size;
            int count = ints / 24 + 2, got, elements;
            snprintf(name, sizeof name, "%d ints as %s", ints, names[which]);
            part(name);
            int *v = allocate((size_t)ints * sizeof *v);
            for (int i = 0; i < ints; i++)
                v[i] = i * 7 + which;
            if (t.rank == 0) {
                MPI(MPI_Send(v, ints, MPI_INT, 1, 6, w));
            } else if (t.rank == 1) {
                MPI_Status s;
                at = room(types[which], count, &base, &size);
                memset(base, 0, size);
                MPI(MPI_Recv(at, count, types[which], 0, 6, w, &s));
                MPI(MPI_Get_count(&s, types[which], &got));
                MPI(MPI_Get_elements(&s, types[which], &elements));
                CHECK(elements == ints, "elements %d of %d", elements, ints);
                CHECK(got == (ints % 24 ? MPI_UNDEFINED : ints / 24), "count %d", got);
                int *back = calloc((size_t)(count * 24), sizeof *back), position = 0;
                MPI(MPI_Pack(at, count, types[which], back, count * 96, &position, w));
                CHECK(memcmp(back, v, (size_t)ints * 4) == 0, "content");
                CHECK(touched(back + ints, (size_t)(count * 24 - ints) * 4, 0) < 0, "more was written");
                free(back);
                free(base);
            }
            free(v);
        }
}

/* Types without data, and none of a type. */
static void nothing(const MPI_Datatype *types)
{
    part("zero size");
    MPI_Datatype empty, empty_struct;
    MPI_Status s;
    int n = -1, peer = t.rank ^ 1, zero = 0;
    MPI_Aint at = 0;
    char x = 'x';
    MPI(MPI_Type_contiguous(0, MPI_INT, &empty));
    MPI(MPI_Type_commit(&empty));
    MPI(MPI_Type_create_struct(1, &zero, &at, &types[1], &empty_struct));
    MPI(MPI_Type_commit(&empty_struct));
    if (peer < t.size) {
        MPI(MPI_Sendrecv(&x, 5, empty, peer, 1, &x, 5, empty_struct, peer, 1, w, &s));
        MPI(MPI_Get_elements(&s, empty_struct, &n));
        CHECK(n == 0 && x == 'x', "%d", n);
        MPI(MPI_Sendrecv(NULL, 0, types[1], peer, 1, NULL, 0, types[2], peer, 1, w, &s));
        MPI(MPI_Get_count(&s, types[2], &n));
        CHECK(n == 0, "%d", n);
        MPI(MPI_Sendrecv(NULL, 0, types[1], peer, 1, &x, 1, MPI_CHAR, peer, 1, w, &s));
        MPI(MPI_Get_count(&s, MPI_CHAR, &n));
        CHECK(n == 0 && x == 'x', "%d", n);
    }
    MPI(MPI_Type_free(&empty));
    MPI(MPI_Type_free(&empty_struct));
}

/* MPI_BOTTOM and absolute addresses; a type that is freed while it is in use. */
static void bottom(void)
{
    part("MPI_BOTTOM");
    int a[1000], b[3000], lengths[2] = {1000, 3000};
    MPI_Aint at[2];
    MPI_Datatype two;
    MPI_Request r;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 1000; i++)
            a[i] = t.rank == 0 ? i : -1;
        for (int i = 0; i < 3000; i++)
            b[i] = t.rank == 0 ? 5000 + i : -1;
        MPI(MPI_Get_address(a, &at[0]));
        MPI(MPI_Get_address(b, &at[1]));
        MPI(MPI_Type_create_hindexed(2, lengths, at, MPI_INT, &two));
        MPI(MPI_Type_commit(&two));
        if (t.rank == 0)
            MPI(MPI_Isend(MPI_BOTTOM, 1, two, 1, 2, w, &r));
        else if (t.rank == 1)
            MPI(MPI_Irecv(MPI_BOTTOM, 1, two, 0, 2, w, &r));
        MPI(MPI_Type_free(&two)); /* may be freed while in use */
        if (t.rank < 2)
            MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
        for (int i = 0; i < 1000 && t.rank < 2; i++)
            CHECK(a[i] == i, "a[%d] is %d", i, a[i]);
        for (int i = 0; i < 3000 && t.rank < 2; i++)
            CHECK(b[i] == 5000 + i, "b[%d] is %d", i, b[i]);
    }
}

/* Very many small pieces, by rendezvous, both ways at once. */
static void long_ones(void)
{
    part("a column of a large matrix");
    enum { N = 1500, COLUMNS = 300 };
    double *m = allocate(sizeof(double) * N * N);
    MPI_Datatype column, columns;
    int peer = t.rank ^ 1;
    MPI(MPI_Type_vector(N, 1, N, MPI_DOUBLE, &column));
    MPI(MPI_Type_create_resized(column, 0, sizeof(double), &columns));
    MPI(MPI_Type_commit(&columns));
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            m[i * N + k] = t.rank * 1e7 + i * N + k;
    if (peer < t.size) {
        MPI(MPI_Sendrecv(m, COLUMNS, columns, peer, 8, m + 400, COLUMNS, columns, peer, 8, w, MPI_STATUS_IGNORE));
        for (int i = 0; i < N; i++)
            for (int k = 0; k < N; k++) {
                bool received = k >= 400 && k < 400 + COLUMNS;
                double wanted = received ? peer * 1e7 + i * N + k - 400 : t.rank * 1e7 + i * N + k;
                if (m[i * N + k] != wanted)
                    CHECK(false, "row %d column %d: %f instead of %f", i, k, m[i * N + k], wanted);
            }
        /* Columns as rows: a transposition. */
        MPI(MPI_Sendrecv_replace(m, 100, columns, peer, 8, peer, 8, w, MPI_STATUS_IGNORE));
        for (int i = 0; i < N; i++)
            CHECK(m[i * N + 99] == peer * 1e7 + i * N + 99, "replaced, row %d: %f", i, m[i * N + 99]);
    }
    MPI(MPI_Type_free(&column));
    MPI(MPI_Type_free(&columns));
    free(m);
}

int main(int argc, char **argv)
{
    MPI_Datatype types[N_TYPES];
    begin(&argc, &argv, MPI_THREAD_SINGLE, 2);
    for (int i = 0; i < N_TYPES; i++)
        types[i] = make(i);
    all_pairs(types);
    uneven();
    partial(types);
    nothing(types);
    bottom();
    long_ones();
    for (int i = 0; i < N_TYPES; i++)
        MPI(MPI_Type_free(&types[i]));
    return finish("datatypes");
}
