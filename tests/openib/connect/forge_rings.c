/* For LD_PRELOAD, before softhca: what FORGE_RINGS names is made wrong in the hundredth RDMA write that may be a
 * message of eager RDMA (`length`, `header`, `client`, `ahead`, `behind`, `slots`, `credits`), in each grant of a ring
 * (`grant-slots`, `grant-first`, `grant-size`, `grant-detect`, `grant-key`), or in each farewell (`farewell-word`: of
 * another ring; `farewell-writes`: the last messages are written once more behind it, as the next ones). "forged" is
 * said on stderr. */
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

/* The last lines of messages in the peer's ring. Others, such as those by which a port is timed, have other queue
 * pairs. */
enum { LATE = 3, LINE = IB_LINE };
static struct late {
    uint32_t qp; /* its number: one that is made later may lie where another one did */
    struct ibv_send_wr wr;
    char line[LINE];
} late[LATE];
static unsigned n_late;

static bool is(const char *what)
{
    return strcmp(forge, what) == 0;
}

static bool is_of(const char *kind)
{
    return strncmp(forge, kind, strlen(kind)) == 0;
}

static void forge_footer(const struct ibv_send_wr *wr)
{
    char *end;
    struct ib_footer f;

    /* A write that asks whether the peer lives has no segment. */
    if (is_of("grant") || is_of("farewell") || wr->num_sge != 1 || wr->sg_list[0].length < IB_FOOTER || ++writes != 100)
        return;
    end = (char *)(uintptr_t)wr->sg_list[0].addr + wr->sg_list[0].length;
    memcpy(&f, end - IB_FOOTER, sizeof f);
    if (is("length"))
        f.len = 0xfff0;
    else if (is("header"))
        f.hdr_len = (uint8_t)(f.len < 200 ? f.len + 1 : 255);
    else if (is("client"))
        f.am = 0xfe;
    else if (is("ahead"))
        f.number = (uint16_t)(f.number + 0x4000);
    else if (is("behind"))
        f.number--;
    else if (is("credits"))
        f.credits[0] = 0xffff;
    else
        f.slots = 255;
    memcpy(end - IB_FOOTER, &f, sizeof f);
    fprintf(stderr, "forged %s\n", forge);
}

/* The body of a control message about rings; NULL: the message is another one. */
static char *control_of(const struct ibv_send_wr *wr, enum ib_control kind, struct ib_ring_grant *g)
{
    char *at = wr->num_sge ? (char *)(uintptr_t)wr->sg_list[0].addr : NULL;
    struct ib_head h;

    if (wr->opcode != IBV_WR_SEND || !at || wr->sg_list[0].length < sizeof h + sizeof *g)
        return NULL;
    memcpy(&h, at, sizeof h);
    memcpy(g, at + sizeof h, sizeof *g);
    return h.am == IB_CONTROL && h.control == kind ? at + sizeof h : NULL;
}

static void forge_grant(const struct ibv_send_wr *wr)
{
    struct ib_ring_grant g;
    char *at = is_of("grant") ? control_of(wr, IB_CONTROL_RING, &g) : NULL;

    if (!at || g.slots == 0)
        return;
    if (is("grant-slots"))
        g.slots = 129;
    else if (is("grant-first"))
        g.first = g.slots;
    else if (is("grant-size"))
        g.size = 100;
    else if (is("grant-detect"))
        g.detect = IB_DETECTS;
    else
        g.rkey ^= 0xffff00u;
    memcpy(at, &g, sizeof g);
    fprintf(stderr, "forged %s\n", forge);
}

/* The next generation's. */
static void forge_farewell(const struct ibv_send_wr *wr)
{
    struct ib_ring_grant g;
    char *at = is("farewell-word") ? control_of(wr, IB_CONTROL_FAREWELL, &g) : NULL;

    if (!at)
        return;
    g.word += 1u << 16;
    memcpy(at, &g, sizeof g);
    fprintf(stderr, "forged %s\n", forge);
}

static void note_write(const struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
    struct late *l = &late[n_late % LATE];

    if (!is("farewell-writes") || wr->num_sge != 1 || wr->sg_list[0].length != LINE)
        return;
    l->qp = qp->qp_num;
    l->wr = *wr;
    memcpy(l->line, (const char *)(uintptr_t)wr->sg_list[0].addr, LINE);
    n_late++;
}

static bool all_of(const struct ibv_qp *qp)
{
    for (unsigned i = 0; i < LATE; i++)
        if (late[i].qp != qp->qp_num)
            return false;
    return true;
}

/* They have no completions, and Strata does not count them. */
static void write_late(struct ibv_qp *qp)
{
    struct ibv_send_wr *bad;
    struct ib_footer f;

    for (unsigned i = 0; i < LATE; i++) {
        struct late *l = &late[i];
        struct ibv_sge sge = {(uintptr_t)l->line, LINE, 0};
        memcpy(&f, l->line + LINE - IB_FOOTER, sizeof f);
        f.number = (uint16_t)(f.number + LATE + 1);
        memcpy(l->line + LINE - IB_FOOTER, &f, sizeof f);
        l->wr.next = NULL;
        l->wr.sg_list = &sge;
        l->wr.send_flags = IBV_SEND_INLINE;
        if (post_send(qp, &l->wr, &bad) == 0)
            fprintf(stderr, "forged %s\n", forge);
    }
    n_late = 0;
}

static int forging_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct ib_ring_grant g;
    bool farewell = false;
    int rc;

    for (const struct ibv_send_wr *w = wr; w; w = w->next) {
        if (w->opcode == IBV_WR_RDMA_WRITE) {
            forge_footer(w);
            note_write(qp, w);
        }
        forge_grant(w);
        forge_farewell(w);
        farewell = farewell || control_of(w, IB_CONTROL_FAREWELL, &g);
    }
    rc = post_send(qp, wr, bad);
    if (rc == 0 && farewell && n_late >= LATE && all_of(qp))
        write_late(qp);
    return rc;
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
