/* Buffers of long messages whose memory goes away and comes back in every way there is, at the same addresses where
 * that can be had; each message's bytes are compared. Beside Open MPI's own memory hooks, if wanted. Arguments:
 * - N: steps of each thread; threads N
 * - hooks before|after|none: Open MPI's hooks are at work from before Strata starts; they start half-way; they never do
 * - patched: what tells Strata is its own code, in front of all others
 * - library FILE: buffers also lie in this shared library, which has an array room of ROOM bytes */
#define _GNU_SOURCE
#include <mpi.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include "support.h"

enum { KB = 1 << 10, PAGE = 4 << 10, ROOM = 384 * KB, SLOTS = 6, MAX_THREADS = 4 };
enum kind { MALLOC, MAPPED, SEGMENT, LIBRARY, KINDS };

/* A buffer, and how it is held. */
struct slot {
    enum kind kind;
    char *at;
    void *library;
};

/* One thread of each rank of a pair: the same seed, so they agree on sizes and directions. */
struct walker {
    int number, peer;
    unsigned both, mine; /* random numbers: agreed on, and this rank's own */
    long unmapped;
    struct slot slot[SLOTS];
};

static int steps = 200, n_threads = 1;
static const char *hooks = "", *library;
static bool patched;

static unsigned next(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* ---- Open MPI's hooks -------------------------------------------------------------------------------------------- */

static void *opal(const char *name)
{
    void *at = dlsym(RTLD_DEFAULT, name);
    CHECK(at != NULL, "there is no %s", name);
    return at;
}

static int level(void)
{
    int (*ask)(void) = (int (*)(void))opal("opal_mem_hooks_support_level");
    return ask();
}

static _Atomic(uintptr_t) wanted;
static atomic_long seen;

static void told(void *at, size_t n, void *data, bool inside)
{
    uintptr_t from = (uintptr_t)at, look = wanted;
    (void)data, (void)inside;
    if (look && from <= look && look < from + n)
        seen++;
}

/* They see what goes away. */
static void theirs_see(void)
{
    int (*add)(void *, void *) = (int (*)(void *, void *))opal("opal_mem_hooks_register_release");
    int (*take)(void *) = (int (*)(void *))opal("opal_mem_hooks_unregister_release");
    char *a = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int rc = add((void *)told, NULL);
    CHECK(rc == 0, "their hooks take nobody: %d", rc);
    seen = 0;
    wanted = (uintptr_t)a;
    munmap(a, PAGE);
    wanted = 0;
    CHECK(seen == 1, "%ld calls for one munmap", (long)seen);
    take((void *)told);
}

static void start_theirs(void)
{
    int (*open)(void *, int) = (int (*)(void *, int))opal("mca_base_framework_open");
    CHECK(level() == 0, "they are at work already");
    int rc = open(opal("opal_memory_base_framework"), 0);
    CHECK(rc == 0 && level() != 0, "they do not start: %d", rc);
}

/* What the C library's munmap begins with: Strata's jump, or what others write there, or neither. */
static int first_byte(void)
{
    return *(unsigned char *)dlsym(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), "munmap");
}

/* ---- memory that goes away ----------------------------------------------------------------------------------------
 */

static char *map_at(char *at)
{
    char *got =
        mmap(at, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED_NOREPLACE : 0), -1, 0);
    if (got == MAP_FAILED) /* another thread has been given the place */
        got = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return got;
}

static void take(struct slot *s, char *at)
{
    int id;

    switch (s->kind) {
    case MAPPED:
        s->at = map_at(at);
        break;
    case SEGMENT:
        id = shmget(IPC_PRIVATE, ROOM, IPC_CREAT | 0600);
        s->at = id < 0 ? NULL : shmat(id, NULL, 0);
        if (id >= 0)
            shmctl(id, IPC_RMID, NULL);
        break;
    case LIBRARY:
        s->library = dlmopen(LM_ID_BASE, library, RTLD_NOW);
        s->at = s->library ? dlsym(s->library, "room") : NULL;
        break;
    default:
        s->at = malloc(ROOM);
        break;
    }
    CHECK(s->at != NULL && s->at != (char *)-1, "no memory of kind %d", s->kind);
}

static void give_up(struct slot *s)
{
    switch (s->kind) {
    case MAPPED:
        munmap(s->at, ROOM);
        break;
    case SEGMENT:
        shmdt(s->at);
        break;
    case LIBRARY:
        dlclose(s->library);
        break;
    default:
        free(s->at);
        break;
    }
}

/* Other pages behind the same addresses, without giving them up. */
static void change(struct walker *w, struct slot *s)
{
    char *to, *got;

    switch (next(&w->mine) % 5) {
    case 0:
        CHECK(madvise(s->at, ROOM, MADV_DONTNEED) == 0, "DONTNEED");
        break;
    case 1:
        CHECK(madvise(s->at, ROOM, MADV_FREE) == 0, "FREE");
        break;
    case 2:
        got = mmap(s->at, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        CHECK(got == s->at, "FIXED");
        break;
    case 3: /* elsewhere, and something new where it was */
        to = map_at(NULL);
        got = mremap(s->at, ROOM, ROOM, MREMAP_MAYMOVE | MREMAP_FIXED, to);
        if (got == to) {
            s->at = map_at(s->at);
            munmap(to, ROOM);
        } else { /* the kernel has it in several pieces by now, and may have moved or unmapped some: left alone */
            s->at = map_at(NULL);
        }
        break;
    default: /* its end is cut off, and put back */
        got = mremap(s->at, ROOM, ROOM / 2, 0);
        CHECK(got == s->at, "mremap");
        got = mremap(s->at, ROOM / 2, ROOM, MREMAP_MAYMOVE);
        if (got == MAP_FAILED) {
            munmap(s->at, ROOM / 2);
            got = map_at(s->at);
        }
        s->at = got;
        break;
    }
}

static void move(struct walker *w, struct slot *s)
{
    unsigned what = next(&w->mine) % 4;

    if (what == 0)
        return; /* the same memory again */
    w->unmapped++;
    if (what == 1 && s->kind == MAPPED) {
        change(w, s);
    } else {
        char *at = s->at;
        give_up(s);
        take(s, at);
    }
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static void step(struct walker *w, int i)
{
    struct slot *s = &w->slot[next(&w->both) % SLOTS];
    size_t n = ROOM / 4 + next(&w->both) % (ROOM * 3 / 4 - 64), skip = next(&w->both) % 64;
    bool to_the_right = next(&w->both) % 2;
    unsigned seed = (unsigned)(i * 7 + w->number);
    long at;

    move(w, s);
    char *b = s->at + skip;
    if (to_the_right == (t.rank < w->peer)) {
        fill(b, n, seed);
        MPI(MPI_Send(b, (int)n, MPI_BYTE, w->peer, w->number, MPI_COMM_WORLD));
        return;
    }
    MPI(MPI_Recv(b, (int)n, MPI_BYTE, w->peer, w->number, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if ((at = differs(b, n, seed)) >= 0)
        CHECK(false, "step %d, kind %d, %zu bytes, the one at %ld", i, s->kind, n, at);
}

static atomic_flag aborting = ATOMIC_FLAG_INIT;

static void *walk(void *arg)
{
    struct walker *w = arg;

    for (int i = 0; i < steps; i++) {
        step(w, i);
        if (!t.failed)
            continue;
        /* The peer may wait for ever. One thread: Open MPI 4.1.4's MPI_Abort in two at a time may crash instead. */
        if (!atomic_flag_test_and_set(&aborting))
            MPI_Abort(MPI_COMM_WORLD, 1);
        break;
    }
    return NULL;
}

static void begin_walker(struct walker *w, int number)
{
    w->number = number;
    w->peer = t.rank ^ 1;
    w->both = (unsigned)(77 + number * 1000 + (t.rank | 1));
    w->mine = (unsigned)(99 + number * 1000 + t.rank);
    for (int i = 0; i < SLOTS; i++) {
        /* A library is loaded once in a process. */
        w->slot[i].kind = i == SLOTS - 1 && library && number == 0 ? LIBRARY : (enum kind)(i % (KINDS - 1));
        take(&w->slot[i], NULL);
    }
}

static void walk_all(struct walker *w, const char *name)
{
    pthread_t thread[MAX_THREADS];

    part(name);
    for (int i = 1; i < n_threads; i++)
        CHECK(pthread_create(&thread[i], NULL, walk, &w[i]) == 0, "thread %d", i);
    walk(&w[0]);
    for (int i = 1; i < n_threads; i++)
        pthread_join(thread[i], NULL);
}

/* ---- what Strata did -----------------------------------------------------------------------------------------------
 */

/* A performance variable; what is read has been counted since it was first read. */
struct variable {
    const char *name;
    MPI_T_pvar_handle handle;
};

static long long count(MPI_T_pvar_session session, struct variable *v)
{
    unsigned long long value = 0;
    int index, n;

    if (!v->handle) {
        if (!MPI(MPI_T_pvar_get_index(v->name, MPI_T_PVAR_CLASS_COUNTER, &index)))
            return 0;
        MPI(MPI_T_pvar_handle_alloc(session, index, NULL, &v->handle, &n));
    }
    MPI(MPI_T_pvar_read(session, v->handle, &value));
    return (long long)value;
}

static void arguments(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "patched"))
            patched = true;
        else if (!strcmp(argv[i], "threads") && i + 1 < argc)
            n_threads = atoi(argv[++i]);
        else if (!strcmp(argv[i], "hooks") && i + 1 < argc)
            hooks = argv[++i];
        else if (!strcmp(argv[i], "library") && i + 1 < argc)
            library = argv[++i];
        else
            steps = atoi(argv[i]);
    }
    if (n_threads > MAX_THREADS)
        n_threads = MAX_THREADS;
}

int main(int argc, char **argv)
{
    static struct walker w[MAX_THREADS];
    MPI_T_pvar_session session;
    struct variable hits = {.name = "pml_strata_rcache_hits"}, gone = {.name = "pml_strata_rcache_invalidations"};
    int provided;

    arguments(argc, argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    begin(&argc, &argv, n_threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, 2);
    MPI(MPI_T_pvar_session_create(&session));
    t.part = "start";
    CHECK((level() != 0) == !strcmp(hooks, "before"), "Open MPI's hooks: level %d", level());
    if (!strcmp(hooks, "before"))
        theirs_see();
    for (int i = 0; i < n_threads; i++)
        begin_walker(&w[i], i);
    if (patched)
        (void)count(session, &hits), (void)count(session, &gone);
    walk_all(w, "first half");
    if (patched)
        CHECK(first_byte() == 0xe9, "munmap begins with %02x", first_byte());
    if (!strcmp(hooks, "after")) {
        start_theirs();
        theirs_see();
        CHECK(!patched || first_byte() == 0x49, "munmap begins with %02x", first_byte());
    }
    walk_all(w, "second half");
    if (patched)
        CHECK(first_byte() == 0xe9, "munmap begins with %02x at the end", first_byte());
    if (*hooks && strcmp(hooks, "none"))
        theirs_see();
    CHECK(w[0].unmapped > steps / 2, "%ld", w[0].unmapped);
    if (patched) {
        CHECK(count(session, &hits) > steps / 8, "%lld registrations were found again", count(session, &hits));
        CHECK(count(session, &gone) > steps / 8, "%lld were taken out", count(session, &gone));
        printf("rank %d: memory went %ld times; registrations: %lld found again, %lld taken out\n", t.rank,
               w[0].unmapped, count(session, &hits), count(session, &gone));
    }
    for (int i = 0; i < n_threads; i++)
        for (int k = 0; k < SLOTS; k++)
            give_up(&w[i].slot[k]);
    MPI(MPI_T_pvar_session_free(&session));
    MPI_T_finalize();
    return finish("churn");
}
