/* Requests as many programs keep them: a struct of its own for each, whose address is the wr_id. A completion that
 * names another one, or one that is over, makes such a program crash; here it aborts, where the memory does not do it
 * first. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>

#define OUTSTANDING UINT64_C(0x6f75747374616e64)

struct request {
    struct request *next;
    uint64_t room; /* of a receive, bytes */
    bool receive;
    uint64_t magic;
};

static _Noreturn void astray(const char *what, const struct ibv_wc *wc)
{
    fprintf(stderr, "a program is led astray: %s: wr_id %#llx, status %u, opcode %u, %u bytes\n", what,
            (unsigned long long)wc->wr_id, wc->status, wc->opcode, wc->byte_len);
    abort();
}

uint64_t request_add(struct requests *of, bool receive, uint64_t room)
{
    struct request *q = malloc(sizeof *q);

    if (!q)
        abort();
    *q = (struct request){.room = room, .receive = receive, .magic = OUTSTANDING};
    if (of->last)
        of->last->next = q;
    else
        of->first = q;
    of->last = q;
    return (uintptr_t)q;
}

/* Takes one out of its list; `before`: the one in front of it. */
static void end(struct requests *of, struct request *before, struct request *q)
{
    if (before)
        before->next = q->next;
    else
        of->first = q->next;
    if (of->last == q)
        of->last = before;
    q->magic = 0;
    free(q);
}

void request_not_posted(struct requests *of, uint64_t wr_id)
{
    struct request *before = NULL, *q = of->first;

    for (; (uintptr_t)q != wr_id; q = q->next)
        before = q;
    end(of, before, q);
}

void requests_end(struct requests *of)
{
    while (of->first)
        end(of, NULL, of->first);
}

bool request_is_receive(const struct ibv_wc *wc)
{
    const struct request *q = (const struct request *)(uintptr_t)wc->wr_id;

    if (q->magic != OUTSTANDING)
        astray("not an outstanding request", wc);
    return q->receive;
}

static void check(const struct request *q, enum ibv_qp_type type, const struct ibv_wc *wc)
{
    if ((unsigned)wc->status > IBV_WC_GENERAL_ERR)
        astray("no such status", wc);
    if (wc->status != IBV_WC_SUCCESS)
        return;
    if (!q->receive) {
        if ((unsigned)wc->opcode > IBV_WC_FETCH_ADD)
            astray("no opcode of a send", wc);
        return;
    }
    if (wc->opcode != IBV_WC_RECV && wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM)
        astray("no opcode of a receive", wc);
    if (wc->opcode == IBV_WC_RECV && wc->byte_len > q->room)
        astray("more than there is room for", wc);
    if (type == IBV_QPT_UD && (wc->opcode != IBV_WC_RECV || wc->byte_len < 40))
        astray("no datagram", wc);
    if (wc->pkey_index != 0)
        astray("no such P_Key", wc);
}

void request_completed(struct requests *of, enum ibv_qp_type type, const struct ibv_wc *wc)
{
    struct request *before = NULL, *q = of->first;

    for (; q && (uintptr_t)q != wc->wr_id; q = q->next)
        before = q;
    if (!q)
        astray("a request of another queue", wc);
    check(q, type, wc);
    if (q->receive) {
        end(of, before, q);
        return;
    }
    /* Sends end in order: those before it, which are not signalled, have ended too. */
    do {
        before = of->first;
        end(of, NULL, before);
    } while (before != q);
}
