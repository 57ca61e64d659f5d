/* --tuning, see tuning.h. */
#define _GNU_SOURCE 1
#include "tuning.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <strata/sdk/btl_rdma.h>
#include <strata/strata.h>

enum { DONE_TAG = 1, WAY = 38 /* columns */ };

static const struct {
    const char *name, *text;
} classes[] = {{"alone", "one message at a time, each answered"},
               {"window", "many messages under way, one direction"},
               {"crosses", "long messages in both directions"},
               {"late", "as window, to a receiver that regularly posts its receives late, nobody waiting"}};

static const struct {
    const char *name, *text;
} costs[] = {{"ask_cost", "to ask the receiver first"},
             {"rdma_cost", "a get or put beside copies"},
             {"split_cost", "a get and a put, half each, beside one of them"},
             {"zcopy_cost", "sending without a copy"},
             {"alone_cost", "asking and getting, of a message that travels alone"},
             {"alone_split_cost", "the same, half each"}};

/* ---- text ---- */

static void print_ways(const json_t *ways)
{
    const json_t *step;
    size_t i;

    json_array_foreach(ways, i, step)
    {
        const char *answer = json_string_value(json_object_get(step, "answer"));
        const char *limit = json_string_value(json_object_get(step, "limit"));
        char way[96];

        snprintf(way, sizeof(way), "%s%s%s", json_string_value(json_object_get(step, "protocol")),
                 answer ? ", then " : "", answer ? answer : "");
        printf("      from %10lld bytes  %s", (long long)json_integer_value(json_object_get(step, "from")), way);
        if (limit)
            printf("%*s (by %s)", (int)(strlen(way) < WAY ? WAY - strlen(way) : 0), "", limit);
        printf("\n");
    }
}

static void print_costs(const json_t *facts)
{
    for (size_t i = 0; i < sizeof(costs) / sizeof(*costs); i++) {
        json_int_t bytes = json_integer_value(json_object_get(facts, costs[i].name));
        if (bytes >= (json_int_t)ST_BTL_RDMA_NEVER)
            printf("      %-18s never pays  (%s)\n", costs[i].name, costs[i].text);
        else if (bytes)
            printf("      %-18s %lld bytes  (%s)\n", costs[i].name, (long long)bytes, costs[i].text);
    }
}

/* What a transport has measured, of the path that it is said of. */
static void print_measured(const json_t *path)
{
    const json_t *measured = json_object_get(path, "measured"), *value;
    const char *name, *comma = "";

    if (!json_is_object(measured))
        return;
    printf("  measured for %s:", json_string_value(json_object_get(path, "transport")));
    json_object_foreach((json_t *)(uintptr_t)measured, name, value)
    {
        if (json_is_string(value))
            printf("%s %s: %s", comma, name, json_string_value(value));
        else
            printf("%s %s %lld", comma, name, (long long)json_integer_value(value));
        comma = ",";
    }
    printf("\n");
}

/* mca_base_tune=online: what the times of messages say. */
static void print_tuned(const json_t *tuned)
{
    const json_t *cell;
    size_t i;

    json_array_foreach(tuned, i, cell) printf(
        "  learnt: %s from %lld bytes: %s (%lld ns by the limits, %lld ns asked; %lld tries, %lld changes)\n",
        json_string_value(json_object_get(cell, "traffic")),
        (long long)json_integer_value(json_object_get(cell, "from")), json_string_value(json_object_get(cell, "way")),
        (long long)json_integer_value(json_object_get(cell, "by_limits_ns")),
        (long long)json_integer_value(json_object_get(cell, "asked_ns")),
        (long long)json_integer_value(json_object_get(cell, "tries")),
        (long long)json_integer_value(json_object_get(cell, "changes")));
}

/* What the peer has said of announced messages. */
static void print_receiver(const json_t *receiver)
{
    if (receiver)
        printf("  receiver: %s (%lld of the last %lld announced messages waited for their receives)\n",
               json_string_value(json_object_get(receiver, "habit")),
               (long long)json_integer_value(json_object_get(receiver, "answers_late")),
               (long long)json_integer_value(json_object_get(receiver, "answers")));
}

static void print_peer(const json_t *peer)
{
    const json_t *protocols = json_object_get(peer, "protocols"), *facts = json_object_get(protocols, "facts");
    const json_t *path, *parameter;
    size_t i;

    printf("To rank %lld by", (long long)json_integer_value(json_object_get(peer, "rank")));
    json_array_foreach(json_object_get(peer, "paths"), i, path)
        printf("%s %s", i ? "," : "", json_string_value(json_object_get(path, "transport")));
    printf(": latency %lld ns, bandwidth %lld MB/s\n",
           (long long)json_integer_value(json_object_get(facts, "latency_ns")),
           (long long)json_integer_value(json_object_get(facts, "bandwidth_mbs")));
    for (i = 0; i < sizeof(classes) / sizeof(*classes); i++) {
        const json_t *ways = json_object_get(json_object_get(protocols, "ways"), classes[i].name);
        if (ways)
            printf("  %s: %s\n", classes[i].name, classes[i].text);
        print_ways(ways);
    }
    print_receiver(json_object_get(protocols, "receiver"));
    printf("  costs, said as the bytes that would have crossed meanwhile\n");
    print_costs(facts);
    json_array_foreach(json_object_get(peer, "paths"), i, path) print_measured(path);
    print_tuned(json_object_get(protocols, "tuned"));
    if (json_array_size(json_object_get(protocols, "parameters")))
        printf("  set by parameters:");
    json_array_foreach(json_object_get(protocols, "parameters"), i, parameter)
        printf(" %s", json_string_value(parameter));
    printf("%s\n", i ? "\n" : "");
}

/* ---- within a job ---- */

/* Appends the reports of all peers; a STRATA_ERR_* of the first that fails. */
static int gather_peers(strata_t *s, json_t *peers)
{
    for (int rank = 0; rank < strata_size(s); rank++) {
        char *text = NULL;
        int rc = strata_peer_report(s, rank, &text);
        if (rc != STRATA_OK) {
            fprintf(stderr, "strata-info: rank %d: %s\n", rank, strata_strerror(rc));
            return rc;
        }
        json_array_append_new(peers, json_loads(text, 0, NULL));
        free(text);
    }
    return STRATA_OK;
}

static int print_peers(const struct options *o, json_t *peers)
{
    const json_t *peer;
    size_t i;
    int rc = 0;

    if (o->json) {
        json_t *root = json_pack("{s:O}", "peers", peers);
        rc = json_dumpf(root, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
        putchar('\n');
        json_decref(root);
    } else {
        json_array_foreach(peers, i, peer) print_peer(peer);
    }
    if (rc || fflush(stdout) || ferror(stdout)) {
        perror("strata-info: standard output");
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

/* Rank 0 looks at the way to each; the others stay until it is done. */
static int look_within(const struct options *o, strata_t *s)
{
    json_t *peers = json_array();
    int rc = STRATA_OK, status = EXIT_SUCCESS;

    if (strata_rank(s) != 0) {
        rc = strata_recv(strata_world(s), NULL, 0, 0, DONE_TAG, NULL);
    } else {
        rc = gather_peers(s, peers);
        if (rc == STRATA_OK)
            status = print_peers(o, peers);
        for (int rank = 1; rank < strata_size(s); rank++)
            (void)strata_send(strata_world(s), NULL, 0, rank, DONE_TAG); /* who is dead has been reported */
    }
    json_decref(peers);
    return rc == STRATA_OK ? status : EXIT_FAILURE;
}

static int run_in_job(const struct options *o)
{
    strata_config_t config = STRATA_CONFIG_INIT;
    strata_t *s;
    int status, rc;

    config.command_line = o->settings;
    config.n_command_line = o->n_settings;
    rc = strata_init(&config, &s);
    if (rc != STRATA_OK)
        return rc == STRATA_ERR_PARAM || rc == STRATA_ERR_NOT_FOUND ? EXIT_USER : EXIT_FAILURE;
    status = look_within(o, s);
    rc = strata_finalize(s);
    return rc == STRATA_OK ? status : EXIT_FAILURE;
}

/* ---- without one ---- */

/* strata-run stands beside this program, or where it was installed. */
static bool find_launcher(char *out, size_t size, const char *self)
{
    const char *slash = strrchr(self, '/');

    snprintf(out, size, "%.*s/strata-run", slash ? (int)(slash - self) : 0, self);
    if (access(out, X_OK) == 0)
        return true;
    snprintf(out, size, "%s/strata-run", ST_BINDIR);
    return access(out, X_OK) == 0;
}

static int start_job(char **argv)
{
    char self[PATH_MAX], launcher[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    size_t n = 0;
    char **words;

    self[length < 0 ? 0 : length] = 0;
    if (!find_launcher(launcher, sizeof(launcher), self)) {
        fprintf(stderr, "strata-info: --tuning: no strata-run beside %s nor in %s; start it within a job\n", self,
                ST_BINDIR);
        return EXIT_FAILURE;
    }
    while (argv[n])
        n++;
    words = calloc(n + 4, sizeof(*words));
    if (!words) {
        fprintf(stderr, "strata-info: out of memory\n");
        return EXIT_FAILURE;
    }
    words[0] = launcher;
    words[1] = (char *)"-n";
    words[2] = (char *)"2";
    words[3] = self;
    memcpy(words + 4, argv + 1, n * sizeof(*words)); /* with the NULL that ends them */
    execv(launcher, words);
    fprintf(stderr, "strata-info: %s: %s\n", launcher, strerror(errno));
    free(words);
    return EXIT_FAILURE;
}

int tuning_run(const struct options *o, char **argv)
{
    return getenv("PMIX_RANK") ? run_in_job(o) : start_job(argv);
}
