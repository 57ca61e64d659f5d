/* softhca-stat: lists what each process on the soft adapters has, or sends a process a command. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "stat.h"

static const char usage[] =
    "usage: softhca-stat [--json] [--watch SECONDS]\n"
    "       softhca-stat --fault PID COMMAND\n"
    "       softhca-stat --help | --version\n"
    "Lists the processes of this user on the soft adapters: their queue pairs by state, shared receive\n"
    "queues, completion queues, memory regions, bytes registered and bytes of adapter memory; and\n"
    "what costs (SOFTHCA_COST) they have spent.\n"
    "  -j, --json             as JSON\n"
    "  -w, --watch SECONDS    again and again\n"
    "  -f, --fault PID        send COMMAND to that process, e.g. 'qp 3': its third queue pair from now fails\n"
    "All fabrics are listed, or the one that SOFTHCA_FABRIC names. The commands are in softhca-stat(1).\n";

static bool number(const char *text, int *value)
{
    char *end;
    errno = 0;
    const long v = strtol(text, &end, 10);
    if (errno || end == text || *end || v < 1 || v > 1 << 30)
        return false;
    *value = (int)v;
    return true;
}

static int misused(const char *what)
{
    fprintf(stderr, "softhca-stat: %s\n%s", what, usage);
    return 2;
}

static int list_processes(bool json)
{
    size_t n = 0, found = 0;
    struct place *list = stat_places(&n);
    if (!list) {
        fprintf(stderr, "softhca-stat: /proc/net/unix: %s\n", strerror(errno));
        return 1;
    }
    struct process_stat *s = calloc(n + 1, sizeof *s);
    if (!s) {
        free(list);
        fprintf(stderr, "softhca-stat: no memory\n");
        return 1;
    }
    for (size_t i = 0; i < n; i++) {
        int pid;
        const int fd = stat_connect(&list[i], &pid);
        if (fd < 0)
            continue; /* it has ended meanwhile */
        if (stat_read(&list[i], pid, &s[found]))
            found++;
        close(fd);
    }
    free(list);
    bool written = true;
    if (json)
        written = stat_print_json(stdout, s, found);
    else
        stat_print_text(stdout, s, found);
    free(s);
    if (!written || fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "softhca-stat: the output could not be written\n");
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'},        {"watch", required_argument, NULL, 'w'},
        {"fault", required_argument, NULL, 'f'}, {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},     {0}};
    bool json = false;
    int watch = 0, pid = 0;
    for (int c; (c = getopt_long(argc, argv, "jw:f:hV", options, NULL)) != -1;) {
        if (c == 'j')
            json = true;
        else if (c == 'h')
            return fputs(usage, stdout) == EOF || fflush(stdout) ? 1 : 0;
        else if (c == 'V')
            return puts("softhca-stat (Strata) " PACKAGE_VERSION) == EOF || fflush(stdout) ? 1 : 0;
        else if (c == 'w' && !number(optarg, &watch))
            return misused("--watch: expected seconds");
        else if (c == 'f' && !number(optarg, &pid))
            return misused("--fault: expected a process");
        else if (c == '?')
            return misused("unknown option");
    }
    if (pid)
        return argc - optind == 1 && !json && !watch ? stat_command(pid, argv[optind])
                                                     : misused("--fault: expected one command after the process");
    if (argc != optind)
        return misused("too many arguments");
    for (;;) {
        const int status = list_processes(json);
        if (status || !watch)
            return status;
        sleep((unsigned)watch);
    }
}
