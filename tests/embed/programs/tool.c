/* MPI_T: the pml's parameters are control variables that can be read, its performance variables move with traffic. With
 * another pml there are none and nothing is asked of it. */
#include <mpi.h>
#include "support.h"

enum { TEXT = 512 };
static const char prefix[] = "pml_strata_";

static void control_variables(bool wanted)
{
    int n, found = 0, readable = 0;
    t.part = "control variables";
    MPI(MPI_T_cvar_get_num(&n));
    for (int i = 0; i < n; i++) {
        char name[TEXT], help[TEXT];
        int name_length = TEXT, help_length = TEXT, verbosity, bind, scope, count;
        MPI_Datatype type;
        MPI_T_enum values;
        MPI_T_cvar_handle handle;
        if (MPI_T_cvar_get_info(i, name, &name_length, &verbosity, &type, &values, help, &help_length, &bind, &scope) !=
                MPI_SUCCESS ||
            strncmp(name, prefix, strlen(prefix)) != 0 || strstr(name, "_version")) /* those are Open MPI's */
            continue;
        found++;
        CHECK(help[0], "%s has no help", name);
        MPI(MPI_T_cvar_handle_alloc(i, NULL, &handle, &count));
        char *value = calloc((size_t)count + 1, 16);
        readable += MPI_T_cvar_read(handle, value) == MPI_SUCCESS;
        char variable[TEXT + 16];
        snprintf(variable, sizeof variable, "OMPI_MCA_%s", name);
        const char *set = getenv(variable); /* by --mca */
        CHECK(!set || strcmp(set, value) == 0, "%s is %s instead of %s", name, value, set);
        free(value);
        MPI(MPI_T_cvar_handle_free(&handle));
    }
    if (wanted)
        CHECK(found >= 5 && readable == found, "%d found, %d readable", found, readable);
    if (t.rank == 0)
        printf("%d control variables\n", found);
}

enum { MOST = 128 };
static struct {
    char name[TEXT];
    MPI_T_pvar_handle handle;
    MPI_Datatype type;
    int count;
    unsigned long long first;
} variables[MOST];
static int n_variables;
static MPI_T_pvar_session session;

static unsigned long long read_one(int k)
{
    union {
        unsigned u;
        unsigned long l;
        unsigned long long ll;
        double d;
        char room[4096];
    } v;
    memset(&v, 0, sizeof v);
    MPI(MPI_T_pvar_read(session, variables[k].handle, &v));
    if (variables[k].type == MPI_UNSIGNED || variables[k].type == MPI_INT)
        return v.u;
    if (variables[k].type == MPI_DOUBLE)
        return (unsigned long long)v.d;
    return variables[k].type == MPI_UNSIGNED_LONG ? v.l : v.ll;
}

static void find_performance_variables(void)
{
    int n;
    MPI(MPI_T_pvar_get_num(&n));
    MPI(MPI_T_pvar_session_create(&session));
    for (int i = 0; i < n && n_variables < MOST; i++) {
        char help[TEXT];
        int name_length = TEXT, help_length = TEXT, verbosity, class, bind, readonly, continuous, atomic;
        MPI_Datatype type;
        MPI_T_enum values;
        MPI_Comm c = MPI_COMM_WORLD;
        int k = n_variables;
        if (MPI_T_pvar_get_info(i, variables[k].name, &name_length, &verbosity, &class, &type, &values, help,
                                &help_length, &bind, &readonly, &continuous, &atomic) != MPI_SUCCESS ||
            strncmp(variables[k].name, prefix, strlen(prefix)) != 0)
            continue;
        variables[k].type = type;
        if (!MPI(MPI_T_pvar_handle_alloc(session, i, bind == MPI_T_BIND_MPI_COMM ? &c : NULL, &variables[k].handle,
                                         &variables[k].count)))
            continue;
        if (!continuous)
            MPI(MPI_T_pvar_start(session, variables[k].handle));
        n_variables++;
    }
}

static void read_all(bool first)
{
    for (int k = 0; k < n_variables; k++) {
        unsigned long long v = read_one(k);
        if (first)
            variables[k].first = v;
        else if (t.rank == 0)
            printf("%s: %llu -> %llu\n", variables[k].name, variables[k].first, v);
    }
}

static unsigned long long grown(const char *part_of_name)
{
    unsigned long long sum = 0;
    for (int k = 0; k < n_variables; k++)
        if (strstr(variables[k].name, part_of_name))
            sum += read_one(k) - variables[k].first;
    return sum;
}

static unsigned long long now(const char *name)
{
    for (int k = 0; k < n_variables; k++)
        if (strcmp(variables[k].name, name) == 0)
            return read_one(k);
    return 0;
}

int main(int argc, char **argv)
{
    int level, peer, x = 0;
    if (argc > 1 && strcmp(argv[1], "again") == 0) { /* all is registered twice */
        MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
        MPI_T_finalize();
    }
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    begin(&argc, &argv, MPI_THREAD_SINGLE, 2);
    bool wanted = !t.reference;
    peer = t.rank ^ 1;
    control_variables(wanted);
    part("performance variables");
    find_performance_variables();
    if (wanted)
        CHECK(n_variables >= 4, "%d performance variables", n_variables);
    read_all(true);
    MPI(MPI_Barrier(MPI_COMM_WORLD)); /* nothing of what follows is in those figures */
    if (peer < t.size) {
        enum { COUNT = 100, BIG = 100000 };
        char *b = calloc(BIG, 1);
        for (int i = 0; i < COUNT; i++)
            MPI(MPI_Sendrecv_replace(b, BIG, MPI_BYTE, peer, 1, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        /* Five that wait in the unexpected queue while the sixth is received. */
        for (int i = 0; i < 6; i++)
            MPI(MPI_Send(&x, 1, MPI_INT, peer, 10 + i, MPI_COMM_WORLD));
        MPI(MPI_Recv(&x, 1, MPI_INT, peer, 15, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        /* Of both: who moves a message, and so counts its bytes, is for either side's receiver to choose, by how fast
         * it has found the kernel's copies to be. */
        unsigned long long bytes = grown("bytes"), theirs = 0;
        MPI(MPI_Sendrecv(&bytes, 1, MPI_UNSIGNED_LONG_LONG, peer, 20, &theirs, 1, MPI_UNSIGNED_LONG_LONG, peer, 20,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        if (wanted) {
            CHECK(grown("messages_sent") >= COUNT || grown("sent") >= COUNT, "sent: %llu", grown("sent"));
            CHECK(bytes + theirs >= 2ull * COUNT * BIG, "bytes: %llu, of the peer %llu", bytes, theirs);
            CHECK(now("pml_strata_memory") > 10000, "memory: %llu", now("pml_strata_memory"));
            /* The peer's message of the barrier may have been waiting when the first figures were read. */
            CHECK(grown("unexpected") >= 4, "unexpected: %llu", grown("unexpected"));
        }
        /* The same memory again and again, where long messages go by RDMA and registrations are kept. */
        if (wanted && getenv("TOOL_REGISTERED")) {
            CHECK(grown("rcache_hits") >= COUNT, "found: %llu", grown("rcache_hits"));
            CHECK(grown("rcache_misses") <= 8, "made: %llu", grown("rcache_misses"));
            CHECK(now("pml_strata_rcache_registered_bytes") >= BIG, "bytes: %llu",
                  now("pml_strata_rcache_registered_bytes"));
        }
        for (int i = 0; i < 5; i++)
            MPI(MPI_Recv(&x, 1, MPI_INT, peer, 10 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        free(b);
    }
    read_all(false);
    for (int k = 0; k < n_variables; k++)
        MPI(MPI_T_pvar_handle_free(session, &variables[k].handle));
    MPI(MPI_T_pvar_session_free(&session));
    MPI_T_finalize(); /* after MPI_Finalize, Open MPI 4.1 reads memory that it has freed */
    return finish("tool");
}
