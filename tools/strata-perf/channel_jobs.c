/* The jobs of `channel`: command lines of each library over each wire, run one at a time. */
#define _GNU_SOURCE 1
#include "channel.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compare.h"

enum { COMMAND_SIZE = 4 * PATH_MAX };

struct shell_line {
    char text[COMMAND_SIZE]; /* of the shell */
    size_t used;
};

static __attribute__((format(printf, 2, 3))) void add(struct shell_line *c, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = vsnprintf(c->text + c->used, sizeof c->text - c->used, format, list);
    va_end(list);
    if (n > 0)
        c->used += (size_t)n < sizeof c->text - c->used ? (size_t)n : sizeof c->text - c->used - 1;
}

static bool find_twin(struct channel_bench *b, enum channel_way way, const char *library, const char *launcher)
{
    char name[64];
    snprintf(name, sizeof name, "strata-channel-twin.%s", library);
    bool twin = runnable(b->folder, name, b->twin[way]) || runnable(ST_LIBEXECDIR, name, b->twin[way]);
    b->have[way] = twin && (!launcher || on_path(launcher));
    if (!b->have[way])
        fprintf(stderr, "strata-perf channel: without %s: no %s\n", channel_way_name(way), twin ? launcher : name);
    return b->have[way];
}

/* Folder of this program; in a build tree the top of it, since libtool keeps binaries in .libs. */
static void own_folder(char out[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
    out[n > 0 ? n : 0] = 0;
    char *slash = strrchr(out, '/');
    if (slash)
        *slash = 0;
    size_t len = strlen(out);
    if (len > 6 && strcmp(out + len - 6, "/.libs") == 0)
        out[len - 6] = 0;
}

/* The device of openib: the one that was asked for, else softhca's. */
static void find_device(struct channel_bench *b)
{
    char built[PATH_MAX + 32];
    snprintf(built, sizeof built, "%s/softhca/.libs", b->folder);
    if (b->o->device) {
        snprintf(b->device, sizeof b->device, "%s", b->o->device);
        snprintf(b->preload, sizeof b->preload, "%s", b->o->preload ? b->o->preload : "");
    } else if (runnable(built, "libsofthca.so", b->preload) || runnable(ST_LIBDIR, "libsofthca.so", b->preload)) {
        b->softhca = true;
        snprintf(b->device, sizeof b->device, "soft0");
    } else {
        b->preload[0] = 0;
        fprintf(stderr, "strata-perf channel: without openib: no libsofthca.so\n");
    }
    b->have[WAY_VERBS] = b->device[0] && on_path("ib_write_bw");
    if (b->device[0] && !b->have[WAY_VERBS])
        fprintf(stderr, "strata-perf channel: without ib_write_bw: it is not on the path\n");
}

bool channel_find(struct channel_bench *b)
{
    own_folder(b->folder);
    char built[PATH_MAX + 32];
    snprintf(built, sizeof built, "%s/plugins", b->folder);
    if (access(built, X_OK) == 0) /* the ranks of a build tree's own tools use its own plugins */
        setenv("STRATA_MCA_mca_component_path", built, 0);
    if (geteuid() == 0) { /* Open MPI asks root for this */
        setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
        setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
    }
    if (!runnable(b->folder, "strata-run", b->launcher) && !runnable(ST_BINDIR, "strata-run", b->launcher)) {
        fprintf(stderr, "strata-perf channel: strata-run is neither in %s nor in %s\n", b->folder, ST_BINDIR);
        return false;
    }
    (void)find_twin(b, WAY_CHANNEL, "strata", NULL);
    (void)find_twin(b, WAY_SEND, "strata", NULL);
    (void)find_twin(b, WAY_OPENMPI, "openmpi", "mpirun.openmpi");
    (void)find_twin(b, WAY_MPICH, "mpich", "mpiexec.mpich");
    (void)find_twin(b, WAY_ZMQ, "zmq", NULL);
    (void)find_twin(b, WAY_NNG, "nng", NULL);
    find_device(b);
    return b->have[WAY_CHANNEL];
}

bool channel_fits(const struct channel_bench *b, enum channel_wire wire, enum channel_way way)
{
    if (!b->have[way] || (wire == WIRE_OPENIB && !b->device[0]))
        return false;
    if (way == WAY_VERBS)
        return wire == WIRE_OPENIB;
    return wire != WIRE_OPENIB || (way != WAY_ZMQ && way != WAY_NNG);
}

/* The processors of the job. A pair has the first two. */
static void add_cpus(struct shell_line *c, const struct channel_bench *b, int ranks)
{
    for (size_t i = 0; i < b->n_cpus && (ranks > 2 || i < 2); i++)
        add(c, "%s%d", i ? "," : "", b->cpus[i]);
}

static void add_openmpi(struct shell_line *c, const struct channel_bench *b, enum channel_wire wire, int ranks)
{
    add(c, " env PMIX_MCA_gds=hash mpirun.openmpi --oversubscribe --bind-to none -n %d --mca pml ob1", ranks);
    if (wire == WIRE_SM)
        add(c, " --mca btl self,vader");
    else if (wire == WIRE_TCP)
        add(c, " --mca btl self,tcp");
    else
        add(c,
            " -x LD_PRELOAD='%s' --mca btl self,openib --mca btl_openib_if_include %s --mca btl_openib_allow_ib 1"
            " --mca btl_openib_warn_no_device_params_found 0 --mca btl_openib_ib_timeout 14",
            b->preload, b->device);
}

static void add_mpich(struct shell_line *c, const struct channel_bench *b, enum channel_wire wire, int ranks)
{
    add(c, " env UCX_WARN_UNUSED_ENV_VARS=n"); /* NOLOCAL: else ranks of a machine share memory */
    if (wire == WIRE_TCP)
        add(c, " MPIR_CVAR_NOLOCAL=1 UCX_TLS=tcp,self");
    else if (wire == WIRE_OPENIB)
        add(c, " MPIR_CVAR_NOLOCAL=1 UCX_TLS=rc_verbs,ud_verbs:aux,self UCX_NET_DEVICES=%s:1 LD_PRELOAD='%s'",
            b->device, b->softhca ? b->preload : "");
    add(c, " mpiexec.mpich -n %d", ranks);
}

static void add_launcher(struct shell_line *c, const struct channel_bench *b, enum channel_wire wire,
                         enum channel_way way, int ranks)
{
    if (way == WAY_CHANNEL || way == WAY_SEND)
        add(c, " '%s' %s-n %d --bind-to none --mca btl self,%s", b->launcher,
            wire == WIRE_OPENIB && b->softhca ? "--softhca " : "", ranks, channel_wire_name(wire));
    if ((way == WAY_CHANNEL || way == WAY_SEND) && wire == WIRE_OPENIB && !b->softhca)
        add(c, " --mca btl_openib_devices %s", b->device);
    else if (way == WAY_OPENMPI)
        add_openmpi(c, b, wire, ranks);
    else if (way == WAY_MPICH)
        add_mpich(c, b, wire, ranks);
}

static void twin_command(struct shell_line *c, const struct channel_bench *b, enum channel_wire wire,
                         enum channel_way way, const char *what, int ranks)
{
    bool library = way == WAY_ZMQ || way == WAY_NNG; /* their own threads need the other processor, too */
    const char *name = library ? wire == WIRE_TCP ? "tcp" : "ipc" : way == WAY_CHANNEL ? "channel" : "send";
    add(c, "timeout -k 5 %zu taskset -c ", b->o->timeout);
    add_cpus(c, b, ranks);
    add_launcher(c, b, wire, way, ranks);
    add(c, " '%s' %s %d %s 0.03 ", b->twin[way], name, ranks, what);
    if (library || ranks > 2)
        add(c, "none");
    else
        add_cpus(c, b, ranks);
}

/* Both sides of ib_write_bw for each size of the stream; its average in MiB/s becomes microseconds for a message. */
static void verbs_command(struct shell_line *c, const struct channel_bench *b)
{
    int server = b->n_cpus > 1 ? b->cpus[1] : b->cpus[0];
    add(c,
        "export LD_PRELOAD='%s'; port=%d; for s in 10 100 1024 5000 10000 25000 50000 65536 200000 400000; do "
        "port=$((port + 1)); timeout -k 5 %zu taskset -c %d ib_write_bw -F -p $port -d %s -s $s -n 1000 >/dev/null "
        "& "
        "for try in 1 2 3 4 5 6 7 8 9; do timeout -k 5 %zu taskset -c %d ib_write_bw -F -p $port -d %s -s $s -n "
        "1000 "
        "localhost | awk -v s=$s '$1 == s && $4 > 0 { print \"stream\", s, s / $4 / 1.048576; ok = 1 } END { exit !ok "
        "}' "
        "&& break; sleep 0.2; done; wait; done",
        b->softhca ? b->preload : "", 12000 + (int)(getpid() % 18000), b->o->timeout, server, b->device, b->o->timeout,
        b->cpus[0], b->device);
}

static void show_errors(FILE *f)
{
    char line[512];
    rewind(f);
    for (int n = 0; n < 12 && fgets(line, sizeof line, f); n++)
        fprintf(stderr, "    %s", line);
}

/* Runs a line of the shell; its status. */
static int run_line(struct channel_bench *b, const char *text, FILE *out, FILE *err)
{
    bool late;
    fflush(NULL);
    pid_t pid = processes_fork();
    if (pid == 0) {
        if (dup2(fileno(out), 1) < 0 || dup2(fileno(err), 2) < 0 || !freopen("/dev/null", "r", stdin))
            _exit(126);
        execl("/bin/sh", "sh", "-c", text, (char *)NULL);
        _exit(127);
    }
    int status = pid < 0 ? -1 : processes_wait(&b->processes, pid, 0, &late);
    return WIFEXITED(status) ? WEXITSTATUS(status) : status;
}

static void take_lines(struct channel_bench *b, enum channel_wire wire, enum channel_way way, FILE *f)
{
    char line[512];
    rewind(f);
    while (fgets(line, sizeof line, f))
        channel_take(b, wire, way, line);
}

int channel_job(struct channel_bench *b, enum channel_wire wire, enum channel_way way, const char *what, int ranks)
{
    struct shell_line *c = calloc(1, sizeof *c);
    FILE *out = tmpfile(), *err = tmpfile();
    char fabric[64];
    int status = -1;
    if (c && out && err) {
        snprintf(fabric, sizeof fabric, "perf-channel-%d", (int)getpid());
        if (way != WAY_CHANNEL && way != WAY_SEND)
            setenv("SOFTHCA_FABRIC", fabric, 1);
        else
            unsetenv("SOFTHCA_FABRIC"); /* strata-run has one for each job */
        if (way == WAY_VERBS)
            verbs_command(c, b);
        else
            twin_command(c, b, wire, way, what, ranks);
        status = run_line(b, c->text, out, err);
        take_lines(b, wire, way, out);
        if (status != 0 && !b->processes.signo) {
            fprintf(stderr, "strata-perf channel: %s over %s, %s with %d ranks: status %d%s\n", channel_way_name(way),
                    channel_wire_name(wire), what, ranks, status,
                    status == CHANNEL_LATE ? ", too slow (--timeout)" : "");
            show_errors(err);
        }
    } else {
        fprintf(stderr, "strata-perf channel: no temporary file or no memory\n");
    }
    if (out)
        fclose(out);
    if (err)
        fclose(err);
    free(c);
    return status;
}
