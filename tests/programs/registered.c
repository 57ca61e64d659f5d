/* Memory that is sent by RDMA over and over, and goes away in between: `registered MODE [ARGS]`, two ranks or more, of
 * which rank 0 sends to rank 1 and it back. Every mode checks each byte; status 0: what arrived was right.
 * - again COUNT: COUNT messages of 1 MiB from and to the same memory; says how often memory was registered for them
 * - constant COUNT: COUNT messages of 1 MiB from memory that may only be read, and one from and to it when it may be
 *   written again; says how often memory was registered for them
 * - alloc COUNT: the same from memory by strata_mem_alloc, which is given back and allocated again
 * - unused: memory by strata_mem_alloc over transports that register none, while one that does is open
 * - gone HOW COUNT: between messages the memory of both sides goes away and comes back at the same address. HOW:
 * munmap, dontneed, free (MADV_FREE), mremap, fixed (MAP_FIXED over it), shmdt, brk, malloc (free and malloc)
 * - spare COUNT: the same while an embedder's block of 4 MiB has been given back and is still registered
 * - many COUNT: COUNT buffers in turn, twice
 * - half: the second half of both buffers is unmapped while the message is under way: it arrives or fails, in time
 * - fork: both sides fork in the middle of a message; the children write to the memory of it, the parents to the pages
 *   beside it */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>
#include <strata/host.h>
#include "support/counters.h"
#include "support/suite.h"
#include "support/watchdog.h"

#define LEN ((size_t)1 << 20)

static strata_t *s;
static strata_comm_t *world;
static int rank;

struct count {
    const char *name;
    uint64_t value;
};

static void take_pinned(void *arg, const strata_mem_line_t *line)
{
    struct count *want = arg;

    if (line->user && strncmp(line->component, "rcache_", 7) == 0 && strcmp(line->category, want->name) == 0)
        want->value = line->bytes;
}

/* By the report of memory. */
static unsigned long long reported(const char *category)
{
    struct count c = {category, UINT64_MAX};

    CHECK_OK(strata_mem_report(s, take_pinned, &c));
    return c.value;
}

/* One message of rank 0 to rank 1, which then answers with one from the same memory. */
static void there_and_back(char *buffer, size_t len, int round)
{
    uint64_t there = 2 * (uint64_t)round, back = there + 1;

    if (rank == 0) {
        pattern_fill(buffer, len, there);
        CHECK_OK(strata_send(world, buffer, len, 1, 1));
        CHECK_EQ(pattern_check(buffer, len, there), -1);
        CHECK_OK(strata_recv(world, buffer, len, 1, 2, NULL));
        CHECK_EQ(pattern_check(buffer, len, back), -1);
    } else {
        CHECK_OK(strata_recv(world, buffer, len, 0, 1, NULL));
        CHECK_EQ(pattern_check(buffer, len, there), -1);
        pattern_fill(buffer, len, back);
        CHECK_OK(strata_send(world, buffer, len, 0, 2));
        CHECK_EQ(pattern_check(buffer, len, back), -1);
    }
}

static char *pages(void *at, size_t len, int flags)
{
    void *p = mmap(at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

    CHECK(p != MAP_FAILED && (!at || p == at));
    return p;
}

static void say(const char *what, int n)
{
    printf("rank %d: %d %s, %llu registrations, %llu found, %llu evicted, %llu gone, %llu bytes, %llu at most\n", rank,
           n, what, counted(s, "rcache", NULL, "misses"), counted(s, "rcache", NULL, "hits"),
           counted(s, "rcache", NULL, "evictions"), counted(s, "rcache", NULL, "invalidations"),
           counted(s, "rcache", NULL, "registered_bytes"), counted(s, "rcache", NULL, "registered_bytes_max"));
}

static void again(int n)
{
    char *buffer = pages(NULL, LEN, 0);

    for (int i = 0; i < n; i++)
        there_and_back(buffer, LEN, i);
    say("times the same", n);
    CHECK_EQ(munmap(buffer, LEN), 0);
}

/* Rank 1 is answered from other memory. */
static void constant(int n)
{
    char *buffer = pages(NULL, LEN, 0), word = 0;

    pattern_fill(buffer, LEN, 7);
    if (rank == 0)
        CHECK_EQ(mprotect(buffer, LEN, PROT_READ), 0);
    for (int i = 0; i < n; i++) {
        if (rank == 0) {
            CHECK_OK(strata_send(world, buffer, LEN, 1, 1));
            CHECK_OK(strata_recv(world, &word, 1, 1, 2, NULL));
        } else {
            memset(buffer, 0, LEN);
            CHECK_OK(strata_recv(world, buffer, LEN, 0, 1, NULL));
            CHECK_EQ(pattern_check(buffer, LEN, 7), -1);
            CHECK_OK(strata_send(world, &word, 1, 0, 2));
        }
    }
    say("times constant", n);
    CHECK_EQ(mprotect(buffer, LEN, PROT_READ | PROT_WRITE), 0);
    there_and_back(buffer, LEN, 1);
    say("times constant, then not", n);
    CHECK_EQ(munmap(buffer, LEN), 0);
}

/* A transport registers memory of strata_mem_alloc from the first message on. */
static void first_message(void)
{
    char word[8];

    there_and_back(word, sizeof word, 0);
}

/* Registered when it is allocated, and not afterwards: parts of it, too. */
static void allocated_by_strata(int n)
{
    void *memory;

    for (int round = 0; round < 2; round++) {
        CHECK_OK(strata_mem_alloc(s, LEN, &memory));
        if (round == 0) {
            CHECK_EQ(counted(s, "rcache", NULL, "registrations"), 0);
            first_message();
        }
        CHECK_EQ(counted(s, "rcache", NULL, "registrations"), 1);
        for (int i = 0; i < n; i++)
            there_and_back((char *)memory + 10 * i, LEN - 10 * (size_t)i, i);
        CHECK_EQ(counted(s, "rcache", NULL, "registered_bytes"), LEN);
        CHECK_EQ(reported("pinned"), LEN);
        CHECK_OK(strata_mem_free(s, memory));
        CHECK_EQ(counted(s, "rcache", NULL, "registered_bytes"), 0);
        CHECK_EQ(reported("pinned"), 0);
        CHECK_EQ(reported("pinned at most"), counted(s, "rcache", NULL, "registered_bytes_max"));
    }
    say("times from strata_mem_alloc, twice", n);
}

/* Nothing is pinned for a device that carries no message. */
static void unused(void)
{
    void *before, *after;

    CHECK_OK(strata_mem_alloc(s, LEN, &before));
    there_and_back(before, LEN, 0);
    CHECK_OK(strata_mem_alloc(s, LEN, &after));
    there_and_back(after, LEN, 1);
    CHECK_EQ(counted(s, "rcache", NULL, "registrations"), 0);
    printf("rank %d: nothing registered\n", rank);
    CHECK_OK(strata_mem_free(s, before));
    CHECK_OK(strata_mem_free(s, after));
}

/* What is kept for an embedder's next block goes when messages need what it has registered. */
static void beside_a_spare_one(int n)
{
    char *buffer = pages(NULL, 3 * LEN, 0);
    void *memory;

    first_message();
    CHECK_OK(strata_host_mem_alloc(s, 4 * LEN, &memory));
    CHECK_OK(strata_mem_free(s, memory));
    CHECK_EQ(counted(s, "rcache", NULL, "registered_bytes"), 4 * LEN);
    for (int i = 0; i < n; i++)
        there_and_back(buffer, 3 * LEN, i);
    say("times beside a spare block", n);
    CHECK(counted(s, "rcache", NULL, "registered_bytes") < 4 * LEN);
    CHECK_EQ(munmap(buffer, 3 * LEN), 0);
}

static void many(int n)
{
    char **buffer = calloc((size_t)n, sizeof *buffer);

    CHECK(buffer != NULL);
    for (int i = 0; i < 2 * n; i++) {
        if (i < n)
            buffer[i] = pages(NULL, LEN, 0);
        there_and_back(buffer[i % n], LEN, i);
    }
    say("buffers, twice", n);
    for (int i = 0; i < n; i++)
        CHECK_EQ(munmap(buffer[i], LEN), 0);
    free(buffer);
}

/* ---- ways in which memory goes away and comes back ---- */

static char *remapped(char *p)
{
    CHECK_EQ(munmap(p, LEN), 0);
    return pages(p, LEN, MAP_FIXED_NOREPLACE);
}

static char *discarded(char *p)
{
    CHECK_EQ(madvise(p, LEN, MADV_DONTNEED), 0);
    return p;
}

static char *given_up(char *p)
{
    CHECK_EQ(madvise(p, LEN, MADV_FREE), 0);
    CHECK_EQ(madvise(p, LEN, MADV_DONTNEED), 0); /* what the kernel may do at once, or later */
    return p;
}

static char *moved(char *p)
{
    char *elsewhere = pages(NULL, LEN, 0);

    CHECK(mremap(p, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere) == elsewhere);
    pages(p, LEN, MAP_FIXED_NOREPLACE);
    CHECK_EQ(munmap(elsewhere, LEN), 0);
    return p;
}

static char *mapped_over(char *p)
{
    return pages(p, LEN, MAP_FIXED);
}

static char *attached(char *p)
{
    int id = shmget(IPC_PRIVATE, LEN, IPC_CREAT | 0600);

    CHECK(id >= 0);
    if (p)
        CHECK_EQ(shmdt(p), 0);
    char *at = shmat(id, p, 0);
    CHECK(at != (void *)-1 && (!p || at == p));
    CHECK_EQ(shmctl(id, IPC_RMID, NULL), 0);
    return at;
}

/* Unless something else was put on top of it meanwhile. */
static char *top_of_heap(char *p)
{
    const uintptr_t bytes = LEN + 4096;
    char *top = sbrk(0);

    if (p && (uintptr_t)top - (uintptr_t)p <= bytes)
        CHECK(sbrk(-(intptr_t)bytes) != (void *)-1);
    top = sbrk((intptr_t)bytes);
    CHECK(top != (void *)-1);
    return (char *)(((uintptr_t)top + 4095) & ~(uintptr_t)4095);
}

static char *allocated(char *p)
{
    free(p);
    p = malloc(LEN);
    CHECK(p != NULL);
    return p;
}

static void gone(const char *how, int n)
{
    static const struct {
        const char *name;
        char *(*again)(char *p); /* NULL: for the first time */
        bool makes;              /* takes NULL */
    } ways[] = {{"munmap", remapped, false}, {"dontneed", discarded, false}, {"free", given_up, false},
                {"mremap", moved, false},    {"fixed", mapped_over, false},  {"shmdt", attached, true},
                {"brk", top_of_heap, true},  {"malloc", allocated, true}};

    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        if (strcmp(ways[w].name, how) != 0)
            continue;
        char *p = ways[w].makes ? ways[w].again(NULL) : pages(NULL, LEN, 0);
        for (int i = 0; i < n; i++) {
            there_and_back(p, LEN, i);
            p = ways[w].again(p);
        }
        say(how, n);
        return;
    }
    test_fail(__FILE__, __LINE__, "no way %s for memory to go away", how);
}

/* ---- in the middle of a message ---- */

static strata_request_t *begin(char *buffer, size_t len)
{
    strata_request_t *q;

    if (rank == 0) {
        pattern_fill(buffer, len, 5);
        CHECK_OK(strata_isend(world, buffer, len, 1, 3, &q));
    } else {
        CHECK_OK(strata_irecv(world, buffer, len, 0, 3, &q));
    }
    suite_spin(s, 50);
    return q;
}

static void half(void)
{
    char *buffer = pages(NULL, LEN, 0);
    strata_request_t *q;

    there_and_back(buffer, LEN, 1); /* connected, and registered */
    q = begin(buffer, LEN);
    CHECK_EQ(munmap(buffer + LEN / 2, LEN / 2), 0);
    int rc = strata_wait(&q, NULL);
    if (rc == STRATA_OK && rank == 1)
        CHECK_EQ(pattern_check(buffer, LEN / 2, 5), -1);
    printf("rank %d: %s\n", rank, strata_strerror(rc));
    fflush(stdout);
    CHECK_OK(strata_fence(s)); /* the other has said so, too */
    _exit(0);                  /* finalize would wait for who cannot be reached */
}

static void forked(void)
{
    const size_t len = 16 * LEN;
    char *buffer = pages(NULL, len + 8192, 0) + 4096;
    int status;

    there_and_back(buffer, len, 1);
    for (int i = 0; i < 4; i++) {
        strata_request_t *q = begin(buffer, len);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            memset(buffer - 4096, 0xee, len + 8192);
            _exit(0);
        }
        memset(buffer - 4096, i, 4096); /* pages that are the child's too */
        memset(buffer + len, i, 4096);
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(status, 0);
        CHECK_OK(strata_wait(&q, NULL));
        CHECK_EQ(pattern_check(buffer, len, 5), -1);
        CHECK_EQ(system("true"), 0);
        there_and_back(buffer, len, i);
    }
    say("forks", 4);
}

static void start(void)
{
    char err[2048] = "";
    strata_config_t config = STRATA_CONFIG_INIT;

    config.error_text = err;
    config.error_text_size = sizeof err;
    int rc = strata_init(&config, &s);
    if (rc != STRATA_OK) {
        fprintf(stderr, "strata_init: %s: %s\n", strata_strerror(rc), err);
        exit(2);
    }
    world = strata_world(s);
    rank = strata_rank(s);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    struct watchdog *dog = watchdog_start(test_timeout(1000), 1);

    start();
    if (rank < 2) {
        if (strcmp(mode, "again") == 0 && argc > 2)
            again(atoi(argv[2]));
        else if (strcmp(mode, "constant") == 0 && argc > 2)
            constant(atoi(argv[2]));
        else if (strcmp(mode, "alloc") == 0 && argc > 2)
            allocated_by_strata(atoi(argv[2]));
        else if (strcmp(mode, "unused") == 0)
            unused();
        else if (strcmp(mode, "spare") == 0 && argc > 2)
            beside_a_spare_one(atoi(argv[2]));
        else if (strcmp(mode, "gone") == 0 && argc > 3)
            gone(argv[2], atoi(argv[3]));
        else if (strcmp(mode, "many") == 0 && argc > 2)
            many(atoi(argv[2]));
        else if (strcmp(mode, "half") == 0)
            half();
        else if (strcmp(mode, "fork") == 0)
            forked();
        else
            test_fail(__FILE__, __LINE__, "no mode %s", mode);
    }
    CHECK_OK(strata_finalize(s));
    watchdog_stop(dog);
    return 0;
}
