/* How often each cost of SOFTHCA_COST was spent by this process. A case sets what it wants before it opens the device:
 * the library reads it once in a process, and each case is one. */
#ifndef COSTS_COUNTS_H
#define COSTS_COUNTS_H

#include "../device/own_segment.h"

struct counts {
    uint64_t of[HCA_COSTS];
};
struct counted {
    enum hca_cost_key key;
    uint64_t n;
};

static inline void costs_set(const char *costs)
{
    REQUIRE_OK(setenv("SOFTHCA_COST", costs, 1));
}

static inline struct counts counts_now(void)
{
    char *segment = own_segment(PROT_READ);
    const struct hca_header *h = (const struct hca_header *)(const void *)segment;
    struct counts c;

    for (int key = 0; key < HCA_COSTS; key++)
        c.of[key] = h->cost_times[key];
    munmap(segment, HCA_SIZE);
    return c;
}

/* Since `before`, which becomes now, the costs of the list were spent so often, and no others. */
static inline void counts_are(struct counts *before, const struct counted *list, size_t n, const char *file, int line)
{
    const struct counts after = counts_now();

    for (int key = 0; key < HCA_COSTS; key++) {
        uint64_t expected = 0, got = after.of[key] - before->of[key];
        for (size_t i = 0; i < n; i++)
            expected += (int)list[i].key == key ? list[i].n : 0;
        REQUIRE_MSG(got == expected, "%s:%d: cost %s: %llu times instead of %llu", file, line, hca_cost_names[key],
                    (unsigned long long)got, (unsigned long long)expected);
    }
    *before = after;
}
#define COUNTED(before, ...)                                                                                           \
    do {                                                                                                               \
        const struct counted list_[] = {__VA_ARGS__};                                                                  \
        counts_are(before, list_, sizeof list_ / sizeof *list_, __FILE__, __LINE__);                                   \
    } while (0)
#define NOTHING_COUNTED(before) counts_are(before, NULL, 0, __FILE__, __LINE__)

#endif
