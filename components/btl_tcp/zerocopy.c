/* Sending without a copy in the kernel (MSG_ZEROCOPY): payloads of puts and answers. Their memory stays as it is until
 * the peer has taken all of it, so nothing waits for the kernel's completions; they are read to be counted, and since
 * they say whether the kernel copied all the same, as it does where the other end is on this machine. Source:
 * Documentation/networking/msg_zerocopy.rst of Linux. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <linux/errqueue.h>
#include <strata/sdk/clock.h>
#include <strata/sdk/socket.h>
#include <sys/socket.h>
#include "rdma.h"

#define SHORTEST (32u << 10) /* bytes of a payload that auto tries: pinning pages costs more than copying a few */
#define TRIAL    (4u << 20)  /* bytes sent either way before auto chooses */
#define PENDING  32u         /* calls whose completions were not read; then they are */

bool tcp_zerocopy_parse(const char *text, size_t *shortest)
{
    char *end;
    unsigned long long n;

    *shortest = TCP_ZEROCOPY_OFF;
    if (!text || !*text || strcmp(text, "off") == 0)
        return true;
    *shortest = 0;
    if (strcmp(text, "auto") == 0)
        return true;
    errno = 0;
    n = strtoull(text, &end, 10);
    if (*text < '1' || *text > '9' || errno)
        return false;
    if (*end == 'k' || *end == 'm') {
        unsigned shift = *end++ == 'k' ? 10 : 20;
        if (n > UINT32_MAX)
            return false;
        n <<= shift;
    }
    *shortest = (size_t)n;
    return !*end;
}

static void zerocopy_begin(const struct tcp_module *m, const struct tcp_conn *c, struct tcp_zerocopy *z)
{
    int on = 1;

    z->mode = m->zerocopy == 0 ? TCP_ZEROCOPY_TRIAL : TCP_ZEROCOPY_ON;
    if (m->zerocopy == TCP_ZEROCOPY_OFF || setsockopt(c->fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) != 0)
        z->mode = TCP_ZEROCOPY_NOT;
}

bool tcp_zerocopy_wants(struct tcp_module *m, struct tcp_conn *c, struct tcp_rdma *r, uint32_t len)
{
    struct tcp_zerocopy *z = &r->zerocopy;

    if (z->mode == TCP_ZEROCOPY_OPEN)
        zerocopy_begin(m, c, z);
    if (z->mode == TCP_ZEROCOPY_NOT || len < (m->zerocopy ? m->zerocopy : SHORTEST))
        return false;
    if (z->mode == TCP_ZEROCOPY_TRIAL && z->bytes[0] >= TRIAL && z->bytes[1] >= TRIAL)
        z->mode = (double)z->ns[1] / (double)z->bytes[1] < (double)z->ns[0] / (double)z->bytes[0] ? TCP_ZEROCOPY_ON
                                                                                                  : TCP_ZEROCOPY_NOT;
    return z->mode == TCP_ZEROCOPY_ON || (z->mode == TCP_ZEROCOPY_TRIAL && z->bytes[1] <= z->bytes[0]);
}

void tcp_zerocopy_reap(struct tcp_module *m, const struct tcp_conn *c)
{
    struct tcp_rdma *r = c->peer ? c->peer->rdma : NULL;

    while (r && r->zerocopy.pending) {
        union {
            struct cmsghdr head;
            char space[CMSG_SPACE(sizeof(struct sock_extended_err) + sizeof(struct sockaddr_in6))];
        } control;
        struct msghdr msg = {.msg_control = &control, .msg_controllen = sizeof control};
        if (recvmsg(c->fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
            return;
        for (struct cmsghdr *h = CMSG_FIRSTHDR(&msg); h; h = CMSG_NXTHDR(&msg, h)) {
            struct sock_extended_err e;
            uint32_t n;
            if (h->cmsg_len < CMSG_LEN(sizeof e))
                continue;
            memcpy(&e, CMSG_DATA(h), sizeof e);
            if (e.ee_origin != SO_EE_ORIGIN_ZEROCOPY)
                continue;
            n = e.ee_data - e.ee_info + 1; /* a range of calls */
            r->zerocopy.pending -= n < r->zerocopy.pending ? n : r->zerocopy.pending;
            if (e.ee_code & SO_EE_CODE_ZEROCOPY_COPIED) {
                r->zerocopy.mode = TCP_ZEROCOPY_NOT;
                m->count.copied += n;
            }
        }
    }
}

ssize_t tcp_zerocopy_send(struct tcp_module *m, struct tcp_conn *c, struct tcp_rdma *r, const struct msghdr *msg,
                          bool without)
{
    struct tcp_zerocopy *z = &r->zerocopy;
    uint64_t began = z->mode == TCP_ZEROCOPY_TRIAL ? st_now_ns() : 0;
    ssize_t n;

    if (without && z->pending >= PENDING)
        tcp_zerocopy_reap(m, c);
    n = st_socket_sendmsg(c->fd, msg, without ? MSG_ZEROCOPY : 0);
    if (without && n == 0 && (errno == ENOBUFS || errno == ENOMEM)) { /* too much waits for its completion */
        n = st_socket_sendmsg(c->fd, msg, 0);
    } else if (without && n > 0) {
        z->pending++;
        m->count.zerocopy++;
    }
    if (began && n > 0) {
        z->ns[without] += st_now_ns() - began;
        z->bytes[without] += (uint64_t)n;
    }
    return n;
}
