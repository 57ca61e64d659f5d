/* Short RDMA writes, which are stores where the target's memory region lies in a memfd that can be mapped
 * (softhca/store.c, backing.c, mapped.c). A program of the verbs suite (tests/verbs), for softhca alone;
 * short_writes_test.sh runs it. Both ends are in one process, whose list of mappings
 * shows which way a write went. */
#define _GNU_SOURCE 1
#include "support/cases.h"
#include "support/ops.h"
#include "support/peer.h"
#include "support/require.h"
#include "own_segment.h"
#include "softhca/fabric.h"
#include "softhca/segment.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES 65536u
#define MOST  32768u /* that are stored */

/* Registered memory of a file. */
struct file {
    int fd;
    ino_t inode;
    uint8_t *p;
    struct ibv_mr *mr;
};

static void file_make(struct file *f, size_t size, int seals)
{
    struct stat st;

    f->fd = memfd_create("short_writes", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    REQUIRE(f->fd >= 0 && ftruncate(f->fd, (off_t)size) == 0 && fstat(f->fd, &st) == 0);
    REQUIRE(seals == 0 || fcntl(f->fd, F_ADD_SEALS, seals) == 0);
    f->inode = st.st_ino;
}

static void file_map(struct file *f, struct ibv_pd *pd, size_t size, int how)
{
    f->p = mmap(NULL, size, PROT_READ | PROT_WRITE, how, f->fd, 0);
    REQUIRE(f->p != MAP_FAILED);
    f->mr = ibv_reg_mr(pd, f->p, size, ACCESS_ALL);
    REQUIRE(f->mr != NULL);
}

static void file_open(struct file *f, struct ibv_pd *pd, size_t size)
{
    file_make(f, size, F_SEAL_SHRINK);
    file_map(f, pd, size, MAP_SHARED);
}

static void file_close(struct file *f, size_t size)
{
    REQUIRE_OK(ibv_dereg_mr(f->mr));
    munmap(f->p, size);
    close(f->fd);
}

/* How often files of this name, or the one of this inode, are mapped in this process. */
static unsigned mappings(ino_t inode)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    unsigned n = 0;
    char line[512];

    REQUIRE(maps != NULL);
    while (fgets(line, sizeof line, maps)) {
        unsigned long number = 0;
        (void)sscanf(line, "%*s %*s %*s %*s %lu", &number);
        n += strstr(line, "/memfd:short_writes") && (inode == 0 || number == inode);
    }
    fclose(maps);
    return n;
}

/* A write of len bytes from a's buffer to `off` of the file. */
static void write_to(struct pair *p, const struct file *f, size_t off, size_t len, enum ibv_wc_status status)
{
    struct end_address to = end_address(&p->b);

    to.addr = (uintptr_t)f->p;
    to.rkey = f->mr->rkey;
    struct op op = op_rdma(&p->a, IBV_WR_RDMA_WRITE, 1, 0, len, &to, off);
    op_post(&p->a, &op);
    cq_expect(p->a.send_cq, 1, status);
}

/* Short and long, at odd places: whole, and nothing beside them. */
static void all_lengths(void)
{
    static const size_t lengths[] = {1, 2, 7, 8, 9, 63, 64, 65, 4095, 4096, 5000, MOST - 1, MOST, MOST + 1, 50000};
    struct file f;
    struct pair p;

    PAIR(&p, .memory = BYTES);
    file_open(&f, p.dev.pd, BYTES);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const size_t off = 1000 + 13 * i, n = lengths[i];
        memset(f.p, 0xee, BYTES);
        pattern_fill(p.a.mem.p, n, (uint32_t)i);
        write_to(&p, &f, off, n, IBV_WC_SUCCESS);
        pattern_check(f.p + off, n, (uint32_t)i);
        REQUIRE(f.p[off - 1] == 0xee && f.p[off + n] == 0xee);
        REQUIRE_EQ(mappings(f.inode), 2);
    }
    file_close(&f, BYTES);
    pair_close(&p);
}

/* From a list with empty entries, inline, and with immediate data, whose completion comes after the data. */
static void all_sources(void)
{
    struct file f;
    struct pair p;

    PAIR(&p, .inline_size = 64);
    file_open(&f, p.dev.pd, BYTES);
    pattern_fill(p.a.mem.p, 300, 1);
    struct end_address to = end_address(&p.b);
    to.addr = (uintptr_t)f.p;
    to.rkey = f.mr->rkey;
    struct op op = op_rdma(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 100, &to, 0);
    op.sge[1] = (struct ibv_sge){(uintptr_t)p.a.mem.p, 0, p.a.mem.mr->lkey};
    op.sge[2] = (struct ibv_sge){(uintptr_t)p.a.mem.p + 100, 200, p.a.mem.mr->lkey};
    op.sge[3] = op.sge[1];
    op.wr.num_sge = 4;
    op_post(&p.a, &op);
    cq_expect(p.a.send_cq, 1, IBV_WC_SUCCESS);
    pattern_check(f.p, 300, 1);
    op = op_rdma(&p.a, IBV_WR_RDMA_WRITE, 2, 10, 64, &to, 500);
    op.wr.send_flags |= IBV_SEND_INLINE;
    op_post(&p.a, &op);
    cq_expect(p.a.send_cq, 2, IBV_WC_SUCCESS);
    REQUIRE(memcmp(f.p + 500, p.a.mem.p + 10, 64) == 0);
    op = op_rdma(&p.a, IBV_WR_RDMA_WRITE_WITH_IMM, 3, 20, 100, &to, 1000);
    op.wr.imm_data = 0x1234;
    recv_post(&p.b, 4, 0, 0);
    op_post(&p.a, &op);
    const struct ibv_wc wc = cq_expect(p.b.recv_cq, 4, IBV_WC_SUCCESS);
    REQUIRE(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.imm_data == 0x1234 && wc.byte_len == 100);
    REQUIRE(memcmp(f.p + 1000, p.a.mem.p + 20, 100) == 0);
    cq_expect(p.a.send_cq, 3, IBV_WC_SUCCESS);
    REQUIRE_EQ(mappings(f.inode), 2);
    file_close(&f, BYTES);
    pair_close(&p);
}

/* Keys, bounds and rights are looked at before anything is stored. */
static void refused_as_before(void)
{
    struct file f;
    struct pair p;

    for (int i = 0; i < 3; i++) {
        PAIR(&p, .type = IBV_QPT_RC);
        file_open(&f, p.dev.pd, BYTES);
        memset(f.p, 0xee, BYTES);
        write_to(&p, &f, 0, 1, IBV_WC_SUCCESS);
        struct file wrong = f;
        struct ibv_mr mr = *f.mr;
        wrong.mr = &mr;
        if (i == 0) /* a key of no region */
            mr.rkey ^= 1;
        else if (i == 1) /* the same region without the right */
            REQUIRE_OK(ibv_rereg_mr(f.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE));
        write_to(&p, &wrong, i == 2 ? BYTES - 7 : 8, 8, IBV_WC_REM_ACCESS_ERR);
        REQUIRE(f.p[8] == 0xee && f.p[BYTES - 7] == 0xee);
        file_close(&f, BYTES);
        pair_close(&p);
    }
}

/* The kernel writes to memory that peers cannot map. */
static void not_mapped(void)
{
    static const struct {
        int seals, how;
        bool closed;
    } kinds[] = {{0, MAP_SHARED, false},
                 {F_SEAL_GROW, MAP_SHARED, false},
                 {F_SEAL_SHRINK, MAP_PRIVATE, false},
                 {F_SEAL_SHRINK, MAP_SHARED, true}};
    struct file f;
    struct pair p;

    PAIR(&p, .type = IBV_QPT_RC);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        file_make(&f, BYTES, kinds[i].seals);
        if (kinds[i].closed) {
            f.p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, f.fd, 0);
            close(f.fd);
            f.fd = -1;
            REQUIRE((f.mr = ibv_reg_mr(p.dev.pd, f.p, BYTES, ACCESS_ALL)) != NULL);
        } else {
            file_map(&f, p.dev.pd, BYTES, kinds[i].how);
        }
        pattern_fill(p.a.mem.p, 100, (uint32_t)i);
        write_to(&p, &f, 5, 100, IBV_WC_SUCCESS);
        pattern_check(f.p + 5, 100, (uint32_t)i);
        REQUIRE_EQ(mappings(f.inode), 1);
        file_close(&f, BYTES);
    }
    pair_close(&p);
}

/* The kernel writes to memory that is not watched, and from it. */
static void not_watched(void)
{
    struct file f;
    struct pair p;

    REQUIRE_OK(setenv("SOFTHCA_WATCH", "0", 1));
    PAIR(&p, .type = IBV_QPT_RC);
    file_open(&f, p.dev.pd, BYTES);
    pattern_fill(p.a.mem.p, 100, 1);
    write_to(&p, &f, 5, 100, IBV_WC_SUCCESS);
    pattern_check(f.p + 5, 100, 1);
    REQUIRE_EQ(mappings(f.inode), 1);
    file_close(&f, BYTES);
    pair_close(&p);
}

/* A region of part of a mapping, at an offset of the file; then the file grows. */
static void parts_and_growth(void)
{
    struct file f;
    struct pair p;

    PAIR(&p, .type = IBV_QPT_RC);
    file_make(&f, BYTES, F_SEAL_SHRINK);
    f.p = mmap(NULL, BYTES / 2, PROT_READ | PROT_WRITE, MAP_SHARED, f.fd, BYTES / 2);
    REQUIRE(f.p != MAP_FAILED);
    uint8_t *const all = f.p;
    f.p += 5000;
    REQUIRE((f.mr = ibv_reg_mr(p.dev.pd, f.p, 3000, ACCESS_ALL)) != NULL);
    pattern_fill(p.a.mem.p, 2000, 1);
    write_to(&p, &f, 7, 2000, IBV_WC_SUCCESS);
    pattern_check(f.p + 7, 2000, 1);
    REQUIRE(mappings(f.inode) >= 2);
    REQUIRE_OK(ftruncate(f.fd, 2 * BYTES));
    struct file more = f;
    file_map(&more, p.dev.pd, 2 * BYTES, MAP_SHARED);
    pattern_fill(p.a.mem.p, 2000, 2);
    write_to(&p, &more, 2 * BYTES - 2000, 2000, IBV_WC_SUCCESS);
    pattern_check(more.p + 2 * BYTES - 2000, 2000, 2);
    write_to(&p, &f, 9, 2000, IBV_WC_SUCCESS);
    pattern_check(f.p + 9, 2000, 2);
    REQUIRE_OK(ibv_dereg_mr(more.mr));
    munmap(more.p, 2 * BYTES);
    REQUIRE_OK(ibv_dereg_mr(f.mr));
    munmap(all, BYTES / 2);
    REQUIRE_EQ(mappings(f.inode), 0);
    close(f.fd);
    pair_close(&p);
}

/* More files than are mapped, at once and one after the other: each is written to, and those that are over do not stay.
 */
static void many_files(void)
{
    enum { N = 2 * HCA_FILES };
    static struct file f[N];
    struct pair p;

    PAIR(&p, .type = IBV_QPT_RC);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < N; i++) {
            file_open(&f[i], p.dev.pd, 4096);
            pattern_fill(p.a.mem.p, 64, i);
            write_to(&p, &f[i], 0, 64, IBV_WC_SUCCESS);
        }
        for (uint32_t i = 0; i < N; i++) {
            pattern_check(f[i].p, 64, i);
            file_close(&f[i], 4096);
        }
        REQUIRE_EQ(mappings(0), 0);
    }
    pair_close(&p);
}

/* A child of fork shares the memory, but has no mapping that its parent made as a peer, and no descriptor. */
static void forked(void)
{
    struct file f;
    struct pair p;

    PAIR(&p, .type = IBV_QPT_RC);
    file_open(&f, p.dev.pd, BYTES);
    write_to(&p, &f, 0, 8, IBV_WC_SUCCESS);
    close(f.fd);
    REQUIRE_EQ(mappings(f.inode), 2);
    const pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        const double end = now() + time_limit();
        if (mappings(f.inode) != 1)
            _exit(1);
        for (int fd = 0; fd < 1000; fd++) {
            struct stat st;
            if (fstat(fd, &st) == 0 && st.st_ino == f.inode)
                _exit(2);
        }
        while (__atomic_load_n(&f.p[99], __ATOMIC_ACQUIRE) == 0 && now() < end)
            sched_yield();
        _exit(pattern_matches(f.p, 99, 1) ? 0 : 3);
    }
    pattern_fill(p.a.mem.p, 99, 1);
    p.a.mem.p[99] = 1;
    write_to(&p, &f, 0, 100, IBV_WC_SUCCESS);
    int status;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    REQUIRE_EQ(status, 0);
    REQUIRE_OK(ibv_dereg_mr(f.mr));
    munmap(f.p, BYTES);
    pair_close(&p);
}

/* ---- deregistration and who is still writing ---- */

static void *lets_go(void *users)
{
    sleep_ms(200);
    atomic_fetch_sub((_Atomic(uint32_t) *)users, 1);
    return NULL;
}

/* Deregistration waits for a writer that has passed the check of the key, which the queue pair's users count, but not
 * for ever. */
static void deregistration_waits(void)
{
    struct file f;
    struct pair p;
    pthread_t t;

    PAIR(&p, .type = IBV_QPT_RC);
    char *segment = own_segment(PROT_READ | PROT_WRITE);
    _Atomic(uint32_t) *users = &hca_qp_at(segment, hca_qpn_slot(p.b.qp->qp_num))->users;
    for (int stays = 0; stays < 2; stays++) {
        file_open(&f, p.dev.pd, BYTES);
        atomic_fetch_add(users, 1);
        if (!stays)
            REQUIRE_OK(pthread_create(&t, NULL, lets_go, (void *)users));
        const double begin = now();
        file_close(&f, BYTES);
        REQUIRE(now() - begin > 0.15);
        if (!stays)
            REQUIRE_OK(pthread_join(t, NULL));
    }
    atomic_fetch_sub(users, 1);
    munmap(segment, HCA_SIZE);
    pair_close(&p);
}

/* Until it is refused or killed. */
static void writes_for_ever(int fd, void *arg)
{
    struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
    struct device d;
    struct end e;

    (void)arg;
    device_open(&d);
    end_open(&e, &d, &(struct end_options){0});
    struct end_address to = end_join(&e, fd);
    hear(fd, &to.addr, sizeof to.addr);
    hear(fd, &to.rkey, sizeof to.rkey);
    for (uint64_t i = 0; wc.status == IBV_WC_SUCCESS; i++) {
        struct op op = op_rdma(&e, IBV_WR_RDMA_WRITE, i, 0, MOST, &to, 0);
        op_post(&e, &op);
        cq_next(e.send_cq, &wc);
        if (i == 100)
            tell(fd, "x", 1);
    }
    for (;;)
        pause();
}

/* A peer is killed while it stores to us: its region can be deregistered at once, and others write to the file. */
static void killed_in_the_middle(void)
{
    for (int i = 0; i < 4; i++) {
        struct peer peer = peer_start(writes_for_ever, NULL);
        struct device d;
        struct end e;
        struct file f;
        char c;
        device_open(&d);
        end_open(&e, &d, &(struct end_options){0});
        end_join(&e, peer.fd);
        file_open(&f, d.pd, BYTES);
        const uint64_t addr = (uintptr_t)f.p;
        tell(peer.fd, &addr, sizeof addr);
        tell(peer.fd, &f.mr->rkey, sizeof f.mr->rkey);
        hear(peer.fd, &c, 1);
        peer_kill(&peer);
        file_close(&f, BYTES);
        end_close(&e);
        device_close(&d);
    }
}

/* After deregistration nothing is written any more, though the memory stays and the peer goes on. */
static void nothing_after_deregistration(void)
{
    struct peer peer = peer_start(writes_for_ever, NULL);
    struct device d;
    struct end e;
    struct file f;
    char c;

    device_open(&d);
    end_open(&e, &d, &(struct end_options){0});
    end_join(&e, peer.fd);
    file_open(&f, d.pd, BYTES);
    const uint64_t addr = (uintptr_t)f.p;
    tell(peer.fd, &addr, sizeof addr);
    tell(peer.fd, &f.mr->rkey, sizeof f.mr->rkey);
    hear(peer.fd, &c, 1);
    REQUIRE_OK(ibv_dereg_mr(f.mr));
    memset(f.p, 0xee, BYTES);
    sleep_ms(20);
    for (size_t i = 0; i < BYTES; i++)
        REQUIRE_EQ(f.p[i], 0xee);
    peer_kill(&peer);
    munmap(f.p, BYTES);
    close(f.fd);
    end_close(&e);
    device_close(&d);
}

/* ---- a write with immediate data of another process ---- */

static const size_t in_turn[] = {1, 8, 64, 5000, MOST, MOST + 1, BYTES};
enum { TURNS = 3000 };

/* All bytes of a write are the turn's. */
static void writes_in_turns(int fd, void *arg)
{
    struct device d;
    struct end e;
    char c;

    (void)arg;
    device_open(&d);
    end_open(&e, &d, &(struct end_options){.memory = BYTES});
    struct end_address to = end_join(&e, fd);
    hear(fd, &to.addr, sizeof to.addr);
    hear(fd, &to.rkey, sizeof to.rkey);
    for (uint32_t i = 0; i < TURNS; i++) {
        const size_t n = in_turn[i % (sizeof in_turn / sizeof *in_turn)];
        memset(e.mem.p, (int)i & 0xff, n);
        struct op op = op_rdma(&e, IBV_WR_RDMA_WRITE_WITH_IMM, i, 0, n, &to, 0);
        op.wr.imm_data = i;
        op_post(&e, &op);
        cq_expect(e.send_cq, i, IBV_WC_SUCCESS);
        hear(fd, &c, 1);
    }
    end_close(&e);
    device_close(&d);
}

/* Whichever way the data go, all are there when the completion is. */
static void immediate_data_come_last(void)
{
    struct peer peer = peer_start(writes_in_turns, NULL);
    struct device d;
    struct end e;
    struct file f;

    device_open(&d);
    end_open(&e, &d, &(struct end_options){.memory = BYTES});
    end_join(&e, peer.fd);
    file_open(&f, d.pd, BYTES);
    recv_post(&e, 0, 0, 0);
    const uint64_t addr = (uintptr_t)f.p;
    tell(peer.fd, &addr, sizeof addr);
    tell(peer.fd, &f.mr->rkey, sizeof f.mr->rkey);
    for (uint32_t i = 0; i < TURNS; i++) {
        const size_t n = in_turn[i % (sizeof in_turn / sizeof *in_turn)];
        const uint8_t turn = i & 0xff;
        const struct ibv_wc wc = cq_expect(e.recv_cq, i, IBV_WC_SUCCESS);
        REQUIRE(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.imm_data == i && wc.byte_len == n);
        REQUIRE(f.p[n - 1] == turn && f.p[0] == turn && f.p[n / 2] == turn);
        REQUIRE(memcmp(f.p, f.p + 1, n - 1) == 0);
        recv_post(&e, i + 1, 0, 0);
        tell(peer.fd, "x", 1);
    }
    peer_finish(&peer);
    file_close(&f, BYTES);
    end_close(&e);
    device_close(&d);
}

/* The last byte of a write comes last by either way. Nothing is promised of sends. */
static void last_byte_promised(void)
{
    struct pair p;

    PAIR(&p, .type = IBV_QPT_RC);
    REQUIRE_EQ(ibv_query_qp_data_in_order(p.a.qp, IBV_WR_RDMA_WRITE, 0), 1);
    REQUIRE_EQ(ibv_query_qp_data_in_order(p.a.qp, IBV_WR_SEND, 0), 0);
    pair_close(&p);
}

/* Run a second time with SOFTHCA_SHORT=64. */
static void no_longer_than(void)
{
    const char *set = getenv("SOFTHCA_SHORT");
    size_t most = set ? strtoul(set, NULL, 10) : MOST;
    struct file f;
    struct pair p;

    PAIR(&p, .type = IBV_QPT_RC);
    file_open(&f, p.dev.pd, BYTES);
    write_to(&p, &f, 0, most + 1, IBV_WC_SUCCESS);
    REQUIRE_EQ(mappings(f.inode), 1);
    write_to(&p, &f, 0, most, IBV_WC_SUCCESS);
    REQUIRE_EQ(mappings(f.inode), 2);
    file_close(&f, BYTES);
    pair_close(&p);
}

static const struct verbs_case cases[] = {
    CASE(all_lengths),
    CASE(all_sources),
    CASE(refused_as_before),
    CASE(not_mapped),
    CASE(not_watched),
    CASE(parts_and_growth),
    CASE(many_files),
    CASE(forked),
    CASE(deregistration_waits),
    CASE(killed_in_the_middle),
    CASE(nothing_after_deregistration),
    CASE(immediate_data_come_last),
    CASE(last_byte_promised),
    CASE(no_longer_than),
};
VERBS_MAIN("short_writes", cases)
