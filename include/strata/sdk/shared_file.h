/* Memory that other processes may map: pieces of one memfd, sealed so that it cannot be shortened while others have
 * mapped it. Every page is reserved at its allocation: exhaustion is an error return, not a SIGBUS. A child after fork
 * does not have the pages (MADV_DONTFORK). Pools use this for their op for such memory (mpool.h). */
#ifndef STRATA_SDK_SHARED_FILE_H
#define STRATA_SDK_SHARED_FILE_H

#include <stdint.h>
#include <strata/sdk/component.h>

#ifdef __cplusplus
extern "C" {
#endif

struct st_shared_node;
/* A file of one process; zeros and fd = -1 before the first piece. */
struct st_shared_file {
    int fd;                        /* of the memfd, or -1 */
    uint64_t size;                 /* bytes ever allocated: no place in the file is allocated twice */
    uint64_t used;                 /* bytes of pieces that were not freed */
    struct st_shared_node *pieces; /* those pieces */
};

/* A piece: what a peer needs to map it, [offset, offset + length) of fd. */
struct st_shared_piece {
    void *memory;    /* where it is mapped here */
    size_t length;   /* whole pages */
    int fd;          /* the process's own number for it; the file's until the pool is closed */
    uint64_t offset; /* of its first byte in the file */
};

/* Allocates at least `length` > 0 zeroed bytes. STRATA_ERR_NOMEM: no memory, a limit (RLIMIT_FSIZE applies to such
 * files, too), or all pieces together would exceed half of the machine's memory; STRATA_ERR_UNSUPPORTED: the kernel has
 * no memfd, or refuses it. */
ST_API int st_shared_alloc(struct st_shared_file *file, size_t length, struct st_shared_piece *out);
/* Returns the memory to the system, also if peers have mapped it: they then read zeros. */
ST_API void st_shared_free(struct st_shared_file *file, const struct st_shared_piece *piece);
/* Finds the place of [memory, memory + length) in the file. False: it is not part of one piece. */
ST_API bool st_shared_find(const struct st_shared_file *file, const void *memory, size_t length,
                           struct st_shared_piece *out);
/* Closes the file; all pieces have been freed. */
ST_API void st_shared_close(struct st_shared_file *file);

#ifdef __cplusplus
}
#endif
#endif
