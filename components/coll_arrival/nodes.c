/* Nodes: order of members, areas. */
#define _GNU_SOURCE 1
#include "nodes.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LINE = 64, PAGE = 4096, LEAST_LIMIT = 8 };

struct nodes *arrival_nodes_make(int n)
{
    size_t members = (size_t)n;
    struct nodes *nodes = calloc(1, sizeof(*nodes));
    if (!nodes)
        return NULL;
    nodes->fd = -1;
    nodes->cards = calloc(members, sizeof(*nodes->cards));
    nodes->place = calloc(3 * members, sizeof(*nodes->place));
    if (!nodes->cards || !nodes->place) {
        arrival_nodes_free(nodes);
        return NULL;
    }
    nodes->order = nodes->place + members;
    nodes->count = nodes->order + members;
    return nodes;
}

void arrival_nodes_free(struct nodes *nodes)
{
    if (!nodes)
        return;
    if (nodes->fd >= 0) {
        munmap(nodes->area, nodes->layout.bytes);
        close(nodes->fd);
    }
    st_shared_unmap(&nodes->mapping);
    free(nodes->cards);
    free(nodes->place);
    free(nodes);
}

bool arrival_nodes_sort(struct nodes *nodes, int n, int me)
{
    int next = 0;
    nodes->n_nodes = 0;
    for (int m = 0; m < n; m++) {
        int leader = node_leader_of(nodes, m);
        if (leader < 0 || leader > m || node_leader_of(nodes, leader) != leader) {
            nodes->n_nodes = 0;
            return false;
        }
        nodes->count[leader]++;
        nodes->n_nodes += leader == m;
    }
    for (int leader = 0; leader < n; leader++)
        for (int m = leader; m < n && nodes->count[leader] > 0; m++)
            if (node_leader_of(nodes, m) == leader) {
                nodes->order[next] = m;
                nodes->place[m] = next++;
            }
    nodes->least = n;
    for (int m = 0; m < n; m++)
        if (node_is_leader(nodes, m) && nodes->count[m] < nodes->least)
            nodes->least = nodes->count[m];
    nodes->leader = node_leader_of(nodes, me);
    nodes->n_local = nodes->count[nodes->leader];
    return true;
}

static size_t node_round(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

void arrival_node_layout(int n, int n_local, size_t limit, struct node_layout *out)
{
    size_t members = (size_t)n, local = (size_t)n_local;
    out->lines = 0;
    out->flags = local * sizeof(struct node_line);
    out->waited = out->flags + members * sizeof(uint64_t);
    out->lengths = node_round(out->waited + 2 * members, LINE);
    out->gather = node_round(out->lengths + 4 * local * members * sizeof(uint32_t), PAGE);
    out->half = node_round(local * members * limit, LINE);
    out->scatter = out->gather + 2 * out->half;
    out->bytes = node_round(out->scatter + 2 * out->half, PAGE);
}

size_t arrival_node_limit(int n, int n_local, size_t most, size_t bytes)
{
    struct node_layout layout;
    size_t limit = most / LEAST_LIMIT * LEAST_LIMIT;
    bytes = bytes < ST_SHARED_MAP_MOST ? bytes : ST_SHARED_MAP_MOST;
    for (; limit > 0; limit = limit / 2 / LEAST_LIMIT * LEAST_LIMIT) {
        arrival_node_layout(n, n_local, limit, &layout);
        if (layout.bytes <= bytes)
            break;
    }
    return limit;
}

int arrival_node_area(struct nodes *nodes, size_t bytes, struct node_card *card)
{
    int fd = memfd_create("strata-node", MFD_CLOEXEC | MFD_ALLOW_SEALING), rc = STRATA_ERR_UNSUPPORTED;
    void *at = MAP_FAILED;
    if (fd < 0)
        return rc;
    if (posix_fallocate(fd, 0, (off_t)bytes) != 0) {
        close(fd);
        return STRATA_ERR_NOMEM;
    }
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0 &&
        (rc = st_shared_name_make(fd, 0, bytes, &card->name)) == STRATA_OK) {
        at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        rc = at == MAP_FAILED ? STRATA_ERR_NOMEM : STRATA_OK;
    }
    if (rc != STRATA_OK) {
        close(fd);
        return rc;
    }
    (void)madvise(at, bytes, MADV_DONTFORK);
    nodes->area = at;
    nodes->fd = fd;
    return STRATA_OK;
}
