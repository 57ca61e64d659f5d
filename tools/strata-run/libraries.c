/* An MPI library that asks another launcher than PMIx for its job takes each rank for a job of one process, without a
 * word. The dynamic loader lists the libraries (ld.so(8), --list) and runs nothing of the program. */
#define _GNU_SOURCE
#include "libraries.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "report.h"

extern char **environ;

/* Open MPI 5 and MPICH with PMIx load libpmix themselves; Open MPI 4 loads it late, through its own run-time layer,
 * which wants a daemon of mpirun's. */
static const struct {
    const char *library, *unless, *name, *launcher;
} known[] = {
    {"libopen-rte.so", NULL, "Open MPI 4", "mpirun.openmpi or strata-mpirun"},
    {"libmpich.so", "libpmix.so", "MPICH without PMIx", "mpirun.mpich"},
    {"libmpi.so.12", "libpmix.so", "MPICH without PMIx", "mpirun.mpich"},
};
enum { N_KNOWN = sizeof(known) / sizeof(known[0]) };

/* The dynamic loader that the program names; false: none, as in scripts and static programs. */
static bool find_loader(const char *path, char *out, size_t size)
{
    ElfW(Ehdr) head;
    bool found = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (pread(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head) && memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
        head.e_ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)) {
        for (int i = 0; i < head.e_phnum && !found; i++) {
            ElfW(Phdr) part;
            off_t at = (off_t)head.e_phoff + (off_t)i * head.e_phentsize;
            if (pread(fd, &part, sizeof(part), at) != (ssize_t)sizeof(part))
                break;
            if (part.p_type == PT_INTERP && part.p_filesz > 1 && part.p_filesz < size)
                found = pread(fd, out, part.p_filesz, (off_t)part.p_offset) == (ssize_t)part.p_filesz;
            if (found)
                out[part.p_filesz] = 0;
        }
    }
    close(fd);
    return found;
}

/* A stream of the loader's list, or NULL. */
static FILE *list(const char *loader, const char *path, pid_t *pid)
{
    int fds[2];
    posix_spawn_file_actions_t files;
    char *argv[] = {(char *)loader, (char *)"--list", (char *)path, NULL};
    if (pipe2(fds, O_CLOEXEC) != 0)
        return NULL;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, fds[1], 1);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    int failed = posix_spawn(pid, loader, &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    close(fds[1]);
    FILE *f = failed ? NULL : fdopen(fds[0], "r");
    if (!f) {
        close(fds[0]);
        if (!failed)
            (void)waitpid(*pid, NULL, 0);
    }
    return f;
}

void libraries_warn(const char *path)
{
    char loader[PATH_MAX], line[PATH_MAX + 256];
    bool has[N_KNOWN] = {false}, excused[N_KNOWN] = {false};
    pid_t pid;
    FILE *f = find_loader(path, loader, sizeof(loader)) ? list(loader, path, &pid) : NULL;
    if (!f)
        return;
    while (fgets(line, sizeof(line), f))
        for (int i = 0; i < N_KNOWN; i++) {
            const char *name = line + strspn(line, " \t");
            has[i] |= strncmp(name, known[i].library, strlen(known[i].library)) == 0;
            excused[i] |= known[i].unless && strncmp(name, known[i].unless, strlen(known[i].unless)) == 0;
        }
    fclose(f);
    (void)waitpid(pid, NULL, 0);
    for (int i = 0; i < N_KNOWN; i++)
        if (has[i] && !excused[i]) {
            report_error("%s uses %s (%s), which does not join a job of strata-run: each rank is an MPI job of one "
                         "process; start it with %s",
                         path, known[i].name, known[i].library, known[i].launcher);
            return;
        }
}
