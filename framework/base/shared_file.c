/* Pieces of a memfd that peers may map. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <strata/sdk/shared_file.h>

/* A piece that was not given back. */
struct st_shared_node {
    struct st_shared_node *next;
    struct st_shared_piece piece;
};

static int shared_open_file(struct st_shared_file *file)
{
    file->fd = memfd_create("strata-shared", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file->fd < 0)
        return errno == ENOMEM || errno == EMFILE || errno == ENFILE ? STRATA_ERR_NOMEM : STRATA_ERR_UNSUPPORTED;
    if (fcntl(file->fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
        st_shared_close(file);
        return STRATA_ERR_UNSUPPORTED;
    }
    return STRATA_OK;
}

/* The kernel would give pages to such a file until there are none left for anybody. */
static bool shared_is_too_much(const struct st_shared_file *file, size_t bytes)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    uint64_t most = pages > 0 ? (uint64_t)pages / 2 * (uint64_t)sysconf(_SC_PAGESIZE) : UINT32_MAX;
    return bytes > most || file->used > most - bytes;
}

/* Reserves `bytes` at the end of the file. A limit on file sizes answers with a signal, so it is asked before. */
static int shared_grow(struct st_shared_file *file, size_t bytes)
{
    struct rlimit most;
    if (shared_is_too_much(file, bytes) || (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < file->size + bytes))
        return STRATA_ERR_NOMEM;
    int rc;
    do {
        rc = posix_fallocate(file->fd, (off_t)file->size, (off_t)bytes);
    } while (rc == EINTR);
    return rc == 0 ? STRATA_OK : STRATA_ERR_NOMEM;
}

/* The memory behind a piece that is mapped here no more. */
static void shared_give_back(struct st_shared_file *file, const struct st_shared_piece *piece)
{
    file->used -= piece->length;
    (void)fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)piece->offset, (off_t)piece->length);
}

int st_shared_alloc(struct st_shared_file *file, size_t length, struct st_shared_piece *out)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (length + page - 1) & ~(page - 1);
    if (bytes < length || bytes == 0)
        return STRATA_ERR_NOMEM;
    int rc = file->fd < 0 ? shared_open_file(file) : STRATA_OK;
    if (rc == STRATA_OK)
        rc = shared_grow(file, bytes);
    if (rc != STRATA_OK)
        return rc;
    struct st_shared_node *node = malloc(sizeof(*node));
    struct st_shared_piece piece = {.length = bytes, .fd = file->fd, .offset = file->size};
    file->size += bytes;
    file->used += bytes;
    if (node)
        piece.memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, (off_t)piece.offset);
    if (!node || piece.memory == MAP_FAILED) {
        shared_give_back(file, &piece);
        free(node);
        return STRATA_ERR_NOMEM;
    }
    (void)madvise(piece.memory, bytes, MADV_DONTFORK);
    *node = (struct st_shared_node){file->pieces, piece};
    file->pieces = node;
    *out = piece;
    return STRATA_OK;
}

void st_shared_free(struct st_shared_file *file, const struct st_shared_piece *piece)
{
    struct st_shared_node **at = &file->pieces, *node;

    while ((node = *at) != NULL && node->piece.offset != piece->offset)
        at = &node->next;
    if (!node)
        return;
    *at = node->next;
    munmap(node->piece.memory, node->piece.length);
    shared_give_back(file, &node->piece);
    free(node);
}

bool st_shared_find(const struct st_shared_file *file, const void *memory, size_t length, struct st_shared_piece *out)
{
    for (const struct st_shared_node *node = file->pieces; node; node = node->next) {
        const struct st_shared_piece *p = &node->piece;
        const uintptr_t at = (uintptr_t)memory - (uintptr_t)p->memory; /* below it: very large */
        if (at < p->length && length > 0 && length <= p->length - at) {
            *out = (struct st_shared_piece){(char *)p->memory + at, length, p->fd, p->offset + at};
            return true;
        }
    }
    return false;
}

void st_shared_close(struct st_shared_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    *file = (struct st_shared_file){.fd = -1};
}
