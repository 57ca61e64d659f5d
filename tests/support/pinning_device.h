/* A device that pins memory by the kernel's own means, with a pipe: vmsplice keeps a reference to a page, whatever
 * becomes of the mapping. To read a pinned page tee() copies the reference to another pipe, and read() copies its
 * bytes. */
#ifndef TEST_SUPPORT_PINNING_DEVICE_H
#define TEST_SUPPORT_PINNING_DEVICE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <strata/sdk/rcache.h>
#include "support/world.h"

enum { PAGE = 4096 };

struct pinned {
    int pipe[2]; /* holds the first page, then the last one */
};

struct device {
    struct st_rcache_client client;
    int out[2]; /* to read what is pinned */
    uint64_t registered;
};

static int pin_pages(struct st_rcache_client *client, void *base, size_t len, uint32_t *access, void **handle)
{
    struct device *d = (struct device *)client;
    struct pinned *p = malloc(sizeof(*p));
    (void)access;
    if (!p || pipe2(p->pipe, O_NONBLOCK | O_CLOEXEC) != 0) {
        free(p);
        return STRATA_ERR_NOMEM;
    }
    struct iovec page[2] = {{base, PAGE}, {(char *)base + len - PAGE, PAGE}};
    for (int i = 0; i < 2; i++)
        CHECK(vmsplice(p->pipe[1], &page[i], 1, SPLICE_F_NONBLOCK) == PAGE);
    d->registered++;
    *handle = p;
    return STRATA_OK;
}

static void unpin_pages(struct st_rcache_client *client, void *handle)
{
    struct pinned *p = handle;
    (void)client;
    close(p->pipe[0]);
    close(p->pipe[1]);
    free(p);
}

/* The first word of either page, as the device reads it. */
static void device_reads(struct device *d, const struct pinned *p, uint64_t word[2])
{
    static _Thread_local char page[2 * PAGE];
    CHECK(tee(p->pipe[0], d->out[1], 2 * PAGE, 0) == 2 * PAGE);
    size_t have = 0;
    while (have < sizeof(page)) {
        ssize_t n = read(d->out[0], page + have, sizeof(page) - have);
        CHECK(n > 0);
        have += (size_t)n;
    }
    memcpy(&word[0], page, 8);
    memcpy(&word[1], page + PAGE, 8);
}

#endif
