/* Modules of btl_tcp in one process, on a fake rte. */
#ifndef TCP_RIG_H
#define TCP_RIG_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "framework/base/context.h"
#include "support/await.h"
#include "support/run_suite.h"
#include "tcp.h"

#define RANKS 4

struct rig_rank {
    struct st_rte rte;
    strata_t context;
    struct tcp_params par;
    struct tcp_module *m;
    unsigned arrived, lost; /* messages; paths */
    size_t bytes;
    uint32_t last[RANKS]; /* by sender: first word of the last message */
    char why[256];
};
static struct rig_rank rig[RANKS];
static bool rig_mends;        /* of the modules that are opened from now on */
static bool rig_bulk = true;  /* likewise */
static bool rig_local = true; /* all ranks are on this machine */
static const char *rig_zerocopy = "off";
static const char *rig_include = "";
static size_t rig_max_send = 4096, rig_piece = 4032;
static struct tcp_card rig_card[RANKS];
static const int rig_all[RANKS] = {0, 1, 2, 3};

static int rig_put(struct st_rte *rte, const char *key, const void *blob, size_t length)
{
    ck_assert_str_eq(key, "btl_tcp");
    ck_assert_uint_eq(length, sizeof rig_card[0]);
    memcpy(&rig_card[rte->rank], blob, length);
    return STRATA_OK;
}

static int rig_get(struct st_rte *rte, int rank, const char *key, void **blob, size_t *length)
{
    (void)rte, (void)key;
    if (rig_card[rank].magic == 0)
        return STRATA_ERR_NOT_FOUND;
    *blob = malloc(sizeof rig_card[0]);
    memcpy(*blob, &rig_card[rank], sizeof rig_card[0]);
    *length = sizeof rig_card[0];
    return STRATA_OK;
}

static bool rig_is_local(struct st_rte *rte, int rank)
{
    (void)rte, (void)rank;
    return rig_local;
}

static const int *rig_local_ranks(struct st_rte *rte, int *n)
{
    (void)rte;
    *n = RANKS;
    return rig_all;
}

static const struct st_rte_ops rig_rte_ops = {
    .put = rig_put, .get = rig_get, .is_local = rig_is_local, .local_ranks = rig_local_ranks};

static void rig_deliver(void *arg, const struct st_frag *frag)
{
    struct rig_rank *r = arg;

    r->arrived++;
    r->bytes += frag->len;
    ck_assert_uint_eq((uintptr_t)frag->hdr % 16, 0);
    if (frag->hdr_len >= 4)
        memcpy(&r->last[frag->rank], frag->hdr, 4);
}

static void rig_path_failed(void *arg, struct st_btl_endpoint *ep, int rc, const char *reason)
{
    struct rig_rank *r = arg;

    (void)ep;
    ck_assert_int_eq(rc, STRATA_ERR_PEER);
    r->lost++;
    snprintf(r->why, sizeof r->why, "%s", reason);
}

static int rig_try_open(int rank, const char *ports, char *why, size_t size)
{
    struct rig_rank *r = &rig[rank];
    int rc;

    memset(r, 0, sizeof *r);
    r->rte = (struct st_rte){.ops = &rig_rte_ops, .rank = rank, .size = RANKS, .context = &r->context};
    r->context.rte = &r->rte;
    r->par = (struct tcp_params){.if_include = (char *)(uintptr_t)rig_include,
                                 .if_exclude = (char *)(uintptr_t) "",
                                 .ports = (char *)(uintptr_t)ports,
                                 .eager_limit = 4096,
                                 .max_send = rig_max_send,
                                 .pipeline_send = 4096,
                                 .rdma_min = 4096,
                                 .piece = rig_piece,
                                 .unsent = 64 << 10,
                                 .latency_ns = 1,
                                 .bandwidth_mbs = 1,
                                 .connect_timeout_ms = 60000,
                                 .handshake_timeout_ms = 60000,
                                 .close_timeout_ms = 2000,
                                 .timeout_ms = 60000,
                                 .mend = rig_mends,
                                 .zerocopy = (char *)(uintptr_t)rig_zerocopy,
                                 .bulk = rig_bulk,
                                 .dials = 32,
                                 .strangers = 8};
    rc = tcp_module_make(&r->context, NULL, &r->par, 0, &r->m, why, size);
    if (rc != STRATA_OK)
        return rc;
    for (int i = 0; i < ST_AM_COUNT; i++) {
        r->m->btl.am[i].fn = rig_deliver;
        r->m->btl.am[i].arg = r;
    }
    r->m->btl.path_failed = rig_path_failed;
    r->m->btl.peer_failed_arg = r;
    return rc;
}

static inline void rig_open(int rank)
{
    char why[256] = "";

    ck_assert_msg(rig_try_open(rank, "", why, sizeof why) == STRATA_OK, "%s", why);
}

static inline void rig_close(int rank)
{
    void *bounce = rig[rank].m ? rig[rank].m->btl.bounce : NULL; /* the base frees it */

    if (rig[rank].m)
        rig[rank].m->btl.ops->close(&rig[rank].m->btl);
    rig[rank].m = NULL;
    free(bounce);
}

static void rig_poll(void)
{
    for (int i = 0; i < RANKS; i++)
        if (rig[i].m)
            (void)rig[i].m->btl.ops->progress(&rig[i].m->btl);
}

static inline struct st_btl_endpoint *rig_connect(int from, int to)
{
    struct st_btl_endpoint *ep = NULL;
    int rc;

    AWAIT((rc = rig[from].m->btl.ops->connect(&rig[from].m->btl, to, &ep)) != STRATA_ERR_AGAIN, rig_poll());
    ck_assert_int_eq(rc, STRATA_OK);
    return ep;
}

static inline int rig_send(struct st_btl_endpoint *ep, uint32_t number, const void *data, uint32_t len)
{
    uint32_t hdr[2] = {number, 0};

    return ep->btl->ops->send(ep, ST_AM_TEST, hdr, sizeof hdr, data, len);
}

#endif
