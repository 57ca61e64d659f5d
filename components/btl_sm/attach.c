/* Business cards, and attaching a peer's segment by what its card says. */
#define _GNU_SOURCE 1
#include "attach.h"
#include "single_copy.h"
#include "sm.h"
#include "wake.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <strata/sdk/hash.h>

static uint64_t sm_boot_identity(void)
{
    char id[64];
    ssize_t n = 0;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        n = read(fd, id, sizeof id);
        close(fd);
    }
    return n > 0 ? st_hash_bytes(id, (size_t)n) : 0;
}

static uint64_t sm_pid_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

int sm_card_make(struct sm_module *m)
{
    struct sm_card *c = &m->card;
    size_t got = 0;

    memset(c, 0, sizeof *c);
    while (got < sizeof c->key) {
        ssize_t n = getrandom(c->key + got, sizeof c->key - got, 0);
        if (n < 0 && errno != EINTR)
            return STRATA_ERR_SYSTEM;
        got += n > 0 ? (size_t)n : 0;
    }
    c->version = SM_VERSION;
    c->pid = (uint32_t)getpid();
    c->uid = (uint32_t)geteuid();
    c->fd = m->seg.fd;
    c->pid_ns = sm_pid_namespace();
    c->boot = sm_boot_identity();
    c->job = st_hash_bytes(m->rte->job_id, strlen(m->rte->job_id));
    m->header->rank = (uint32_t)m->rte->rank;
    m->header->job = c->job;
    memcpy(m->header->key, c->key, sizeof c->key);
    memcpy(&m->header->probe, c->key, sizeof m->header->probe);
    c->probe_address = (uint64_t)(uintptr_t)&m->header->probe;
    c->probe_value = m->header->probe;
    m->listen_fd = m->par->attach == SM_ATTACH_PROC ? -1 : sm_socket_listen(c->socket, c->key);
    return m->rte->ops->put(m->rte, SM_CARD_KEY, c, sizeof *c);
}

void sm_card_drop(struct sm_module *m)
{
    if (m->listen_fd >= 0)
        close(m->listen_fd);
    m->listen_fd = -1;
    sm_wake_socket_close(m);
}

int sm_card_fetch(struct sm_module *m, int rank, struct sm_card *out, char *why, size_t why_size)
{
    void *blob = NULL;
    size_t length = 0;
    int rc = m->rte->ops->get(m->rte, rank, SM_CARD_KEY, &blob, &length);

    if (rc != STRATA_OK) {
        if (why)
            snprintf(why, why_size, "rank %d has published no shared memory: %s", rank, strata_strerror(rc));
        return STRATA_ERR_UNREACHABLE;
    }
    if (length != sizeof *out) {
        rc = STRATA_ERR_UNREACHABLE;
    } else {
        memcpy(out, blob, sizeof *out);
        out->socket[SM_SOCKET_NAME - 1] = 0;
        rc = out->version == SM_VERSION ? STRATA_OK : STRATA_ERR_UNREACHABLE;
    }
    free(blob);
    if (rc != STRATA_OK && why)
        snprintf(why, why_size, "rank %d runs another version of btl_sm", rank);
    if (rc == STRATA_OK && (out->boot != m->card.boot || out->job != m->card.job)) {
        if (why)
            snprintf(why, why_size, "rank %d is of another %s", rank, out->job != m->card.job ? "job" : "machine");
        rc = STRATA_ERR_UNREACHABLE;
    }
    return rc;
}

bool sm_process_alive(uint32_t pid)
{
    return kill((pid_t)pid, 0) == 0 || errno != ESRCH;
}

bool sm_peer_alive(const struct sm_peer *p)
{
    return p->foreign_pid || sm_process_alive(p->pid);
}

static int sm_attach_open_proc(const struct sm_card *card, char *why, size_t why_size)
{
    char path[64];
    int fd;

    snprintf(path, sizeof path, "/proc/%u/fd/%d", card->pid, card->fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        snprintf(why, why_size, "%s: %s", path, strerror(errno));
    return fd;
}

/* Maps what fd refers to if it is what the card promised. */
static int sm_attach_map(int fd, int rank, const struct sm_card *card, struct sm_segment *seg, char *why,
                         size_t why_size)
{
    int rc = sm_segment_map(fd, seg);

    if (rc != STRATA_OK) {
        snprintf(why, why_size, "what rank %d offers is no segment: %s", rank, strata_strerror(rc));
        return rc;
    }
    if (memcmp(sm_header(seg->base)->key, card->key, sizeof card->key) != 0 || sm_header(seg->base)->job != card->job ||
        sm_header(seg->base)->rank != (uint32_t)rank) {
        sm_segment_destroy(seg);
        snprintf(why, why_size, "the segment found is not rank %d's", rank);
        return STRATA_ERR_PROTOCOL;
    }
    return STRATA_OK;
}

static int sm_attach_segment(struct sm_module *m, int rank, const struct sm_card *card, struct sm_segment *seg,
                             uint8_t *method, char *why, size_t why_size)
{
    int fd, rc = STRATA_ERR_UNREACHABLE;

    if (m->par->attach != SM_ATTACH_SOCKET) {
        if (card->pid_ns == m->card.pid_ns)
            fd = sm_attach_open_proc(card, why, why_size);
        else {
            snprintf(why, why_size, "rank %d is in another pid namespace", rank);
            fd = -1;
        }
        if (fd >= 0) {
            rc = sm_attach_map(fd, rank, card, seg, why, why_size);
            close(fd);
        }
        *method = SM_ATTACHED_PROC;
    }
    if (rc != STRATA_OK && m->par->attach != SM_ATTACH_PROC) {
        fd = sm_socket_fetch(m, card, why, why_size);
        if (fd >= 0) {
            rc = sm_attach_map(fd, rank, card, seg, why, why_size);
            close(fd);
        }
        *method = SM_ATTACHED_SOCKET;
    }
    return rc;
}

int sm_attach(struct sm_module *m, int rank, struct sm_peer **out, char *why, size_t why_size)
{
    struct sm_card card;
    struct sm_segment seg;
    struct sm_peer *p;
    uint8_t method = 0;

    if (sm_card_fetch(m, rank, &card, why, why_size) != STRATA_OK)
        return STRATA_ERR_UNREACHABLE;
    if (sm_attach_segment(m, rank, &card, &seg, &method, why, why_size) != STRATA_OK)
        return STRATA_ERR_UNREACHABLE;
    p = aligned_alloc(SM_LINE, (sizeof *p + SM_LINE - 1) / SM_LINE * SM_LINE);
    if (!p) {
        sm_segment_destroy(&seg);
        snprintf(why, why_size, "out of memory");
        return STRATA_ERR_NOMEM;
    }
    memset(p, 0, sizeof *p);
    p->ep.btl = &m->btl;
    p->ep.rank = rank;
    p->base = seg.base;
    p->geometry = seg.geometry;
    p->header = sm_header(seg.base);
    p->my_index = SM_DIR_NONE;
    p->left_index = SM_DIR_NONE;
    p->grant = &m->no_grant;
    p->hot.word = ST_HOT_NONE;
    p->slots = (struct sm_slot *)(void *)(seg.base + seg.at.queue);
    p->n_slots = seg.geometry.queue_slots;
    p->max_send = sm_area_most(seg.geometry.ring_data);
    p->movs_min = m->movs_min;
    p->pid = card.pid;
    p->foreign_pid = card.pid_ns != m->card.pid_ns;
    p->attached_by = method;
    sm_copy_probe(p, &card);
    *out = p;
    return STRATA_OK;
}

void sm_unmap(struct sm_peer *p)
{
    struct sm_segment seg = {.fd = -1, .base = p->base};

    sm_layout_make(&p->geometry, &seg.at);
    sm_segment_destroy(&seg);
    p->base = NULL;
    p->header = NULL;
    p->slots = NULL;
}
