/* Files of the ranks' output. Bytes arrive as the rank wrote them, when it wrote them. */
#define _GNU_SOURCE
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "report.h"

static const char *const names[2] = {"stdout", "stderr"};

int files_prepare(const char *folder)
{
    char path[PATH_MAX];
    if (strlen(folder) >= sizeof(path) - 64) {
        report_error("--output-filename: the folder's name is too long");
        return -1;
    }
    strcpy(path, folder);
    for (char *p = path + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = 0;
        (void)mkdir(path, 0777); /* an error shows below */
        *p = '/';
    }
    struct stat st;
    if (mkdir(path, 0777) != 0 && (errno != EEXIST || stat(path, &st) != 0 || !S_ISDIR(st.st_mode))) {
        report_error("--output-filename: cannot make the folder %s: %s", folder, strerror(errno));
        return -1;
    }
    return 0;
}

int files_open(const char *folder, int rank, int fds[2])
{
    char path[PATH_MAX];
    fds[0] = fds[1] = -1;
    snprintf(path, sizeof(path), "%s/rank.%d", folder, rank);
    (void)mkdir(path, 0777);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/rank.%d/%s", folder, rank, names[i]);
        fds[i] = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (fds[i] < 0) {
            report_error("--output-filename: cannot open %s: %s", path, strerror(errno));
            if (i > 0)
                close(fds[0]);
            return -1;
        }
    }
    return 0;
}

bool files_write(const char *folder, int rank, bool is_stderr, int fd, const char *data, size_t n)
{
    while (n > 0) {
        ssize_t put = write(fd, data, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0) {
            report_error("cannot write %s/rank.%d/%s: %s; ending the job", folder, rank, names[is_stderr],
                         strerror(errno));
            return false;
        }
        data += put;
        n -= (size_t)put;
    }
    return true;
}
