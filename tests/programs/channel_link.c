/* Processes that are started apart and have channels, for tests/integration/channel_link_test.sh:
 *   channel_link listen ADDRESS N   takes N processes, echoes what each sends until its stream ends
 *   channel_link connect ADDRESS MESSAGES [die]   sends messages, checks the echoes; die: kills itself before the end
 *   channel_link survive ADDRESS    takes two processes, of which one dies: its channels end with the error, the
 * others' go on Prints what has happened, one line each. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/channel_link.h>

enum { MOST = 256, LIMIT = 60000, LONG = 200000 };

static void must(int rc, const char *what)
{
    if (rc == STRATA_OK)
        return;
    printf("%s: %s\n", what, strata_strerror(rc));
    exit(1);
}

/* Of a process that has connected, at the one that listens. */
struct partner {
    int number;
    strata_channel_sender_t *out;
    strata_channel_receiver_t *in;
};

static void partner_open(strata_t *s, struct partner *p)
{
    must(strata_channel_open_recv(s, p->number, "there", 0, &p->in), "strata_channel_open_recv");
    must(strata_channel_open_send(s, p->number, "back", &p->out), "strata_channel_open_send");
}

static strata_channel_link_t *listen_at(const char *address)
{
    strata_channel_link_t *link;

    must(strata_channel_listen(address, NULL, &link), "strata_channel_listen");
    printf("listens at %s\n", strata_channel_link_address(link));
    fflush(stdout);
    return link;
}

/* Echoes one message of the partner; false: its stream has ended, or it is gone, which *rc says. */
static bool echo(struct partner *p, char *buffer, int *rc)
{
    size_t length;

    *rc = strata_channel_recv(p->in, buffer, LONG, &length, LIMIT);
    if (*rc == STRATA_OK)
        *rc = strata_channel_send(p->out, buffer, length, LIMIT);
    return *rc == STRATA_OK;
}

static void end(strata_t *s, struct partner *p, int rc)
{
    (void)s;
    if (rc == STRATA_CHANNEL_ENDED)
        must(strata_channel_close_send(p->out), "strata_channel_close_send");
    else
        (void)strata_channel_close_send(p->out);
    must(strata_channel_close_recv(p->in), "strata_channel_close_recv");
    printf("%d: %s\n", p->number, rc == STRATA_CHANNEL_ENDED ? "ended" : strata_strerror(rc));
}

static int serve(const char *address, int n)
{
    strata_channel_link_t *link = listen_at(address);
    strata_t *s = strata_channel_link_context(link);
    struct partner partners[MOST];
    char *buffer = malloc(LONG);
    strata_channel_set_t *set;
    strata_channel_receiver_t *in;
    int rc;

    must(strata_channel_set_create(s, &set), "strata_channel_set_create");
    for (int i = 0; i < n; i++) {
        must(strata_channel_accept(link, LIMIT, &partners[i].number), "strata_channel_accept");
        if (partners[i].number < 1 || partners[i].number > n)
            must(STRATA_ERR_RANK, "numbers are not consecutive");
        printf("accepted %d\n", partners[i].number);
        fflush(stdout);
        partner_open(s, &partners[i]);
        must(strata_channel_set_add(set, partners[i].in), "strata_channel_set_add");
    }
    while ((rc = strata_channel_set_next(set, LIMIT, &in)) == STRATA_OK)
        for (int i = 0; i < n; i++)
            if (partners[i].in == in && !echo(&partners[i], buffer, &rc)) {
                must(strata_channel_set_remove(set, in), "strata_channel_set_remove");
                end(s, &partners[i], rc);
                partners[i].in = NULL;
            }
    if (rc != STRATA_CHANNEL_ENDED)
        must(rc, "strata_channel_set_next");
    must(strata_channel_set_destroy(set), "strata_channel_set_destroy");
    free(buffer);
    must(strata_channel_link_close(link), "strata_channel_link_close");
    printf("served %d\n", n);
    return 0;
}

static int survive(const char *address)
{
    strata_channel_link_t *link = listen_at(address);
    struct partner partners[2];
    char *buffer = malloc(LONG);
    int rcs[2];

    for (int i = 0; i < 2; i++) {
        must(strata_channel_accept(link, LIMIT, &partners[i].number), "strata_channel_accept");
        partner_open(strata_channel_link_context(link), &partners[i]);
    }
    for (int i = 0; i < 2; i++) {
        while (echo(&partners[i], buffer, &rcs[i]))
            ;
        end(strata_channel_link_context(link), &partners[i], rcs[i]);
    }
    free(buffer);
    must(strata_channel_link_close(link), "strata_channel_link_close");
    return 0;
}

static int call(const char *address, int messages, bool die)
{
    strata_channel_link_t *link;
    struct partner p = {.number = 0};
    char *data = malloc(LONG), *back = malloc(LONG);
    size_t length;

    must(strata_channel_connect(address, LIMIT, NULL, &link), "strata_channel_connect");
    printf("number %d\n", strata_rank(strata_channel_link_context(link)));
    fflush(stdout);
    must(strata_channel_open_recv(strata_channel_link_context(link), 0, "back", 0, &p.in), "strata_channel_open_recv");
    must(strata_channel_open_send(strata_channel_link_context(link), 0, "there", &p.out), "strata_channel_open_send");
    for (int i = 0; i < messages; i++) {
        size_t size = i % 10 == 9 ? LONG : (size_t)i % 1000; /* longer than the ring now and then */
        memset(data, i, size);
        must(strata_channel_send(p.out, data, size, LIMIT), "strata_channel_send");
        must(strata_channel_recv(p.in, back, LONG, &length, LIMIT), "strata_channel_recv");
        if (length != size || memcmp(data, back, size) != 0)
            must(STRATA_ERR_PROTOCOL, "another message came back");
    }
    if (die) {
        fflush(stdout);
        raise(SIGKILL);
    }
    must(strata_channel_end(p.out, LIMIT), "strata_channel_end");
    if (strata_channel_recv(p.in, back, LONG, &length, LIMIT) != STRATA_CHANNEL_ENDED)
        must(STRATA_ERR_PROTOCOL, "the echoes do not end");
    must(strata_channel_close_send(p.out), "strata_channel_close_send");
    must(strata_channel_close_recv(p.in), "strata_channel_close_recv");
    must(strata_channel_link_close(link), "strata_channel_link_close");
    free(data);
    free(back);
    printf("all came back\n");
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "listen") == 0 && atoi(argv[3]) <= MOST)
        return serve(argv[2], atoi(argv[3]));
    if (argc == 3 && strcmp(argv[1], "survive") == 0)
        return survive(argv[2]);
    if (argc >= 4 && strcmp(argv[1], "connect") == 0)
        return call(argv[2], atoi(argv[3]), argc == 5 && strcmp(argv[4], "die") == 0);
    fprintf(stderr, "usage: see the head of this file\n");
    return 2;
}
