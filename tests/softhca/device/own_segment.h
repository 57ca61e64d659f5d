/* The segment of this process, mapped once more: to look at what lies in it, or to play another process that writes. */
#ifndef OWN_SEGMENT_H
#define OWN_SEGMENT_H

#include "softhca/fabric.h"
#include "softhca/segment.h"
#include "support/require.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Through the descriptor that the library keeps; `protection` as for mmap. HCA_SIZE bytes, to be unmapped by the
 * caller. */
static inline char *own_segment(int protection)
{
    DIR *d = opendir("/proc/self/fd");
    char *segment = MAP_FAILED;
    struct dirent *e;

    REQUIRE(d != NULL);
    while (segment == MAP_FAILED && (e = readdir(d)) != NULL) {
        char target[64] = "";
        if (readlinkat(dirfd(d), e->d_name, target, sizeof target - 1) > 0 &&
            strcmp(target, "/memfd:" HCA_MEMORY_NAME " (deleted)") == 0)
            segment = mmap(NULL, HCA_SIZE, protection, MAP_SHARED | MAP_NORESERVE, atoi(e->d_name), 0);
    }
    closedir(d);
    REQUIRE(segment != MAP_FAILED);
    return segment;
}

#endif
