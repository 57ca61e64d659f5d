/* MPI_Alloc_mem: memory for messages that is registered when it is allocated and not when it is sent, as far as
 * performance variables say; and a program may do with it what it may do with any. Modes, any of them:
 * - registered: long messages go by RDMA from registered memory, and registrations are kept
 * - again: of what is given back some stays registered
 * - hugepage: what is large lies in large pages
 * - foreign: the pml is there and the memory comes from elsewhere
 * - threads N: four threads allocate, send and give back, N times each */
#include <mpi.h>
#include <pthread.h>
#include "support.h"

enum { MB = 1 << 20, LARGE = 2 << 20 };
static bool registered, again, hugepage, foreign;
static int rounds, peer;
static MPI_Comm w = MPI_COMM_WORLD;

/* Performance variables; a counter is read as what has been counted since its handle was made. */
static MPI_T_pvar_session session;
static struct variable {
    const char *name;
    int class;
    MPI_T_pvar_handle handle;
} made_ = {"pml_strata_rcache_misses", MPI_T_PVAR_CLASS_COUNTER, MPI_T_PVAR_HANDLE_NULL},
  found_ = {"pml_strata_rcache_hits", MPI_T_PVAR_CLASS_COUNTER, MPI_T_PVAR_HANDLE_NULL},
  bytes_ = {"pml_strata_rcache_registered_bytes", MPI_T_PVAR_CLASS_SIZE, MPI_T_PVAR_HANDLE_NULL},
  blocks_ = {"pml_strata_mpool_blocks", MPI_T_PVAR_CLASS_SIZE, MPI_T_PVAR_HANDLE_NULL};

static long long now(struct variable *v)
{
    unsigned long long value = 0;
    int index, count;

    if (!registered && !again)
        return 0;
    if (v->handle == MPI_T_PVAR_HANDLE_NULL) {
        if (!MPI(MPI_T_pvar_get_index(v->name, v->class, &index)))
            return 0;
        MPI(MPI_T_pvar_handle_alloc(session, index, NULL, &v->handle, &count));
    }
    MPI(MPI_T_pvar_read(session, v->handle, &value));
    return (long long)value;
}

static long long made(void)
{
    return now(&made_);
}

static void *get(size_t n, MPI_Info info)
{
    void *p = NULL;

    MPI(MPI_Alloc_mem((MPI_Aint)n, info, &p));
    CHECK(p != NULL, "%zu bytes", n);
    return p;
}

static void sizes(void)
{
    static const size_t n[] = {1, 100, 4095, 4096, 4097, 100000, MB, 5 * MB};
    enum { N = sizeof n / sizeof *n };
    char *p[N];

    part("sizes");
    for (unsigned i = 0; i < N; i++) {
        p[i] = get(n[i], MPI_INFO_NULL);
        fill(p[i], n[i], i);
        CHECK((uintptr_t)p[i] % sizeof(void *) == 0, "%p", (void *)p[i]);
        if (n[i] >= 4096 && (registered || hugepage))
            CHECK((uintptr_t)p[i] % 4096 == 0, "%zu bytes at %p", n[i], (void *)p[i]);
        if (n[i] >= MB && foreign) /* the C library's, with its own words in front */
            CHECK((uintptr_t)p[i] % 4096 != 0, "%zu bytes at %p", n[i], (void *)p[i]);
        if (n[i] >= LARGE && hugepage)
            CHECK((uintptr_t)p[i] % LARGE == 0, "%zu bytes at %p", n[i], (void *)p[i]);
    }
    for (unsigned i = 0; i < N; i++)
        CHECK(differs(p[i], n[i], i) < 0, "%zu bytes", n[i]);
    if (registered) /* all but the three that are less than a page */
        CHECK(now(&blocks_) == N - 3, "%lld blocks", now(&blocks_));
    for (unsigned i = 0; i < N; i++)
        MPI(MPI_Free_mem(p[(i * 5 + 3) % N])); /* in another order */
    CHECK(now(&blocks_) == 0, "%lld blocks", now(&blocks_));
}

static void there_and_back(char *b, size_t n, unsigned seed)
{
    if (t.rank < peer) {
        fill(b, n, seed);
        MPI(MPI_Send(b, (int)n, MPI_BYTE, peer, 1, w));
        MPI(MPI_Recv(b, (int)n, MPI_BYTE, peer, 2, w, MPI_STATUS_IGNORE));
        CHECK(differs(b, n, seed + 1) < 0, "what came back, %u", seed);
    } else {
        MPI(MPI_Recv(b, (int)n, MPI_BYTE, peer, 1, w, MPI_STATUS_IGNORE));
        CHECK(differs(b, n, seed) < 0, "what came, %u", seed);
        fill(b, n, seed + 1);
        MPI(MPI_Send(b, (int)n, MPI_BYTE, peer, 2, w));
    }
}

/* Of `n` bytes: allocating registers them, sending does not, giving back undoes it. */
static void not_at_send(size_t n)
{
    long long before, after, bytes, found;
    char *b;

    part("messages");
    before = made();
    bytes = now(&bytes_);
    b = get(n, MPI_INFO_NULL);
    after = made();
    found = now(&found_);
    if (registered) {
        CHECK(after > before, "%lld registrations, then %lld", before, after);
        CHECK(now(&bytes_) >= bytes + (long long)n, "%lld bytes, then %lld", bytes, now(&bytes_));
    }
    for (unsigned i = 0; i < 10; i++)
        there_and_back(b + 10 * i, n - 20 * i, i);
    if (registered) {
        CHECK(made() == after, "%lld registrations, then %lld", after, made());
        CHECK(now(&found_) >= found + 10, "found %lld times, then %lld", found, now(&found_));
    }
    part("given back");
    MPI(MPI_Free_mem(b));
    if (registered)
        CHECK(now(&bytes_) == bytes, "%lld bytes of %lld", now(&bytes_), bytes);
}

/* The same from memory of malloc's: the counters do count. */
static void at_send(void)
{
    long long before, mine, both;
    char *b = allocate(MB);

    part("other memory");
    before = made();
    there_and_back(b, MB, 3);
    mine = made() - before;
    MPI(MPI_Allreduce(&mine, &both, 1, MPI_LONG_LONG, MPI_SUM, w));
    CHECK(both > 0, "%lld registrations", both);
    free(b);
}

static void hints(void)
{
    static const struct {
        const char *text;
        bool ours;
    } cases[] = {{"mpool=strata", true},       {"mpool=default", false},
                 {"MPOOL=Strata", true},       {"mpool=stratagem", false},
                 {"color=red", true},          {"color=red,mpool=strata", true},
                 {"color=red,mpool=x", false}, {"", true}};
    MPI_Info info;

    part("hints");
    MPI(MPI_Info_create(&info));
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (*cases[i].text)
            MPI(MPI_Info_set(info, "mpool_hints", cases[i].text));
        else
            MPI(MPI_Info_delete(info, "mpool_hints"));
        long long before = made();
        char *b = get(MB, info);
        fill(b, MB, i);
        if (registered)
            CHECK((made() > before) == cases[i].ours, "\"%s\": %lld registrations, then %lld", cases[i].text, before,
                  made());
        MPI(MPI_Free_mem(b));
    }
    MPI(MPI_Info_free(&info));
}

/* By turns, of different sizes. MPI_Sendrecv_replace of Open MPI allocates in the same way. */
static void over_and_over(void)
{
    long long before;

    part("again");
    before = made();
    for (unsigned i = 0; i < 20; i++) {
        char *a = get(MB - 1000 * i, MPI_INFO_NULL), *b = get(100000, MPI_INFO_NULL);
        there_and_back(a, MB - 1000 * i, i);
        MPI(MPI_Sendrecv_replace(b, 100000, MPI_BYTE, peer, 1, peer, 1, w, MPI_STATUS_IGNORE));
        MPI(MPI_Free_mem(b));
        MPI(MPI_Free_mem(a));
    }
    CHECK(made() - before <= 3, "%lld registrations", made() - before);
    /* All at once it is more than is kept. */
    char *many[8];
    for (int i = 0; i < 8; i++)
        fill(many[i] = get(MB, MPI_INFO_NULL), MB, (unsigned)i);
    for (int i = 0; i < 8; i++)
        CHECK(differs(many[i], MB, (unsigned)i) < 0, "block %d", i);
    for (int i = 0; i < 8; i++)
        MPI(MPI_Free_mem(many[i]));
    CHECK(now(&bytes_) <= 4 * MB, "%lld bytes are kept", now(&bytes_));
}

static void window(void)
{
    MPI_Win win;
    int *base = NULL, x = t.rank + 1;

    part("window");
    MPI(MPI_Win_allocate(MB, sizeof(int), MPI_INFO_NULL, w, &base, &win));
    MPI(MPI_Win_fence(0, win));
    MPI(MPI_Put(&x, 1, MPI_INT, peer, 77, 1, MPI_INT, win));
    MPI(MPI_Win_fence(0, win));
    CHECK(base[77] == peer + 1, "%d", base[77]);
    MPI(MPI_Win_free(&win));
    /* A window over such memory. */
    base = get(MB, MPI_INFO_NULL);
    MPI(MPI_Win_create(base, MB, sizeof(int), MPI_INFO_NULL, w, &win));
    MPI(MPI_Win_fence(0, win));
    MPI(MPI_Put(&x, 1, MPI_INT, peer, 78, 1, MPI_INT, win));
    MPI(MPI_Win_fence(0, win));
    CHECK(base[78] == peer + 1, "%d", base[78]);
    MPI(MPI_Win_free(&win));
    MPI(MPI_Free_mem(base));
}

static void *storm(void *arg)
{
    int number = *(int *)arg;
    unsigned seed = (unsigned)(t.rank * 10 + number);

    for (int i = 0; i < rounds; i++) {
        size_t n = (size_t)(seed % 7 + 1) * 50000;
        char *out = get(n, MPI_INFO_NULL), *in = get(n * 8, MPI_INFO_NULL);
        MPI_Status status;
        int got;
        fill(out, n, (unsigned)i);
        MPI(MPI_Sendrecv(out, (int)n, MPI_BYTE, peer, number, in, (int)(n * 8), MPI_BYTE, peer, number, w, &status));
        MPI(MPI_Get_count(&status, MPI_BYTE, &got));
        if (differs(in, (size_t)got, (unsigned)i) >= 0)
            CHECK(false, "thread %d, round %d, %d bytes", number, i, got);
        MPI(MPI_Free_mem(i & 1 ? out : in));
        MPI(MPI_Free_mem(i & 1 ? in : out));
    }
    return NULL;
}

static void threads(void)
{
    enum { N = 4 };
    pthread_t thread[N];
    int number[N];

    part("threads");
    for (int i = 0; i < N; i++) {
        number[i] = i;
        CHECK(pthread_create(&thread[i], NULL, storm, &number[i]) == 0, "thread %d", i);
    }
    for (int i = 0; i < N; i++)
        pthread_join(thread[i], NULL);
}

static int n_deleted;
static int give_back(MPI_Comm c, int key, void *value, void *extra)
{
    (void)c;
    (void)key;
    (void)extra;
    n_deleted++;
    return MPI_Free_mem(value);
}

int main(int argc, char **argv)
{
    char *kept;
    int level, key;

    for (int i = 1; i < argc; i++) {
        registered = registered || strcmp(argv[i], "registered") == 0;
        again = again || strcmp(argv[i], "again") == 0;
        hugepage = hugepage || strcmp(argv[i], "hugepage") == 0;
        foreign = foreign || strcmp(argv[i], "foreign") == 0;
        if (strcmp(argv[i], "threads") == 0 && i + 1 < argc)
            rounds = atoi(argv[++i]);
    }
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    begin(&argc, &argv, rounds ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, 2);
    MPI(MPI_T_pvar_session_create(&session));
    peer = t.rank ^ 1;
    sizes();
    /* No device is in use, and so none registers, before the first message. */
    char word[8];
    there_and_back(word, sizeof word, 0);
    not_at_send(MB);
    not_at_send(5 * MB);
    if (registered)
        at_send();
    if (again)
        over_and_over();
    hints();
    if (rounds)
        threads();
    else
        window(); /* the osc over point-to-point knows no threads */
    /* What is still there at the end. */
    MPI(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, give_back, &key, NULL));
    MPI(MPI_Comm_set_attr(MPI_COMM_SELF, key, get(MB, MPI_INFO_NULL)));
    kept = get(MB, MPI_INFO_NULL);
    fill(kept, MB, 1);
    MPI(MPI_T_pvar_session_free(&session));
    MPI_T_finalize();
    int rc = finish("alloc_mem");
    /* Programs do read such memory. To give it back now is refused by Open MPI, or is not, as it happens: it looks in a
     * tree that it has destroyed. */
    if (n_deleted != 1 || differs(kept, MB, 1) >= 0) {
        printf("rank %d: after the end: %d given back, or other bytes\n", t.rank, n_deleted);
        rc = 1;
    }
    return rc;
}
