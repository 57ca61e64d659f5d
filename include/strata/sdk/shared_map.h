/* Mapping memory of another process's shared file (shared_file.h) by a name that the process has sent. Neither the name
 * nor the file is trusted: an access to the mapping never causes a signal. */
#ifndef STRATA_SDK_SHARED_MAP_H
#define STRATA_SDK_SHARED_MAP_H

#include <stdint.h>
#include <strata/sdk/component.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Most bytes of one mapping. */
#define ST_SHARED_MAP_MOST ((uint64_t)1 << 30)

/* A part of a file of another process. */
struct st_shared_name {
    uint64_t offset; /* of its first byte in the file */
    uint64_t length; /* bytes, 1 to ST_SHARED_MAP_MOST */
    uint32_t inode;  /* of the file, its lower 32 bits: detects a descriptor that was reused for another file */
    int32_t fd;      /* descriptor in that process */
};

/* A mapping made by st_shared_map. */
struct st_shared_mapping {
    char *memory; /* address of the part's first byte here; NULL: nothing is mapped */
    void *start;  /* the mapping's first page */
    size_t bytes; /* whole pages */
};

/* Fills *name for memory of this process at `offset` of its file `fd`. STRATA_ERR_ARG: too long to be mapped. */
ST_API int st_shared_name_make(int fd, uint64_t offset, uint64_t length, struct st_shared_name *name);
/* Maps a named part, readable and writable, through /proc/`pid`/fd. A child after fork does not have the mapping.
 * STRATA_ERR_UNSUPPORTED: no access to the process, or the name is not part of a memfd sealed against shrinking;
 * STRATA_ERR_NOMEM: not now. */
ST_API int st_shared_map(uint32_t pid, const struct st_shared_name *name, struct st_shared_mapping *out);
/* Unmaps a mapping; no effect if nothing is mapped. */
ST_API void st_shared_unmap(struct st_shared_mapping *mapping);

#ifdef __cplusplus
}
#endif
#endif
