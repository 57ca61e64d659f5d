/* Faults on purpose: creations and datagrams that fail, traffic in trouble, ports that go down, devices that vanish. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "hca.h"

struct hca_trouble hca_trouble;
struct hca_tally hca_tally;

static _Atomic(uint32_t) countdown[HCA_FAULTS];

bool hca_fault_now(enum hca_fault what)
{
    uint32_t left = atomic_load_explicit(&countdown[what], memory_order_relaxed);
    while (left)
        if (atomic_compare_exchange_weak(&countdown[what], &left, left - 1)) {
            atomic_fetch_add(&hca_tally.failed, left == 1);
            return left == 1;
        }
    return false;
}

bool hca_trouble_now(_Atomic(uint32_t) *left)
{
    uint32_t n = atomic_load_explicit(left, memory_order_relaxed);

    while (n)
        if (atomic_compare_exchange_weak(left, &n, n - 1))
            return true;
    return false;
}

/* ---- what came of them ---- */

#define TALLY_TEXT 320 /* bytes */

static void tally_text(char *text, size_t size)
{
    snprintf(text, size,
             "dropped %llu, datagrams %llu, failed %llu, qp-refused %llu, limit-lost %llu, limit-again %llu, "
             "not-ready %llu, cut %llu, cut-writes %llu",
             (unsigned long long)hca_tally.dropped, (unsigned long long)hca_tally.datagrams,
             (unsigned long long)hca_tally.failed, (unsigned long long)hca_tally.qp_refused,
             (unsigned long long)hca_tally.limit_lost, (unsigned long long)hca_tally.limit_again,
             (unsigned long long)hca_tally.not_ready, (unsigned long long)hca_tally.cut,
             (unsigned long long)hca_tally.cut_writes);
}

/* Of several processes one line each: appended at once. */
void hca_tally_write(void)
{
    const char *name = getenv("SOFTHCA_TALLY");
    char text[TALLY_TEXT], line[TALLY_TEXT + 16];

    if (!name || !*name)
        return;
    tally_text(text, sizeof text);
    int n = snprintf(line, sizeof line, "%d: %s\n", (int)getpid(), text);
    int fd = open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || write(fd, line, (size_t)n) != n)
        fprintf(stderr, "softhca: SOFTHCA_TALLY=%s: %s\n", name, strerror(errno));
    if (fd >= 0)
        close(fd);
}

/* ---- commands: a verb, its words, and what it does ---- */

#define MAX_WORDS 4

struct words {
    int n;
    char *word[MAX_WORDS];
};

static bool number(const char *text, uint32_t *value)
{
    char *end;
    errno = 0;
    const unsigned long v = strtoul(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || v > UINT32_MAX)
        return false;
    *value = (uint32_t)v;
    return true;
}

static bool device_named(const char *name, uint32_t *index)
{
    struct hca_device *first;
    const size_t n = hca_devices(&first);
    for (size_t i = 0; i < n; i++)
        if (strcmp(first[i].ibv.name, name) == 0) {
            *index = first[i].index;
            return true;
        }
    return false;
}

static const char *set_countdown(const struct words *w, enum hca_fault what)
{
    uint32_t n;
    if (w->n != 2 || !number(w->word[1], &n))
        return "expected: which one from now";
    atomic_store(&countdown[what], n);
    return NULL;
}

static const char *fail_qp(const struct words *w)
{
    return set_countdown(w, HCA_FAULT_QP);
}
static const char *fail_mr(const struct words *w)
{
    return set_countdown(w, HCA_FAULT_MR);
}
static const char *fail_cq(const struct words *w)
{
    return set_countdown(w, HCA_FAULT_CQ);
}
static const char *fail_srq(const struct words *w)
{
    return set_countdown(w, HCA_FAULT_SRQ);
}
static const char *fail_pd(const struct words *w)
{
    return set_countdown(w, HCA_FAULT_PD);
}

static const char *fail_datagram(const struct words *w)
{
    return set_countdown(w, HCA_FAULT_DATAGRAM);
}
static const char *fatal(const struct words *w)
{
    return set_countdown(w, HCA_FAULT_FATAL);
}

static const char *set_word(const struct words *w, _Atomic(uint32_t) *word)
{
    uint32_t n;
    if (w->n != 2 || !number(w->word[1], &n))
        return "expected: a number";
    atomic_store(word, n);
    return NULL;
}

static const char *drop(const struct words *w)
{
    atomic_store(&hca_tally.sent, 0);
    return set_word(w, &hca_trouble.drop);
}
static const char *acks(const struct words *w)
{
    return set_word(w, &hca_trouble.acks);
}
static const char *rnr(const struct words *w)
{
    return set_word(w, &hca_trouble.rnr);
}
static const char *delay(const struct words *w)
{
    return set_word(w, &hca_trouble.delay_us);
}

static const char *overrun(const struct words *w)
{
    return set_word(w, &hca_trouble.overrun);
}

static const char *stall(const struct words *w)
{
    return set_word(w, &hca_trouble.stall);
}

static const char *torn(const struct words *w)
{
    return set_word(w, &hca_trouble.torn_us);
}

static const char *qp_most(const struct words *w)
{
    return set_word(w, &hca_trouble.qp_most);
}

static const char *limit_lost(const struct words *w)
{
    return set_word(w, &hca_trouble.limit_lost);
}

static const char *limit_again(const struct words *w)
{
    return set_word(w, &hca_trouble.limit_again);
}

static const char *connections(const struct words *w)
{
    if (w->n != 2 || (strcmp(w->word[1], "down") && strcmp(w->word[1], "up")))
        return "expected: down or up";
    atomic_store(&hca_trouble.down, strcmp(w->word[1], "down") == 0);
    return NULL;
}

static const char *port(const struct words *w)
{
    uint32_t device, p;
    if (w->n != 4 || !device_named(w->word[1], &device) || !number(w->word[2], &p) || p < 1 || p > hca.limits.ports ||
        (strcmp(w->word[3], "down") && strcmp(w->word[3], "up")))
        return "expected: a device, a port, down or up";
    if (!hca.header)
        return "no device is open";
    hca_port_set(device, p, strcmp(w->word[3], "up") == 0);
    return NULL;
}

static const char *address(const struct words *w)
{
    uint32_t device, p, n;
    if (w->n != 4 || !device_named(w->word[1], &device) || !number(w->word[2], &p) || p < 1 || p > hca.limits.ports ||
        !number(w->word[3], &n) || n >= HCA_ADDRESSES)
        return "expected: a device, a port, which of its addresses: 0 to 199";
    if (!hca.header)
        return "no device is open";
    hca_port_readdress(device, p, n);
    return NULL;
}

static const char *device(const struct words *w)
{
    uint32_t index;
    if (w->n != 3 || !device_named(w->word[1], &index) || strcmp(w->word[2], "gone"))
        return "expected: a device, gone";
    if (!hca.header)
        return "no device is open";
    hca_device_remove(index);
    return NULL;
}

static const char *clear(const struct words *w)
{
    if (w->n != 1)
        return "expected: nothing more";
    for (int i = 0; i < HCA_FAULTS; i++)
        atomic_store(&countdown[i], 0);
    atomic_store(&hca_trouble.drop, 0);
    atomic_store(&hca_trouble.acks, 0);
    atomic_store(&hca_trouble.rnr, 0);
    atomic_store(&hca_trouble.delay_us, 0);
    atomic_store(&hca_trouble.overrun, 0);
    atomic_store(&hca_trouble.stall, 0);
    atomic_store(&hca_trouble.torn_us, 0);
    atomic_store(&hca_trouble.down, 0);
    atomic_store(&hca_trouble.qp_most, 0);
    atomic_store(&hca_trouble.limit_lost, 0);
    atomic_store(&hca_trouble.limit_again, 0);
    return NULL;
}

static const struct command {
    const char *name;
    const char *(*run)(const struct words *); /* NULL: done; else what is wrong */
} commands[] = {
    {"qp", fail_qp},
    {"mr", fail_mr},
    {"cq", fail_cq},
    {"srq", fail_srq},
    {"pd", fail_pd},
    {"drop", drop},
    {"overrun", overrun},
    {"rnr", rnr},
    {"delay", delay},
    {"connections", connections},
    {"port", port},
    {"address", address},
    {"device", device},
    {"clear", clear},
    {"datagram", fail_datagram},
    {"fatal", fatal},
    {"stall", stall},
    {"qp-most", qp_most},
    {"limit-lost", limit_lost},
    {"limit-again", limit_again},
    {"acks", acks},
    {"torn", torn},
};

static const char *run_command(const struct words *w)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(commands[i].name, w->word[0]) == 0)
            return commands[i].run(w);
    return "no such command; there are: qp, mr, cq, srq, pd, datagram, fatal, drop, acks, rnr, overrun, stall, "
           "delay, torn, qp-most, limit-lost, limit-again, connections, port, address, device, clear, tally";
}

void hca_fault_command(char *command, char *answer, size_t size)
{
    struct words w = {0};
    char *rest = NULL;
    for (char *word = strtok_r(command, " \t\r\n", &rest); word; word = strtok_r(NULL, " \t\r\n", &rest)) {
        if (w.n == MAX_WORDS) {
            snprintf(answer, size, "error: too many words");
            return;
        }
        w.word[w.n++] = word;
    }
    if (w.n == 1 && strcmp(w.word[0], "tally") == 0) {
        char text[TALLY_TEXT];
        tally_text(text, sizeof text);
        snprintf(answer, size, "ok: %s", text);
        return;
    }
    const char *wrong = w.n ? run_command(&w) : "no command";
    if (wrong)
        snprintf(answer, size, "error: %s", wrong);
    else
        snprintf(answer, size, "ok");
}

void hca_faults_from_environment(void)
{
    const char *text = getenv("SOFTHCA_FAULTS");
    if (!text || !*text)
        return;
    char *copy = strdup(text), *rest = NULL, answer[160];
    if (!copy)
        return;
    for (char *command = strtok_r(copy, ",", &rest); command; command = strtok_r(NULL, ",", &rest)) {
        char said[64];
        snprintf(said, sizeof said, "%s", command);
        hca_fault_command(command, answer, sizeof answer);
        if (strcmp(answer, "ok"))
            fprintf(stderr, "softhca: SOFTHCA_FAULTS: \"%s\": %s\n", said, answer);
    }
    free(copy);
}
