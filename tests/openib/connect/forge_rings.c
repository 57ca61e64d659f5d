/* For LD_PRELOAD, before softhca: what FORGE_RINGS names is made wrong in the hundredth RDMA write that may be a
 * message of eager RDMA (`length`, `header`, `client`, `slots`, `credits`), or in each grant of a ring (`grant-slots`,
 * `grant-first`, `grant-size`, `grant-detect`, `grant-key`), and "forged" is said on stderr. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "eager_rdma/slot.h"

static int (*post_send)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
static const char *forge;
static unsigned writes;

static void forge_footer(const struct ibv_send_wr *wr)
{
    char *end;
    struct ib_footer f;

    /* A write that asks whether the peer lives has no segment. */
    if (!strncmp(forge, "grant", 5) || wr->num_sge != 1 || wr->sg_list[0].length < IB_FOOTER || ++writes != 100)
        return;
    end = (char *)(uintptr_t)wr->sg_list[0].addr + wr->sg_list[0].length;
    memcpy(&f, end - IB_FOOTER, sizeof f);
    if (!strcmp(forge, "length"))
        f.len = 0xfff0;
    else if (!strcmp(forge, "header"))
        f.hdr_len = (uint8_t)(f.len < 200 ? f.len + 1 : 255);
    else if (!strcmp(forge, "client"))
        f.am = 0xfe;
    else if (!strcmp(forge, "credits"))
        f.credits[0] = 0xffff;
    else
        f.slots = 255;
    memcpy(end - IB_FOOTER, &f, sizeof f);
    fprintf(stderr, "forged %s\n", forge);
}

static void forge_grant(const struct ibv_send_wr *wr)
{
    char *at = wr->num_sge ? (char *)(uintptr_t)wr->sg_list[0].addr : NULL;
    struct ib_head h;
    struct ib_ring_grant g;

    if (strncmp(forge, "grant", 5) || !at || wr->sg_list[0].length < sizeof h + sizeof g)
        return;
    memcpy(&h, at, sizeof h);
    memcpy(&g, at + sizeof h, sizeof g);
    if (h.am != IB_CONTROL || h.control != IB_CONTROL_RING || g.slots == 0)
        return;
    if (!strcmp(forge, "grant-slots"))
        g.slots = 129;
    else if (!strcmp(forge, "grant-first"))
        g.first = g.slots;
    else if (!strcmp(forge, "grant-size"))
        g.size = 100;
    else if (!strcmp(forge, "grant-detect"))
        g.detect = IB_DETECTS;
    else
        g.rkey ^= 0xffff00u;
    memcpy(at + sizeof h, &g, sizeof g);
    fprintf(stderr, "forged %s\n", forge);
}

static int forging_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    for (const struct ibv_send_wr *w = wr; w; w = w->next) {
        if (w->opcode == IBV_WR_RDMA_WRITE)
            forge_footer(w);
        else if (w->opcode == IBV_WR_SEND)
            forge_grant(w);
    }
    return post_send(qp, wr, bad);
}

__attribute__((visibility("default"))) struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    void *symbol = dlsym(RTLD_NEXT, "ibv_create_qp");
    struct ibv_qp *(*real)(struct ibv_pd *, struct ibv_qp_init_attr *);

    if (!symbol)
        return NULL;
    memcpy(&real, &symbol, sizeof real);
    struct ibv_qp *qp = real(pd, attr);
    forge = getenv("FORGE_RINGS");
    if (qp && forge && !post_send) {
        post_send = qp->context->ops.post_send;
        qp->context->ops.post_send = forging_post_send;
    }
    return qp;
}
