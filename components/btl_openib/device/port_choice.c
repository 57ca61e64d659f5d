/* Limits by link layer, whether the device is software, and which ports of two processes correspond. */
#include "device/device.h"

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

const struct ib_limits *ib_limits(bool software, bool ethernet)
{
    static const struct ib_limits of_hardware[] = {{0, 16, 0, 32u << 10, 192}, {32u << 10, 4, 0, 32u << 10, 192}};
    static const struct ib_limits of_software[] = {{0, 16, 128u << 10, 64u << 10, 576},
                                                   {32u << 10, 4, 64u << 10, 32u << 10, 192}};

    return &(software ? of_software : of_hardware)[ethernet];
}

uint32_t ib_longest_rdma(size_t wanted, uint32_t most)
{
    size_t longest = wanted ? wanted : most ? most : 1u << 30;

    if (longest < IB_RDMA_LEAST)
        longest = IB_RDMA_LEAST;
    return (uint32_t)(most && longest > most ? most : longest);
}

bool ib_is_software(const struct ibv_device *d)
{
    char path[sizeof d->ibdev_path + sizeof "/device"];

    snprintf(path, sizeof path, "%s/device", d->ibdev_path);
    return access(path, F_OK) != 0;
}

uint32_t ib_rail_number(uint64_t rails, uint32_t place)
{
    return (uint32_t)__builtin_popcountll(rails & (((uint64_t)1 << place) - 1));
}

int ib_rail_match(uint64_t ours, uint64_t theirs, uint32_t place)
{
    uint64_t both = ours & theirs, rest = theirs & ~both;

    if (both >> place & 1)
        return (int)place;
    for (uint32_t before = ib_rail_number(ours & ~both, place); rest && before > 0; before--)
        rest &= rest - 1; /* without its lowest */
    return rest ? __builtin_ctzll(rest) : -1;
}
