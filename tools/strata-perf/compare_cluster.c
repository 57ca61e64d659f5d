/* compare --cluster: jobs whose two ranks are on machines of their own, which are network namespaces (strata-machines).
 * Strata and Open MPI are started by Open MPI's mpirun, MPICH by Hydra, both by an agent in place of ssh. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compare.h"

/* As strata-machines has them. */
#define NETWORK "10.77.0.0/24"
#define HOSTS   "10.77.0.1,10.77.0.2"
#define SLOTS   "10.77.0.1:1,10.77.0.2:1"
#define TWIN_AT "10.77.0.1:20699" /* where the socket twin's rank 0 listens */

int cluster_enter(const struct compare *c, char **argv)
{
    char *again[COMMAND_WORDS + 3];
    size_t n = 0;
    if (getenv(CLUSTER_ENV))
        return 0;
    again[n++] = (char *)(uintptr_t)c->machines;
    again[n++] = (char *)(uintptr_t) "2";
    again[n++] = (char *)(uintptr_t)c->self;
    while (*++argv && n < sizeof again / sizeof again[0] - 1)
        again[n++] = *argv;
    again[n] = NULL;
    execv(again[0], again);
    fprintf(stderr, "strata-perf compare: %s: %s\n", c->machines, strerror(errno));
    return 1;
}

/* A variable for the ranks, if it is set here. */
static void cluster_pass(struct command *cmd, const char *name)
{
    if (!getenv(name))
        return;
    command_word(cmd, "-x");
    command_word(cmd, name);
}

static void cluster_mpirun(struct command *cmd, const char *dir)
{
    command_words(cmd, (const char *const[]){"mpirun.openmpi", "--mca", "plm_rsh_agent", NULL});
    command_format(cmd, "%s/agent", dir);
    command_words(cmd, (const char *const[]){"--host", SLOTS, "--mca", "oob_tcp_if_include", NETWORK, "--map-by",
                                             "node", "--bind-to", "none", "-np", "2", NULL});
    cluster_pass(cmd, "PATH");
    cluster_pass(cmd, "LD_LIBRARY_PATH");
    cluster_pass(cmd, "STRATA_MCA_mca_component_path");
    cluster_pass(cmd, "STRATA_MCA_mca_param_files");
}

void cluster_command(const struct compare *c, struct command *cmd, const struct job *job, enum impl impl)
{
    static const char both[] = "\"$0/on\" 2 env STRATA_TWIN=1@$A \"$@\" >/dev/null & "
                               "\"$0/on\" 1 env STRATA_TWIN=0@$A \"$@\"; rc=$?; wait $! || rc=1; exit $rc";
    const char *dir = getenv(CLUSTER_ENV);
    if (impl == IMPL_SOCKETS) {
        command_word(cmd, "env");
        command_word(cmd, "A=" TWIN_AT);
        command_words(cmd, (const char *const[]){"sh", "-c", both, dir, NULL});
    } else {
        command_format(cmd, "%s/on", dir);
        command_word(cmd, "1");
    }
    switch (impl) {
    case IMPL_STRATA:
        cluster_mpirun(cmd, dir);
        break;
    case IMPL_OPENMPI:
        cluster_mpirun(cmd, dir);
        command_words(cmd, (const char *const[]){"--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca",
                                                 "btl_tcp_if_include", NETWORK, NULL});
        break;
    case IMPL_MPICH:
        command_words(cmd, (const char *const[]){"mpiexec.mpich", "-launcher", "ssh", "-launcher-exec", NULL});
        command_format(cmd, "%s/agent", dir);
        command_words(cmd, (const char *const[]){"-hosts", HOSTS, "-n", "2", "-ppn", "1", "-env", "UCX_TLS", "tcp,self",
                                                 "-env", "UCX_NET_DEVICES", "eth0", NULL});
        break;
    case IMPL_SOCKETS:
    case IMPL_BARE:
    case IMPL_OTHER:
    case IMPL_OTHER_AGAIN:
    case N_IMPLS:
        break;
    }
    command_word(cmd, impl == IMPL_STRATA ? c->self : c->twin[impl]);
    command_options(c, cmd, job, true);
    for (size_t i = 0; impl == IMPL_STRATA && i < c->o->n_mca; i++)
        command_words(cmd, (const char *const[]){"--mca", c->o->mca[i].name, c->o->mca[i].value, NULL});
    cmd->argv[cmd->n] = NULL;
}
