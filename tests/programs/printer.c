/* A program for tests of output: printf, which flushes nothing, and then something that no flush comes before.
 *   printer TEXT wait FIFO   prints TEXT, waits until FIFO has been opened for writing, prints a line "after"
 *   printer TEXT crash       prints TEXT and is ended by SIGSEGV
 *   printer TEXT stay        prints TEXT and waits for a signal */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    printf("%s", argv[1]);
    if (strcmp(argv[2], "crash") == 0) {
        (void)raise(SIGSEGV);
    } else if (strcmp(argv[2], "stay") == 0) {
        (void)pause();
    } else if (argc == 4) {
        int fd = open(argv[3], O_RDONLY);
        if (fd < 0)
            return 1;
        close(fd);
    }
    printf("after\n");
    return 0;
}
