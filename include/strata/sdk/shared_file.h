/* Memory that other processes may map: pieces of one memfd, which is sealed so that nobody makes it shorter under those
 * who have mapped it. Every page is reserved when it is given out: exhaustion is an error return, not a SIGBUS. The
 * pages are not there in a child after fork (MADV_DONTFORK). A pool's op for such memory (mpool.h) is made of this. */
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
    uint64_t size;                 /* bytes that were ever given out: no place in the file is given out again */
    uint64_t used;                 /* bytes of pieces that were not given back */
    struct st_shared_node *pieces; /* those pieces */
};

/* A piece: what a peer needs to map it, [offset, offset + length) of fd. */
struct st_shared_piece {
    void *memory;    /* where it is mapped here */
    size_t length;   /* whole pages */
    int fd;          /* the process's own number for it; the file's until the pool is closed */
    uint64_t offset; /* of its first byte in the file */
};

/* At least `length` > 0 bytes that read as zero. STRATA_ERR_NOMEM: no memory, a limit (RLIMIT_FSIZE counts for such
 * files, too), or all pieces together would be more than half of the machine's memory; STRATA_ERR_UNSUPPORTED: the
 * kernel has no memfd, or refuses it. */
ST_API int st_shared_alloc(struct st_shared_file *file, size_t length, struct st_shared_piece *out);
/* Gives the memory back to the system, also where peers have mapped it: they read zeros then. */
ST_API void st_shared_free(struct st_shared_file *file, const struct st_shared_piece *piece);
/* Where [memory, memory + length) lies in the file. False: it is not part of one piece. */
ST_API bool st_shared_find(const struct st_shared_file *file, const void *memory, size_t length,
                           struct st_shared_piece *out);
/* Closes the file; all pieces have been given back. */
ST_API void st_shared_close(struct st_shared_file *file);

#ifdef __cplusplus
}
#endif
#endif
