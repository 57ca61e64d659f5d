/* What the fake components share: a component head, and a struct with poison behind the three fields that are checked.
 */
#ifndef FAKE_H
#define FAKE_H

#include <string.h>
#include <strata/sdk/btl.h>

/* A component struct of which only the first three fields may be looked at. */
struct poisoned {
    uint64_t magic;
    uint32_t struct_size, abi_version;
    uintptr_t poison[16];
};
#define POISON                                                                                                         \
    {                                                                                                                  \
        0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10                 \
    }
#define POISONED(name) STRATA_API const struct poisoned st_component_btl_##name

static int fake_open(strata_t *s, const struct st_component *c, const void *config, struct st_btl ***mods, size_t *n)
    __attribute__((unused));
static int fake_open(strata_t *s, const struct st_component *c, const void *config, struct st_btl ***mods, size_t *n)
{
    (void)config;
    (void)mods;
    (void)n;
    st_reject(s, c, "the fake device is on fire");
    return STRATA_ERR_SYSTEM;
}
static const struct st_btl_component_ops fake_ops __attribute__((unused)) = {.open = fake_open};

#endif
