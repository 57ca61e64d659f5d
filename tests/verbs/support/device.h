/* The device under test, chosen by the environment:
 *   VERBS_DEVICE     name; default: the first of the list
 *   VERBS_PORT       port number; default 1
 *   VERBS_GID_INDEX  default: 0 on an InfiniBand link layer; on Ethernet the first IPv4 GID, else 1
 *   VERBS_MEMORY     memfd: memory is a MAP_SHARED mapping of a memfd that is sealed against shrinking; default:
 * anonymous VERBS_KIND       kind for the table of differences; default: the name without its digits ("rxe", "soft") */
#ifndef VERBS_SUPPORT_DEVICE_H
#define VERBS_SUPPORT_DEVICE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct device {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    union ibv_gid gid;
    uint8_t port_num;
    uint8_t gid_index;
    bool global; /* addresses need a GRH: the link layer is Ethernet */
};

/* False, with the reason, when there is no device. Leaves nothing open: the cases run in forked processes. */
bool device_kind(char *kind, size_t kind_size, char *why, size_t why_size);
/* Both fail the case when they do not succeed; closing fails when an object was left behind. */
void device_open(struct device *d);
void device_close(struct device *d);
/* Bytes of the port's MTU. */
size_t device_mtu(const struct device *d);

/* A registered page-aligned buffer. */
struct memory {
    uint8_t *p;
    size_t size;
    struct ibv_mr *mr;
};
#define ACCESS_ALL                                                                                                     \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
void memory_make(struct memory *m, struct ibv_pd *pd, size_t size, int access);
void memory_free(struct memory *m);

/* Bytes that differ for each seed and place; memory_check fails the case and names the first wrong one. */
void pattern_fill(void *p, size_t n, uint32_t seed);
void pattern_check(const void *p, size_t n, uint32_t seed);
bool pattern_matches(const void *p, size_t n, uint32_t seed);

double now(void);        /* seconds of a clock that only goes forward */
void sleep_ms(int ms);   /* whole, also when a signal arrives */
double time_limit(void); /* seconds after which a completion or event is given up: VERBS_TIME_LIMIT, default 240 */

#endif
