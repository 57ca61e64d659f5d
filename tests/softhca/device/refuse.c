/* Runs a program with some system calls refused, as old kernels, valgrind and containers do:
 * refuse ENOSYS|EPERM CALL[,CALL...] PROGRAM ARGS... */
#define _GNU_SOURCE 1
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *name;
    unsigned number;
} calls[] = {{"pidfd_open", SYS_pidfd_open},
             {"pidfd_getfd", SYS_pidfd_getfd},
             {"process_vm_readv", SYS_process_vm_readv},
             {"process_vm_writev", SYS_process_vm_writev},
             {"memfd_create", SYS_memfd_create}};
#define CALLS (sizeof calls / sizeof calls[0])

int main(int argc, char **argv)
{
    struct sock_filter code[2 * CALLS + 2];
    unsigned short n = 0;

    if (argc < 4)
        return 2;
    const unsigned error = strcmp(argv[1], "EPERM") == 0 ? EPERM : ENOSYS;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (char *name = strtok(argv[2], ","); name; name = strtok(NULL, ",")) {
        size_t i = 0;
        while (i < CALLS && strcmp(calls[i].name, name) != 0)
            i++;
        if (i == CALLS || n + 3u > sizeof code / sizeof code[0])
            return 2;
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {n, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        printf("SKIP: no filters of system calls here: %s\n", strerror(errno));
        return 77;
    }
    execvp(argv[3], argv + 3);
    perror(argv[3]);
    return 1;
}
