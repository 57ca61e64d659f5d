/* Configurations: presets, and those of the command line. */
#define _GNU_SOURCE 1
#include "memscale.h"

#include <stdio.h>
#include <string.h>

static const struct transport transports[] = {
    {"softhca", LIB_STRATA, "openib,self", true},
    {"verbs", LIB_STRATA, "openib,self", false},
    {"sm", LIB_STRATA, "sm,self", false},
    {"tcp", LIB_STRATA, "tcp,self", false},
    {"openmpi-softhca", LIB_OPENMPI, "openib,self", true},
    {"openmpi-verbs", LIB_OPENMPI, "openib,self", false},
    {"openmpi-vader", LIB_OPENMPI, "vader,self", false},
    {"openmpi-tcp", LIB_OPENMPI, "tcp,self", false},
    {"mpich-rc-softhca", LIB_MPICH, "rc_verbs,ud_verbs:aux,self", true},
    {"mpich-ud-softhca", LIB_MPICH, "ud_verbs,self", true},
    {"mpich-rc-verbs", LIB_MPICH, "rc_verbs,ud_verbs:aux,self", false},
    {"mpich-ud-verbs", LIB_MPICH, "ud_verbs,self", false},
};
enum { N_TRANSPORTS = sizeof transports / sizeof *transports };

/* "no-fc": 4096 credits for each peer, so that only the receiver's buffers hold senders back (paper, 5.1). */
static const char *const presets[] = {
    "srq:softhca",
    "srq-no-fc:softhca;btl_openib_receive_queues=S,8448,16384,4,4096:S,33024,1024,1,512",
    "srq-short:softhca;btl_openib_receive_queues=S,8448,16,4,32:S,33024,16,1,6",
    "per-peer:softhca;btl_openib_receive_queues=P,8448,72,1,64:P,33024,7,1,6",
    "eager-4:softhca;btl_openib_eager_rdma=on;btl_openib_eager_rdma_peers=4;btl_openib_eager_rdma_after=1",
    "eager-16:softhca;btl_openib_eager_rdma=on;btl_openib_eager_rdma_peers=16;btl_openib_eager_rdma_after=1",
    "eager-all:softhca;btl_openib_eager_rdma=on;btl_openib_eager_rdma_peers=1024;btl_openib_eager_rdma_after=1",
    "connect-ud:softhca;btl_openib_connect=ud",
    "connect-tcp:softhca;btl_openib_connect=tcp",
    "few-connections:softhca;btl_openib_max_connected_peers=8",
    "sm:sm",
    "tcp:tcp",
};
enum { N_PRESETS = sizeof presets / sizeof *presets };

/* Open MPI's openib: its own default, one queue per peer and three shared ones; one kind of queue alone, as the paper
 * has them. */
static const char *const peers[] = {
    "openmpi:openmpi-softhca",
    "openmpi-srq:openmpi-softhca;btl_openib_receive_queues=S,12288,1024,1008,64:S,65536,1024,1008,64",
    "openmpi-per-peer:openmpi-softhca;btl_openib_receive_queues=P,12288,64,32,16:P,65536,64,32,16",
    "openmpi-vader:openmpi-vader",
    "mpich-rc:mpich-rc-softhca",
    "mpich-ud:mpich-ud-softhca",
};
enum { N_PEERS = sizeof peers / sizeof *peers };

const struct transport *transport_named(const char *name)
{
    for (size_t i = 0; i < N_TRANSPORTS; i++)
        if (strcmp(name, transports[i].name) == 0)
            return &transports[i];
    return NULL;
}

void configs_print(void)
{
    for (size_t i = 0; i < N_PRESETS; i++)
        printf("  %s\n", presets[i]);
    puts("--peers, where they are installed:");
    for (size_t i = 0; i < N_PEERS; i++)
        printf("  %s\n", peers[i]);
    puts("Transports:");
    for (size_t i = 0; i < N_TRANSPORTS; i++)
        printf("  %s\n", transports[i].name);
}

/* "PARAMETER=VALUE" */
static bool take_setting(struct config *c, const char *item, char *why, size_t why_size)
{
    const char *eq = strchr(item, '=');

    if (!eq || eq == item || (size_t)(eq - item) >= sizeof c->set->name || strlen(eq + 1) >= sizeof c->set->value) {
        snprintf(why, why_size, "configuration %s: \"%s\" is not PARAMETER=VALUE", c->name, item);
        return false;
    }
    if (c->n == MOST_SETTINGS) {
        snprintf(why, why_size, "configuration %s: more than %d parameters", c->name, MOST_SETTINGS);
        return false;
    }
    memcpy(c->set[c->n].name, item, (size_t)(eq - item));
    strcpy(c->set[c->n++].value, eq + 1);
    return true;
}

static bool config_parse(struct config *c, const char *text, char *why, size_t why_size)
{
    char copy[1024], *rest = copy;
    const char *colon = strchr(text, ':');

    if (!colon || colon == text || (size_t)(colon - text) >= sizeof c->name || strlen(text) >= sizeof copy) {
        snprintf(why, why_size, "configuration \"%s\": neither a preset nor NAME:TRANSPORT[;PARAMETER=VALUE]...", text);
        return false;
    }
    memcpy(c->name, text, (size_t)(colon - text));
    strcpy(copy, colon + 1);
    const char *transport = strsep(&rest, ";");
    c->transport = transport_named(transport);
    if (!c->transport) {
        snprintf(why, why_size, "configuration %s: no transport \"%s\"; strata-memscale --list names them", c->name,
                 transport);
        return false;
    }
    for (const char *item; (item = strsep(&rest, ";")) != NULL;)
        if (!take_setting(c, item, why, why_size))
            return false;
    return true;
}

static const char *named(const char *const *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        size_t length = strcspn(list[i], ":");
        if (strlen(name) == length && strncmp(list[i], name, length) == 0)
            return list[i];
    }
    return NULL;
}

bool config_add(struct plan *p, const char *text, char *why, size_t why_size)
{
    struct config c = {.transport = NULL};

    if (strcmp(text, "all") == 0) {
        for (size_t i = 0; i < N_PRESETS; i++)
            if (!config_add(p, presets[i], why, why_size))
                return false;
        return true;
    }
    if (p->n_configs == MOST_CONFIGS) {
        snprintf(why, why_size, "more than %d configurations", MOST_CONFIGS);
        return false;
    }
    const char *whole = named(presets, N_PRESETS, text);
    whole = whole ? whole : named(peers, N_PEERS, text);
    text = whole ? whole : text;
    if (!config_parse(&c, text, why, why_size))
        return false;
    p->configs[p->n_configs++] = c;
    return true;
}

const char *config_launcher(const struct config *c)
{
    return c->launcher ? c->launcher : launcher_names[c->transport->library];
}

/* PROGRAM is the first word, without its folder. */
bool config_launch(struct plan *p, const char *launcher, char *why, size_t why_size)
{
    const char *program = launcher + strspn(launcher, " ");
    int length = (int)strcspn(program, " ");

    for (const char *slash; (slash = memchr(program, '/', (size_t)length)) != NULL; program = slash + 1)
        length -= (int)(slash + 1 - program);
    for (size_t i = 0; i < p->n_configs; i++) {
        struct config *c = &p->configs[i];
        const size_t used = strlen(c->name);
        if (c->transport->library != LIB_STRATA) {
            snprintf(why, why_size, "configuration %s: --launcher is for Strata's", c->name);
            return false;
        }
        if ((size_t)snprintf(c->name + used, sizeof c->name - used, "@%.*s", length, program) >=
            sizeof c->name - used) {
            snprintf(why, why_size, "configuration %s: its name is too long for --launcher", c->name);
            return false;
        }
        c->launcher = launcher;
    }
    return true;
}

bool config_simulate(struct plan *p, int ranks, char *why, size_t why_size)
{
    for (size_t i = 0; i < p->n_configs; i++) {
        struct config *c = &p->configs[i];
        const size_t length = strlen(c->name);
        const int more = snprintf(c->name + length, sizeof c->name - length, "@%d", ranks);
        if (c->transport->library != LIB_STRATA || (size_t)more >= sizeof c->name - length) {
            snprintf(why, why_size,
                     c->transport->library == LIB_STRATA ? "configuration %s: its name is too long for --simulate-world"
                                                         : "configuration %s: only Strata simulates a world",
                     c->name);
            return false;
        }
        c->world = ranks;
    }
    return true;
}

void config_add_peers(struct plan *p)
{
    for (size_t i = 0; i < N_PEERS; i++) {
        char why[1400], program[4096];
        struct config c = {.transport = NULL};

        if (!config_parse(&c, peers[i], why, sizeof why) ||
            !peer_rank_program(c.transport->library, program, sizeof program, why, sizeof why) ||
            !config_add(p, peers[i], why, sizeof why))
            fprintf(stderr, "strata-memscale: without %s: %s\n", c.name, why);
    }
}
