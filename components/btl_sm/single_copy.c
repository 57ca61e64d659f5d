/* Single copy: process_vm_readv and process_vm_writev between this process and a peer. */
#define _GNU_SOURCE 1
#include "single_copy.h"
#include "sm.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

static int sm_copy_errno_status(int err)
{
    switch (err) {
    case ESRCH:
        return STRATA_ERR_PEER;
    case ENOMEM:
        return STRATA_ERR_AGAIN;
    default:
        return STRATA_ERR_UNSUPPORTED;
    }
}

int sm_copy_bytes(uint32_t pid, enum sm_direction dir, void *local, uint64_t remote, size_t len)
{
    size_t at = 0;

    while (at < len) {
        struct iovec here = {.iov_base = (char *)local + at, .iov_len = len - at};
        struct iovec there = {.iov_base = (void *)(uintptr_t)(remote + at), .iov_len = len - at};
        ssize_t n = dir == SM_COPY_GET ? process_vm_readv((pid_t)pid, &here, 1, &there, 1, 0)
                                       : process_vm_writev((pid_t)pid, &here, 1, &there, 1, 0);
        if (n <= 0)
            return n == 0 ? STRATA_ERR_UNSUPPORTED : sm_copy_errno_status(errno);
        at += (size_t)n;
    }
    return STRATA_OK;
}

void sm_copy_probe(struct sm_peer *p, const struct sm_card *card)
{
    struct sm_module *m = sm_module(p->ep.btl);
    uint64_t seen = 0;

    p->single_copy = SM_COPY_OFF;
    if (m->par->single_copy == SM_COPY_OFF) {
        p->no_copy_why = "disabled by parameter";
        return;
    }
    if (card->pid_ns != m->card.pid_ns) {
        p->no_copy_why = "the peer is in another pid namespace";
        return;
    }
    /* A real read: permissions, namespaces and address all have to be right for it to find the value. */
    if (sm_copy_bytes(card->pid, SM_COPY_GET, &seen, card->probe_address, sizeof seen) != STRATA_OK ||
        seen != card->probe_value) {
        p->no_copy_why = "the kernel does not let this process read the peer's memory";
        return;
    }
    p->single_copy = m->par->single_copy == SM_COPY_ONE_SIDED ? SM_COPY_ONE_SIDED : SM_COPY_COOPERATIVE;
    p->ep.caps |= ST_BTL_GET | ST_BTL_PUT;
    sm_calibrate(p, card->probe_address - offsetof(struct sm_header, probe));
}

void sm_copy_demote(struct sm_peer *p)
{
    struct sm_module *m = sm_module(p->ep.btl);

    if (p->single_copy == SM_COPY_OFF)
        return;
    p->single_copy = SM_COPY_OFF;
    p->no_copy_why = "it stopped working";
    p->ep.caps &= ~(uint32_t)(ST_BTL_GET | ST_BTL_PUT);
    m->count.demotions++;
    st_log(m->btl.context, ST_LOG_WARN, "btl_sm",
           "single copy with rank %d no longer works; its messages are copied through shared memory", p->ep.rank);
}
