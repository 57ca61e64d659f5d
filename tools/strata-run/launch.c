/* Starting the ranks, as fast as a loop can: everything is computed before. */
#define _GNU_SOURCE
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <sanitizer/asan_interface.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "mpi.h"
#include "report.h"
#include "server.h"
#include "signals.h"
#include "softhca.h"

struct exec_error { /* smaller than PIPE_BUF: written and read whole */
    int rank, error;
};

/* ---- the program ---- */

/* 0: executable; RUN_NOT_EXECUTABLE; RUN_NOT_FOUND. */
static int judge(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return errno == EACCES ? RUN_NOT_EXECUTABLE : RUN_NOT_FOUND;
    return S_ISREG(st.st_mode) && access(path, X_OK) == 0 ? 0 : RUN_NOT_EXECUTABLE;
}

static int search(const char *program, const char *dirs, char **path)
{
    int verdict = RUN_NOT_FOUND;
    for (const char *d = dirs; d; d = strchr(d, ':') ? strchr(d, ':') + 1 : NULL) {
        char *candidate = NULL;
        int n = (int)strcspn(d, ":");
        if (asprintf(&candidate, "%.*s/%s", n ? n : 1, n ? d : ".", program) < 0)
            return RUN_NOT_FOUND;
        int this = judge(candidate);
        if (this == 0) {
            *path = candidate;
            return 0;
        }
        if (this == RUN_NOT_EXECUTABLE)
            verdict = this;
        free(candidate);
    }
    return verdict;
}

int launch_find(const char *program, char **path)
{
    const char *dirs = getenv("PATH");
    int verdict;
    *path = NULL;
    if (strchr(program, '/')) {
        verdict = judge(program);
        *path = verdict ? NULL : strdup(program);
    } else {
        verdict = search(program, dirs ? dirs : "/usr/local/bin:/usr/bin:/bin", path);
    }
    if (verdict == RUN_NOT_FOUND)
        report_error("%s: %s", program, strchr(program, '/') ? "no such file" : "not found in PATH");
    else if (verdict)
        report_error("%s: not an executable file", program);
    else if (!*path)
        verdict = RUN_NOT_FOUND;
    return verdict;
}

/* ---- preparation ---- */

int launch_prepare(const struct job *job, char *path, const char *reports, struct launch *out)
{
    static const char folder[] = "STRATA_MCA_mca_base_report_folder", account[] = "STRATA_MCA_mca_base_account_memory";
    struct environment env;
    char **server = NULL;
    *out = (struct launch){.path = path, .errors = {-1, -1}};
    if (pipe2(out->errors, O_CLOEXEC | O_NONBLOCK) != 0) {
        report_error("cannot make a pipe: %s", strerror(errno));
        return -1;
    }
    if (environment_create(job->options, &env) != 0)
        return -1;
    if (server_env(job, &server) != 0) {
        environment_destroy(&env);
        return -1;
    }
    for (char **e = server; e && *e; e++) {
        const char *eq = strchr(*e, '=');
        if (eq)
            environment_set(&env, *e, (size_t)(eq - *e), eq + 1);
    }
    server_env_free(server);
    if ((job->options->softhca && softhca_enable(&env) != 0) || (job->options->mpi && mpi_enable(&env) != 0)) {
        environment_destroy(&env);
        return -1;
    }
    if (reports)
        environment_set(&env, folder, sizeof(folder) - 1, reports);
    if (job->options->report_memory)
        environment_set(&env, account, sizeof(account) - 1, "1");
    environment_set(&env, "PMIX_RANK", strlen("PMIX_RANK"), "4294967295"); /* room for any rank */
    out->env = env;
    for (size_t i = 0; i < env.n; i++)
        if (strncmp(env.list[i], "PMIX_RANK=", 10) == 0)
            out->rank_slot = i;
    if (env.failed)
        report_error("out of memory");
    return env.failed ? -1 : 0;
}

void launch_destroy(struct launch *launch)
{
    environment_destroy(&launch->env);
    free(launch->path);
    for (int i = 0; i < 2; i++)
        if (launch->errors[i] >= 0)
            close(launch->errors[i]);
}

/* ---- the child ---- */

struct child {
    const struct launch *launch;
    const struct job *job;
    const struct rank_pipes *pipes;
    const struct binding *binding;
    pid_t parent;
    int rank;
};

/* Between clone and exec: only system calls, for the memory is the parent's. Never returns. */
static int become_rank(void *arg)
{
    const struct child *c = arg;
    const struct launch *l = c->launch;
    const struct rank_pipes *pipes = c->pipes;
    const struct binding *binding = c->binding;
    struct exec_error e = {c->rank, 0};
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* should strata-run be killed */
    if (getppid() != c->parent)
        _exit(RUN_FAILED); /* it was, before we asked */
    if (binding->sets)
        (void)sched_setaffinity(0, sizeof(cpu_set_t), &binding->sets[c->rank % binding->n_sets]);
    if ((pipes->in >= 0 && dup2(pipes->in, 0) < 0) || dup2(pipes->out, 1) < 0 || dup2(pipes->err, 2) < 0)
        goto failed;
    signals_reset_in_child();
    execve(l->path, c->job->options->program, l->env.list);
failed:
    e.error = errno;
    if (write(l->errors[1], &e, sizeof(e)) != (ssize_t)sizeof(e))
        _exit(RUN_FAILED);
    _exit(RUN_NOT_EXECUTABLE);
}

/* The child runs in our memory, on a stack of its own, and we wait until it has become the program: 64 ranks start some
 * 4 % earlier than with fork(2), which copies our page tables for each. Signals are blocked here, so that no handler of
 * ours runs there. */
static pid_t start_rank(struct child *c)
{
    _Alignas(16) char stack[32768];
    pid_t pid = clone(become_rank, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, c);
    ASAN_UNPOISON_MEMORY_REGION(stack, sizeof(stack)); /* by the child's functions, which never returned */
    return pid;
}

int launch_ranks(struct launch *l, struct job *job, struct io *io, const struct binding *binding,
                 const struct guard *guard)
{
    pid_t parent = getpid();
    for (int i = 0; i < job->options->n; i++) {
        struct rank_pipes pipes;
        if (io_open_rank(io, i, &pipes) != 0)
            return -1;
        sprintf(l->env.list[l->rank_slot], "PMIX_RANK=%d", i);
        struct child child = {l, job, &pipes, binding, parent, i};
        pid_t pid = start_rank(&child);
        int error = errno;
        io_close_rank_ends(&pipes);
        if (pid < 0) {
            report_error("cannot start rank %d of %d: %s", i, job->options->n, strerror(error));
            return -1;
        }
        (void)setpgid(pid, pid); /* both do it: whoever is first */
        job->ranks[i].pid = pid;
        job->n_started++;
        guard_add(guard, pid);
    }
    return 0;
}

void launch_poll(struct launch *l, struct job *job)
{
    struct exec_error e;
    while (read(l->errors[0], &e, sizeof(e)) == (ssize_t)sizeof(e)) {
        if (!job->ending)
            report_error("rank %d on %s: cannot execute %s: %s", e.rank, job->host, l->path, strerror(e.error));
        job_fail(job, e.error == ENOENT ? RUN_NOT_FOUND : RUN_NOT_EXECUTABLE);
        job_end(job);
    }
}
