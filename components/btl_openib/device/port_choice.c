/* Limits by link layer, and whether the device is software. */
#include "device/port_choice.h"

#include <stdio.h>
#include <unistd.h>

/* Numbers of lanes and speeds as libibverbs has them, of each speed what is data: 8/10 of the bits up to QDR, 64/66
 * from FDR10 on. */
uint32_t ib_bandwidth(const struct ibv_port_attr *a)
{
    static const struct {
        uint8_t code;
        uint32_t mbs;
    } lane[] = {{1, 250}, {2, 500}, {4, 1000}, {8, 1250}, {16, 1700}, {32, 3125}, {64, 6250}, {128, 12500}};
    static const struct {
        uint8_t code;
        uint32_t lanes;
    } width[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
    uint32_t mbs = 0, lanes = 0;

    for (size_t i = 0; i < sizeof lane / sizeof *lane; i++)
        mbs = lane[i].code == a->active_speed ? lane[i].mbs : mbs;
    for (size_t i = 0; i < sizeof width / sizeof *width; i++)
        lanes = width[i].code == a->active_width ? width[i].lanes : lanes;
    return mbs && lanes ? mbs * lanes : 1000;
}

uint32_t ib_longest_rdma(size_t wanted, bool ethernet, uint32_t most)
{
    size_t longest = wanted ? wanted : ethernet ? IB_RDMA_ON_ETHERNET : most ? most : 1u << 30;

    if (longest < IB_RDMA_LEAST)
        longest = IB_RDMA_LEAST;
    return (uint32_t)(most && longest > most ? most : longest);
}

size_t ib_split_min(size_t wanted, bool software, bool ethernet)
{
    if (wanted)
        return wanted;
    if (!software)
        return 0;
    return ethernet ? IB_SPLIT_ON_ETHERNET : IB_SPLIT_ON_INFINIBAND;
}

size_t ib_stream_limit(size_t wanted, bool software, bool ethernet)
{
    if (wanted)
        return wanted;
    return software && !ethernet ? 2 * IB_STREAM_LIMIT : IB_STREAM_LIMIT;
}

uint32_t ib_max_inline(size_t wanted, bool software, bool ethernet)
{
    if (wanted)
        return (uint32_t)wanted;
    return software && !ethernet ? 3 * IB_MAX_INLINE : IB_MAX_INLINE;
}

static uint64_t ib_between(uint64_t n, uint64_t least, uint64_t most)
{
    return n < least ? least : n > most ? most : n;
}

struct ib_port_costs ib_port_costs(const struct ib_port_times *t, bool keeps, bool software)
{
    uint64_t copy = t->copies_64k ? t->copies_64k : 1;
    uint64_t each = t->writes_64k > t->writes_16k ? t->writes_64k - t->writes_16k : 1; /* of 48 KiB */
    uint64_t ask = 2 * t->sends * IB_TIMES_OF / copy;
    /* Of a message alone both copies are in its way. */
    uint64_t alone = ask / 2, rdma = ask, split = 0;

    /* Registering takes some time, and then some for each page; both ends do it, half of the 128 KiB measured. */
    if (!keeps) {
        rdma = (2 * t->sends + t->registers) * IB_TIMES_OF / copy;
        alone = rdma;
    }
    /* The half that the other end moves saves its time, and costs a question and its answer. */
    if (software && t->posts_64k * 2 > t->writes_64k)
        split = ib_between(2 * (2 * t->sends * (uint64_t)(48u << 10) / each), IB_SPLIT_ON_ETHERNET, IB_RDMA_MOST);
    return (struct ib_port_costs){.ask = (uint32_t)ib_between(ask, IB_ASK_LEAST, IB_ASK_MOST),
                                  .alone = (uint32_t)ib_between(alone, IB_ALONE_LEAST, IB_RDMA_MOST),
                                  .rdma = ib_between(rdma, IB_ASK_LEAST, IB_RDMA_MOST),
                                  .split = split};
}

bool ib_is_software(const struct ibv_device *d)
{
    char path[sizeof d->ibdev_path + sizeof "/device"];

    snprintf(path, sizeof path, "%s/device", d->ibdev_path);
    return access(path, F_OK) != 0;
}
