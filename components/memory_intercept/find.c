/* Where the code is. Not the address that a program sees, which may be a stub in the program: the C library's own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <gnu/lib-names.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "intercept.h"

#if defined(__x86_64__)
/* mov $SYS_munmap,%eax; syscall */
static const uint8_t munmap_code[] = {0xb8, 0x0b, 0x00, 0x00, 0x00, 0x0f, 0x05};
enum { MUNMAP_ALIGN = 16 };
#elif defined(__aarch64__)
/* mov x8,#SYS_munmap; svc #0; before it there may be a landing pad */
static const uint8_t munmap_code[] = {0xe8, 0x1a, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};
enum { MUNMAP_ALIGN = 4 };
#else
static const uint8_t munmap_code[] = {0};
enum { MUNMAP_ALIGN = 1 };
#endif

/* A function's beginning, where functions begin with endbr64. */
static bool intercept_behind_landing_pad(const uint8_t *p)
{
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    return (uintptr_t)p % MUNMAP_ALIGN == sizeof(endbr64) && memcmp(p - sizeof(endbr64), endbr64, sizeof(endbr64)) == 0;
}

/* The loader has a munmap of its own, which dlclose uses and no symbol names. It is a function that begins with the
 * system call; NULL unless there is exactly one such place. */
static uint8_t *intercept_loader_munmap(void)
{
    uintptr_t base = getauxval(AT_BASE);
    uint8_t *found = NULL;
    if (base == 0 || sizeof(munmap_code) < 4) /* linked statically, or another processor */
        return NULL;
    const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)base;
    const ElfW(Phdr) *part = (const ElfW(Phdr) *)(base + head->e_phoff);
    for (unsigned i = 0; i < head->e_phnum; i++) {
        if (part[i].p_type != PT_LOAD || !(part[i].p_flags & PF_X))
            continue;
        uint8_t *from = (uint8_t *)(base + part[i].p_vaddr), *end = from + part[i].p_memsz;
        for (uint8_t *p = from; (p = memmem(p, (size_t)(end - p), munmap_code, sizeof(munmap_code))); p++) {
            if ((uintptr_t)p % MUNMAP_ALIGN != 0 && !intercept_behind_landing_pad(p))
                continue;
            if (found)
                return NULL;
            found = p;
        }
    }
    return found;
}

/* In a program that is linked statically: its own copies. */
static void *intercept_linked(const char *name)
{
    static const struct {
        const char *name;
        void *at;
    } own[] = {{"munmap", (void *)munmap},   {"mmap", (void *)mmap}, {"mremap", (void *)mremap},
               {"madvise", (void *)madvise}, {"brk", (void *)brk},   {"shmat", (void *)shmat},
               {"shmdt", (void *)shmdt},     {"sbrk", (void *)sbrk}, {"syscall", (void *)syscall}};
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        if (!strcmp(own[i].name, name))
            return own[i].at;
    return NULL;
}

bool intercept_find(struct intercept_entry *entries, size_t n, const char **missing)
{
    void *libc = getauxval(AT_BASE) ? dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    for (size_t i = 0; i < n; i++) {
        struct intercept_entry *e = &entries[i];
        e->at = strchr(e->name, ' ') ? intercept_loader_munmap()
                : libc               ? dlsym(libc, e->name)
                                     : intercept_linked(e->name);
        for (size_t j = 0; j < i; j++) /* mmap and mmap64 are one */
            if (e->at == entries[j].at)
                e->at = NULL;
        if (!e->at && !e->optional) {
            *missing = e->name;
            return false;
        }
    }
    return true;
}
