/* Memory of peers that become hot, by eager RDMA or without: `eager_memory HOT LEAST`. Rank 0 prints what it has
 * after each stage, in bytes: as btl_openib reports its rings and all but registered buffers, and as the kernel counts
 * its own shared pages and its anonymous ones.
 * - idle, connected: before and after two messages each way with every rank
 * - in, in long: ranks 1 to HOT have sent many short messages, many of 1500 bytes
 * - out, out long: the same to them
 * - others: all others have exchanged such messages both ways with rank 0
 * - cold: the others wait until rank 0 has LEAST bytes of rings; two minutes at most
 * - again: as `out long` */
#include <dirent.h>
#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "support/rollup.h"
#include "support/suite.h"
#include "support/watchdog.h"

enum { TAG = 6, MESSAGES = 320, ROUND = 16, SHORT = 8, LONG = 1500, FILES = 16, COLD_S = 120 };

static strata_t *s;
static strata_comm_t *world;
static int n;
static char data[LONG];

/* ---- what there is ---- */

struct figures {
    size_t rings, all, shared, anonymous;
};

static void add_line(void *arg, const strata_mem_line_t *line)
{
    struct figures *f = arg;

    /* Sockets by which connections were made are among what is registered, for as long as they stay. */
    if (strcmp(line->component, "btl_openib") != 0 || strcmp(line->category, "registered") == 0)
        return;
    f->all += line->bytes;
    if (strcmp(line->category, "eager rings") == 0)
        f->rings += line->bytes;
}

/* Inodes of this process's own files of shared memory: peers' files are mapped, and not open. */
static int own_files(unsigned long inodes[FILES])
{
    DIR *d = opendir("/proc/self/fd");
    int found = 0;

    CHECK(d != NULL);
    for (struct dirent *e; (e = readdir(d)) != NULL && found < FILES;) {
        char target[PATH_MAX];
        struct stat st;
        ssize_t len = readlinkat(dirfd(d), e->d_name, target, sizeof target - 1);
        target[len > 0 ? len : 0] = 0;
        if (strstr(target, "memfd:strata-shared") && fstatat(dirfd(d), e->d_name, &st, 0) == 0)
            inodes[found++] = (unsigned long)st.st_ino;
    }
    closedir(d);
    return found;
}

static size_t shared_pages(void)
{
    unsigned long inodes[FILES], inode;
    int files = own_files(inodes);
    FILE *f = fopen("/proc/self/smaps", "r");
    bool own = false;
    char line[512];
    size_t kb = 0;
    long rss;

    CHECK(f != NULL);
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%*x-%*x %*s %*x %*x:%*x %lu", &inode) == 1) {
            own = false;
            for (int i = 0; i < files; i++)
                own |= inodes[i] == inode;
        } else if (own && sscanf(line, "Rss: %ld", &rss) == 1) {
            kb += (size_t)rss;
        }
    }
    fclose(f);
    return kb * 1024;
}

static struct figures now(void)
{
    struct figures f = {.shared = shared_pages(), .anonymous = (size_t)rollup_kb("Anonymous:") * 1024};

    CHECK_OK(strata_mem_report(s, add_line, &f));
    return f;
}

static void show(const char *stage)
{
    struct figures f = now();

    printf("%s: %zu %zu %zu %zu\n", stage, f.rings, f.all, f.shared, f.anonymous);
}

/* ---- messages: nobody sleeps, since who sleeps long revokes its rings ---- */

static void finish(strata_request_t *q)
{
    int ended = 0;

    while (!ended) {
        CHECK_OK(strata_test(&q, &ended, NULL));
        if (!ended)
            (void)sched_yield();
    }
}

static void give(int to, const void *from, size_t length)
{
    strata_request_t *q;

    CHECK_OK(strata_isend(world, from, length, to, TAG, &q));
    finish(q);
}

static void take(int from)
{
    strata_request_t *q;

    CHECK_OK(strata_irecv(world, data, sizeof data, from, TAG, &q));
    finish(q);
}

/* Messages one way, but for an answer to some. */
static void send_stream(int to, size_t length)
{
    for (int i = 1; i <= MESSAGES; i++) {
        give(to, data, length);
        if (i % ROUND == 0)
            take(to);
    }
}

static void take_stream(int from)
{
    for (int i = 1; i <= MESSAGES; i++) {
        take(from);
        if (i % ROUND == 0)
            give(from, NULL, 0);
    }
}

/* ---- the others do what rank 0 tells them ---- */

enum what { ANSWER, SEND, TAKE, SLEEP, END };
struct command {
    enum what what;
    size_t length; /* of the messages to be sent */
};

static void tell(int peer, enum what what, size_t length)
{
    const struct command c = {what, length};

    give(peer, &c, sizeof c);
}

static void obey(void)
{
    struct command c;

    do {
        take(0);
        memcpy(&c, data, sizeof c);
        switch (c.what) {
        case ANSWER:
            give(0, NULL, 0);
            break;
        case SEND:
            send_stream(0, c.length);
            break;
        case TAKE:
            take_stream(0);
            break;
        case SLEEP:
            CHECK_OK(strata_recv(world, data, sizeof data, 0, TAG, NULL));
            break;
        case END:
            break;
        }
    } while (c.what != END);
}

static void streams_in(int first, int last, size_t length)
{
    for (int peer = first; peer <= last; peer++) {
        tell(peer, SEND, length);
        take_stream(peer);
    }
}

static void streams_out(int first, int last, size_t length)
{
    for (int peer = first; peer <= last; peer++) {
        tell(peer, TAKE, 0);
        send_stream(peer, length);
    }
}

/* All others sleep until there is a message: they revoke the rings that they have granted. */
static void cool(size_t least)
{
    for (int peer = 1; peer < n; peer++)
        tell(peer, SLEEP, 0);
    for (time_t end = time(NULL) + COLD_S; time(NULL) < end && now().rings > least;) {
        for (int k = 0; k < 1000; k++)
            (void)strata_progress(s);
        usleep(10000);
    }
    for (int peer = 1; peer < n; peer++)
        give(peer, NULL, 0);
}

static void lead(int hot, size_t least)
{
    (void)now(); /* reading takes memory as well */
    show("idle");
    for (int k = 0; k < 2; k++)
        for (int peer = 1; peer < n; peer++) {
            tell(peer, ANSWER, 0);
            take(peer);
        }
    show("connected");
    streams_in(1, hot, SHORT);
    show("in");
    streams_in(1, hot, LONG);
    show("in long");
    streams_out(1, hot, SHORT);
    show("out");
    streams_out(1, hot, LONG);
    show("out long");
    streams_in(hot + 1, n - 1, LONG);
    streams_out(hot + 1, n - 1, LONG);
    show("others");
    cool(least);
    show("cold");
    streams_out(1, hot, LONG);
    show("again");
    for (int peer = 1; peer < n; peer++)
        tell(peer, END, 0);
}

int main(int argc, char **argv)
{
    const int hot = argc > 2 ? atoi(argv[1]) : 0;
    struct watchdog *dog = watchdog_start(test_timeout(900), 1);
    strata_config_t config = STRATA_CONFIG_INIT;
    char why[256];

    config.error_text = why;
    config.error_text_size = sizeof why;
    CHECK_MSG(strata_init(&config, &s) == STRATA_OK, "strata_init: %s", why);
    world = strata_world(s);
    n = strata_size(s);
    CHECK(hot > 0 && hot < n);
    if (strata_rank(s) == 0)
        lead(hot, strtoul(argv[2], NULL, 10));
    else
        obey();
    CHECK_OK(strata_finalize(s));
    watchdog_stop(dog);
    return 0;
}
