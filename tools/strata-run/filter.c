/* libpmix reports that it cannot write to a rank that has been killed; in a job that is being ended that is no news.
 * The variable is read when libpmix is initialised (pmix_output.c there). */
#define _GNU_SOURCE
#include "filter.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char variable[] = "PMIX_OUTPUT_STDERR_FD";
static const char no_news[] = "send_msg: write failed";

int filter_begin(int fds[2])
{
    char number[16];
    if (pipe2(fds, O_CLOEXEC) != 0)
        return -1;
    (void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
    snprintf(number, sizeof(number), "%d", fds[1]);
    return setenv(variable, number, 1);
}

void filter_started(void)
{
    (void)unsetenv(variable);
}

/* libpmix writes whole messages, each of which is shorter than a pipe takes at once. */
void filter_pass(int fd, void (*print)(const char *text, size_t n))
{
    char text[8192];
    ssize_t got;
    while ((got = read(fd, text, sizeof(text) - 1)) > 0) {
        text[got] = 0;
        for (char *line = text, *next; *line; line = next) {
            size_t n = strcspn(line, "\n");
            next = line + n + (line[n] == '\n');
            if (!memmem(line, n, no_news, sizeof(no_news) - 1))
                print(line, (size_t)(next - line));
        }
    }
}
