/* What the core calls of libltdl, for a program that has all components linked in: see check.h for why. There are no
 * plugins. */
#ifndef CROSS_LTDL_H
#define CROSS_LTDL_H

#include <stddef.h>

typedef void *lt_dlhandle, *lt_dladvise;

static inline int lt_dlinit(void)
{
    return 0;
}

static inline const char *lt_dlerror(void)
{
    return "this program opens no plugins";
}

static inline int lt_dladvise_init(lt_dladvise *a)
{
    *a = NULL;
    return 1;
}

static inline int lt_dladvise_local(lt_dladvise *a)
{
    (void)a;
    return 1;
}

static inline int lt_dladvise_destroy(lt_dladvise *a)
{
    (void)a;
    return 0;
}

static inline lt_dlhandle lt_dlopenadvise(const char *path, lt_dladvise a)
{
    (void)path, (void)a;
    return NULL;
}

static inline void *lt_dlsym(lt_dlhandle h, const char *name)
{
    (void)h, (void)name;
    return NULL;
}

static inline int lt_dlclose(lt_dlhandle h)
{
    (void)h;
    return 0;
}

static inline int lt_dlmakeresident(lt_dlhandle h)
{
    (void)h;
    return 0;
}

#endif
