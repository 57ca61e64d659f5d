/* A process without the library, that joins the fabric all the same: a socket of the right name, a memory file of the
 * right name and size, a header that is right, and queue pairs that are connected with the victim's. The rest is
 * random, and the file may lack its seals and become shorter. */
#define _GNU_SOURCE 1
#include "fuzz.h"
#include "softhca/fabric.h"
#include "softhca/segment.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* A free index of the fabric, listened at; 0: none. */
static uint32_t take_index(struct rng *r)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    for (int i = 0; i < 100; i++) {
        struct sockaddr_un a;
        socklen_t n;
        uint32_t index = 1 + rng_below(r, HCA_PROCESSES - 1);
        hca_socket_name(index, &a, &n);
        if (bind(fd, (struct sockaddr *)&a, n) == 0)
            return listen(fd, 100) == 0 ? index : 0;
    }
    return 0;
}

static int make_memory(const char *name, uint64_t bytes, bool sealed)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
        return -1;
    if (sealed && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
        return -1;
    return fd;
}

static char *make_segment(uint32_t index, bool sealed, int *file, struct rng *r)
{
    struct hca_header *h;
    char *at, name[32];
    int fd = make_memory(HCA_MEMORY_NAME, HCA_SIZE, sealed), keys;

    snprintf(name, sizeof name, HCA_KEYS_NAME, index);
    keys = make_memory(name, HCA_KEYS_SIZE, sealed);
    if (fd < 0 || keys < 0)
        return NULL;
    at = mmap(NULL, HCA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (at == MAP_FAILED ||
        mmap(at + HCA_AT_MR, HCA_KEYS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, keys, 0) == MAP_FAILED)
        return NULL;
    h = (struct hca_header *)(void *)at;
    h->process = index;
    h->pid = getpid();
    h->kick = UINT64_C(1) << 32 | (uint32_t)eventfd(0, EFD_CLOEXEC);
    for (uint32_t d = 0; d < HCA_DEVICES; d++)
        for (uint32_t p = 0; p < HCA_PORTS; p++)
            h->port[d][p].state = IBV_PORT_ACTIVE;
    h->magic = HCA_MAGIC;
    *file = rng_below(r, 2) ? fd : keys;
    return at;
}

/* A queue pair that agrees with the victim's, with receives and a completion queue. */
static struct end_info make_queue_pair(char *segment, uint32_t slot, const struct end_info *ask, struct rng *r)
{
    struct hca_qp *q = hca_qp_at(segment, slot);
    struct hca_cq *cq = hca_cq_at(segment, slot);
    struct hca_mr *mr = hca_mr_at(segment, slot);
    static char memory[FUZZ_MEMORY];
    uint32_t index = segment_index(segment);

    memset(q, 0, sizeof *q);
    q->rq.ring = HCA_AT_HEAP + slot * 16384u;
    q->rq.n = 32;
    q->rq.max_sge = 3;
    q->rq.tail = rng_below(r, 2) ? 32 : UINT64_MAX;
    q->type = ask->type;
    q->dest_qpn = ask->qpn;
    q->lid = q->dlid = ask->lid;
    q->pd = 1;
    q->access = 15;
    q->qkey = FUZZ_QKEY;
    q->recv_cq = slot;
    q->srq = HCA_NONE;
    q->port = 1;
    q->max_dest_rd_atomic = 4;
    q->state = IBV_QPS_RTS;
    uint64_t ring = HCA_AT_HEAP + slot * 16384u + 8192u;
    cq->ring = ring | 6; /* 64 entries */
    for (uint32_t i = 0; i < 64; i++)
        ((struct hca_cqe *)(void *)(segment + ring))[i].state = (uint64_t)i << 16;
    cq->tail = 0;
    cq->generation = 1;
    q->generation = 1;
    mr->pd = 1;
    mr->access = 15;
    mr->addr = mr->base = (uintptr_t)memory;
    mr->length = rng_below(r, 2) ? FUZZ_MEMORY : UINT64_MAX / 2; /* it may say what is not so */
    mr->key = slot << 8 | 1;
    return (struct end_info){.type = ask->type,
                             .qpn = hca_qpn(index, slot),
                             .rkey = slot << 8 | 1,
                             .lid = ask->lid,
                             .addr = (uintptr_t)memory,
                             .bytes = FUZZ_MEMORY,
                             .pid = (uint32_t)getpid()};
}

_Noreturn void fake_main(int fd, uint64_t seed)
{
    struct rng r = rng_from(seed);
    bool sealed = rng_below(&r, 3) != 0;
    uint32_t index = take_index(&r), slot = 0;
    int file = -1;
    char *segment = index ? make_segment(index, sealed, &file, &r) : NULL;
    struct end_info ask;

    if (!segment)
        _exit(3);
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 0) > 0) {
            if (recv(fd, &ask, sizeof ask, 0) <= 0)
                _exit(0);
            if (ask.type) {
                struct end_info mine = make_queue_pair(segment, slot++ % 16, &ask, &r);
                (void)send(fd, &mine, sizeof mine, MSG_NOSIGNAL);
            }
        }
        if (!sealed && slot > 4 && rng_below(&r, 100) == 0) {
            segment = mmap(NULL, HCA_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            (void)!ftruncate(file, 4096);
            sealed = true;
        }
        if (slot > 4)
            for (int i = 0; i < 4; i++)
                scribble(segment, index, &r);
        usleep(30);
    }
}
