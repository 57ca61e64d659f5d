/* Descriptors that wake a sleeper. */
#include <sys/epoll.h>
#include "module.h"

int ib_wait_on(struct ib_module *m, int fd)
{
    struct epoll_event e = {.events = EPOLLIN};

    if (m->oob.wait_fd < 0) {
        m->oob.wait_fd = epoll_create1(EPOLL_CLOEXEC);
        if (m->oob.wait_fd < 0 || epoll_ctl(m->oob.wait_fd, EPOLL_CTL_ADD, m->dev.channel->fd, &e) != 0)
            return STRATA_ERR_SYSTEM;
    }
    return epoll_ctl(m->oob.wait_fd, EPOLL_CTL_ADD, fd, &e) == 0 ? STRATA_OK : STRATA_ERR_SYSTEM;
}
