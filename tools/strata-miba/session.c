/* How both sides meet: as server and client over TCP, or as a process and its child. */
#include "config.h"
#include "sides.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "machine.h"

#define PROTOCOL   4
#define STOPPED_MS 500

static void tick(int signal_number)
{
    (void)signal_number;
}

/* Four signals a second, so that whoever sleeps in ibv_get_cq_event looks at the link now and then. */
static void start_ticks(void)
{
    const struct sigaction a = {.sa_handler = tick};
    const struct itimerval every = {.it_interval = {.tv_usec = 250000}, .it_value = {.tv_usec = 250000}};

    sigaction(SIGALRM, &a, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
}

/* Both sides spin, so they want a processor each, and the scheduler is slow to see it. -1: any. */
static void stay_on(struct miba *m, int cpu)
{
    cpu_set_t one;

    if (cpu < 0 || m->processors < 2)
        return;
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one))
        fprintf(stderr, "strata-miba: processor %d cannot be used: %s\n", cpu, strerror(errno));
    else
        m->cpu = cpu;
}

/* The client says its protocol and settings; the server answers "agreed", or why it does not. */
static enum miba_status greet(struct miba *m)
{
    char line[LINE_MOST];
    json_t *own = settings_json(&m->set, true);
    char *text = json_dumps(own, JSON_COMPACT);
    enum miba_status status =
        text ? link_say(m->link, &m->why, "hello %d %s", PROTOCOL, text) : miba_fail(&m->why, MIBA_BROKEN, "no memory");

    free(text);
    json_decref(own);
    if (!status)
        status = link_hear(m->link, line, false, &m->why);
    if (status == MIBA_LOST && m->link->lost)
        return miba_fail(&m->why, MIBA_LOST, "no server of strata-miba answers there");
    if (!status && strcmp(line, "agreed") != 0)
        status = strncmp(line, "no: ", 4) == 0
                     ? miba_fail(&m->why, MIBA_BROKEN, "%s", line + 4)
                     : miba_fail(&m->why, MIBA_BROKEN, "what answers there is not strata-miba: \"%.40s\"", line);
    return status;
}

static enum miba_status be_greeted(struct miba *m)
{
    char line[LINE_MOST];
    int protocol = 0, at = 0;
    enum miba_status status = link_hear(m->link, line, false, &m->why);

    if (status)
        return status;
    if (sscanf(line, "hello %d %n", &protocol, &at) < 1 || at == 0)
        return miba_fail(&m->why, MIBA_BROKEN, "the client is not strata-miba: it says \"%.40s\"", line);
    json_t *theirs = json_loads(line + at, 0, NULL);
    if (protocol != PROTOCOL)
        status = miba_fail(&m->why, MIBA_BROKEN, "the client has protocol %d, the server %d: one is of another version",
                           protocol, PROTOCOL);
    else
        status = settings_agree(&m->set, theirs, &m->why);
    json_decref(theirs);
    if (status) {
        const struct miba_why why = m->why;
        link_say(m->link, &m->why, "no: %s", why.text);
        m->why = why;
        return status;
    }
    return link_say(m->link, &m->why, "agreed");
}

/* A parent that has no device either says so and leaves: then the link is lost, and there is no more to say. */
static void wait_for_parent(struct miba *m)
{
    const struct miba_why why = m->why;
    char line[LINE_MOST];

    (void)link_hear(m->link, line, true, &m->why);
    m->why = why;
}

static int leading_processor(const struct miba *m)
{
    return m->set.cpu >= 0 ? m->set.cpu : machine_processor(&m->permitted, -1);
}

/* The child follows and ends; it prints what went wrong unless the parent is gone. */
static void be_child(struct miba *m, int fd, pid_t parent)
{
    const int leads = leading_processor(m), follows = machine_processor(&m->permitted, leads);

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    m->leads = false;
    link_start(m->link, fd, m->set.timeout_s);
    link_beats_start(m->link);
    stay_on(m, follows);
    m->other_cpu = leads;
    enum miba_status status = device_open(&m->dev, &m->set, &m->why);
    if (status) {
        wait_for_parent(m);
    } else {
        status = follow(m);
        device_close(&m->dev);
    }
    if (status && !m->link->lost)
        fprintf(stderr, "strata-miba: the other side: %s\n", m->why.text);
    link_end(m->link);
    _exit(status ? 1 : 0);
}

static enum miba_status split(struct miba *m)
{
    int ends[2];
    const pid_t parent = getpid();

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return miba_fail(&m->why, MIBA_BROKEN, "socketpair: %s", strerror(errno));
    const pid_t child = fork();
    if (child < 0)
        return miba_fail(&m->why, MIBA_BROKEN, "fork: %s", strerror(errno));
    if (child == 0) {
        close(ends[0]);
        start_ticks();
        be_child(m, ends[1], parent);
    }
    close(ends[1]);
    m->leads = true;
    stay_on(m, leading_processor(m));
    m->other_cpu = machine_processor(&m->permitted, m->cpu);
    m->child = child;
    link_start(m->link, ends[0], m->set.timeout_s);
    return MIBA_OK;
}

enum miba_status session_begin(struct miba *m, const struct session *s)
{
    enum miba_status status;

    m->cpu = m->other_cpu = -1;
    m->processors = sched_getaffinity(0, sizeof m->permitted, &m->permitted) ? 1 : (unsigned)CPU_COUNT(&m->permitted);
    if (!s->connect && !s->server) {
        status = split(m);
        if (!status)
            start_ticks();
        return status;
    }
    m->leads = !s->server;
    const int fd =
        s->server ? link_serve(s->port, &m->why) : link_connect(s->connect, s->port, m->set.timeout_s, &m->why);
    if (fd < 0)
        return MIBA_BROKEN;
    link_start(m->link, fd, m->set.timeout_s);
    start_ticks();
    status = s->server ? be_greeted(m) : greet(m);
    m->link->timeout_s = m->set.timeout_s;
    if (s->server && !status)
        link_beats_start(m->link);
    stay_on(m, m->set.cpu);
    return status;
}

/* Status of the other side, a child; `options` are those of waitpid. */
static int child_wait(const struct miba *m, int options)
{
    int how = 0;

    while (waitpid(m->child, &how, options) < 0 && errno == EINTR)
        ;
    return how;
}

/* Waits for the other side to end, and returns its status. One that has been stopped is killed unless it goes
 * on: a terminal that has stopped both lets both go on together. */
static int child_status(struct miba *m)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    int how = child_wait(m, WUNTRACED);

    if (!WIFSTOPPED(how))
        return how;
    for (int i = 0; i < STOPPED_MS / 10; i++) {
        if (waitpid(m->child, &how, WNOHANG) > 0)
            return how;
        nanosleep(&pause, NULL);
    }
    kill(m->child, SIGKILL);
    miba_fail(&m->why, MIBA_LOST, "the peer is lost: it was stopped");
    return child_wait(m, 0);
}

bool session_end(struct miba *m)
{
    int how;
    struct miba_why why;

    m->why.text[0] = '\0';
    if (m->leads && m->link->fd >= 0 && !m->link->lost)
        link_say(m->link, &why, "bye");
    link_end(m->link);
    if (m->child <= 0)
        return true;
    /* One that was stopped would not end by itself. */
    if (m->link->lost)
        kill(m->child, SIGKILL);
    how = child_status(m);
    return WIFEXITED(how) && WEXITSTATUS(how) == 0;
}
