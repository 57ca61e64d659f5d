/* The cases with threads for ranks. */
#include "run.h"
#include "support/btl_suite.h"
#include "support/over_suite.h"
#include "support/watchdog.h"
#include "support/way.h"
#include <strata/sdk/pml.h>

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_TRANSPORTS = 32, ANSWER = 1600 };

/* The components that open a module here, in the order of their modules. */
struct transports {
    char names[MOST_TRANSPORTS][64];
    size_t n;
    bool only_self; /* nothing reaches another rank */
    bool puts;      /* the way to another rank can put */
};

static int result_fd = -1; /* in the child: where the parent reads why it failed */

static void tell(const char *text)
{
    size_t length = strlen(text);

    if (write(result_fd, text, length) != (ssize_t)length)
        perror("strata-conformance: a pipe");
}

/* Runs fn in a child: what it told into answer. Its status as waitpid has it, -1 when there is no child. */
static int in_child(void (*fn)(const void *arg), const void *arg, char *answer, size_t size)
{
    int ends[2], status = -1;
    size_t n = 0;
    ssize_t got;

    answer[0] = 0;
    fflush(stdout);
    if (pipe(ends) != 0)
        return -1;
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        result_fd = ends[1];
        fn(arg);
        _exit(0);
    }
    close(ends[1]);
    while (child > 0 && n + 1 < size && ((got = read(ends[0], answer + n, size - n - 1)) > 0 || errno == EINTR))
        n += got > 0 ? (size_t)got : 0;
    answer[n] = 0;
    close(ends[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* "name=value name=value", as the world of threads takes them; false: a value does not fit in. */
static bool join_settings(const struct options *o, char *out, size_t size)
{
    size_t n = 0;

    out[0] = 0;
    for (size_t i = 0; i < o->n_settings; i++) {
        const strata_setting_t *s = &o->settings[i];
        if (strchr(s->name, ' ') || strchr(s->value, ' ') || strchr(s->name, '='))
            return false;
        n += (size_t)snprintf(out + n, size - n, "%s%s=%s", i ? " " : "", s->name, s->value);
        if (n >= size)
            return false;
    }
    return true;
}

/* ---- which transports there are ---- */

static void find_body(struct tw_rank *r)
{
    bool reached = false;

    for (size_t i = 0; r->rank == 0 && i < r->s->n_btls; i++) {
        bool reaches = r->s->btls[i]->ops->reach(r->s->btls[i], 1) == STRATA_OK;
        tell(r->s->btls[i]->component->name);
        tell(reaches ? " 1\n" : " 0\n");
        reached |= reaches;
    }
    if (reached && way_puts(r, 1))
        tell("put\n");
    tw_quiesce(r);
}

static void find(const void *arg)
{
    test_on_failure(tell);
    tw_run(&(struct tw_options){.n = 2, .settings = arg}, find_body, NULL);
}

static bool find_transports(const char *settings, struct transports *t)
{
    char text[ANSWER], *save = NULL;
    int status = in_child(find, settings, text, sizeof text);

    *t = (struct transports){.only_self = true};
    if (status != 0) {
        fprintf(stderr, "strata-conformance: Strata does not start: %s\n", text);
        return false;
    }
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *end = strchr(line, ' ');
        if (!end) {
            t->puts = true;
            continue;
        }
        bool reaches = end[1] == '1', seen = false;
        *end = 0;
        for (size_t i = 0; i < t->n; i++)
            seen |= !strcmp(t->names[i], line);
        t->only_self &= !reaches;
        /* What reaches oneself only is tested when there is nothing else. */
        if (!seen && reaches && t->n < MOST_TRANSPORTS)
            snprintf(t->names[t->n++], sizeof t->names[0], "%s", line);
    }
    if (t->only_self && strstr(settings, "self"))
        snprintf(t->names[t->n++], sizeof t->names[0], "self");
    return true;
}

/* ---- a case ---- */

struct job {
    const struct options *o;
    const struct conf_case *c;
    const char *settings, *transport;
    bool only_self;
};

static void message_body(struct tw_rank *r)
{
    const struct suite_case *c = r->arg;

    if (r->rank < c->ranks)
        c->body(r);
}

static void run_job(const void *arg)
{
    const struct job *j = arg;
    const struct conf_case *c = j->c;
    struct tw_options o = {.n = c->ranks, .settings = j->settings, .quiet = c->quiet};

    test_on_failure(tell);
    watchdog_start(j->o->timeout_s, 1); /* until the process ends */
    o.level = c->multiple ? STRATA_THREAD_MULTIPLE : STRATA_THREAD_SINGLE;
    /* A second rank even where one would do: a transport between ranks refuses a job of one. */
    if (c->message && o.n == 1 && !j->only_self)
        o.n = 2;
    if (c->transport)
        btl_case_run(c->transport, j->transport, j->settings, j->only_self);
    else if (c->client)
        tw_run(&o, c->client->body, (void *)(uintptr_t)j->settings);
    else
        tw_run(&o, message_body, (void *)(uintptr_t)c->message);
}

static void run_one(struct report *r, const struct job *j)
{
    char text[ANSWER], reason[ANSWER + 64];
    int status = in_child(run_job, j, text, sizeof text);

    if (status == 0) {
        report_case(r, j->c, j->transport, CONF_PASSED, NULL);
        return;
    }
    if (text[0])
        snprintf(reason, sizeof reason, "%s", text);
    else if (status == -1)
        snprintf(reason, sizeof reason, "no process for it: %s", strerror(errno));
    else if (WIFSIGNALED(status))
        snprintf(reason, sizeof reason, "ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(reason, sizeof reason, "ended with status %d", WEXITSTATUS(status));
    report_case(r, j->c, j->transport, CONF_FAILED, reason);
}

int run_threads(const struct options *o, const struct conf_case *cases, size_t n)
{
    struct report r = {.json = o->json, .ranks = "threads"};
    struct transports t;
    char settings[4096];

    if (!join_settings(o, settings, sizeof settings)) {
        fprintf(stderr, "strata-conformance: --mca: with threads no name or value may hold a space\n");
        return EXIT_USER;
    }
    if (!find_transports(settings, &t))
        return EXIT_USER;
    for (size_t i = 0; i < n; i++) {
        struct job j = {.o = o, .c = &cases[i], .settings = settings, .only_self = t.only_self};
        if (!options_select(o, j.c->name))
            continue;
        if (t.only_self && !j.c->transport && j.c->ranks > 1) {
            report_case(&r, j.c, NULL, CONF_LEFT_OUT, "no transport reaches another rank");
            continue;
        }
        if (j.c->puts && !t.puts) {
            report_case(&r, j.c, NULL, CONF_LEFT_OUT, "the transport cannot put");
            continue;
        }
        if (!j.c->transport)
            run_one(&r, &j);
        for (size_t k = 0; j.c->transport && k < t.n; k++) {
            j.transport = t.names[k];
            run_one(&r, &j);
        }
    }
    return report_end(&r);
}
