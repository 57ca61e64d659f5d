/* Copying between processes, by the kernel: the other process has nothing to do, and a bad address is an error instead
 * of a crash. The same way within one process. */
#define _GNU_SOURCE 1
#include "hca.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* One more than a list may have: a list's last byte is a piece of its own. */
#define PIECES (HCA_MAX_SGE + 1)

/* The first `length` bytes of a list. */
static uint32_t pieces(const struct hca_sge *sge, uint32_t n, uint64_t length, struct iovec out[PIECES])
{
    uint32_t k = 0;

    for (uint32_t i = 0; i < n && length > 0; i++) {
        uint64_t part = sge[i].length < length ? sge[i].length : length;
        if (part == 0)
            continue;
        out[k++] = (struct iovec){.iov_base = (void *)(uintptr_t)sge[i].addr, .iov_len = part};
        length -= part;
    }
    return k;
}

/* Programs poll the last byte of what is written to them. The kernel copies pieces in order, but the bytes of a piece
 * in any: the last byte becomes a piece of its own. */
static uint32_t last_byte_apart(struct iovec *v, uint32_t n)
{
    struct iovec *last = n > 0 ? &v[n - 1] : NULL;

    if (!last || last->iov_len < 2)
        return n;
    last->iov_len--;
    v[n] = (struct iovec){.iov_base = (char *)last->iov_base + last->iov_len, .iov_len = 1};
    return n + 1;
}

/* Whether all of our own side can be read; only asked after a fault. */
static bool local_is_there(const struct iovec *v, uint32_t n)
{
    char scratch[4096] = {0};

    for (uint32_t i = 0; i < n; i++) {
        for (size_t at = 0; at < v[i].iov_len; at += sizeof scratch) {
            size_t part = v[i].iov_len - at < sizeof scratch ? v[i].iov_len - at : sizeof scratch;
            struct iovec to = {scratch, part}, from = {(char *)v[i].iov_base + at, part};
            if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)part)
                return false;
        }
    }
    return true;
}

static void say_refused(const char *call, int error)
{
    fprintf(stderr, "softhca: the kernel refuses %s (%s): nothing can be copied between processes\n", call,
            strerror(error));
}

int hca_transfer_check(void)
{
    char from = 1, to = 0;
    const struct iovec here = {&to, 1}, there = {&from, 1};

    const char *call = "process_vm_readv";
    ssize_t n = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
    if (n == 1) {
        call = "process_vm_writev";
        n = process_vm_writev(getpid(), &there, 1, &here, 1, 0);
    }
    if (n == 1)
        return 0;
    const int error = n < 0 ? errno : EIO;
    say_refused(call, error);
    return error;
}

/* It allows copying, but not with this peer: as Yama does in its stricter settings. Said once. */
static void refused(enum hca_way way, int error)
{
    static _Atomic(bool) said;

    if ((error == EPERM || error == ENOSYS) && !atomic_exchange(&said, true))
        say_refused(way == HCA_READ ? "process_vm_readv" : "process_vm_writev", error);
}

enum hca_copied hca_transfer(struct hca_peer *p, enum hca_way way, const struct hca_sge *local, uint32_t n_local,
                             const struct hca_sge *remote, uint32_t n_remote, uint64_t length)
{
    struct iovec here[PIECES], there[PIECES];
    uint32_t h, t;
    ssize_t n;

    if (length == 0)
        return HCA_COPIED;
    /* There is no copying by pidfd. What is left: that we are held up between here and the copy for as long as it takes
     * until the kernel has given out all other pids. */
    if (hca_peer_ended(p))
        return HCA_NOBODY;
    h = pieces(local, n_local, length, here);
    t = pieces(remote, n_remote, length, there);
    if (way == HCA_WRITE_IN_ORDER)
        t = last_byte_apart(there, t);
    n = way == HCA_READ ? process_vm_readv(p->pid, here, h, there, t, 0)
                        : process_vm_writev(p->pid, here, h, there, t, 0);
    if (n == (ssize_t)length)
        return HCA_COPIED;
    if (n < 0 && errno != EFAULT) {
        refused(way, errno);
        return HCA_NOBODY;
    }
    return local_is_there(here, h) ? HCA_REMOTE_FAULT : HCA_LOCAL_FAULT;
}
