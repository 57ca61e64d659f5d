/* The command line of a job, for each library, and its run. */
#define _GNU_SOURCE 1
#include "memscale.h"
#include "tools/shared/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static struct processes jobs; /* of this program */

const char *const launcher_names[N_LIBRARIES] = {"strata-run", "mpirun.openmpi", "mpiexec.mpich"};

enum { MOST_LAUNCHER_WORDS = 128, MOST_WORDS = MOST_LAUNCHER_WORDS + 40 + 3 * MOST_SETTINGS, GRACE_S = 10 };

struct command {
    const char *argv[MOST_WORDS];
    size_t n;
    int error; /* E2BIG: no room for all words; ENOMEM; 0 */
    char count[16], seconds[16], program[4096];
    char preload[4200];           /* "LD_PRELOAD=..." */
    char launcher[1024];          /* its words, cut apart */
    char *set[MOST_SETTINGS + 2]; /* "NAME=VALUE", from asprintf */
    size_t n_set;
};

/* Leaves room for the NULL at the end. */
static void add_word(struct command *c, const char *word)
{
    if (c->n < MOST_WORDS - 1)
        c->argv[c->n++] = word;
    else
        c->error = E2BIG;
}

static void words(struct command *c, const char *const *list)
{
    for (; *list; list++)
        add_word(c, *list);
}

#define WORDS(c, ...) words(c, (const char *const[]){__VA_ARGS__, NULL})

/* softhca's library: strata-run knows where it is. */
static bool find_softhca(struct command *c)
{
    char line[4096] = "";
    FILE *f = popen("LD_PRELOAD= strata-run --softhca -n 1 printenv LD_PRELOAD </dev/null", "re");

    bool well = f && fgets(line, sizeof line, f);
    if (f && pclose(f) != 0)
        well = false;
    line[strcspn(line, "\n")] = '\0';
    snprintf(c->preload, sizeof c->preload, "LD_PRELOAD=%s", line);
    if (!well)
        fprintf(stderr, "strata-memscale: strata-run --softhca finds no libsofthca.so\n");
    return well;
}

static void add_set(struct command *cmd, const char *name, const char *value)
{
    char *text;

    if (cmd->n_set == MOST_SETTINGS + 2) {
        cmd->error = E2BIG;
    } else if (asprintf(&text, "%s=%s", name, value) < 0) {
        cmd->error = ENOMEM;
    } else {
        cmd->set[cmd->n_set++] = text;
        add_word(cmd, text);
    }
}

bool launcher_fits(const char *launcher, char *why, size_t why_size)
{
    const size_t most = sizeof((struct command *)NULL)->launcher - 1;
    size_t n = 0;

    if (strlen(launcher) > most) {
        snprintf(why, why_size, "--launcher has more than %zu characters", most);
        return false;
    }
    for (const char *at = launcher; *(at += strspn(at, " ")); at += strcspn(at, " "))
        n++;
    snprintf(why, why_size, "--launcher has more than %d words", MOST_LAUNCHER_WORDS);
    return n <= MOST_LAUNCHER_WORDS;
}

/* The user's words, then Strata's parameters in the environment, by env(1), since launchers differ in what they pass.
 */
static void launcher_words(struct command *cmd, const struct config *c, const char *launcher)
{
    char *rest = cmd->launcher, *word;

    if ((size_t)snprintf(cmd->launcher, sizeof cmd->launcher, "%s", launcher) >= sizeof cmd->launcher)
        cmd->error = E2BIG;
    while ((word = strsep(&rest, " ")) != NULL)
        if (*word)
            add_word(cmd, strcmp(word, "%n") == 0 ? cmd->count : word);
    WORDS(cmd, "env");
    add_set(cmd, "STRATA_MCA_btl", c->transport->btl);
    for (size_t i = 0; i < c->n; i++) {
        char name[80];
        snprintf(name, sizeof name, "STRATA_MCA_%s", c->set[i].name);
        add_set(cmd, name, c->set[i].value);
    }
    if (c->transport->softhca)
        WORDS(cmd, cmd->preload);
}

static void strata_words(struct command *cmd, const struct config *c)
{
    WORDS(cmd, "strata-run", "-n", cmd->count, "--timeout", cmd->seconds, "--bind-to", "none", "--mca", "btl",
          c->transport->btl);
    if (c->transport->softhca)
        WORDS(cmd, "--softhca");
    for (size_t i = 0; i < c->n; i++)
        WORDS(cmd, "--mca", c->set[i].name, c->set[i].value);
}

static void openmpi_words(struct command *cmd, const struct config *c)
{
    WORDS(cmd, "mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-n", cmd->count, "--mca", "pml", "ob1",
          "--mca", "btl", c->transport->btl, "--mca", "mpi_yield_when_idle", "1", "--mca",
          "btl_openib_warn_no_device_params_found", "0", "--mca", "btl_openib_allow_ib", "1");
    if (c->transport->softhca)
        WORDS(cmd, "-x", cmd->preload);
    for (size_t i = 0; i < c->n; i++)
        WORDS(cmd, "--mca", c->set[i].name, c->set[i].value);
}

/* Its parameters are variables of the environment: MPIR_CVAR_..., UCX_... */
static void mpich_words(struct command *cmd, const struct config *c)
{
    WORDS(cmd, "env", "MPIR_CVAR_NOLOCAL=1", "UCX_WARN_UNUSED_ENV_VARS=n"); /* no shared memory beside UCX */
    if (c->transport->softhca)
        WORDS(cmd, cmd->preload, "UCX_NET_DEVICES=soft0:1");
    add_set(cmd, "UCX_TLS", c->transport->btl);
    for (size_t i = 0; i < c->n; i++)
        add_set(cmd, c->set[i].name, c->set[i].value);
    WORDS(cmd, "mpiexec.mpich", "-n", cmd->count);
}

/* What peers ask for: root may run them, and Open MPI's store does not map a file for each rank. */
static void peers_environment(void)
{
    char fabric[32];

    snprintf(fabric, sizeof fabric, "memscale-%d", (int)getpid());
    setenv("SOFTHCA_FABRIC", fabric, 0);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
    setenv("PMIX_MCA_gds", "hash", 0);
}

/* Without standard input: launchers pass it on to rank 0, and one in the background would be stopped by its terminal.
 * With all signals, of which this program blocks some. */
static int spawn(const struct command *cmd, pid_t *child)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    int error = posix_spawn_file_actions_init(&actions);

    if (error)
        return error;
    sigemptyset(&none);
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        (void)posix_spawnattr_setsigmask(&attributes, &none);
        (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
        error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        if (!error)
            error = posix_spawnp(child, cmd->argv[0], &actions, &attributes, (char *const *)cmd->argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* The status; a job beyond its time is ended: strata-run does that itself, the others are told. So is one whose user
 * has ended this program. */
static int run(const struct command *cmd, int timeout)
{
    pid_t child;
    bool late;
    int error = spawn(cmd, &child);

    if (error) {
        fprintf(stderr, "strata-memscale: %s: %s\n", cmd->argv[0], strerror(error));
        errno = error;
        return -1;
    }
    const int how = processes_wait(&jobs, child, timeout + GRACE_S, &late);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

bool launch_ended(void)
{
    return processes_asked(&jobs) != 0;
}

int launch_exit(bool well)
{
    const int signo = processes_asked(&jobs);

    if (!signo)
        return well ? EXIT_SUCCESS : EXIT_FAILURE;
    fprintf(stderr, "strata-memscale: %s; what was measured before is kept, and the same command goes on\n",
            strsignal(signo));
    return 128 + signo;
}

static bool rank_program(struct command *cmd, enum library l)
{
    char why[4200];

    if (l != LIB_STRATA) {
        bool well = peer_rank_program(l, cmd->program, sizeof cmd->program, why, sizeof why);
        if (!well)
            fprintf(stderr, "strata-memscale: %s\n", why);
        return well;
    }
    ssize_t length = readlink("/proc/self/exe", cmd->program, sizeof cmd->program - 1);
    cmd->program[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* libtool keeps the binaries of a build tree in .libs. */
void launch_prepare(void)
{
    const char *path = getenv("PATH");
    char folder[4096], tool[4200];
    ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    char *slash;

    processes_begin(&jobs);
    folder[length > 0 ? length : 0] = '\0';
    if ((slash = strrchr(folder, '/')) != NULL)
        *slash = '\0';
    if ((slash = strrchr(folder, '/')) != NULL && strcmp(slash, "/.libs") == 0)
        *slash = '\0';
    snprintf(tool, sizeof tool, "%s/%s", folder, launcher_names[LIB_STRATA]);
    if (access(tool, X_OK) != 0)
        return;
    char *with = NULL;
    if (asprintf(&with, "%s%s%s", path ? path : "", path && *path ? ":" : "", folder) > 0)
        setenv("PATH", with, 1);
    free(with);
}

bool launch_folder(const struct plan *p, char *path, size_t size)
{
    const char *base = getenv("TMPDIR");
    char whole[PATH_MAX];

    if (p->launcher && !realpath(p->folder, whole)) {
        snprintf(path, size, "%s", p->folder);
        return false;
    }
    snprintf(path, size, "%s/strata-memscale.XXXXXX", p->launcher ? whole : base && *base == '/' ? base : "/tmp");
    return mkdtemp(path) != NULL;
}

int launch_job(const struct config *c, int n, const struct plan *p, const char *const *what)
{
    static void (*const begin[N_LIBRARIES])(struct command *, const struct config *) = {strata_words, openmpi_words,
                                                                                        mpich_words};
    const enum library l = c->transport->library;
    struct command cmd = {.n = 0};
    int status = -1;

    snprintf(cmd.count, sizeof cmd.count, "%d", n);
    const bool own = l == LIB_STRATA && !p->launcher;
    snprintf(cmd.seconds, sizeof cmd.seconds, "%d", p->timeout);
    if (!rank_program(&cmd, l) || (!own && c->transport->softhca && !find_softhca(&cmd))) {
        errno = ENOENT;
        return -1;
    }
    if (!own)
        peers_environment();
    if (l != LIB_STRATA || own)
        begin[l](&cmd, c);
    else
        launcher_words(&cmd, c, p->launcher);
    WORDS(&cmd, cmd.program);
    words(&cmd, l == LIB_STRATA ? what : what + 1); /* the MPIs' programs are ranks only */
    cmd.argv[cmd.n] = NULL;
    if (cmd.error)
        fprintf(stderr, "strata-memscale: the command line of %s: %s\n", cmd.argv[0], strerror(cmd.error));
    else
        status = run(&cmd, p->timeout);
    for (size_t i = 0; i < cmd.n_set; i++)
        free(cmd.set[i]);
    if (cmd.error)
        errno = cmd.error;
    return status;
}
