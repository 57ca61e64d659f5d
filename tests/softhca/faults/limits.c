/* What softhca refuses as it is set: completion queues of one length, devices without datagrams, the Nth creation,
 * limits of objects and memory. A program of the verbs suite, for softhca alone. */
#define _GNU_SOURCE 1
#include "support/cases.h"
#include "support/ops.h"
#include "support/peer.h"
#include "support/require.h"
#include "control.h"
#include "steps.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- completion queues that stay as they are ---- */

static void resize_as_set(void)
{
    const char *set = getenv("SOFTHCA_RESIZE");
    bool can = !set || strcmp(set, "no") != 0;
    struct device d;

    device_open(&d);
    struct ibv_cq *cq = ibv_create_cq(d.ctx, 16, NULL, NULL, 0);
    REQUIRE(cq != NULL);
    REQUIRE_EQ(ibv_resize_cq(cq, 64), can ? 0 : EOPNOTSUPP);
    REQUIRE_EQ(cq->cqe, can ? 64 : 16);
    REQUIRE_OK(ibv_destroy_cq(cq));
    device_close(&d);
}

/* ---- a device without datagrams, one with several partition keys ---- */

static void device_as_set(void)
{
    const char *datagrams = getenv("SOFTHCA_UD"), *keys = getenv("SOFTHCA_PKEYS");
    bool none = datagrams && strcmp(datagrams, "no") == 0;
    int n = keys ? atoi(keys) : 1;
    struct ibv_qp_init_attr a = {.qp_type = IBV_QPT_UD,
                                 .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    struct device d;
    __be16 key = 0;

    device_open(&d);
    a.send_cq = a.recv_cq = ibv_create_cq(d.ctx, 16, NULL, NULL, 0);
    REQUIRE(a.send_cq != NULL);
    errno = 0;
    struct ibv_qp *qp = ibv_create_qp(d.pd, &a);
    REQUIRE_EQ(qp == NULL, none);
    REQUIRE_EQ(errno, none ? EOPNOTSUPP : 0);
    REQUIRE_EQ(d.port.pkey_tbl_len, n);
    for (int i = 0; i < n; i++) {
        REQUIRE_OK(ibv_query_pkey(d.ctx, d.port_num, i, &key));
        REQUIRE_EQ(be16toh(key), 0xffff - i);
        REQUIRE_EQ(ibv_get_pkey_index(d.ctx, d.port_num, key), i);
    }
    REQUIRE_FAILS(ibv_query_pkey(d.ctx, d.port_num, n, &key));
    REQUIRE_EQ(ibv_get_pkey_index(d.ctx, d.port_num, htobe16(1)), -1);
    if (qp)
        REQUIRE_OK(ibv_destroy_qp(qp));
    REQUIRE_OK(ibv_destroy_cq(a.send_cq));
    device_close(&d);
}

/* ---- the Nth creation ---- */

static void unmake(void *object, int kind)
{
    switch (kind) {
    case 0:
        REQUIRE_OK(ibv_destroy_qp(object));
        break;
    case 1:
        REQUIRE_OK(ibv_dereg_mr(object));
        break;
    case 2:
        REQUIRE_OK(ibv_destroy_cq(object));
        break;
    case 3:
        REQUIRE_OK(ibv_destroy_srq(object));
        break;
    default:
        REQUIRE_OK(ibv_dealloc_pd(object));
    }
}

static void nth_creation_fails(void)
{
    static const char *const commands[] = {"qp 3", "mr 3", "cq 3", "srq 3", "pd 3"};
    struct device d;
    struct end e;

    device_open(&d);
    end_open(&e, &d, &(struct end_options){0});
    for (int kind = 0; kind < 5; kind++) {
        command(commands[kind]);
        for (int i = 1; i <= 4; i++) {
            void *object = make(&d, &e, kind);
            REQUIRE_MSG(i == 3 ? !object && errno == ENOMEM : object != NULL, "%s: creation %d: %s", commands[kind], i,
                        strerror(errno));
            if (object)
                unmake(object, kind);
        }
    }
    end_close(&e);
    device_close(&d);
}

/* ---- limits: faults_test.sh sets small ones ---- */

/* Creates until it fails, which has to be after `most` with ENOMEM; `there` exist already. */
static void reaches_limit(struct device *d, struct end *e, int kind, int there, int most)
{
    void *object[64];
    int n = 0;

    if (most > 32)
        return; /* not set */
    while (n < 64 && (object[n] = make(d, e, kind)) != NULL)
        n++;
    REQUIRE_EQ(errno, ENOMEM);
    REQUIRE_EQ(n + there, most);
    while (n > 0)
        unmake(object[--n], kind);
}

static void limits_hold(void)
{
    const char *memlock = getenv("SOFTHCA_MEMLOCK");
    struct ibv_device_attr attr;
    struct device d;
    struct end e;

    device_open(&d);
    end_open(&e, &d, &(struct end_options){0});
    REQUIRE_OK(ibv_query_device(d.ctx, &attr));
    reaches_limit(&d, &e, 0, 1, attr.max_qp);
    reaches_limit(&d, &e, 1, 1, attr.max_mr);
    reaches_limit(&d, &e, 2, 2, attr.max_cq);
    reaches_limit(&d, &e, 3, 0, attr.max_srq);
    reaches_limit(&d, &e, 4, 1, attr.max_pd);
    if (memlock) {
        size_t most = strtoul(memlock, NULL, 0), left = most - e.mem.size;
        char *memory = mmap(NULL, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(memory != MAP_FAILED);
        REQUIRE(ibv_reg_mr(d.pd, memory, left + 1, IBV_ACCESS_LOCAL_WRITE) == NULL);
        REQUIRE_EQ(errno, ENOMEM);
        struct ibv_mr *mr = ibv_reg_mr(d.pd, memory, left, IBV_ACCESS_LOCAL_WRITE);
        REQUIRE(mr != NULL);
        REQUIRE_OK(ibv_dereg_mr(mr));
        munmap(memory, most);
    }
    end_close(&e);
    device_close(&d);
}

static const struct verbs_case cases[] = {
    CASE(resize_as_set),
    CASE(device_as_set),
    CASE(nth_creation_fails),
    CASE(limits_hold),
};
VERBS_MAIN("limits", cases)
