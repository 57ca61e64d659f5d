/* The processes of a link's context: what each has published, and the callbacks by which the context sees them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/socket.h>
#include <unistd.h>

#include "channel/link.h"

/* ---- callbacks ---- */

static int member_put(void *user, const char *key, const void *blob, size_t length)
{
    strata_channel_link_t *l = user;
    struct link_blob head = {(uint32_t)strlen(key), (uint32_t)length};

    pthread_mutex_lock(&l->lock);
    struct link_member *m = &l->members[l->host.rank];
    char *more = realloc(m->blobs, m->length + sizeof(head) + head.key_length + length);
    if (more) {
        m->blobs = more;
        memcpy(more + m->length, &head, sizeof(head));
        memcpy(more + m->length + sizeof(head), key, head.key_length);
        if (length)
            memcpy(more + m->length + sizeof(head) + head.key_length, blob, length);
        m->length += sizeof(head) + head.key_length + length;
    }
    pthread_mutex_unlock(&l->lock);
    return more ? STRATA_OK : STRATA_ERR_NOMEM;
}

/* The value of a key, the last that was published. */
static const char *member_find(const struct link_member *m, const char *key, size_t *length)
{
    const char *found = NULL;
    struct link_blob head;

    for (size_t at = 0; at + sizeof(head) <= m->length; at += sizeof(head) + head.key_length + head.length) {
        memcpy(&head, m->blobs + at, sizeof(head));
        if (strlen(key) != head.key_length || memcmp(m->blobs + at + sizeof(head), key, head.key_length) != 0)
            continue;
        found = m->blobs + at + sizeof(head) + head.key_length;
        *length = head.length;
    }
    return found;
}

/* A member's published values came with its handshake, so there is nothing to wait for. */
static int member_get(void *user, int rank, const char *key, void **blob, size_t *length)
{
    strata_channel_link_t *l = user;
    int rc = STRATA_ERR_NOT_FOUND;
    size_t n = 0;

    pthread_mutex_lock(&l->lock);
    const char *found =
        rank >= 0 && rank < l->n_members && l->members[rank].known ? member_find(&l->members[rank], key, &n) : NULL;
    if (found) {
        *blob = malloc(n + 1);
        rc = *blob ? STRATA_OK : STRATA_ERR_NOMEM;
    }
    if (rc == STRATA_OK) {
        memcpy(*blob, found, n);
        *length = n;
    }
    pthread_mutex_unlock(&l->lock);
    return rc;
}

/* Nobody waits for the others: they come and go. */
static int member_fence(void *user)
{
    (void)user;
    return STRATA_OK;
}

static int member_is_local(void *user, int rank)
{
    strata_channel_link_t *l = user;

    pthread_mutex_lock(&l->lock);
    bool local = rank == l->host.rank || (rank >= 0 && rank < l->n_members && l->members[rank].known &&
                                          strcmp(l->members[rank].boot, l->members[l->host.rank].boot) == 0);
    pthread_mutex_unlock(&l->lock);
    return local;
}

static const int *member_local_ranks(void *user, int *n)
{
    strata_channel_link_t *l = user;

    *n = l->n_locals;
    return l->locals;
}

static const char *member_host_of(void *user, int rank)
{
    strata_channel_link_t *l = user;

    pthread_mutex_lock(&l->lock);
    const char *name = rank >= 0 && rank < l->n_members && l->members[rank].known ? l->members[rank].host : NULL;
    pthread_mutex_unlock(&l->lock);
    return name ? name : "?";
}

void link_host(strata_channel_link_t *l, int rank)
{
    l->host = (strata_host_t){.size = sizeof(l->host),
                              .user = l,
                              .rank = rank,
                              .n_ranks = STRATA_RANKS_OPEN,
                              .job_id = l->job,
                              .put = member_put,
                              .get = member_get,
                              .fence = member_fence,
                              .is_local = member_is_local,
                              .local_ranks = member_local_ranks,
                              .host_of = member_host_of};
    l->n_locals = 0;
    if (rank > 0 && member_is_local(l, 0))
        l->locals[l->n_locals++] = 0;
    l->locals[l->n_locals++] = rank;
}

/* ---- the table ---- */

/* The one of the link's names that is `text`; NULL: no memory. With the lock held. */
static const char *member_name(strata_channel_link_t *l, const char *text)
{
    struct link_name *n = l->names;

    while (n && strcmp(n->text, text) != 0)
        n = n->next;
    if (n)
        return n->text;
    n = calloc(1, sizeof(*n));
    if (!n)
        return NULL;
    (void)snprintf(n->text, sizeof(n->text), "%s", text);
    n->next = l->names;
    l->names = n;
    return n->text;
}

/* Where this process runs. */
static void member_here(strata_channel_link_t *l, struct link_member *m)
{
    char host[LINK_NAME] = "";

    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

    if (!f || !fgets(m->boot, sizeof(m->boot), f))
        memset(m->boot, 0, sizeof(m->boot));
    if (f)
        (void)fclose(f);
    m->boot[strcspn(m->boot, "\n")] = 0;
    (void)gethostname(host, sizeof(host) - 1);
    host[sizeof(host) - 1] = 0;
    m->host = member_name(l, host);
}

int link_member_add(strata_channel_link_t *l, int rank)
{
    int rc = STRATA_OK;

    pthread_mutex_lock(&l->lock);
    if (rank >= l->n_members) {
        struct link_member *more = realloc(l->members, ((size_t)rank + 1) * sizeof(*more));
        if (more) {
            for (int i = l->n_members; i <= rank; i++)
                more[i] = (struct link_member){.fd = -1};
            l->members = more;
            l->n_members = rank + 1;
        } else {
            rc = STRATA_ERR_NOMEM;
        }
    }
    pthread_mutex_unlock(&l->lock);
    return rc;
}

int link_member_new(strata_channel_link_t *l, int *rank)
{
    int i = 1;

    while (i < l->n_members && l->members[i].taken)
        i++;
    int rc = link_member_add(l, i);
    if (rc == STRATA_OK)
        l->members[i].taken = true;
    *rank = i;
    return rc;
}

void link_member_drop(strata_channel_link_t *l, int rank)
{
    pthread_mutex_lock(&l->lock);
    free(l->members[rank].blobs);
    l->members[rank] = (struct link_member){.fd = -1};
    pthread_mutex_unlock(&l->lock);
}

void link_member_leave(strata_channel_link_t *l, int rank)
{
    pthread_mutex_lock(&l->lock);
    free(l->members[rank].blobs);
    l->members[rank].blobs = NULL;
    l->members[rank].length = 0;
    pthread_mutex_unlock(&l->lock);
}

void link_members_free(strata_channel_link_t *l)
{
    for (int i = 0; i < l->n_members; i++) {
        free(l->members[i].blobs);
        if (l->members[i].fd >= 0)
            (void)close(l->members[i].fd);
    }
    while (l->names) {
        struct link_name *n = l->names;
        l->names = n->next;
        free(n);
    }
    free(l->members);
    l->members = NULL;
    l->n_members = 0;
}

/* ---- on the wire: where it is, then what it has published ---- */

struct member_head {
    char boot[LINK_NAME], host[LINK_NAME];
};

int link_member_tell(strata_channel_link_t *l, struct link_wire *w)
{
    struct member_head head = {"", ""};

    pthread_mutex_lock(&l->lock);
    struct link_member *m = &l->members[l->host.rank];
    member_here(l, m);
    memcpy(head.boot, m->boot, sizeof(head.boot));
    (void)snprintf(head.host, sizeof(head.host), "%s", m->host ? m->host : "");
    size_t size = sizeof(head) + m->length;
    char *all = malloc(size);
    if (all) {
        memcpy(all, &head, sizeof(head));
        if (m->length)
            memcpy(all + sizeof(head), m->blobs, m->length);
    }
    pthread_mutex_unlock(&l->lock);
    int rc = all ? link_tell(w, all, size) : STRATA_ERR_NOMEM;
    free(all);
    return rc;
}

/* Whether blobs fill `n` bytes. */
static bool member_whole(const char *blobs, size_t n)
{
    size_t at = 0;

    while (n - at >= sizeof(struct link_blob)) {
        struct link_blob head;
        memcpy(&head, blobs + at, sizeof(head));
        at += sizeof(head);
        if (head.key_length > n - at || head.length > n - at - head.key_length)
            return false;
        at += head.key_length + head.length;
    }
    return at == n;
}

int link_member_hear(strata_channel_link_t *l, struct link_wire *w, int rank)
{
    struct member_head head;
    const char *frame;
    size_t size;
    int rc = link_hear(w, sizeof(head), &frame, &size);

    if (rc != STRATA_OK)
        return rc;
    memcpy(&head, frame, sizeof(head));
    size -= sizeof(head);
    if (!member_whole(frame + sizeof(head), size) || !memchr(head.boot, 0, LINK_NAME) ||
        !memchr(head.host, 0, LINK_NAME))
        return STRATA_ERR_PEER;
    char *blobs = malloc(size + 1);
    if (!blobs)
        return STRATA_ERR_NOMEM;
    memcpy(blobs, frame + sizeof(head), size);
    rc = link_member_add(l, rank);
    if (rc != STRATA_OK) {
        free(blobs);
        return rc;
    }
    pthread_mutex_lock(&l->lock);
    struct link_member *m = &l->members[rank];
    free(m->blobs);
    m->blobs = blobs;
    m->length = size;
    memcpy(m->boot, head.boot, sizeof(m->boot));
    m->host = member_name(l, head.host);
    m->known = m->host != NULL;
    pthread_mutex_unlock(&l->lock);
    return m->host ? STRATA_OK : STRATA_ERR_NOMEM;
}
