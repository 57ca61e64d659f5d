/* Out-of-band methods: lists of them, and those that a module has opened. */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "module.h"

const struct ib_method *ib_method(uint32_t number)
{
    static const struct ib_method *const all[IB_METHODS + 1] = {
        [IB_METHOD_UD] = &ib_method_ud, [IB_METHOD_TCP] = &ib_method_tcp, [IB_METHOD_RDMACM] = &ib_method_rdmacm};

    return number <= IB_METHODS ? all[number] : NULL;
}

static uint32_t method_number(const char *name, size_t n)
{
    for (uint32_t i = 1; i <= IB_METHODS; i++)
        if (strlen(ib_method(i)->name) == n && strncmp(ib_method(i)->name, name, n) == 0)
            return i;
    return 0;
}

bool ib_methods_parse(const char *text, uint8_t out[IB_METHODS], char *why, size_t why_size)
{
    uint8_t list[IB_METHODS] = {0};
    uint32_t n_list = 0;

    for (const char *at = text;;) {
        size_t n = strcspn(at, ",");
        uint32_t number = method_number(at, n);
        if (!number) {
            snprintf(why, why_size,
                     *at ? "btl_openib_connect: expected ud, tcp or rdmacm at '%.20s'"
                         : "btl_openib_connect: expected ud, tcp or rdmacm at the end",
                     at);
            return false;
        }
        if (memchr(list, (int)number, sizeof list)) {
            snprintf(why, why_size, "btl_openib_connect: %s is there twice", ib_method(number)->name);
            return false;
        }
        list[n_list++] = (uint8_t)number;
        at += n;
        if (!*at)
            break;
        at++;
    }
    memcpy(out, list, sizeof list);
    return true;
}

const char *ib_methods_text(const uint8_t list[IB_METHODS], char *out, size_t size)
{
    size_t at = 0;

    out[0] = 0;
    for (uint32_t i = 0; i < IB_METHODS && at < size; i++) {
        const struct ib_method *method = list[i] ? ib_method(list[i]) : NULL;
        if (method)
            at += (size_t)snprintf(out + at, size - at, "%s%s", at ? "," : "", method->name);
    }
    return out;
}

uint32_t ib_method_choose(const uint8_t mine[IB_METHODS], const uint8_t theirs[IB_METHODS], bool i_lead)
{
    const uint8_t *first = i_lead ? mine : theirs, *second = i_lead ? theirs : mine;

    for (uint32_t i = 0; i < IB_METHODS; i++)
        if (first[i] && first[i] <= IB_METHODS && memchr(second, first[i], IB_METHODS))
            return first[i];
    return 0;
}

/* ---- those that are open ---- */

#define FALLBACK_MASK 127u /* as the masks of methods: what is hardly ever used is looked at seldom */

static int methods_open_one(struct ib_module *m, uint32_t number, char *why, size_t why_size)
{
    const struct ib_method *method = ib_method(number);
    int rc = STRATA_ERR_UNSUPPORTED;

    if (method->absent)
        snprintf(why, why_size, "btl_openib_connect=%s: %s", method->name, method->absent);
    else
        rc = method->open(m, why, why_size);
    if (rc != STRATA_OK && !method->absent)
        method->close(m);
    return rc;
}

/* No parameter asks for these sockets: their lack is no error. */
static void methods_open_fallback(struct ib_module *m, uint32_t n)
{
    char why[256] = "";

    if (memchr(m->oob.open, IB_METHOD_TCP, sizeof m->oob.open))
        return;
    if (methods_open_one(m, IB_METHOD_TCP, why, sizeof why) == STRATA_OK) {
        m->oob.open[n] = IB_METHOD_TCP;
        m->oob.fallback = true;
        return;
    }
    st_log(m->btl.context, ST_LOG_INFO, "btl_openib", "%s cannot be asked by sockets (btl_openib_connect_fallback): %s",
           m->dev.name, why);
}

/* A method that this machine or device does not have is passed over while there is another in the list; a lack of
 * memory concerns all, and is an error. */
static int methods_open_listed(struct ib_module *m, const uint8_t list[IB_METHODS], uint32_t *n, char *why,
                               size_t why_size)
{
    char reason[256] = "";
    int missing = STRATA_OK;
    size_t at = 0;

    for (uint32_t i = 0; i < IB_METHODS && list[i]; i++) {
        int rc = methods_open_one(m, list[i], reason, sizeof reason);
        if (rc == STRATA_OK) {
            m->card.methods[*n] = m->oob.open[*n] = list[i];
            ++*n;
            continue;
        }
        if (at < why_size)
            at += (size_t)snprintf(why + at, why_size - at, "%s%s", at ? "; " : "", reason);
        if (rc == STRATA_ERR_NOMEM)
            return rc;
        st_log(m->btl.context, ST_LOG_INFO, "btl_openib", "%s does without %s of btl_openib_connect=%s: %s",
               m->dev.name, ib_method(list[i])->name, m->dev.par->connect, reason);
        missing = rc;
    }
    if (*n == 0)
        return missing;
    why[0] = 0;
    return STRATA_OK;
}

int ib_methods_open(struct ib_module *m, char *why, size_t why_size)
{
    uint8_t list[IB_METHODS];
    uint32_t n = 0;
    int rc;

    if (!ib_methods_parse(m->dev.par->connect, list, why, why_size))
        return STRATA_ERR_PARAM;
    rc = methods_open_listed(m, list, &n, why, why_size);
    if (rc != STRATA_OK)
        return rc;
    if (m->dev.par->connect_fallback)
        methods_open_fallback(m, n);
    return STRATA_OK;
}

bool ib_methods_fall_back(const struct ib_module *m, const struct ib_method *chosen, const struct ib_card *card)
{
    return m->dev.par->connect_fallback && chosen != &ib_method_tcp && card->tcp_port &&
           memchr(m->oob.open, IB_METHOD_TCP, sizeof m->oob.open);
}

void ib_methods_close(struct ib_module *m)
{
    for (uint32_t i = 0; i < IB_METHODS; i++)
        if (m->oob.open[i])
            ib_method(m->oob.open[i])->close(m);
    memset(m->oob.open, 0, sizeof m->oob.open);
    if (m->oob.wait_fd >= 0)
        (void)close(m->oob.wait_fd);
    m->oob.wait_fd = -1;
}

int ib_methods_poll(struct ib_module *m)
{
    uint32_t looks = ++m->oob.looks;
    int n = 0;

    for (uint32_t i = 0; i < IB_METHODS && m->card.methods[i]; i++) {
        const struct ib_method *method = ib_method(m->card.methods[i]);
        /* A method whose poll costs a system call is hardly ever used where another is preferred. */
        uint32_t mask = i > 0 && method->mask ? FALLBACK_MASK : method->mask;
        if ((looks & mask) == 0)
            n += method->poll(m);
    }
    if ((looks & FALLBACK_MASK) == 0 && m->oob.fallback)
        n += ib_method_tcp.poll(m);
    return n;
}

int ib_methods_arm(struct ib_module *m)
{
    int n = 0;

    for (uint32_t i = 0; i < IB_METHODS && m->oob.open[i]; i++) {
        const struct ib_method *method = ib_method(m->oob.open[i]);
        if (method->arm && method->arm(m) != STRATA_OK)
            return STRATA_ERR_AGAIN;
        n += method->poll(m);
    }
    return n ? STRATA_ERR_AGAIN : STRATA_OK;
}

void ib_methods_disconnected(struct ib_peer *p)
{
    struct ib_module *m = ib_module_of(p);

    for (uint32_t i = 0; i < IB_METHODS && m->oob.open[i]; i++)
        if (ib_method(m->oob.open[i])->disconnected)
            ib_method(m->oob.open[i])->disconnected(m, p);
}

void ib_methods_failed(struct ib_module *m, uint32_t qpn, const char *why)
{
    for (uint32_t i = 0; i < IB_METHODS && m->oob.open[i]; i++)
        if (ib_method(m->oob.open[i])->failed)
            ib_method(m->oob.open[i])->failed(m, qpn, why);
}

void ib_methods_moved(struct ib_module *m)
{
    for (uint32_t i = 0; i < IB_METHODS && m->oob.open[i]; i++)
        if (ib_method(m->oob.open[i])->moved)
            ib_method(m->oob.open[i])->moved(m);
}

size_t ib_methods_bytes(const struct ib_module *m)
{
    size_t n = 0;

    for (uint32_t i = 0; i < IB_METHODS && m->oob.open[i]; i++)
        n += ib_method(m->oob.open[i])->bytes(m);
    return n;
}

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
