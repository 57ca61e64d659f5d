/* What the environment says: how many devices of which kind, and what a process may have of each object. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "hca.h"

struct number_row {
    const char *name;
    size_t at; /* in struct hca_limits */
    uint32_t least, most, value;
};

#define ROW(variable, field, least, most, value)                                                                       \
    {                                                                                                                  \
        "SOFTHCA_" variable, offsetof(struct hca_limits, field), least, most, value                                    \
    }

/* Name, least, most, default. README.md has a table of the same. */
static const struct number_row numbers[] = {
    ROW("DEVICES", devices, 1, HCA_DEVICES, 1),
    ROW("PORTS", ports, 1, HCA_PORTS, 1),
    ROW("MAX_QP", max_qp, 1, HCA_QPS, HCA_QPS),
    ROW("MAX_CQ", max_cq, 1, HCA_CQS, HCA_CQS),
    ROW("MAX_SRQ", max_srq, 1, HCA_SRQS, HCA_SRQS),
    ROW("MAX_MR", max_mr, 1, HCA_MRS, HCA_MRS),
    ROW("MAX_PD", max_pd, 1, 1u << 20, 1u << 14),
    ROW("MAX_AH", max_ah, 1, 1u << 24, 1u << 20),
    ROW("MAX_QP_WR", max_qp_wr, 1, 1u << 15, 1u << 14),
    ROW("MAX_SGE", max_sge, 1, HCA_MAX_SGE, HCA_MAX_SGE),
    ROW("MAX_CQE", max_cqe, 1, 1u << 22, 1u << 20),
    ROW("MAX_SRQ_WR", max_srq_wr, 1, 1u << 16, 1u << 15),
    ROW("MAX_INLINE", max_inline, 0, 4096, 1024),
    ROW("SHORT", short_most, 0, HCA_PARCEL_ROOM, HCA_PARCEL_ROOM),
    ROW("PKEYS", pkeys, 1, 16, 1),
};

static void complain(const char *name, const char *value, const char *expected)
{
    fprintf(stderr, "softhca: %s=%s: expected %s; the default is used\n", name, value, expected);
}

static uint32_t read_number(const struct number_row *row)
{
    const char *text = getenv(row->name);
    if (!text || !*text)
        return row->value;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 0);
    if (errno || *end || *text == '-' || value < row->least || value > row->most) {
        char range[64];
        snprintf(range, sizeof range, "a number from %u to %u", row->least, row->most);
        complain(row->name, text, range);
        return row->value;
    }
    return (uint32_t)value;
}

/* As an adapter's driver has it: what the limit on locked memory is, and none for whom it does not bind. */
static uint64_t default_memlock(void)
{
    struct rlimit limit;
    if (geteuid() == 0 || getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    return limit.rlim_cur;
}

static uint64_t read_memlock(void)
{
    static const char name[] = "SOFTHCA_MEMLOCK";
    const char *text = getenv(name);
    if (!text || !*text)
        return default_memlock();
    if (strcmp(text, "unlimited") == 0)
        return UINT64_MAX;
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 0);
    unsigned shift = *end == 'k' || *end == 'K'   ? 10
                     : *end == 'm' || *end == 'M' ? 20
                     : *end == 'g' || *end == 'G' ? 30
                                                  : 0;
    if (end == text || errno || *text == '-' || end[shift ? 1 : 0] || value > UINT64_MAX >> shift) {
        complain(name, text, "bytes, with k, m or g, or unlimited");
        return default_memlock();
    }
    return value << shift;
}

/* One of two words; the first is the default. */
static bool is_second(const char *name, const char *first, const char *second)
{
    char both[64];
    const char *text = getenv(name);

    if (!text || !*text || strcmp(text, first) == 0)
        return false;
    if (strcmp(text, second) == 0)
        return true;
    snprintf(both, sizeof both, "%s or %s", first, second);
    complain(name, text, both);
    return false;
}

static enum ibv_mtu read_mtu(bool roce)
{
    /* What fits a frame of 1500 bytes. */
    const enum ibv_mtu value = roce ? IBV_MTU_1024 : IBV_MTU_4096;
    const char *text = getenv("SOFTHCA_MTU");
    if (!text || !*text)
        return value;
    for (unsigned mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++) {
        char number[16];
        snprintf(number, sizeof number, "%u", 128u << mtu);
        if (strcmp(text, number) == 0)
            return (enum ibv_mtu)mtu;
    }
    complain("SOFTHCA_MTU", text, "256, 512, 1024, 2048 or 4096");
    return value;
}

static struct hca_limits environment;

static void read_environment(void)
{
    struct hca_limits *l = &environment;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const uint32_t value = read_number(&numbers[i]);
        memcpy((char *)l + numbers[i].at, &value, sizeof value);
    }
    l->roce = is_second("SOFTHCA_LINK", "ib", "roce");
    l->fixed_cq = is_second("SOFTHCA_RESIZE", "yes", "no");
    l->no_datagrams = is_second("SOFTHCA_UD", "yes", "no");
    l->no_manager = is_second("SOFTHCA_CM", "yes", "no");
    l->arm_unpolled = !is_second("SOFTHCA_ARM", "unpolled", "new");
    l->mtu = read_mtu(l->roce);
    l->max_memlock = read_memlock();
}

/* Once in a process, and complained of once. Who has it already is not written to: others may be reading it. */
void hca_limits_read(struct hca_limits *l)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_environment);
    if (l->devices == 0) /* no environment makes it 0 */
        *l = environment;
}
