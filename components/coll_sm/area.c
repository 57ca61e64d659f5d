/* Areas: a sealed memfd for each communicator, without a name, so that nothing is left of a killed process. */
#define _GNU_SOURCE 1
#include "area.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <strata/status.h>

int cs_area_make(size_t half, struct own_area *out)
{
    size_t bytes = AREA_HEAD + 2 * half;
    int fd = memfd_create("strata-coll", MFD_CLOEXEC | MFD_ALLOW_SEALING), rc = STRATA_ERR_NOMEM;
    if (fd < 0)
        return STRATA_ERR_UNSUPPORTED;
    if (posix_fallocate(fd, 0, (off_t)bytes) != 0)
        goto close_file;
    rc = STRATA_ERR_UNSUPPORTED;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
        goto close_file;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        rc = STRATA_ERR_NOMEM;
        goto close_file;
    }
    (void)madvise(at, bytes, MADV_DONTFORK);
    *out = (struct own_area){at, bytes, fd};
    return STRATA_OK;
close_file:
    close(fd);
    return rc;
}

void cs_area_drop(struct own_area *own)
{
    if (!own->at)
        return;
    munmap(own->at, own->bytes);
    close(own->fd);
    *own = (struct own_area){.fd = -1};
}
