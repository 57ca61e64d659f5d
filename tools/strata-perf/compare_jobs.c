/* The jobs of `compare`: which libraries are here, their command lines, and running them. */
#define _GNU_SOURCE 1
#include "compare.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_TEXT = 64 * 1024 };

static const char *const mpi_launcher[N_IMPLS] = {[IMPL_OPENMPI] = "mpirun.openmpi", [IMPL_MPICH] = "mpiexec.mpich"};
static const char *const twin_name[N_IMPLS] = {[IMPL_OPENMPI] = "strata-mpi-twin.openmpi",
                                               [IMPL_MPICH] = "strata-mpi-twin.mpich",
                                               [IMPL_SOCKETS] = "strata-socket-twin"};

bool runnable(const char *dir, const char *name, char out[PATH_MAX])
{
    return snprintf(out, PATH_MAX, "%s/%s", dir, name) < PATH_MAX && access(out, X_OK) == 0;
}

bool on_path(const char *name)
{
    const char *path = getenv("PATH");
    char *copy = strdup(path ? path : "/usr/bin:/bin"), *save = NULL, file[PATH_MAX];
    bool found = false;
    for (char *d = copy ? strtok_r(copy, ":", &save) : NULL; d && !found; d = strtok_r(NULL, ":", &save))
        found = runnable(d, name, file);
    free(copy);
    return found;
}

/* Strata is the plugin of Open MPI: in the build tree, or where it is installed. */
static bool find_plugin(struct compare *c, const char *dir)
{
    char built[PATH_MAX + 32];
    snprintf(built, sizeof built, "%s/embed/openmpi/.libs", dir);
    for (int i = 0; i < 2; i++) {
        char file[PATH_MAX];
        const char *folder = i ? ST_EMBED_DIR : built;
        if (!runnable(folder, "mca_pml_strata.so", file))
            continue;
        snprintf(c->plugin, sizeof c->plugin, "%s:SYSTEM_DEFAULT", folder);
        return c->have[IMPL_OPENMPI];
    }
    fprintf(stderr, "strata-perf compare: mca_pml_strata.so is neither in %s nor in %s\n", built, ST_EMBED_DIR);
    return false;
}

/* What makes two machines, and what starts Strata on them. */
static bool find_machines(struct compare *c, const char *dir)
{
    bool found =
        runnable(dir, "strata-machines", c->machines) || runnable(ST_LIBEXECDIR, "strata-machines", c->machines);
    if (!found)
        fprintf(stderr, "strata-perf compare: strata-machines is neither in %s nor in %s\n", dir, ST_LIBEXECDIR);
    if (!on_path(mpi_launcher[IMPL_OPENMPI]))
        fprintf(stderr, "strata-perf compare: --cluster starts Strata by mpirun.openmpi, which is not installed\n");
    return found && on_path(mpi_launcher[IMPL_OPENMPI]);
}

/* Whether a strata-perf, of an older build perhaps, has an option: its --help says. */
static bool has_option(const char *variable, const char *program, const char *option)
{
    char command[4 * PATH_MAX], line[512];
    bool found = false;
    if (snprintf(command, sizeof command, "env '%s' '%s' --help 2>/dev/null", variable, program) >= (int)sizeof command)
        return false;
    FILE *f = popen(command, "re");
    while (f && fgets(line, sizeof line, f))
        found = found || strstr(line, option);
    if (f)
        pclose(f);
    return found;
}

/* Another build: in its build folder, or where it is installed. Libraries and plugins of this one are not for it. */
static void find_other(struct compare *c)
{
    char dir[PATH_MAX], plugins[PATH_MAX + 16];
    if (!realpath(c->o->against, dir))
        snprintf(dir, sizeof dir, "%s", c->o->against);
    bool found = runnable(dir, "strata-run", c->other[0]) && runnable(dir, "strata-perf", c->other[1]);
    if (!found)
        fprintf(stderr, "strata-perf compare: --against: %s has no strata-run or no strata-perf\n", dir);
    snprintf(plugins, sizeof plugins, "%s/plugins", dir);
    snprintf(c->other_env[0], sizeof c->other_env[0], "LD_LIBRARY_PATH=%s/.libs:%s/../lib", dir, dir);
    if (access(plugins, X_OK) == 0)
        snprintf(c->other_env[1], sizeof c->other_env[1], "STRATA_MCA_mca_component_path=%s", plugins);
    c->other_exchanges = found && has_option(c->other_env[0], c->other[1], "--exchange");
    c->have[IMPL_OTHER] = c->have[IMPL_OTHER_AGAIN] = found;
}

/* In a build tree everything is beside this binary, which libtool keeps in .libs behind a script. */
void find_implementations(struct compare *c)
{
    char dir[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", c->self, sizeof c->self - 1);
    c->self[n > 0 ? n : 0] = 0;
    snprintf(dir, sizeof dir, "%s", c->self);
    for (char *slash = strrchr(dir, '/'); slash; slash = NULL)
        *slash = 0;
    size_t len = strlen(dir);
    if (len > 6 && strcmp(dir + len - 6, "/.libs") == 0)
        dir[len - 6] = 0;
    c->have[IMPL_STRATA] = runnable(dir, "strata-run", c->launcher) || runnable(ST_BINDIR, "strata-run", c->launcher);
    if (!c->have[IMPL_STRATA])
        fprintf(stderr, "strata-perf compare: strata-run is neither in %s nor in %s\n", dir, ST_BINDIR);
    if (c->o->against)
        find_other(c);
    for (unsigned i = IMPL_OPENMPI; !c->o->against && i < (c->o->cluster ? IMPL_BARE : IMPL_SOCKETS); i++) {
        bool twin = runnable(dir, twin_name[i], c->twin[i]) || runnable(ST_LIBEXECDIR, twin_name[i], c->twin[i]);
        c->have[i] = twin && (!mpi_launcher[i] || on_path(mpi_launcher[i]));
        if (!c->have[i])
            fprintf(stderr, "strata-perf compare: without %s: no %s\n", impl_name((enum impl)i),
                    twin ? mpi_launcher[i] : twin_name[i]);
    }
    if (c->o->embed)
        c->have[IMPL_STRATA] = find_plugin(c, dir);
    if (c->o->cluster)
        c->have[IMPL_STRATA] = find_machines(c, dir);
    char plugins[PATH_MAX + 16];
    snprintf(plugins, sizeof plugins, "%s/plugins", dir);
    if (access(plugins, X_OK) == 0) /* the ranks of a build tree's own tools use its own plugins */
        setenv("STRATA_MCA_mca_component_path", plugins, 0);
    if (geteuid() == 0) { /* Open MPI asks root for this */
        setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
        setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
    }
}

void command_word(struct command *cmd, const char *w)
{
    if (cmd->n < COMMAND_WORDS - 1)
        cmd->argv[cmd->n++] = (char *)(uintptr_t)w;
}

void command_words(struct command *cmd, const char *const *list)
{
    for (; *list; list++)
        command_word(cmd, *list);
}

void command_format(struct command *cmd, const char *format, ...)
{
    char *at = cmd->text + cmd->used;
    va_list list;
    va_start(list, format);
    cmd->used += (size_t)vsnprintf(at, sizeof cmd->text - cmd->used, format, list) + 1;
    va_end(list);
    command_word(cmd, at);
}

static void number(struct command *cmd, const char *option, size_t v)
{
    command_word(cmd, option);
    command_format(cmd, "%zu", v);
}

void command_options(const struct compare *c, struct command *cmd, const struct job *job, bool exchange)
{
    const struct perf_options *o = c->o;
    bool windowed = job->test == PERF_BW || job->test == PERF_BIBW || job->test == PERF_MBW;
    command_word(cmd, perf_test_name(job->test));
    command_word(cmd, "--json");
    if (job->test == PERF_START || job->test == PERF_MEMORY)
        return;
    number(cmd, "--batches", o->batches);
    if (o->iters)
        number(cmd, "--iters", o->iters);
    if (windowed)
        number(cmd, "--window", o->window);
    if (exchange && job->pinned && c->n_cpus > 1)
        command_word(cmd, "--exchange");
    if (windowed && o->cluster)
        command_word(cmd, "--cost");
    if (windowed && o->one_buffer)
        command_word(cmd, "--one-buffer");
    if (o->offset && job->test != PERF_MATCH)
        number(cmd, "--offset", o->offset);
    if (job->test == PERF_MATCH)
        number(cmd, "--depth", o->depth);
    if (job->test == PERF_RING)
        number(cmd, "--bytes", o->bytes);
    if (o->check && job->test != PERF_MATCH)
        command_word(cmd, "--check");
    if (windowed || job->test == PERF_LATENCY) {
        command_word(cmd, "--sizes");
        command_format(cmd, "%zu:%zu", o->size_min, o->size_max);
    }
    if (job->pinned && c->n_cpus) {
        char list[512] = "";
        for (size_t i = 0, n = 0; i < job->n_cpus && i < c->n_cpus && n < sizeof list; i++)
            n += (size_t)snprintf(list + n, sizeof list - n, "%s%d", i ? "," : "", c->cpus[i]);
        command_word(cmd, "--cpus");
        command_format(cmd, "%s", list);
    }
}

/* By its own strata-run; parameters as for this build. */
static void other_command(const struct compare *c, struct command *cmd, const struct job *job)
{
    command_words(cmd, (const char *const[]){"env", "-u", "STRATA_MCA_mca_component_path", c->other_env[0], NULL});
    if (c->other_env[1][0])
        command_word(cmd, c->other_env[1]);
    command_word(cmd, c->other[0]);
    number(cmd, "-n", (size_t)job->ranks);
    command_words(cmd, (const char *const[]){"--bind-to", "none", c->other[1], NULL});
    command_options(c, cmd, job, c->other_exchanges);
    for (size_t i = 0; i < c->o->n_mca; i++)
        command_words(cmd, (const char *const[]){"--mca", c->o->mca[i].name, c->o->mca[i].value, NULL});
    cmd->argv[cmd->n] = NULL;
}

static void job_command(const struct compare *c, struct command *cmd, const struct job *job, enum impl impl)
{
    bool plugin = c->o->embed && impl == IMPL_STRATA, openmpi = plugin || impl == IMPL_OPENMPI;
    command_word(cmd, plugin ? mpi_launcher[IMPL_OPENMPI] : impl == IMPL_STRATA ? c->launcher : mpi_launcher[impl]);
    if (plugin)
        command_words(
            cmd, (const char *const[]){"--mca", "mca_base_component_path", c->plugin, "--mca", "pml", "strata", NULL});
    else if (openmpi && c->o->embed)
        command_words(cmd, (const char *const[]){"--mca", "pml", "ob1", "--mca", "btl", "vader,self", NULL});
    number(cmd, "-n", (size_t)job->ranks);
    if (impl != IMPL_MPICH) { /* ranks bind themselves, all implementations alike; Hydra binds nothing by itself */
        command_word(cmd, "--bind-to");
        command_word(cmd, "none");
    }
    for (size_t i = 0; plugin && i < c->o->n_mca; i++)
        command_words(cmd, (const char *const[]){"--mca", c->o->mca[i].name, c->o->mca[i].value, NULL});
    if (openmpi && job->ranks > 2)
        command_word(cmd, "--oversubscribe");
    command_word(cmd, openmpi ? c->twin[IMPL_OPENMPI] : impl == IMPL_STRATA ? c->self : c->twin[impl]);
    command_options(c, cmd, job, true);
    for (size_t i = 0; impl == IMPL_STRATA && !plugin && i < c->o->n_mca; i++) {
        command_word(cmd, "--mca");
        command_word(cmd, c->o->mca[i].name);
        command_word(cmd, c->o->mca[i].value);
    }
    cmd->argv[cmd->n] = NULL;
}

static pid_t start(const struct compare *c, const struct job *job, char **argv, FILE *out, FILE *err)
{
    fflush(NULL);
    pid_t pid = processes_fork();
    if (pid != 0)
        return pid;
    cpu_set_t set;
    CPU_ZERO(&set);
    for (size_t i = 0; i < job->n_cpus && i < c->n_cpus; i++)
        CPU_SET((size_t)c->cpus[i], &set);
    if ((CPU_COUNT(&set) && sched_setaffinity(0, sizeof set, &set) != 0) || dup2(fileno(out), 1) < 0 ||
        dup2(fileno(err), 2) < 0 || !freopen("/dev/null", "r", stdin))
        _exit(126);
    execvp(argv[0], argv);
    dprintf(2, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static char *contents(FILE *f)
{
    rewind(f);
    char *text = NULL;
    size_t n = 0, got;
    do {
        char *more = realloc(text, n + MAX_TEXT + 1);
        if (!more)
            break;
        text = more;
        got = fread(text + n, 1, MAX_TEXT, f);
        n += got;
        text[n] = 0;
    } while (got > 0);
    return text;
}

static void complain(const struct job *job, enum impl impl, int status, bool late, const char *why)
{
    char how[64];
    if (late)
        snprintf(how, sizeof how, "took too long (--timeout)");
    else if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "was ended by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status))
        snprintf(how, sizeof how, "failed with status %d", WEXITSTATUS(status));
    else
        snprintf(how, sizeof how, "gave no result");
    fprintf(stderr, "strata-perf compare: %s %s with %d ranks %s\n%s", impl_name(impl), perf_test_name(job->test),
            job->ranks, how, why ? why : "");
}

/* A peer that hung once would cost the time limit in each further round. */
static void leave_out(struct compare *c, struct job *job, enum impl impl)
{
    if (impl != IMPL_OPENMPI && impl != IMPL_MPICH)
        return;
    job->impls &= ~(1u << impl);
    if (c->done + 1 < c->o->rounds)
        fprintf(stderr, "strata-perf compare: %s is left out of further rounds of %s with %d ranks\n", impl_name(impl),
                perf_test_name(job->test), job->ranks);
}

json_t *run_job(struct compare *c, struct job *job, enum impl impl)
{
    struct command cmd;
    if (processes_asked(&c->processes))
        return NULL;
    FILE *out = tmpfile(), *err = tmpfile();
    json_t *result = NULL;
    if (!out || !err) {
        fprintf(stderr, "strata-perf compare: no temporary file: %s\n", strerror(errno));
        goto done;
    }
    cmd.n = cmd.used = 0;
    if (c->o->cluster)
        cluster_command(c, &cmd, job, impl);
    else if (impl >= IMPL_OTHER)
        other_command(c, &cmd, job);
    else
        job_command(c, &cmd, job, impl);
    pid_t pid = start(c, job, cmd.argv, out, err);
    if (pid < 0) {
        fprintf(stderr, "strata-perf compare: fork: %s\n", strerror(errno));
        goto done;
    }
    bool late;
    int status = processes_wait(&c->processes, pid, (double)c->o->timeout, &late);
    char *text = contents(out);
    const char *json = text ? strchr(text, '{') : NULL;
    if (status == 0 && !late && json)
        result = json_loads(json, JSON_DISABLE_EOF_CHECK, NULL);
    if (!result && !c->processes.signo) {
        char *why = contents(err);
        complain(job, impl, status, late, why);
        free(why);
        if (late)
            leave_out(c, job, impl);
    }
    free(text);
done:
    if (out)
        fclose(out);
    if (err)
        fclose(err);
    return result;
}
