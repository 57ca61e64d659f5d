/* Which tool this process runs under. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <strata/sdk/memory.h>

/* Sanitizers bring an allocator that makes system calls of its own, and valgrind does not run what is written into
 * code. They are told by what they bring: a symbol that their run-time exports, or what valgrind preloads. */
const char *st_memory_tool(void)
{
    static const struct {
        const char *symbol, *name;
    } sanitizers[] = {{"__asan_init", "the address sanitizer"},
                      {"__tsan_init", "the thread sanitizer"},
                      {"__msan_init", "the memory sanitizer"},
                      {"__hwasan_init", "the address sanitizer"}};
    for (size_t i = 0; i < sizeof(sanitizers) / sizeof(sanitizers[0]); i++)
        if (dlsym(RTLD_DEFAULT, sanitizers[i].symbol))
            return sanitizers[i].name;
    const char *preload = getenv("LD_PRELOAD");
    return preload && strstr(preload, "vgpreload_") ? "valgrind" : NULL;
}
