#define _GNU_SOURCE 1
#include "support/device.h"
#include "support/require.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static struct ibv_device *find(struct ibv_device **list, int n)
{
    const char *name = getenv("VERBS_DEVICE");
    for (int i = 0; i < n; i++)
        if (!name || !strcmp(ibv_get_device_name(list[i]), name))
            return list[i];
    return NULL;
}

bool device_kind(char *kind, size_t kind_size, char *why, size_t why_size)
{
    const char *name = getenv("VERBS_DEVICE"), *set = getenv("VERBS_KIND");
    int n = 0;
    struct ibv_device **list = ibv_get_device_list(&n);
    struct ibv_device *d = list ? find(list, n) : NULL;
    if (!d) {
        snprintf(why, why_size, "no verbs device%s%s", name ? " named " : "", name ? name : "");
    } else {
        snprintf(kind, kind_size, "%s", set ? set : ibv_get_device_name(d));
        for (size_t len = strlen(kind); !set && len && isdigit((unsigned char)kind[len - 1]); len--)
            kind[len - 1] = 0;
    }
    if (list)
        ibv_free_device_list(list);
    return d != NULL;
}

static uint8_t choose_gid(struct device *d)
{
    static const uint8_t ipv4[12] = {[10] = 0xff, [11] = 0xff};
    const char *set = getenv("VERBS_GID_INDEX");
    union ibv_gid gid;
    if (set)
        return (uint8_t)atoi(set);
    if (!d->global)
        return 0;
    for (int i = 0; i < d->port.gid_tbl_len && i < 16; i++)
        if (!ibv_query_gid(d->ctx, d->port_num, i, &gid) && !memcmp(gid.raw, ipv4, sizeof ipv4))
            return (uint8_t)i;
    return 1;
}

void device_open(struct device *d)
{
    const char *port = getenv("VERBS_PORT");
    int n = 0;
    struct ibv_device **list = ibv_get_device_list(&n);
    REQUIRE(list != NULL);
    struct ibv_device *dev = find(list, n);
    REQUIRE(dev != NULL);
    memset(d, 0, sizeof *d);
    d->ctx = ibv_open_device(dev);
    REQUIRE(d->ctx != NULL);
    ibv_free_device_list(list);
    d->port_num = (uint8_t)(port ? atoi(port) : 1);
    REQUIRE_OK(ibv_query_device(d->ctx, &d->attr));
    REQUIRE_OK(ibv_query_port(d->ctx, d->port_num, &d->port));
    d->global = d->port.link_layer == IBV_LINK_LAYER_ETHERNET;
    d->gid_index = choose_gid(d);
    REQUIRE_OK(ibv_query_gid(d->ctx, d->port_num, d->gid_index, &d->gid));
    d->pd = ibv_alloc_pd(d->ctx);
    REQUIRE(d->pd != NULL);
}

void device_close(struct device *d)
{
    REQUIRE_OK(ibv_dealloc_pd(d->pd));
    REQUIRE_OK(ibv_close_device(d->ctx));
}

size_t device_mtu(const struct device *d)
{
    return (size_t)128 << d->port.active_mtu;
}

/* Its descriptor, or -1, goes to *fd. */
static void *map(size_t size, int *fd)
{
    const char *kind = getenv("VERBS_MEMORY");
    *fd = -1;
    if (kind && strcmp(kind, "memfd") == 0) {
        *fd = memfd_create("verbs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        REQUIRE(*fd >= 0 && ftruncate(*fd, (off_t)size) == 0 && fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    }
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, *fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, *fd, 0);
    REQUIRE(at != MAP_FAILED);
    return at;
}

void memory_make(struct memory *m, struct ibv_pd *pd, size_t size, int access)
{
    int fd;
    m->size = size;
    m->p = map(size, &fd);
    m->mr = ibv_reg_mr(pd, m->p, size, (unsigned)access);
    REQUIRE(m->mr != NULL);
    /* A device looks for it when the memory is registered. */
    if (fd >= 0)
        close(fd);
}

void memory_free(struct memory *m)
{
    REQUIRE_OK(ibv_dereg_mr(m->mr));
    munmap(m->p, m->size);
}

static uint8_t pattern_byte(size_t i, uint32_t seed)
{
    uint32_t x = (uint32_t)i * 2654435761u ^ seed * 40503u;
    return (uint8_t)(x >> 13 ^ x >> 24 ^ i);
}

void pattern_fill(void *p, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)p)[i] = pattern_byte(i, seed);
}

bool pattern_matches(const void *p, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++)
        if (((const uint8_t *)p)[i] != pattern_byte(i, seed))
            return false;
    return true;
}

void pattern_check(const void *p, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++)
        if (((const uint8_t *)p)[i] != pattern_byte(i, seed))
            FAIL("byte %zu of %zu is %02x, not %02x (seed %u)", i, n, ((const uint8_t *)p)[i], pattern_byte(i, seed),
                 seed);
}

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void sleep_ms(int ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
    while (nanosleep(&t, &t) && errno == EINTR)
        ;
}

double time_limit(void)
{
    const char *s = getenv("VERBS_TIME_LIMIT");
    return s ? atof(s) : 240;
}
